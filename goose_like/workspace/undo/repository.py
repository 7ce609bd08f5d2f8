"""The repository around a workspace: HEAD and index, read without git, which would delay each turn; changed files."""

import asyncio
import os
import stat
import struct
from contextlib import suppress
from itertools import zip_longest
from pathlib import Path

from goose_like.config.paths import find_repository_root
from goose_like.core.errors import GooseLikeError
from goose_like.core.pattern import compile_later
from goose_like.workspace.programs import GIT_OPTIONS
from goose_like.workspace.repositories.git import RunCommand, find_commit_folders
from goose_like.workspace.repositories.git_index import GitIndex

_MAX_BYTES = 10 << 20
_TIMEOUT_S = 5.0
_HEAD = compile_later(r"(?:ref: (?P<branch>refs/heads/(?!.*\.\.)[^\s\0]+)\n)?(?P<commit>[0-9a-f]{40,64}|)\n")
_GIT = ("git", *GIT_OPTIONS, "-C")
_STATUS = ("status", "--porcelain", "--no-renames", "--untracked-files=all", "--ignored", "-z")


def find_git_folder(root: Path) -> Path | None:
    """Find the folder with HEAD and the index of the repository or worktree around a folder, if it is trustworthy."""
    if not find_commit_folders(root):
        return None
    git = find_repository_root(root) / ".git"
    if git.is_dir():
        return git.resolve()
    pointer = _read_line(git)
    if not pointer.startswith("gitdir: "):
        return None
    target = git.parent / pointer.removeprefix("gitdir: ")
    return target.resolve()


def read_head(git: Path) -> bytes | None:
    """Read the branch and the commit of HEAD, one a line. Return None if they have an unusual form."""
    head = _read_line(git / "HEAD")
    text = f"{head}\n"
    if head.startswith("ref: "):
        # A name of another form could lead out of the repository.
        if not _HEAD.fullmatch(f"{head}\n\n"):
            return None
        name = head.removeprefix("ref: ")
        text += f"{_read_commit(git, name)}\n"
    if not _HEAD.fullmatch(text):
        return None
    return text.encode()


def is_of_git(path: Path) -> bool:
    """Check whether a file is the HEAD or the index of a repository."""
    return ".git" in path.parts and path.name in ("HEAD", "index")


def describe_commit(head: bytes) -> str:
    """Return the short commit in a HEAD from `read_head`. Return an empty text for any other content."""
    found = _HEAD.fullmatch(head.decode(errors="replace"))
    if not found:
        return ""
    return found["commit"][:7] or "no commit"


def _read_commit(git: Path, branch: str) -> str:
    """Read the commit of a branch, which has a file of its own or a line in `packed-refs`; empty if it has none."""
    pointer = _read_line(git / "commondir")
    common = git / pointer if pointer else git
    return _read_line(common / branch) or _find_packed(common, branch)


def _find_packed(common: Path, name: str) -> str:
    lines = _read(common / "packed-refs").decode(errors="replace").splitlines()
    for line in lines:
        if line.endswith(f" {name}"):
            return line.split(" ")[0]
    return ""


def _read_line(path: Path) -> str:
    return _read(path).decode(errors="replace").partition("\n")[0].strip()


def _read(path: Path) -> bytes:
    """Read a file of a repository, which may be gone, a link or a pipe. Return no bytes then."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                return file.read(_MAX_BYTES)
    return b""


async def list_changed_paths(root: Path, run: RunCommand) -> dict[str, str] | None:
    """Map the files and folders that differ from HEAD, are untracked (`??`), or are ignored (`!!`) to their status.

    Return None if git fails.
    """
    with suppress(GooseLikeError, TimeoutError):
        async with asyncio.timeout(_TIMEOUT_S):
            code, output = await run([*_GIT, str(root), *_STATUS])
        if code == 0:
            return _parse_status(os.fsdecode(output), find_repository_root(root))
    return None


def _parse_status(output: str, top: Path) -> dict[str, str]:
    """Map the paths in an output of `git status -z` to their status of two letters."""
    statuses = {}
    for entry in output.split("\0"):
        if not entry:
            continue
        name = entry[3:].rstrip("/")
        statuses[os.path.join(top, name)] = entry[:2]
    return statuses


async def restore_head(root: Path, target: bytes, run: RunCommand) -> None:
    """Restore HEAD and its branch. The reflog keeps the commits that no branch has then.

    Raises:
        GooseLikeError: git refused it.
    """
    found = _HEAD.fullmatch(target.decode(errors="replace"))
    if found is None:
        raise GooseLikeError("the stored HEAD is damaged")
    branch = found["branch"]
    commit = found["commit"]
    if not branch:
        lines = [["update-ref", "--no-deref", "HEAD", commit]]
    elif commit:
        lines = [["update-ref", branch, commit], ["symbolic-ref", "HEAD", branch]]
    else:
        lines = [["update-ref", "-d", branch], ["symbolic-ref", "HEAD", branch]]
    for line in lines:
        code, output = await run([*_GIT, str(root), *line])
        if code != 0:
            reason = output.decode(errors="replace").strip()
            raise GooseLikeError(f"git {line[0]} failed: {reason}")


def is_same_index(one: bytes, two: bytes) -> bool:
    """Compare the entries of two indexes, without the times that `git status` refreshes."""
    if one == two:
        return True
    with suppress(ValueError, IndexError, struct.error):
        entries = zip_longest(GitIndex(one).iterate_facts(), GitIndex(two).iterate_facts())
        return all(old == new for old, new in entries)
    return False
