"""Changed files of a git repository, found by comparing its index with the files, without running git."""

import os
import stat
import struct
from contextlib import suppress
from hashlib import sha1
from pathlib import Path

from goose_like.config.paths import find_repository_root
from goose_like.toolkit import Workspace
from goose_like.workspace.repositories.git import find_commit_folders
from goose_like.workspace.repositories.git_index import IndexEntry, iterate_entries, read_index
from goose_like.workspace.undo.repository import find_git_folder

_MAX_INDEX_BYTES = 8_000_000
_MAX_FILE_BYTES = 1_000_000
_MAX_COMPARED = 100


def list_changed_files(workspace: Workspace) -> list[str] | None:
    """List the files below the workspace that differ from the index, relative to its root.

    Return None outside a repository, and where only git itself can tell: large or unusual repositories.
    """
    git = find_git_folder(workspace.root)
    if git is None:
        return None
    if not os.path.lexists(git / "index"):  # nothing was ever added
        return []
    repository = find_repository_root(workspace.root)
    settings = find_commit_folders(workspace.root)[0] / "config"  # of a worktree, in the main repository
    prefix = _find_prefix(workspace.root, repository)
    changed: dict[str, None] = {}  # a file with a conflict has several entries
    compared_count = 0
    try:
        if b"objectformat" in _read_file(str(settings), _MAX_FILE_BYTES).lower():
            return None
        index, _ = read_index(f"{git}/index", _MAX_INDEX_BYTES)
        for path, entry in iterate_entries(index):
            if entry.is_assumed or not stat.S_ISREG(entry.mode) or not path.startswith(prefix):
                continue
            file = f"{repository}/{path}"
            is_changed = _compare_marks(file, entry)
            if is_changed is None:
                compared_count += 1
                if compared_count > _MAX_COMPARED:
                    return None
                is_changed = _compare_content(file, entry)
            if is_changed and not workspace.is_ignored(file):
                changed[path.removeprefix(prefix)] = None
    except (OSError, ValueError, IndexError, struct.error):
        return None
    return list(changed)


def _find_prefix(root: Path, repository: Path) -> str:
    """Return the start of the paths in an index that belong to a folder of the repository."""
    if root == repository:
        return ""
    return f"{root.relative_to(repository)}/"


def _read_file(file: str, limit_bytes: int) -> bytes:
    """Read a file. Raise OSError or ValueError if it is a link, no file, or larger than the limit."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC
    descriptor = os.open(file, flags)
    with open(descriptor, "rb") as stream:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > limit_bytes:
            raise ValueError("no file, or too large")
        return stream.read()


def _compare_marks(file: str, entry: IndexEntry) -> bool | None:
    """Tell whether a file changed, by its size and time; None if only the content can tell."""
    try:
        status = os.lstat(file)
    except OSError:
        return True
    if not stat.S_ISREG(status.st_mode):
        return True
    if status.st_size & 0xFFFFFFFF != entry.size:
        return True if entry.size else None  # git sets 0 where the time can't be trusted
    times = (status.st_mtime_ns, status.st_mtime_ns // 10**9 * 10**9)  # some gits keep whole seconds
    return False if entry.mtime_ns in times else None


def _compare_content(file: str, entry: IndexEntry) -> bool:
    with suppress(OSError, ValueError):
        data = _read_file(file, _MAX_FILE_BYTES)
        header = b"blob %d\0" % len(data)
        digest = sha1(header + data, usedforsecurity=False).digest()
        return digest != entry.digest
    return True
