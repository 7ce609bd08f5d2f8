"""Paths and modes of open files. macOS has no /proc and cannot open a folder without reading it."""

import fcntl
import os
import sys

PATH_ONLY = os.O_PATH if sys.platform == "linux" else os.O_RDONLY
FOLDER_FLAGS = PATH_ONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

_GET_PATH = 50  # F_GETPATH of macOS
_MAX_PATH = 1024


def read_descriptor_path(descriptor: int) -> str:
    """Read the real path of an open file or folder."""
    if sys.platform == "linux":
        return os.readlink(f"/proc/self/fd/{descriptor}")
    path = fcntl.fcntl(descriptor, _GET_PATH, bytes(_MAX_PATH))
    return os.fsdecode(path.rstrip(b"\0"))


def set_mode(descriptor: int, mode: int) -> None:
    """Set the mode of an open file or folder."""
    if sys.platform == "linux":
        os.chmod(f"/proc/self/fd/{descriptor}", mode)  # fchmod(2) rejects a folder that was opened without reading
    else:
        os.fchmod(descriptor, mode)
