"""Output of any size, limited to an excerpt for the model and saved to a file in full."""

import codecs
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from goose_like.core.masking import MaskedBytes


class LimitedOutput:
    """A buffer that keeps the head and tail of output, and saves output beyond `limit_bytes` to the file `path`.

    Secrets are masked. `size_bytes` counts all bytes, `new_bytes` those since the last `take_new`. A file that cannot
    be written (full disk) stops nothing: the model reads that the middle is lost.
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
        self._error: OSError | None = None
        self._is_closed = False
        self._masked = MaskedBytes()

    @property
    def is_over_limit(self) -> bool:
        """True when the model receives only an excerpt."""
        return self.new_bytes > self.limit_bytes

    def save_all(self) -> None:
        """Save all output to the file from now on, however short it is."""
        self._save(b"")

    def write(self, chunk: bytes) -> None:
        """Append bytes, in chunks of any size."""
        self._append(self._masked.write(chunk))

    def _append(self, chunk: bytes) -> None:
        self.size_bytes += len(chunk)
        self.new_bytes += len(chunk)
        self._new_lines += chunk.count(b"\n")
        if self.is_over_limit or self._file is not None:
            self._save(chunk)
        half = self.limit_bytes // 2
        room = half - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:][-self.limit_bytes :]
        if self.is_over_limit:
            del self._tail[:-half]

    def _save(self, chunk: bytes) -> None:
        """Append to the file. The first time, write everything that came before."""
        if self._error:
            return
        try:
            if self._file is None:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self._file = self.path.open("wb")
                self._file.write(self._head + self._tail)
            self._file.write(chunk)
            self._file.flush()
        except OSError as error:
            self._error = error

    def close(self) -> None:
        """Close the file. No more output may follow."""
        if not self._is_closed:
            self._append(self._masked.close())
        self._is_closed = True
        try:
            if self._file is not None:
                self._file.close()
        except OSError as error:
            self._error = error

    def take_new(self) -> str:
        """Return the output since the last call, formatted by `format_for_model`.

        Call `save_all` first so that the file is complete. The bytes of an unfinished character wait for the next
        call, unless the output is closed.
        """
        end = self._tail or self._head
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        decoder.decode(end[-4:])
        rest = b"" if self._is_closed else decoder.getstate()[0]
        del end[len(end) - len(rest) :]
        self.new_bytes -= len(rest)
        text = self.format_for_model()
        self._head, self._tail = bytearray(rest), bytearray()
        self.new_bytes, self._new_lines = len(rest), 0
        return text

    def get_tail(self, size_bytes: int) -> str:
        """Return the last bytes as text."""
        return (self._head + self._tail)[-size_bytes:].decode(errors="replace")

    def format_for_model(self) -> str:
        """Return everything, or head and tail with sizes and the file's path. Binary output is saved, not shown."""
        is_binary = b"\0" in self._head or b"\0" in self._tail
        if is_binary and self._file is None:
            self._save(b"")
            self.close()
        problem = f"it could not be saved: {self._error}" if self._error else ""
        if is_binary:
            return f"[binary output, {self.new_bytes:,} bytes, {problem or f'saved as {self.path}'}]"
        if not self.is_over_limit:
            return (self._head + self._tail).decode(errors="replace")
        place = problem or f"all of it is in {self.path}: search it with rg or read a part of it"
        left_out = self.new_bytes - len(self._head) - len(self._tail)
        note = f"[... {left_out:,} of {self.new_bytes:,} bytes ({self._new_lines:,} lines) left out here; {place} ...]"
        # Cut between characters: drop an unfinished one from the head, and its rest from the tail.
        head = codecs.getincrementaldecoder("utf-8")("replace").decode(self._head)
        tail = self._tail.lstrip(bytes(range(0x80, 0xC0))).decode(errors="replace")
        return f"{head}\n{note}\n{tail}"


def limit_text(text: str, path: Path, limit_bytes: int) -> str:
    """Return the text as valid Unicode, or an excerpt when it is longer than `limit_bytes` and saved at `path`."""
    data = text.encode("utf-8", errors="replace")
    if len(data) <= limit_bytes:
        return data.decode("utf-8")
    output = LimitedOutput(path, limit_bytes)
    output.write(data)
    output.close()
    return output.format_for_model()


def append_notes(text: str, notes: Iterable[str], placeholder: str = "no output") -> str:
    """Append notes to output, each in brackets on its own line. Empty output becomes the placeholder."""
    return "\n".join([text.removesuffix("\n") if text else f"[{placeholder}]", *(f"[{note}]" for note in notes)])
