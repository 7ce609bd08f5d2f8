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
    everything = _walk(str(root), excluded, known, tracked)
    snapshot = _read_all(everything, store, known, tracked, LIMIT_ENTRIES)
    if snapshot is not None:
        return snapshot, True
    tracked_snapshot = _read_all(tracked.walk(excluded), store, known, tracked, None)
    return tracked_snapshot or {}, False


def _read_all(
    found: Statuses, store: StoreBlob, known: Mapping[str, CachedState], tracked: TrackedFiles, limit: int | None
) -> Snapshot | None:
    """Read the states of the paths that are found, or return None if more than `limit` of them are not tracked."""
    states = Snapshot()
    room_bytes = LIMIT_TREE_BYTES
    unread: list[tuple[str, os.stat_result]] = []
    for path, status in found:
        cached = _find_cached_state(path, status, known, tracked)
        if cached:
            states[path] = cached
            room_bytes -= cached.size_bytes
        elif status is not None:
            unread.append((path, status))
        # Tracked files have at most as many folders, except in odd trees.
        if limit is not None and len(states) + len(unread) > limit + 2 * tracked.count:
            return None
    if limit is not None:
        others = [path for path, cached in states.items() if not cached.state.is_in_git]
        others += [path for path, _ in unread]
        if len(others) > limit and tracked.count_others(others) > limit:
            return None
    unread.sort(key=lambda entry: entry[1].st_size)
    for path, status in unread:
        candidate = ""
        if stat.S_ISREG(status.st_mode):
            candidate = tracked.find_candidate(path, status.st_size)
        cached = _read_cached_state(path, status, store, room_bytes, candidate)
        if not cached.gap or os.path.lexists(path):  # otherwise it was removed meanwhile
            states[path] = cached
            room_bytes -= cached.size_bytes
    return states


def _find_cached_state(
    path: str, status: os.stat_result | None, known: Mapping[str, CachedState], tracked: TrackedFiles
) -> CachedState | None:
    """Find the state of a path without reading it: it has the marks that are known, or is as git saw it."""
    old = known.get(path)
    if status is None:
        return old
    marks = get_marks(status)
    if old and old.marks == marks:
        return old
    if not stat.S_ISREG(status.st_mode):
        return None
    content = tracked.find_content(path, status)
    if not content:
        return None
    return CachedState(FileState(status.st_mode, content), 0, marks, "")


def read_state(path: str, store: StoreBlob) -> FileState:
    """Read the state of one path. Raise the OSError of `store`."""
    cached = read_cached_state(path, store)
    if cached is None:
        return ABSENT
    return cached.state


def read_cached_state(path: str, store: StoreBlob) -> CachedState | None:
    """Read the state of one path with its gap, if there is something. Raise the OSError of `store`."""
    try:
        status = os.lstat(path)
    except (OSError, ValueError):
        return None
    if not _is_ordinary(status):
        return None
    return _read_cached_state(path, status, store, LIMIT_FILE_BYTES)


def _walk(root: str, excluded: Container[str], known: Mapping[str, CachedState], tracked: TrackedFiles) -> Statuses:
    """Yield every path below a folder, and add the repositories there to `tracked`.

    In a folder that cannot be listed, yield the known paths without a status.
    """
    device = None
    with suppress(FileNotFoundError):
        device = os.lstat(root).st_dev
    folders = [root]
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
            if entry.name == ".git" or entry.path in excluded:
                continue
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            if status.st_dev != device or not _is_ordinary(status):
                continue
            if stat.S_ISDIR(status.st_mode):
                folders.append(entry.path)
            yield entry.path, status


def _is_ordinary(status: os.stat_result) -> bool:
    return stat.S_IFMT(status.st_mode) in _KINDS


def _read_cached_state(
    path: str, status: os.stat_result, store: StoreBlob, room_bytes: int, candidate: str = ""
) -> CachedState:
    """Read and store the content of a path. It is not stored if it is the `candidate` that git has."""
    read_ns = time.time_ns()
    if stat.S_ISREG(status.st_mode):
        found = _read_content(path, status, store, room_bytes, candidate)
    elif stat.S_ISLNK(status.st_mode):
        found = _read_link(path, status)
    else:
        found = _Content(status)
    marks = get_marks(found.status)
    content = found.name
    if found.gap:
        content = f"{_UNKNOWN}{marks}"
    state = FileState(found.status.st_mode, content)
    # A change within the clock tick after the read would leave no other mark.
    is_certain = read_ns - found.status.st_ctime_ns > CLOCK_TICK_NS
    return CachedState(state, found.stored_bytes, marks if is_certain else None, found.gap)


class _Content(NamedTuple):
    """The name of a content with the status of its file at that moment, or the gap where it is not stored."""

    status: os.stat_result
    name: str = ""
    stored_bytes: int = 0
    gap: str = ""


def _read_link(path: str, status: os.stat_result) -> _Content:
    try:
        return _Content(status, os.readlink(path))
    except OSError:
        return _Content(status, gap="that can't be read")


def _read_content(path: str, status: os.stat_result, store: StoreBlob, room_bytes: int, candidate: str) -> _Content:
    """Read a regular file, and store its content where there is room and git has another one."""
    too_much = f"beyond {LIMIT_TREE_BYTES >> 20} MB in all"
    if status.st_size > LIMIT_FILE_BYTES:
        return _Content(status, gap=f"over {LIMIT_FILE_BYTES >> 20} MB")
    if status.st_size > room_bytes and not candidate:
        return _Content(status, gap=too_much)
    try:
        data, status = _read_file(path)
    except OSError:
        return _Content(status, gap="that can't be read")
    if is_content(candidate, data):
        return _Content(status, candidate)
    if len(data) > room_bytes:
        return _Content(status, gap=too_much)
    return _Content(status, store(data), len(data))


def _read_file(path: str) -> tuple[bytes, os.stat_result]:
    """Read a regular file as it was at one moment, together with its status at that moment."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        for _ in range(_READ_ATTEMPTS):
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_size > LIMIT_FILE_BYTES:
                break
            data = os.pread(descriptor, status.st_size + 1, 0)
            after = os.fstat(descriptor)
            if len(data) == status.st_size and get_marks(after) == get_marks(status):
                return data, status
    finally:
        os.close(descriptor)
    raise OSError("it changes while it is read")


def get_marks(status: os.stat_result) -> tuple[int, ...]:
    """Return numbers that differ after a change."""
    return (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_mode)
