"""A command that missed a file: which folder of its path is missing, and which files there are."""

import shlex
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from goose_like.core.errors import GooseLikeError
from goose_like.core.pattern import compile_later
from goose_like.toolkit import Workspace

from .git_facts import is_cache
from .seen_files import show_name

MAX_NAMES = 20

_MISSING = compile_later("No such file or directory|cannot access")
_PATH = compile_later(
    r"No such file or directory: '(?P<python>[^'\n]{1,300}/[^'\n]{1,300})'"
    r"|(?:^|\s)['\u2018](?P<quoted>[^'\u2018\u2019\n]{1,300}/[^'\u2018\u2019\n]{1,300})['\u2019]"
    r": No such file or directory"
    r"| line \d+: (?:cd: )?(?P<bash>[^\n]{1,300}/[^\n]{1,300}): No such file or directory"
    r"|(?:^|\n|: )(?P<bare>[^\s'\u2018\":]{1,300}/[^\s'\u2019\":]{1,300}): No such file or directory"
)
"""A missing path with a folder, as Python and others quote it, as bash writes it, and as one word without quotes."""

_NOT_LITERAL = compile_later(r"[\\\ufffd]")
"""A sign that the output shows a path in another form than its name: Python's escapes, and bytes without a letter."""


def has_missed_file(text: str) -> bool:
    """Return whether the output of a command says that a file or folder is missing."""
    return _MISSING.search(text) is not None


def find_missing_folder(text: str, workspace: Workspace, folder: Path) -> Iterator[str]:
    """Name the folder that the first missing path of an output needs, seen from the folder of the command.

    Only the workspace is the same for the command and for us: elsewhere a folder may be hidden from the command.
    """
    match = _PATH.search(text)
    if match is None:
        return
    path = match[match.lastgroup or 0]
    if _NOT_LITERAL.search(path):
        return
    parent = Path(path).parent
    with suppress(GooseLikeError, OSError):
        if not workspace.resolve(folder / parent).is_relative_to(workspace.root):
            return
        try:
            workspace.list_folder(folder / parent)
        except FileNotFoundError:
            name = shlex.quote(str(parent))
            yield f"there is no folder {name}; for a new file in it, first: mkdir -p {name}"


def list_names(workspace: Workspace, folder: Path) -> Iterator[str]:
    """Name what is in the folder, and in those below while all fit: models guess names before they look."""
    with suppress(GooseLikeError, OSError):
        names = _expand_folders(workspace, folder)
        shown = ", ".join(map(show_name, names[:MAX_NAMES]))
        rest = ", ..." if len(names) > MAX_NAMES else ""
        yield f"the folder has: {shown or 'nothing'}{rest}"


def _expand_folders(workspace: Workspace, folder: Path) -> list[str]:
    """List the names in a folder, and in place of each folder the names in it while all fit."""
    expanded: list[str] = []
    waiting = [*reversed(_list_visible(workspace, folder))]
    while waiting:
        name = waiting.pop()
        below: list[str] = []
        if name.endswith("/"):
            below = [name + entry for entry in _list_visible(workspace, folder / name)]
        count = len(expanded) + 1 + len(waiting) + len(below)
        if below and count <= MAX_NAMES:
            waiting += reversed(below)
        else:
            expanded.append(name)
    return expanded


def _list_visible(workspace: Workspace, folder: Path) -> list[str]:
    """List the names in a folder that are neither hidden nor a cache."""
    names = workspace.list_folder(folder)
    return [name for name in names if not name.startswith(".") and not is_cache(name)]
