"""The index of a git repository, read without running git. Its format is in `gitformat-index.txt` of git."""

import os
import re
import stat
import struct
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from hashlib import sha1
from typing import NamedTuple

from goose_like.core.pattern import compile_later

_ENTRY = struct.Struct(">4I4x2I8xI20sH")  # without device, user and group
_ENTRY_SHA256 = struct.Struct(">4I4x2I8xI32sH")
_MORE_FLAGS = struct.Struct(">H")
_NS_PER_S = 1_000_000_000
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC
_HEADER = struct.Struct(">4sII")
_COPY_VERSION = 2
_ASSUME_VALID = 0x8000
_EXTENDED = 0x4000
_STAGE = 0x3000
_SKIP_WORKTREE = 0x4000  # among the extended flags
_NAME_LENGTH = 0xFFF
_LOW_BITS = 0xFFFFFFFF
_MODE_PLACE = 24
_MODE_BYTES = 4
_FLAGS_BYTES = 2
_SIZE_PLACE = 36
_MODE_AND_OWNER = struct.Struct(">III")  # mode, user and group

# A command in the sandbox can write an index, and must not take the memory or the time of this process with it.
_LIMIT_NAME_BYTES = 4096
_LIMIT_NUMBER_BYTES = 5
_LIMIT_EXPANDED_BYTES = 512 << 20

# Some file systems ignore case, dots and blanks at the end, and characters that nobody sees.
_UNSAFE_PART = compile_later(
    rb"/(?:\.{0,2}|[^!-~]*\.[^!-~]*g[^!-~]*i[^!-~]*t(?:[^!-~]|\.)*(?::[^/]*)?|git~\d[ .]*)(?:/|\Z)",
    re.IGNORECASE,
)


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


def is_safe_name(name: bytes) -> bool:
    """Check that a name leads into no `.git` and out of no folder. Git refuses others, but they may be in an index."""
    return b"\0" not in name and not _UNSAFE_PART.search(b"/" + name)


class GitIndex:
    """The entries of an index of version 2, 3 or 4, found by name without an object for each of them."""

    def __init__(self, data: bytes, *, is_sha256: bool = False) -> None:
        """Find the entries. Raise ValueError, IndexError or struct.error if the index is damaged, split, or unknown."""
        magic, version, count = _HEADER.unpack_from(data)
        if magic != b"DIRC" or version not in (2, 3, 4):
            raise ValueError("the index has an unknown format")
        self._layout = _ENTRY_SHA256 if is_sha256 else _ENTRY
        self._data = _expand_names(data, count, self._layout) if version == 4 else data
        self._places = array("Q")
        end = self._find_places(count)
        if self._data[end : end + 4] == b"link":  # this extension comes first
            raise ValueError("the index is split")
        self._places.append(end)

    @classmethod
    def from_copies(cls, entries: bytearray, starts: "array[int]") -> "GitIndex":
        """Create an index of copied entries, as `format_index` writes it. Each entry begins at one of the `starts`."""
        index = cls(_HEADER.pack(b"DIRC", _COPY_VERSION, 0))
        index._data = _HEADER.pack(b"DIRC", _COPY_VERSION, len(starts)) + entries
        index._places = array("Q", (start + _HEADER.size for start in starts))
        index._places.append(len(index._data))
        return index

    def _find_places(self, count: int) -> int:
        """Find where each entry begins. Return the end of the last one."""
        data = self._data
        size = self._layout.size
        place = _HEADER.size
        for _ in range(count):
            self._places.append(place)
            start = place + size
            flags = data[start - 2] << 8 | data[start - 1]
            if flags & _EXTENDED:
                start += _MORE_FLAGS.size
            length = flags & _NAME_LENGTH
            end = start + length
            if length == _NAME_LENGTH:  # or more
                end = data.index(b"\0", end, start + _LIMIT_NAME_BYTES + 1)
            if data[end] != 0:
                raise ValueError("the index is damaged")
            place += (end - place) // 8 * 8 + 8  # NUL bytes fill the entry
        return place

    def __len__(self) -> int:
        return len(self._places) - 1

    def __iter__(self) -> Iterator[tuple[bytes, int]]:
        """Yield the names in order, each with the place of its entry."""
        return self.iterate_below(b"")

    def iterate_below(self, start: bytes) -> Iterator[tuple[bytes, int]]:
        """Yield the names with this start in order, each with the place of its entry."""
        for number in range(self._find_number(start), len(self)):
            place = self._places[number]
            name = self.read_name(place)
            if not name.startswith(start):
                return
            yield name, place

    def find(self, name: bytes) -> int | None:
        """Return the place of the entry with this name, or None. A conflict has several; the first one counts."""
        number = self._find_number(name)
        if number == len(self):
            return None
        place = self._places[number]
        return place if self.read_name(place) == name else None

    def has_folder(self, name: bytes) -> bool:
        """Return whether there are entries below a folder."""
        return next(self.iterate_below(name + b"/"), None) is not None

    def _find_number(self, name: bytes) -> int:
        return bisect_left(self._places, name, 0, len(self), key=self.read_name)

    def read_name(self, place: int) -> bytes:
        """Read the name of the entry at a place."""
        data = self._data
        start = place + self._layout.size
        flags = data[start - 2] << 8 | data[start - 1]
        if flags & _EXTENDED:
            start += _MORE_FLAGS.size
        end = start + (flags & _NAME_LENGTH)
        if flags & _NAME_LENGTH == _NAME_LENGTH:
            end = data.index(b"\0", end)
        return data[start:end]

    def read_entry(self, place: int) -> IndexEntry:
        """Read the entry at a place."""
        fields = self._layout.unpack_from(self._data, place)
        ctime_s, ctime_ns, mtime_s, mtime_ns, inode, mode, size, digest, flags = fields
        more_flags = 0
        if flags & _EXTENDED:
            (more_flags,) = _MORE_FLAGS.unpack_from(self._data, place + self._layout.size)
        mtime_ns += mtime_s * _NS_PER_S
        ctime_ns += ctime_s * _NS_PER_S
        has_conflict = bool(flags & _STAGE)
        is_assumed = bool(flags & _ASSUME_VALID or more_flags & _SKIP_WORKTREE)
        return IndexEntry(mtime_ns, ctime_ns, inode, mode, size, digest, has_conflict, is_assumed)

    def has_status(self, place: int, status: os.stat_result) -> bool:
        """Check that a regular file has the times, inode and size of the entry at a place, which is no conflict.

        This is what `read_entry` tells, in a third of the time.
        """
        fields = self._layout.unpack_from(self._data, place)
        ctime_s, ctime_ns, mtime_s, mtime_ns, inode, mode, size, _, flags = fields
        return (
            status.st_mtime_ns == mtime_s * _NS_PER_S + mtime_ns
            and status.st_ctime_ns == ctime_s * _NS_PER_S + ctime_ns
            and status.st_ino & _LOW_BITS == inode
            and status.st_size & _LOW_BITS == size
            and stat.S_ISREG(mode)
            and not flags & _STAGE
        )

    def iterate_facts(self) -> Iterator[bytes]:
        """Yield all that an entry says but its times, as bytes: mode, digest, flags, name, and NUL bytes at the end."""
        digest_place = _MODE_PLACE + 16
        for number in range(len(self)):
            place = self._places[number]
            mode = self._data[place + _MODE_PLACE : place + _MODE_PLACE + _MODE_BYTES]
            yield mode + self._data[place + digest_place : self._places[number + 1]]

    def copy_entry(self, place: int, status: os.stat_result) -> bytes:
        """Copy an entry for `format_index`, with the mode and owner of its file.

        Git will look at the file whatever it was told, and see a change only if there is one.
        """
        data = self._data
        owner = _MODE_AND_OWNER.pack(status.st_mode, status.st_uid & _LOW_BITS, status.st_gid & _LOW_BITS)
        start = data[place : place + _MODE_PLACE] + owner
        flags_place = place + self._layout.size - _FLAGS_BYTES
        flags = data[flags_place] << 8 | data[flags_place + 1]
        if flags < _NAME_LENGTH:  # nothing but the length of the name, as almost everywhere
            end = place + (self._layout.size + flags) // 8 * 8 + 8
            return start + data[place + _SIZE_PLACE : end]
        name = self.read_name(place)
        flags = min(len(name), _NAME_LENGTH)
        return _fill(start + data[place + _SIZE_PLACE : flags_place] + flags.to_bytes(_FLAGS_BYTES) + name)

    def copy_without(self, names: Iterable[bytes]) -> list[bytes]:
        """Copy the entries for `format_index`, except those with these names. Parts hold many entries."""
        parts = []
        start = _HEADER.size
        for name in sorted(names):
            number = self._find_number(name)
            parts.append(self._data[start : self._places[number]])
            start = self._places[number + 1]
        parts.append(self._data[start : self._places[-1]])
        return parts


def format_index(entries: Iterable[bytes | bytearray], count: int) -> Iterator[bytes | bytearray]:
    """Yield the parts of an index with copied entries."""
    digest = sha1(usedforsecurity=False)
    for part in (_HEADER.pack(b"DIRC", _COPY_VERSION, count), *entries):
        digest.update(part)
        yield part
    yield digest.digest()


def iterate_entries(index: bytes, *, is_sha256: bool = False) -> Iterator[tuple[str, IndexEntry]]:
    """Parse an index of version 2, 3 or 4: paths with their entries. A conflict has several entries of one path.

    Raise ValueError, IndexError or struct.error if it is damaged, split, or has another format.
    """
    entries = GitIndex(index, is_sha256=is_sha256)
    for name, place in entries:
        yield os.fsdecode(name), entries.read_entry(place)


def _expand_names(index: bytes, count: int, layout: struct.Struct) -> bytes:
    """Convert the entries of version 4, where a name lacks what it shares with the one before, to version 3."""
    parts = [index[: _HEADER.size]]
    place = _HEADER.size
    size_bytes = 0
    name = b""
    for _ in range(count):
        start = place + layout.size
        if index[start - 2] << 8 & _EXTENDED:
            start += _MORE_FLAGS.size
        dropped, name_start = _read_number(index, start)
        end = index.index(b"\0", name_start, name_start + _LIMIT_NAME_BYTES + 1)
        kept_bytes = len(name) - dropped
        name = name[: max(kept_bytes, 0)] + index[name_start:end]
        entry = _fill(index[place:start] + name)
        size_bytes += len(entry)
        if kept_bytes < 0 or len(name) > _LIMIT_NAME_BYTES or size_bytes > _LIMIT_EXPANDED_BYTES:
            raise ValueError("the index is damaged, or too large")
        parts.append(entry)
        place = end + 1
    parts.append(index[place:])
    return b"".join(parts)


def _fill(entry: bytes) -> bytes:
    """Fill an entry with one to eight NUL bytes."""
    return entry + b"\0" * (8 - len(entry) % 8)


def _read_number(data: bytes, place: int) -> tuple[int, int]:
    """Read git's variable-width number. Return it with the place behind it."""
    number = -1
    for byte in data[place : place + _LIMIT_NUMBER_BYTES]:
        place += 1
        number = ((number + 1) << 7) + (byte & 0x7F)
        if not byte & 0x80:
            return number, place
    raise ValueError("the index is damaged")
