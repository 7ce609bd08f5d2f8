"""Output of any size: what a model can read of it, and a file with all of it when that is not everything."""

from pathlib import Path
from typing import BinaryIO


class Output:
    """Takes bytes as they come. Past `limit_bytes` everything goes to `path`; memory holds head and tail only."""

    def __init__(self, path: Path, limit_bytes: int) -> None:
        self.path = path
        self.limit_bytes = limit_bytes
        self.size_bytes = 0
        self.line_count = 0
        self._head = bytearray()
        self._tail = bytearray()
        self._file: BinaryIO | None = None

    def write(self, chunk: bytes) -> None:
        self.size_bytes += len(chunk)
        self.line_count += chunk.count(b"\n")
@@
    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def for_model(self) -> str:
        """All of it, or head and tail with sizes and the file's path; bytes that are no text are told as such."""
        if self._file is None:
            kept = bytes(self._head)
            if b"\0" in kept:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self.path.write_bytes(kept)
                return f"[binary output, {self.size_bytes:,} bytes, saved as {self.path}]"
            return kept.decode(errors="replace")
        if b"\0" in self._head or b"\0" in self._tail:
            return f"[binary output, {self.size_bytes:,} bytes, saved as {self.path}]"
        left_out = self.size_bytes - len(self._head) - len(self._tail)
        note = (
            f"\n[... {left_out:,} of {self.size_bytes:,} bytes ({self.line_count:,} lines) left out here; "
            f"all of it is in {self.path}: search it with rg or read a part of it ...]\n"
        )
        return self._head.decode(errors="ignore") + note + self._tail.decode(errors="ignore")


def readable(text: str, path: Path, limit_bytes: int) -> str:
    """The text as a model can read it: valid Unicode, and when longer than `limit_bytes` kept whole at `path`."""
    data = text.encode("utf-8", errors="replace")
    if len(data) <= limit_bytes:
        return data.decode("utf-8")
    output = Output(path, limit_bytes)
    output.write(data)
    output.close()
    return output.for_model()
