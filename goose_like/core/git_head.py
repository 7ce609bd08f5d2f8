"""HEAD of a git repository, read without git: its branch and its commit.

`goose-like --version` imports this module, so it does without pathlib, which takes a tenth of that time.
"""

import os
import stat
from contextlib import suppress

from .pattern import compile_later

_MAX_BYTES = 10 << 20

HEAD = compile_later(r"(?:ref: (?P<branch>refs/heads/(?!.*\.\.)[^\s\0]+)\n)?(?P<commit>[0-9a-f]{40,64}|)\n")
"""A branch and a commit, as `read_head` returns them."""


def follow_git_file(git: str | os.PathLike[str]) -> str | None:
    """Return the git folder of a working tree by its `.git`: this folder, or the one that this file names."""
    if os.path.isdir(git):
        return os.path.realpath(git)
    pointer = _read_line(git)
    if not pointer.startswith("gitdir: "):
        return None
    target = pointer.removeprefix("gitdir: ")
    return os.path.realpath(os.path.join(os.path.dirname(git), target))


def read_head(git: str | os.PathLike[str]) -> bytes | None:
    """Read the branch and the commit of HEAD, one a line. Return None if they have an unusual form."""
    head = _read_line(os.path.join(git, "HEAD"))
    text = f"{head}\n"
    if head.startswith("ref: "):
        # A name of another form could lead out of the repository.
        if not HEAD.fullmatch(f"{head}\n\n"):
            return None
        name = head.removeprefix("ref: ")
        text += f"{_read_commit(git, name)}\n"
    if not HEAD.fullmatch(text):
        return None
    return text.encode()


def describe_commit(head: bytes) -> str:
    """Return the short commit in a HEAD from `read_head`. Return an empty text for any other content."""
    found = HEAD.fullmatch(head.decode(errors="replace"))
    if not found:
        return ""
    return found["commit"][:7] or "no commit"


def _read_commit(git: str | os.PathLike[str], branch: str) -> str:
    """Read the commit of a branch, which has a file of its own or a line in `packed-refs`; empty if it has none."""
    common = os.path.join(git, _read_line(os.path.join(git, "commondir")))
    return _read_line(os.path.join(common, branch)) or _find_packed(common, branch)


def _find_packed(common: str, name: str) -> str:
    lines = _read(os.path.join(common, "packed-refs")).decode(errors="replace").splitlines()
    for line in lines:
        if line.endswith(f" {name}"):
            return line.split(" ")[0]
    return ""


def _read_line(path: str | os.PathLike[str]) -> str:
    return _read(path).decode(errors="replace").partition("\n")[0].strip()


def _read(path: str | os.PathLike[str]) -> bytes:
    """Read a file of a repository, which may be gone, a link or a pipe. Return no bytes then."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                return file.read(_MAX_BYTES)
    return b""
