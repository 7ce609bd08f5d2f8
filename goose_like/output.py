"""Output of any size: what a model can read of it, and a file with all of it when that is not everything."""

import codecs
from pathlib import Path
from typing import BinaryIO


class Output:
    """Takes bytes as they come. Past `limit_bytes` everything goes to `path`; memory holds head and tail only.

    A file that can't be written (a full disk) ends nothing: the model is told that the middle is lost.
    """

    def __init__(self, path: Path, limit_bytes: int) -> None:
        self.path = path
        self.limit_bytes = limit_bytes
        self.size_bytes = 0
        self.line_count = 0
        self._head = bytearray()
        self._tail = bytearray()
        self._file: BinaryIO | None = None
        self._fault: OSError | None = None

    @property
    def is_long(self) -> bool:
        """Whether it is more than the model is shown."""
        return self.size_bytes > self.limit_bytes

    def write(self, chunk: bytes) -> None:
        """Takes the next bytes, in pieces of any size."""
        self.size_bytes += len(chunk)
        self.line_count += chunk.count(b"\n")
        if self.is_long:
            self._save(chunk)
        half = self.limit_bytes // 2
        room = half - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:][-self.limit_bytes :]
        if self.is_long:
            del self._tail[:-half]

    def _save(self, chunk: bytes) -> None:
        """Appends to the file; the first time all that came before, too."""
        if self._fault:
            return
        try:
            if self._file is None:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self._file = self.path.open("wb")
                self._file.write(self._head + self._tail)
            self._file.write(chunk)
        except OSError as error:
            self._fault = error

    def close(self) -> None:
        """Call it before `for_model`; afterwards the file is whole."""
        try:
            if self._file is not None:
                self._file.close()
        except OSError as error:
            self._fault = error

    def for_model(self) -> str:
        """All of it, or head and tail with sizes and the file's path; bytes that are no text are told as such."""
        if b"\0" in self._head or b"\0" in self._tail:
            if not self.is_long:
                self._save(b"")
                self.close()
            where = f"it could not be saved: {self._fault}" if self._fault else f"saved as {self.path}"
            return f"[binary output, {self.size_bytes:,} bytes, {where}]"
        if not self.is_long:
            return (self._head + self._tail).decode(errors="replace")
        where = (
            f"it could not be saved: {self._fault}"
            if self._fault
            else f"all of it is in {self.path}: search it with rg or read a part of it"
        )
        left_out = self.size_bytes - len(self._head) - len(self._tail)
        note = f"[... {left_out:,} of {self.size_bytes:,} bytes ({self.line_count:,} lines) left out here; {where} ...]"
        # Cut between characters: head without the bytes of an unfinished one, tail from the first that begins in it.
        head = codecs.getincrementaldecoder("utf-8")("replace").decode(self._head)
        tail = self._tail.lstrip(bytes(range(0x80, 0xC0))).decode(errors="replace")
        return f"{head}\n{note}\n{tail}"


def readable(text: str, path: Path, limit_bytes: int) -> str:
    """The text as a model can read it: valid Unicode, and when longer than `limit_bytes` kept whole at `path`."""
    data = text.encode("utf-8", errors="replace")
    if len(data) <= limit_bytes:
        return data.decode("utf-8")
    output = Output(path, limit_bytes)
    output.write(data)
    output.close()
    return output.for_model()
