"""A watch on folders by the kernel: signs that something in them has changed."""

import errno
import os
import sys
from collections.abc import Collection

_MAX_FOLDERS = 5_000
"""Above this, watches would take the kernel's memory, and those that other programs of this user need."""

_READ_BYTES = 1 << 16

_NO_FOLDER = (errno.ENOENT, errno.ENOTDIR)

# From `linux/inotify.h`: writes, new attributes, ends of writes, moves from and to, new and removed names, and the end
# or move of the folder itself.
_CHANGES = 0x2 | 0x4 | 0x8 | 0x40 | 0x80 | 0x100 | 0x200 | 0x400 | 0x800
# Paths that are no folder are refused, and links are not followed.
_ONLY_FOLDERS = 0x01000000 | 0x02000000


class FolderWatch:
    """A watch on folders, but not on those in them, which tells in one call of the kernel if anything may have changed.

    No sign is no proof. The kernel is silent about a hard link elsewhere, about memory that a running process shares
    with a file, and about other machines. Without inotify (Linux), or with many folders, there is always a sign.
    """

    def __init__(self) -> None:
        """Prepare a watch without any work."""
        self._descriptor: int | None = None
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
            if added < 0 and ctypes.get_errno() not in _NO_FOLDER:
                raise OSError(ctypes.get_errno(), "no more watches")

    def take_signs(self) -> bool:
        """Return whether there was a sign of a change since the last call."""
        if self._descriptor is None or self._is_off:
            return True
        has_signs = False
        try:
            while os.read(self._descriptor, _READ_BYTES):
                has_signs = True
        except BlockingIOError:
            pass
        self._is_outdated |= has_signs  # there may be a new folder
        return has_signs

    def close(self) -> None:
        """End the watch."""
        self._is_off = True
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
