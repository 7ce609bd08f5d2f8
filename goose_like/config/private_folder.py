"""Private folders among the temporary files, and the removal of those that killed processes left."""

import fcntl
import os
import shutil
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import Literal, Self, get_args

from goose_like.core.errors import GooseLikeError
from goose_like.core.pattern import compile_later

FolderKind = Literal["tmp", "session", "serve", "metrics", "engine"]
"""The use: what commands see as /tmp, a session that is not kept, what serve needs, its metrics, a model's socket."""

PRIVATE_NAME = compile_later(rf"goose-like-({'|'.join(get_args(FolderKind))})-\w+")

_MAX_ATTEMPTS = 5


class PrivateFolder:
    """A temporary folder that is locked for as long as its process lives."""

    def __init__(self, kind: FolderKind) -> None:
        check_temporary_files()
        self._lock: int | None = None
        for _ in range(_MAX_ATTEMPTS):  # another process may take the new folder for an abandoned one
            created = tempfile.mkdtemp(prefix=f"goose-like-{kind}-")
            self.path = Path(os.path.realpath(created))
            self._lock = _lock_folder(self.path)
            if self._lock is not None:
                break

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def remove(self) -> None:
        """Remove the folder, then release the lock."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def check_temporary_files() -> None:
    """Raise GooseLikeError if there is no folder for temporary files."""
    try:
        tempfile.gettempdir()
    except OSError as error:
        advice = "make one of them writable, or set TMPDIR to a folder that is"
        raise GooseLikeError(f"{error.strerror}; {advice}") from error


def remove_abandoned_folders() -> threading.Thread:
    """Remove the private folders of dead processes, in a daemon thread so that no start or exit waits for it."""
    thread = threading.Thread(target=_remove_abandoned_folders, name="removal of abandoned folders", daemon=True)
    thread.start()
    return thread


def _remove_abandoned_folders() -> None:
    with suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        paths = [Path(entry.path) for entry in entries if PRIVATE_NAME.fullmatch(entry.name)]
        for path in paths:
            with suppress(OSError):  # its process has just removed it, or it belongs to another user
                _remove_if_abandoned(path)


def _remove_if_abandoned(path: Path) -> None:
    lock = _lock_folder(path)
    if lock is None:
        return
    try:
        if os.fstat(lock).st_uid == os.getuid():
            _empty_folder(lock)
            path.rmdir()
    finally:
        os.close(lock)


def _empty_folder(descriptor: int) -> None:
    """Remove what is in a folder: through its descriptor, because the name may meanwhile belong to another folder."""
    for name in os.listdir(descriptor):
        try:
            os.unlink(name, dir_fd=descriptor)
        except OSError:
            shutil.rmtree(name, ignore_errors=True, dir_fd=descriptor)


def _lock_folder(path: Path) -> int | None:
    """Lock a folder until the returned descriptor is closed. Return None if another process holds or removed it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    with suppress(OSError):  # another process holds the lock or has removed the folder, or there are no locks here
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(descriptor), path.lstat()):
            return descriptor
    os.close(descriptor)
    return None
