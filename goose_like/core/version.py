"""The version of goose_like with its commit."""

import os
from contextlib import suppress

from goose_like import __version__

from .git_head import describe_commit, follow_git_file, read_head

COMMIT_FILE = "commit.txt"
"""The file in a built package that holds its commit; `.ci/build_hook.py` writes it."""


def describe_version() -> str:
    """Return the version and its commit, such as `0.1.0 (1a2b3c4)`."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    commit = read_commit(package)
    if not commit:
        return __version__
    return f"{__version__} ({commit})"


def read_commit(package: str) -> str:
    """Read the commit from the built package, or from the checkout around it. A copy without git has none."""
    with suppress(FileNotFoundError), open(os.path.join(package, COMMIT_FILE), encoding="ascii") as file:
        return file.read().strip()
    # The checkout of goose_like, whatever the current folder is. Another repository may hold a copy of the package.
    if not os.path.isfile(os.path.join(os.path.dirname(package), "toolkits", "goose_like_toolkits", "__init__.py")):
        return ""
    git = follow_git_file(os.path.join(os.path.dirname(package), ".git"))
    head = read_head(git) if git else None
    return describe_commit(head) if head else ""
