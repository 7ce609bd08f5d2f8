"""Output of any size: what a model can read of it, and a file with all of it when that is not everything."""

import asyncio
import codecs
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO

SHOW_EVERY_S = 0.1
SHOW_BYTES = 4096


class Output:
    """Takes bytes as they come. Past `limit_bytes` everything goes to `path`; memory holds head and tail only.

    `size_bytes` counts all that came, `new_bytes` what came since the last `take`. A file that can't be written (a
    full disk) ends nothing: the model is told that the middle is lost.
    """

    def __init__(self, path: Path, limit_bytes: int) -> None:
        self.path = path
        self.limit_bytes = limit_bytes
        self.size_bytes = 0
        self.new_bytes = 0
        self._new_lines = 0
        self._head = bytearray()
        self._tail = bytearray()
        self._file: BinaryIO | None = None
        self._fault: OSError | None = None
        self._is_closed = False

    @property
    def is_long(self) -> bool:
        """Whether it is more than the model is shown."""
        return self.new_bytes > self.limit_bytes

    def keep_all(self) -> None:
        """From here on everything goes to the file, however short it is."""
        self._save(b"")

    def write(self, chunk: bytes) -> None:
        """Takes the next bytes, in pieces of any size."""
        self.size_bytes += len(chunk)
        self.new_bytes += len(chunk)
        self._new_lines += chunk.count(b"\n")
        if self.is_long or self._file is not None:
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
            self._file.flush()
        except OSError as error:
            self._fault = error

    def close(self) -> None:
        """Nothing more will come."""
        self._is_closed = True
        try:
            if self._file is not None:
                self._file.close()
        except OSError as error:
            self._fault = error

    def take(self) -> str:
        """What came since the last time, as `for_model` gives it. Call `keep_all` first, so that the file has all.

        Of a character that is not whole yet the bytes stay for the next time, unless it was closed.
        """
        end = self._tail or self._head
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        decoder.decode(end[-4:])
        rest = b"" if self._is_closed else decoder.getstate()[0]
        del end[len(end) - len(rest) :]
        self.new_bytes -= len(rest)
        text = self.for_model()
        self._head, self._tail = bytearray(rest), bytearray()
        self.new_bytes, self._new_lines = len(rest), 0
        return text

    def end(self, size_bytes: int) -> str:
        """The last bytes that came, as text; what is not whole at either end is shown as such."""
        return (self._head + self._tail)[-size_bytes:].decode(errors="replace")

    def for_model(self) -> str:
        """All of it, or head and tail with sizes and the file's path; bytes that are no text are told as such."""
        if b"\0" in self._head or b"\0" in self._tail:
            if self._file is None:
                self._save(b"")
                self.close()
            where = f"it could not be saved: {self._fault}" if self._fault else f"saved as {self.path}"
            return f"[binary output, {self.new_bytes:,} bytes, {where}]"
        if not self.is_long:
            return (self._head + self._tail).decode(errors="replace")
        where = (
            f"it could not be saved: {self._fault}"
            if self._fault
            else f"all of it is in {self.path}: search it with rg or read a part of it"
        )
        left_out = self.new_bytes - len(self._head) - len(self._tail)
        note = f"[... {left_out:,} of {self.new_bytes:,} bytes ({self._new_lines:,} lines) left out here; {where} ...]"
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


class Live:
    """Shows output while it comes: at once, but no more than 4 KiB ten times a second. The rest is passed over."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._waiting = b""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest: asyncio.TimerHandle | None = None

    def take(self, chunk: bytes) -> None:
        self._waiting += chunk
        if len(self._waiting) > SHOW_BYTES:
            self._waiting = b"\n[...]\n" + self._waiting[-SHOW_BYTES:].partition(b"\n")[2]
            self._decoder.reset()
        if self._rest is None:
            self._tell()

    def close(self) -> None:
        if self._rest:
            self._rest.cancel()
        self._tell(is_last=True)

    def _tell(self, *, is_last: bool = False) -> None:
        text = self._decoder.decode(self._waiting, is_last)
        self._waiting = b""
        self._rest = None if is_last or not text else asyncio.get_running_loop().call_later(SHOW_EVERY_S, self._tell)
        if text:
            self._show(text)


def told(text: str, notes: Iterable[str], nothing: str = "no output") -> str:
    """What a model reads: the output as it is, and each note in brackets on a line of its own."""
    return "\n".join([text.removesuffix("\n") if text else f"[{nothing}]", *(f"[{note}]" for note in notes)])
