"""The private folder that commands see as /tmp."""

import fcntl
import os
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path

PREFIX = "goose-like-tmp-"
_UNLOCKED_S = 60
"""Time after which a folder must be locked by its session. A younger one may be about to be locked."""


class PrivateTmp:
    """A temporary folder that is locked for as long as its session lives."""

    def __init__(self) -> None:
        self.path = Path(os.path.realpath(tempfile.mkdtemp(prefix=PREFIX)))
        self._lock = _lock_folder(self.path)

    def remove(self) -> None:
        """Remove the folder, and the folders that killed sessions left beside it. Then release the lock."""
        shutil.rmtree(self.path, ignore_errors=True)
        for folder in self.path.parent.glob(f"{PREFIX}*"):
            with suppress(OSError):
                status = folder.lstat()
                is_new = time.time() - status.st_ctime < _UNLOCKED_S
                if status.st_uid == os.getuid() and not is_new and (lock := _lock_folder(folder)) is not None:
                    shutil.rmtree(folder, ignore_errors=True)
                    os.close(lock)
        if self._lock is not None:
            os.close(self._lock)


def _lock_folder(folder: Path) -> int | None:
    """Lock a folder until the returned descriptor is closed. Return None if another process holds the lock."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor
