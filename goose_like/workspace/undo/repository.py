"""The repository around a workspace: its folder and index, found without git, which would delay each turn; changes."""

import asyncio
import os
import struct
from contextlib import suppress
from itertools import zip_longest
from pathlib import Path

from goose_like.config.paths import find_repository_root
from goose_like.core.errors import GooseLikeError
from goose_like.core.git_head import HEAD, follow_git_file
from goose_like.workspace.programs import GIT_OPTIONS
from goose_like.workspace.repositories.git import RunCommand, find_commit_folders
from goose_like.workspace.repositories.git_index import GitIndex

_TIMEOUT_S = 5.0
_GIT = ("git", *GIT_OPTIONS, "-C")
_STATUS = ("status", "--porcelain", "--no-renames", "--untracked-files=all", "--ignored", "-z")


def find_git_folder(root: Path) -> Path | None:
    """Find the folder with HEAD and the index of the repository or worktree around a folder, if it is trustworthy."""
    if not find_commit_folders(root):
        return None
    git = follow_git_file(find_repository_root(root) / ".git")
    return Path(git) if git else None


def is_of_git(path: Path) -> bool:
    """Check whether a file is the HEAD or the index of a repository."""
    return ".git" in path.parts and path.name in ("HEAD", "index")


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
    found = HEAD.fullmatch(target.decode(errors="replace"))
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
