"""Upkeep: an environment's folder, its record and its locks: who makes it, who uses it, and when it may go."""

import asyncio
import fcntl
import os
import secrets
import shutil
import sys
import venv
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path

from pydantic import ValidationError

from goose_like.core.errors import GooseLikeError
from goose_like.core.message import FrozenModel

_POLL_S = 0.05
_MAX_RECORD_BYTES = 1 << 20


class Record(FrozenModel):
    """What is known of a whole environment: of which Python it was made, and what was installed by which words.

    `root` is the running directory whose environment it is; with that it may go.
    """

    python: str
    root: str = ""
    installed: tuple[tuple[str, ...], ...] = ()


class Upkeep:
    """Of one environment. Sessions of any processes may share it; what is known of it lies beside it."""

    def __init__(self, folder: Path, root: str, tell: Callable[[str], None]) -> None:
        """`root` is the running directory, "" where it has none to go with; `tell` takes what is waited for."""
        self.folder = folder
        self._root = root
        self._tell = tell
        self._held: int | None = None

    @property
    def record(self) -> Record | None:
        """None where there is no whole environment of our Python."""
        with suppress(OSError, ValidationError), open(self._record_file, "rb") as file:
            record = Record.model_validate_json(file.read(_MAX_RECORD_BYTES))
            if record.python == _our_python():
                return record
        return None

    async def held(self) -> None:
        """Makes it if it is not there, or is one of another Python than ours; it stays there until `release`.

        Raises:
            GooseLikeError: it can't be made.
        """
        while not self._hold():
            async with self.alone():
                if not self._is_made():
                    await asyncio.to_thread(self._make)
        if (record := self.record) and self._root and not record.root:
            async with self.alone():
                self._write(record.model_copy(update={"root": self._root}))

    def release(self) -> None:
        """Says that it is used no more."""
        if self._held is not None:
            os.close(self._held)
            self._held = None

    def note(self, words: tuple[str, ...]) -> None:
        """Records that something was installed by these words; within `alone`."""
        if record := self.record:
            self._write(record.model_copy(update={"installed": (*record.installed, words)}))

    @property
    def _record_file(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}.json")

    def _write(self, record: Record) -> None:
        try:
            _write(self._record_file, record)
        except OSError as error:
            raise GooseLikeError(
                f"what is known of the components' environment can't be written: {error.strerror}: {error.filename}; "
                "make room or mend it"
            ) from error

    def _is_made(self) -> bool:
        return self.record is not None and (self.folder / "bin" / "python").exists()

    def _hold(self) -> bool:
        """Keeps others from removing it; whether there is a whole one."""
        self.release()
        try:
            folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            why = f"{error.strerror}: {error.filename}"
            raise GooseLikeError(f"the components' environment can't be used: {why}; mend it") from error
        if not (_is_locked(folder, fcntl.LOCK_SH) and self._is_made()):
            os.close(folder)
            return False
        self._held = folder
        return True

    def _make(self) -> None:
        if self._root:
            remove_abandoned(self.folder.parent)
        try:
            record = Record(python="", root=self._root)
            self._write(record)  # by which one that is never done can be removed, too
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            venv.create(self.folder, symlinks=True)
            self._write(record.model_copy(update={"python": _our_python()}))
        except OSError as error:
            raise GooseLikeError(
                f"the components' environment can't be made: {error.strerror}: {error.filename}; make room or mend it"
            ) from error

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Within the block no other session makes or changes it."""
        try:
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            lock = _opened_lock(self.folder)
        except OSError as error:
            why = f"{error.strerror}: {error.filename}"
            raise GooseLikeError(f"the components' environment can't be used: {why}; make room or mend it") from error
        try:
            if not (is_ours := _is_locked(lock) and _is_current(lock, self.folder)):
                self._tell("another session changes the components' environment")
            while not is_ours:
                await asyncio.sleep(_POLL_S)
                if not _is_current(lock, self.folder):  # it was removed meanwhile, with the environment
                    os.close(lock)
                    lock = _opened_lock(self.folder)
                is_ours = _is_locked(lock) and _is_current(lock, self.folder)
            yield
        finally:
            os.close(lock)


def _our_python() -> str:
    return f"{sys.base_prefix} {sys.version}"


def remove_abandoned(folder: Path) -> None:
    """Removes the environments in a folder whose running directories are gone; those in use, or being changed, stay.

    What can't be removed now stays for the next time.
    """
    for file in folder.glob("*.json"):
        with suppress(OSError, ValidationError):
            record = Record.model_validate_json(file.read_bytes()[:_MAX_RECORD_BYTES])
            if record.root and _is_gone(record.root):
                _remove(file, record)


def _remove(record_file: Path, record: Record) -> None:
    """Removes one as a whole, unless somebody has it."""
    environment = record_file.with_suffix("")
    with ExitStack() as stack:
        held = [_opened_lock(environment)]
        stack.callback(os.close, held[0])
        if environment.is_dir():
            held.append(os.open(environment, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
            stack.callback(os.close, held[1])
        if all(map(_is_locked, held)) and _is_current(held[0], environment):
            _write(record_file, record.model_copy(update={"python": ""}))  # it is none, should this be the last we do
            if environment.is_dir():
                shutil.rmtree(environment)
            record_file.unlink()
            _lock_file(environment).unlink()


def _write(record_file: Path, record: Record) -> None:
    new = record_file.with_name(f".{record_file.stem}.{secrets.token_hex(6)}")
    new.write_text(record.model_dump_json())
    new.replace(record_file)


def _is_gone(root: str) -> bool:
    """Whether it is known not to be there: what can't be looked at may be."""
    try:
        os.lstat(root)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def _lock_file(environment: Path) -> Path:
    return environment.with_name(f"{environment.name}.lock")


def _opened_lock(environment: Path) -> int:
    return os.open(_lock_file(environment), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _is_current(lock: int, environment: Path) -> bool:
    """Whether the file that is locked is the one that others would lock."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(lock), os.stat(_lock_file(environment)))
    return False


def _is_locked(descriptor: int, how: int = fcntl.LOCK_EX) -> bool:
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
