"""A file of records, one JSON object a line, that a crash at any moment leaves readable."""

import fcntl
import os
import stat
from pathlib import Path
from typing import Generic, Self, TypeVar

from pydantic import BaseModel, ValidationError

from goose_like.core.errors import GooseLikeError, UsageError

_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
RecordT = TypeVar("RecordT", bound=BaseModel)


class JsonlFile(Generic[RecordT]):
    """A file that one process writes. A last line that is not whole, after a crash, is dropped."""

    def __init__(self, path: Path, kind: type[RecordT]) -> None:
        self.path = path
        self.records: list[RecordT] = []
        self._kind = kind
        self._descriptor = -1

    def __enter__(self) -> Self:
        try:
            self._descriptor = os.open(self.path, _FLAGS, 0o644)
        except OSError as error:
            raise GooseLikeError(f"{self.path} can't be written: {error.strerror}; name another file") from error
        try:
            if not stat.S_ISREG(os.fstat(self._descriptor).st_mode):
                raise UsageError(f"{self.path} is no ordinary file; name another one")
            self._lock()
            whole_bytes = self.read()
            os.ftruncate(self._descriptor, whole_bytes)
        except BaseException:
            os.close(self._descriptor)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    def append(self, record: RecordT) -> None:
        """Append a record. It is on the disk when this returns.

        Raises:
            GooseLikeError: the disk is full or fails. The file stays readable.
        """
        rest = record.model_dump_json().encode() + b"\n"
        try:
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
            os.fsync(self._descriptor)
        except OSError as error:
            text = f"{self.path} can't be written: {error.strerror}; make room, then resume the batch"
            raise GooseLikeError(text) from error
        self.records.append(record)

    def _lock(self) -> None:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UsageError(f"another process works on {self.path}; wait until it ends") from error

    def read(self) -> int:
        """Read all whole records, also of a file that another process writes. Return their length in bytes.

        Raises:
            UsageError: a line is no such record.
        """
        data = self.path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        for number, line in enumerate(whole.splitlines(), 1):
            try:
                self.records.append(self._kind.model_validate_json(line))
            except ValidationError as error:
                raise UsageError(f"{self.path}, line {number}: not written by a batch; name another file") from error
        return len(whole)
