"""The index of a git repository, read without running git. Its format is in `gitformat-index.txt` of git."""

import os
import stat
import struct
from collections.abc import Iterator
from typing import NamedTuple

_ENTRY = struct.Struct(">4I4x2I8xI20sH")  # without device, user and group
_ENTRY_SHA256 = struct.Struct(">4I4x2I8xI32sH")
_MORE_FLAGS = struct.Struct(">H")
_NS_PER_S = 1_000_000_000
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC
_HEADER = struct.Struct(">4sII")
_ASSUME_VALID = 0x8000
_EXTENDED = 0x4000
_STAGE = 0x3000
_SKIP_WORKTREE = 0x4000  # among the extended flags


class IndexEntry(NamedTuple):
    """A file as git last saw it.

    `inode` and `size` are cut to 32 bits; git sets a size of 0 where it does not trust the times. `digest` names the
    blob. `is_assumed`: git was told not to look at the file.
    """

    mtime_ns: int
    ctime_ns: int
    inode: int
    mode: int
    size: int
    digest: bytes
    has_conflict: bool
    is_assumed: bool


def read_index(path: str, limit_bytes: int) -> tuple[bytes, os.stat_result]:
    """Read an index with its status. Raise OSError or ValueError if it is a link, no file, or above the limit."""
    descriptor = os.open(path, _FLAGS)
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > limit_bytes:
            raise ValueError("the index is no file, or too large")
        return file.read(), status


def count_entries(path: str) -> int:
    """Read the number of entries from the start of an index; 0 if there is none."""
    try:
        descriptor = os.open(path, _FLAGS)
        with open(descriptor, "rb", buffering=0) as file:
            header = file.read(_HEADER.size)
            return int.from_bytes(header[8:])
    except OSError:
        return 0


def iterate_entries(index: bytes, *, is_sha256: bool = False) -> Iterator[tuple[str, IndexEntry]]:
    """Parse an index of version 2, 3 or 4: paths with their entries. A conflict has several entries of one path.

    Raise ValueError, IndexError or struct.error if it is damaged, split, or has another format.
    """
    magic, version, count = _HEADER.unpack_from(index)
    if magic != b"DIRC" or version not in (2, 3, 4):
        raise ValueError("the index has an unknown format")
    layout = _ENTRY_SHA256 if is_sha256 else _ENTRY
    place = _HEADER.size
    name = b""
    for _ in range(count):
        ctime_s, ctime_ns, mtime_s, mtime_ns, inode, mode, size, digest, flags = layout.unpack_from(index, place)
        start = place + layout.size
        more_flags = 0
        if flags & _EXTENDED:
            (more_flags,) = _MORE_FLAGS.unpack_from(index, start)
            start += _MORE_FLAGS.size
        if version == 4:
            dropped, start = _read_number(index, start)
            end = index.index(b"\0", start)
            name = name[: len(name) - dropped] + index[start:end]
            place = end + 1
        else:
            end = index.index(b"\0", start)
            name = index[start:end]
            place += (end - place) // 8 * 8 + 8  # NUL bytes fill the entry
        mtime_ns += mtime_s * _NS_PER_S
        ctime_ns += ctime_s * _NS_PER_S
        has_conflict = bool(flags & _STAGE)
        is_assumed = bool(flags & _ASSUME_VALID or more_flags & _SKIP_WORKTREE)
        entry = IndexEntry(mtime_ns, ctime_ns, inode, mode, size, digest, has_conflict, is_assumed)
        yield os.fsdecode(name), entry
    if index[place : place + 4] == b"link":  # this extension comes first
        raise ValueError("the index is split")


def _read_number(data: bytes, place: int) -> tuple[int, int]:
    """Read git's variable-width number. Return it with the place behind it."""
    byte = data[place]
    number = byte & 0x7F
    while byte & 0x80:
        place += 1
        byte = data[place]
        number = ((number + 1) << 7) + (byte & 0x7F)
    return number, place + 1
