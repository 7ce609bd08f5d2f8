"""Snapshots: the state of a path or a folder tree, without following links. Unchanged files are not read again."""

import os
import stat
import time
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

LIMIT_ENTRIES = 20_000
LIMIT_FILE_BYTES = 10 << 20
LIMIT_TREE_BYTES = 100 << 20

_KINDS = {stat.S_IFREG, stat.S_IFLNK, stat.S_IFDIR}
_UNKNOWN = "\0"  # no link leads to such a name
_CLOCK_TICK_NS = 50_000_000
_READ_ATTEMPTS = 3

StoreBlob = Callable[[bytes], str]
"""Stores a file's content and returns its name; raises OSError if it cannot."""


class FileState(NamedTuple):
    """The file, folder or link at a path: its `mode` with the kind, as in `stat`, and its content.

    `content` is the blob name of a file or the target of a link. If it could not be stored, `content` is a NUL followed
    by marks that differ after a change.
    """

    mode: int
    content: str = ""

    @property
    def is_stored(self) -> bool:
        """True if the content can be restored."""
        return not self.content.startswith(_UNKNOWN)


ABSENT = FileState(0)


@dataclass(frozen=True, slots=True)
class CachedState:
    """A state with the marks that it had, and the reason why its content is not stored, if any.

    Marks are None if a later change might leave the same marks. `size_bytes` is that of the stored content.
    """

    state: FileState
    size_bytes: int
    marks: tuple[int, ...] | None
    gap: str


Snapshot = dict[str, CachedState]
"""The states below a folder by path."""


def take_snapshot(
    root: Path, excluded: Container[str], store: StoreBlob, known: Mapping[str, CachedState]
) -> Snapshot | None:
    """Take a snapshot of a folder, or return None if it has more entries than the limit.

    It leaves out `.git`, mounted folders, sockets, devices, and the paths in `excluded`. A file with the marks of
    `known` is not read again. If not all contents fit, small files come first. Raise the OSError of `store`.
    """
    states, room_bytes = Snapshot(), LIMIT_TREE_BYTES
    unread: list[tuple[str, os.stat_result]] = []
    for path, status in _walk(str(root), excluded, known):
        if len(states) + len(unread) >= LIMIT_ENTRIES:
            return None
        old = known.get(path)
        if old and (status is None or old.marks == _get_marks(status)):
            states[path] = old
            room_bytes -= old.size_bytes
        elif status is not None:
            unread.append((path, status))
    for path, status in sorted(unread, key=lambda entry: entry[1].st_size):
        cached = _read_cached_state(path, status, store, room_bytes)
        if not cached.gap or os.path.lexists(path):  # otherwise it was removed meanwhile
            states[path] = cached
            room_bytes -= cached.size_bytes
    return states


def read_state(path: str, store: StoreBlob) -> FileState:
    """Read the state of one path. Raise the OSError of `store`."""
    cached = read_cached_state(path, store)
    return cached.state if cached else ABSENT


def read_cached_state(path: str, store: StoreBlob) -> CachedState | None:
    """Read the state of one path with its gap, if there is something. Raise the OSError of `store`."""
    try:
        status = os.lstat(path)
    except (OSError, ValueError):
        return None
    return _read_cached_state(path, status, store, LIMIT_FILE_BYTES) if _is_tracked(status) else None


def _walk(
    root: str, excluded: Container[str], known: Mapping[str, CachedState]
) -> Iterator[tuple[str, os.stat_result | None]]:
    """Yield every path below a folder. In a folder that cannot be listed, yield the known paths without a status."""
    folders, device = [root], None
    with suppress(FileNotFoundError):
        device = os.lstat(root).st_dev
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(folder) as listing:
                entries = list(listing)
        except OSError:
            yield from ((path, None) for path in known if path.startswith(f"{folder}/"))
            continue
        for entry in entries:
            with suppress(FileNotFoundError):
                status, is_excluded = entry.stat(follow_symlinks=False), entry.name == ".git" or entry.path in excluded
                if status.st_dev == device and _is_tracked(status) and not is_excluded:
                    if stat.S_ISDIR(status.st_mode):
                        folders.append(entry.path)
                    yield entry.path, status


def _is_tracked(status: os.stat_result) -> bool:
    return stat.S_IFMT(status.st_mode) in _KINDS


def _read_cached_state(path: str, status: os.stat_result, store: StoreBlob, room_bytes: int) -> CachedState:
    read_ns, gap, content, data = time.time_ns(), "", "", None
    try:
        if stat.S_ISLNK(status.st_mode):
            content = os.readlink(path)
        elif stat.S_ISREG(status.st_mode) and status.st_size > LIMIT_FILE_BYTES:
            gap = f"over {LIMIT_FILE_BYTES >> 20} MB"
        elif stat.S_ISREG(status.st_mode) and status.st_size > room_bytes:
            gap = f"beyond {LIMIT_TREE_BYTES >> 20} MB in all"
        elif stat.S_ISREG(status.st_mode):
            data, status = _read_file(path)
    except OSError:
        gap = "that can't be read"
    if data is not None:
        content = store(data)
    # A change within the clock tick after the read would leave no other mark.
    marks = _get_marks(status) if read_ns - status.st_ctime_ns > _CLOCK_TICK_NS else None
    if gap:
        content = f"{_UNKNOWN}{_get_marks(status)}"
    return CachedState(FileState(status.st_mode, content), len(data or b""), marks, gap)


def _read_file(path: str) -> tuple[bytes, os.stat_result]:
    """Read a regular file as it was at one moment, together with its status at that moment."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        for _ in range(_READ_ATTEMPTS):
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_size > LIMIT_FILE_BYTES:
                break
            data = os.pread(descriptor, status.st_size + 1, 0)
            if len(data) == status.st_size and _get_marks(os.fstat(descriptor)) == _get_marks(status):
                return data, status
    finally:
        os.close(descriptor)
    raise OSError("it changes while it is read")


def _get_marks(status: os.stat_result) -> tuple[int, ...]:
    return (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_mode)
