"""Changed files of a git repository, found by comparing its index with the files, without running git."""

import os
import stat
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha1

from goose_like.config.paths import find_repository_root
from goose_like.toolkit import Workspace

_MAX_INDEX_BYTES = 1_000_000
_MAX_FILE_BYTES = 1_000_000
_MAX_COMPARED = 100
_ENTRY = struct.Struct(">10I20sH")
_ASSUME_VALID, _EXTENDED = 0x8000, 0x4000
_SKIP_WORKTREE = 0x4000


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """A file as git last saw it; see `Documentation/gitformat-index.txt` of git."""

    path: str
    mode: int
    size: int
    mtime: tuple[int, int]
    digest: bytes


def list_changed_files(workspace: Workspace) -> list[str] | None:
    """List the files below the workspace that differ from the index, relative to its root.

    Return None outside a repository, and where only git itself can tell: large or unusual repositories.
    """
    repository = find_repository_root(workspace.root)
    prefix = "" if repository == workspace.root else f"{workspace.root.relative_to(repository)}/"
    changed, compared_count = dict[str, None](), 0  # a file with a conflict has several entries
    try:
        if b"objectformat" in _read_file(f"{repository}/.git/config", _MAX_FILE_BYTES).lower():
            return None
        for entry in _iterate_entries(_read_file(f"{repository}/.git/index", _MAX_INDEX_BYTES)):
            if stat.S_IFMT(entry.mode) != stat.S_IFREG or not entry.path.startswith(prefix):
                continue
            file = f"{repository}/{entry.path}"
            is_changed = _compare_marks(file, entry)
            if is_changed is None:
                is_changed = _compare_content(file, entry)
                compared_count += 1
            if compared_count > _MAX_COMPARED:
                return None
            if is_changed and not workspace.is_ignored(file):
                changed[entry.path.removeprefix(prefix)] = None
    except (OSError, ValueError, struct.error):
        return None
    return list(changed)


def _read_file(file: str, limit_bytes: int) -> bytes:
    """Read a file. Raise OSError or ValueError if it is a link, no file, or larger than the limit."""
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC)
    with open(descriptor, "rb") as stream:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > limit_bytes:
            raise ValueError("no file, or too large")
        return stream.read()


def _iterate_entries(index: bytes) -> Iterator[IndexEntry]:
    """Parse an index of version 2 or 3. Raise ValueError or struct.error if it has another format."""
    magic, version, count = struct.unpack_from(">4sII", index)
    if magic != b"DIRC" or version not in (2, 3):
        raise ValueError("another format")
    place = 12
    for _ in range(count):
        *numbers, digest, flags = _ENTRY.unpack_from(index, place)
        start, more = place + _ENTRY.size, 0
        if flags & _EXTENDED:
            (more,) = struct.unpack_from(">H", index, start)
            start += 2
        end = index.index(b"\0", start)
        if not (flags & _ASSUME_VALID or more & _SKIP_WORKTREE):
            yield IndexEntry(os.fsdecode(index[start:end]), numbers[6], numbers[9], (numbers[2], numbers[3]), digest)
        place += (end - place) // 8 * 8 + 8


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
    seconds, nanoseconds = divmod(status.st_mtime_ns, 10**9)
    return False if entry.mtime in ((seconds, nanoseconds), (seconds, 0)) else None


def _compare_content(file: str, entry: IndexEntry) -> bool:
    with suppress(OSError, ValueError):
        data = _read_file(file, _MAX_FILE_BYTES)
        return sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).digest() != entry.digest
    return True
