"""Snapshots: the state of a path or a folder tree, without following links.

Files are not read if they are unchanged since the last snapshot, or if git has their contents.
"""

import os
import stat
import time
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from .tracked import CLOCK_TICK_NS, TrackedFiles, is_content

LIMIT_ENTRIES = 20_000
LIMIT_FILE_BYTES = 10 << 20
LIMIT_TREE_BYTES = 100 << 20

_KINDS = {stat.S_IFREG, stat.S_IFLNK, stat.S_IFDIR}
_UNKNOWN = "\0"  # no link leads to such a name
_READ_ATTEMPTS = 3

StoreBlob = Callable[[bytes], str]
"""Stores a file's content and returns its name; raises OSError if it cannot."""


class FileState(NamedTuple):
    """The file, folder or link at a path: its `mode` with the kind, as in `stat`, and its content.

    `content` is the target of a link, or names the content of a file in the undo log or in git. If it could not be
    stored, `content` is a NUL followed by marks that differ after a change.
    """

    mode: int
    content: str = ""

    @property
    def is_stored(self) -> bool:
        """True if the content can be restored."""
        return not self.content.startswith(_UNKNOWN)

    @property
    def is_in_git(self) -> bool:
        """True if git has the content."""
        return self.content.startswith("git:") and stat.S_ISREG(self.mode)


ABSENT = FileState(0)


class CachedState(NamedTuple):
    """A state with the marks that it had, and the reason why its content is not stored, if any.

    Marks are None if a later change might leave the same marks. `size_bytes` is that of the stored content.
    """

    state: FileState
    size_bytes: int
    marks: tuple[int, ...] | None
    gap: str


Snapshot = dict[str, CachedState]
"""The states below a folder by path."""

Statuses = Iterator[tuple[str, os.stat_result | None]]


def take_snapshot(
    root: Path,
    excluded: Container[str],
    store: StoreBlob,
    known: Mapping[str, CachedState],
    tracked: TrackedFiles | None = None,
) -> tuple[Snapshot, bool]:
    """Take a snapshot of a folder. If the second result is False, it holds only the tracked files.

    That happens if there are more other files and folders than the limit. It leaves out `.git`, mounted folders,
    sockets, devices, and the paths in `excluded`. A file with the marks of `known` is not read again, nor one that is
    as git saw it. If not all contents fit, small files come first. Raise the OSError of `store`.
    """
    tracked = tracked or TrackedFiles()
    snapshot = _read_all(_walk(str(root), excluded, known, tracked), store, known, tracked, LIMIT_ENTRIES)
    if snapshot is not None:
        return snapshot, True
    return _read_all(tracked.walk(excluded), store, known, tracked, None) or {}, False


def _read_all(
    found: Statuses, store: StoreBlob, known: Mapping[str, CachedState], tracked: TrackedFiles, limit: int | None
) -> Snapshot | None:
    """Read the states of the paths that are found, or return None if more than `limit` of them are not tracked."""
    states, room_bytes = Snapshot(), LIMIT_TREE_BYTES
    unread: list[tuple[str, os.stat_result]] = []
    for path, status in found:
        old = known.get(path)
        if old and (status is None or old.marks == get_marks(status)):
            states[path] = old
            room_bytes -= old.size_bytes
        elif status is not None and stat.S_ISREG(status.st_mode) and (content := tracked.find_content(path, status)):
            states[path] = CachedState(FileState(status.st_mode, content), 0, get_marks(status), "")
        elif status is not None:
            unread.append((path, status))
        # Tracked files have at most as many folders, except in odd trees.
        if limit is not None and len(states) + len(unread) > limit + 2 * tracked.count:
            return None
    others = [path for path, cached in states.items() if not cached.state.is_in_git] + [path for path, _ in unread]
    if limit is not None and len(others) > limit and tracked.count_others(others) > limit:
        return None
    for path, status in sorted(unread, key=lambda entry: entry[1].st_size):
        candidate = tracked.find_candidate(path, status.st_size) if stat.S_ISREG(status.st_mode) else ""
        cached = _read_cached_state(path, status, store, room_bytes, candidate)
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
    return _read_cached_state(path, status, store, LIMIT_FILE_BYTES) if _is_ordinary(status) else None


def _walk(root: str, excluded: Container[str], known: Mapping[str, CachedState], tracked: TrackedFiles) -> Statuses:
    """Yield every path below a folder, and add the repositories there to `tracked`.

    In a folder that cannot be listed, yield the known paths without a status.
    """
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
        if folder != root and any(entry.name == ".git" for entry in entries):
            tracked.add_repository(folder)
        for entry in entries:
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            if status.st_dev == device and _is_ordinary(status) and entry.name != ".git" and entry.path not in excluded:
                if stat.S_ISDIR(status.st_mode):
                    folders.append(entry.path)
                yield entry.path, status


def _is_ordinary(status: os.stat_result) -> bool:
    return stat.S_IFMT(status.st_mode) in _KINDS


def _read_cached_state(
    path: str, status: os.stat_result, store: StoreBlob, room_bytes: int, candidate: str = ""
) -> CachedState:
    """Read and store the content of a path. It is not stored if it is the `candidate` that git has."""
    read_ns, gap, content, data = time.time_ns(), "", "", None
    try:
        if stat.S_ISLNK(status.st_mode):
            content = os.readlink(path)
        elif stat.S_ISREG(status.st_mode) and status.st_size > LIMIT_FILE_BYTES:
            gap = f"over {LIMIT_FILE_BYTES >> 20} MB"
        elif stat.S_ISREG(status.st_mode) and (status.st_size <= room_bytes or candidate):
            data, status = _read_file(path)
    except OSError:
        gap = "that can't be read"
    if data is not None and is_content(candidate, data):
        data, content = None, candidate
    elif stat.S_ISREG(status.st_mode) and not gap and (data is None or len(data) > room_bytes):
        data, gap = None, f"beyond {LIMIT_TREE_BYTES >> 20} MB in all"
    elif data is not None:
        content = store(data)
    # A change within the clock tick after the read would leave no other mark.
    marks = get_marks(status) if read_ns - status.st_ctime_ns > CLOCK_TICK_NS else None
    if gap:
        content = f"{_UNKNOWN}{get_marks(status)}"
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
            if len(data) == status.st_size and get_marks(os.fstat(descriptor)) == get_marks(status):
                return data, status
    finally:
        os.close(descriptor)
    raise OSError("it changes while it is read")


def get_marks(status: os.stat_result) -> tuple[int, ...]:
    """Return numbers that differ after a change."""
    return (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_mode)
