"""Snapshots: the state of a path or a folder tree, without following links.

Files are not read if they are unchanged since the last snapshot, or if git has their contents.
"""

import os
import stat
import time
from collections.abc import Callable, Container, Mapping
from typing import NamedTuple

from .state import (
    ABSENT,
    CLOCK_TICK_NS,
    UNKNOWN,
    CachedState,
    FileState,
    Snapshot,
    Statuses,
    get_marks,
)
from .tracked import TrackedFiles, is_content
from .watched_tree import KINDS, WatchedTree

LIMIT_ENTRIES = 20_000
LIMIT_FILE_BYTES = 10 << 20
LIMIT_TREE_BYTES = 100 << 20

_READ_ATTEMPTS = 3

StoreBlob = Callable[[bytes], str]
"""Stores a file's content and returns its name; raises OSError if it cannot."""

GONE = CachedState(ABSENT, 0, None, "")
"""The state of a clean file that is not there any more."""


def take_snapshot(
    tree: WatchedTree,
    excluded: Container[str],
    store: StoreBlob,
    known: Mapping[str, CachedState],
    tracked: TrackedFiles | None = None,
) -> tuple[Snapshot, bool]:
    """Take a snapshot of a folder without its clean files. If the second result is False, it holds only tracked files.

    That happens if there are more other files and folders than the limit. A file with the marks of `known` is not read
    again, nor one that is as git saw it. If not all contents fit, small files come first. Raise the OSError of `store`.
    """
    tracked = tracked or TrackedFiles()
    everything = tree.walk(excluded, known, tracked)
    snapshot = _read_all(everything, store, known, tracked, LIMIT_ENTRIES)
    is_complete = snapshot is not None
    if snapshot is None:
        some = tree.walk(excluded, known, tracked, is_tracked_only=True)
        snapshot = _read_all(some, store, known, tracked, None) or {}
    for path in tree.changed:
        snapshot.setdefault(path, GONE)
    return snapshot, is_complete


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
        if len(others) > limit and sum(not tracked.covers(path) for path in others) > limit:
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
    if stat.S_IFMT(status.st_mode) not in KINDS:
        return None
    return _read_cached_state(path, status, store, LIMIT_FILE_BYTES)


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
        content = f"{UNKNOWN}{marks}"
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
