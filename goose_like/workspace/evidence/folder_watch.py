"""A watch on folders by the kernel: signs that something in them has changed."""

import errno
import os
import struct
import sys
from collections.abc import Collection, Iterator, Set

_MAX_FOLDERS = 5_000
"""Above this, watches would take the kernel's memory, and those that other programs of this user need."""

_READ_BYTES = 1 << 16
"""More signs than these, about two thousand, do not tell paths: reading them would take longer than a look."""

_EVENT = struct.Struct("iIII")
"""The fixed part of `inotify_event`: the watch, the kind, a cookie, and the length of the name that follows."""

Signs = Set[str] | None
"""The paths with a sign of a change. None if any path may have changed."""

_NO_FOLDER = (errno.ENOENT, errno.ENOTDIR)

# From `linux/inotify.h`: writes, new attributes, ends of writes, moves from and to, new and removed names, and the end
# or move of the folder itself.
_CHANGES = 0x2 | 0x4 | 0x8 | 0x40 | 0x80 | 0x100 | 0x200 | 0x400 | 0x800
# Paths that are no folder are refused, and links are not followed.
_ONLY_FOLDERS = 0x01000000 | 0x02000000


class FolderWatch:
    """A watch on folders, but not on those in them, which tells in one call of the kernel what may have changed.

    No sign is no proof. The kernel is silent about a hard link elsewhere, about memory that a running process shares
    with a file, and about other machines. Without inotify (Linux), or with many folders, any path may have changed.
    """

    def __init__(self) -> None:
        """Prepare a watch without any work."""
        self._descriptor: int | None = None
        self._folders: dict[int, str] = {}
        self._is_outdated = True
        self._is_off = sys.platform != "linux"

    def watch(self, folders: Collection[str]) -> None:
        """Watch these folders from now on. This costs nothing if there was no sign of a change since the last call."""
        if self._is_off or not self._is_outdated:
            return
        self._is_outdated = False
        try:
            self._add(folders)
        except OSError:
            self._is_off = True  # another thread may read the descriptor just now

    def _add(self, folders: Collection[str]) -> None:
        import ctypes

        if len(folders) > _MAX_FOLDERS:
            raise OSError("too many folders")
        libc = ctypes.CDLL(None, use_errno=True)
        if self._descriptor is None:
            descriptor = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
            if descriptor < 0:
                raise OSError(ctypes.get_errno(), "no more watches")
            self._descriptor = descriptor
        for folder in folders:
            # A folder that is watched already keeps its watch.
            added = libc.inotify_add_watch(self._descriptor, os.fsencode(folder), _CHANGES | _ONLY_FOLDERS)
            if added >= 0:
                self._folders[added] = folder
            elif ctypes.get_errno() not in _NO_FOLDER:
                raise OSError(ctypes.get_errno(), "no more watches")

    def take_signs(self) -> Signs:
        """Take the signs of changes since the last call."""
        if self._descriptor is None or self._is_off:
            return None
        parts = []
        try:
            while part := os.read(self._descriptor, _READ_BYTES):
                parts.append(part)
        except BlockingIOError:
            pass
        self._is_outdated |= bool(parts)  # there may be a new folder
        if len(parts) > 1:
            return None
        signs = set()
        for path in self._read_paths(b"".join(parts)):
            if path is None:
                return None
            signs.add(path)
        return signs

    def _read_paths(self, events: bytes) -> Iterator[str | None]:
        """Read the path of each event; None for a watched folder itself, and if the kernel has lost events."""
        start = 0
        while start < len(events):
            number, _, _, length = _EVENT.unpack_from(events, start)
            start += _EVENT.size
            name = events[start : start + length].rstrip(b"\0")
            start += length
            folder = self._folders.get(number)
            if folder and name:
                yield f"{folder}/{os.fsdecode(name)}"
            else:
                yield None

    def close(self) -> None:
        """End the watch."""
        self._is_off = True
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
