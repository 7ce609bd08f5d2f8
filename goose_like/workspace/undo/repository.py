"""The repository around a workspace: HEAD and index, read without git, which would delay each turn; changed files."""

import asyncio
import os
import re
import stat
from contextlib import suppress
from pathlib import Path

from goose_like.config.paths import find_repository_root
from goose_like.core.errors import GooseLikeError
from goose_like.workspace.repositories.git import RunCommand, find_commit_folders

_MAX_BYTES = 10 << 20
_TIMEOUT_S = 5.0
_HEAD = re.compile(r"(?:ref: (?P<branch>refs/heads/(?!.*\.\.)[^\s\0]+)\n)?(?P<commit>[0-9a-f]{40,64}|)\n")
_GIT = ("git", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-C")


def find_git_folder(root: Path) -> Path | None:
    """Find the folder with HEAD and the index of the repository or worktree around a folder, if it is trustworthy."""
    if not find_commit_folders(root):
        return None
    git = find_repository_root(root) / ".git"
    if git.is_dir():
        return git.resolve()
    pointer = _read_line(git)
    return (git.parent / pointer.removeprefix("gitdir: ")).resolve() if pointer.startswith("gitdir: ") else None


def read_head(git: Path) -> bytes | None:
    """Read the branch and the commit of HEAD, one a line. Return None if they have an unusual form."""
    head = _read_line(git / "HEAD")
    text = f"{head}\n"
    if head.startswith("ref: "):
        name = head.removeprefix("ref: ")
        pointer = _read_line(git / "commondir")
        common = git / pointer if pointer else git
        text += f"{_read_line(common / name) or _find_packed(common, name)}\n" if _HEAD.fullmatch(f"{head}\n\n") else ""
    return text.encode() if _HEAD.fullmatch(text) else None


def is_of_git(path: Path) -> bool:
    """Check whether a file is the HEAD or the index of a repository."""
    return ".git" in path.parts and path.name in ("HEAD", "index")


def describe_commit(head: bytes) -> str:
    """Return the short commit in a HEAD from `read_head`. Return an empty text for any other content."""
    found = _HEAD.fullmatch(head.decode(errors="replace"))
    return (found["commit"][:7] or "no commit") if found else ""


def _find_packed(common: Path, name: str) -> str:
    lines = _read(common / "packed-refs").decode(errors="replace").splitlines()
    return next((line.split(" ")[0] for line in lines if line.endswith(f" {name}")), "")


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
    options = ("status", "--porcelain", "--no-renames", "--untracked-files=all", "--ignored", "-z")
    with suppress(GooseLikeError, TimeoutError):
        async with asyncio.timeout(_TIMEOUT_S):
            code, output = await run([*_GIT, str(root), *options])
        if code == 0:
            top = find_repository_root(root)
            entries = filter(None, os.fsdecode(output).split("\0"))
            return {os.path.join(top, entry[3:].rstrip("/")): entry[:2] for entry in entries}
    return None


async def restore_head(root: Path, target: bytes, run: RunCommand) -> None:
    """Restore HEAD and its branch. The reflog keeps the commits that no branch has then.

    Raises:
        GooseLikeError: git refused it.
    """
    found = _HEAD.fullmatch(target.decode(errors="replace"))
    if found is None:
        raise GooseLikeError("the stored HEAD is damaged")
    branch, commit = found["branch"], found["commit"]
    words = ["update-ref", "--no-deref", "HEAD", commit]
    if branch:
        words = ["update-ref", branch, commit] if commit else ["update-ref", "-d", branch]
    for line in [words, *([["symbolic-ref", "HEAD", branch]] if branch else [])]:
        code, output = await run([*_GIT, str(root), *line])
        if code != 0:
            raise GooseLikeError(f"git {line[0]} failed: {output.decode(errors='replace').strip()}")


def is_same_index(one: bytes, two: bytes) -> bool:
    """Compare the entries of two indexes, without the times that `git status` refreshes."""
    return one == two or (_list_entries(one) or one) == (_list_entries(two) or two)


def _list_entries(data: bytes) -> list[bytes] | None:
    """List mode, hash, flags and name of each entry of an index of version 2 or 3 with SHA-1."""
    if data[:4] != b"DIRC" or data[4:8] not in (b"\0\0\0\2", b"\0\0\0\3"):
        return None
    entries, start = [], 12
    with suppress(ValueError):
        for _ in range(int.from_bytes(data[8:12])):
            is_extended = data[start + 60] & 0x40 if start + 60 < len(data) else 0
            end = data.index(b"\0", start + (64 if is_extended else 62))
            entries.append(data[start + 24 : start + 28] + data[start + 40 : end])
            start += (end - start) // 8 * 8 + 8  # NUL bytes fill the entry
        return entries
    return None
