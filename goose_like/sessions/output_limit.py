"""Output of any size, limited to an excerpt for the model and saved to a file."""

import errno
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from goose_like.core.masking import MaskedBytes

MAX_HEAD_BYTES = 50_000_000
MAX_TAIL_BYTES = 1_000_000
MAX_RESERVE_BYTES = 64_000_000
_RESERVED_SHARE = 20
_LONGEST_LINE_SHARE = 8
_MARK_BYTES = 60
_BUFFER_FACTOR = 4
_MAX_HELD_BYTES = 4_096

# Codes of a terminal (ECMA-48): with parameters, with a text, and short ones.
_CODE = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b\n]{0,2048}(?:\x07|\x1b\\)|[ -/]*[0-OQ-WYZ`-~])")
_UNFINISHED = re.compile(
    rb"(?:(?<!\r)\r++|\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b\n]{0,2048}\x1b?|[ -/]*)"
    rb"|[\xc2-\xdf]|[\xe0-\xef][\x80-\xbf]?|[\xf0-\xf4][\x80-\xbf]{0,2})\Z"
)
_LINE_END = re.compile(rb"(?<!\r)\r++\n")  # linear also for many \r without \n
_OVERWRITE = re.compile(rb"\A([^\r\n]*)\r+(?=[^\r\n])")


def remove_codes(data: bytes) -> tuple[bytes, bytes]:
    """Return output without the codes of a terminal, and its end if that may be a half of a code or character."""
    plain = _CODE.sub(b"", data)
    unfinished = _UNFINISHED.search(plain, max(0, len(plain) - _MAX_HELD_BYTES))
    size = unfinished.start() if unfinished else len(plain)
    return plain[:size], plain[size:]


class PlainBytes:
    """A filter that removes the colors and cursor moves of a terminal from output.

    A line that carriage returns overwrite (a progress bar) keeps its last state. The unfinished line waits.
    """

    def __init__(self) -> None:
        self.waiting = b""
        self._has_shown_start = False  # of the waiting line

    def write(self, data: bytes) -> bytes:
        """Add bytes and return the lines that are complete, and the start of a very long one."""
        data = self.waiting + data
        if self._has_shown_start:
            data = _OVERWRITE.sub(rb"\1\n", data)
        lines, end, self.waiting = data.rpartition(b"\n")
        if end:
            self._has_shown_start = False
        return _clean(lines + end) + (self.flush() if len(self.waiting) > _MAX_HELD_BYTES else b"")

    def flush(self) -> bytes:
        """Return the waiting line so far, without half a character or half a code at its end."""
        line = _clean(self.waiting, is_open=True)
        unfinished = _UNFINISHED.search(line)
        size = unfinished.start() if unfinished else len(line)
        self.waiting = line[size:]
        self._has_shown_start = self._has_shown_start or size > 0
        return line[:size]

    def close(self) -> bytes:
        """Return the rest."""
        rest, self.waiting = _clean(self.waiting).rstrip(b"\r"), b""
        return rest


def _clean(data: bytes, *, is_open: bool = False) -> bytes:
    """Remove all codes and overwritten parts of lines. An open line keeps the carriage returns at its end."""
    if b"\x1b" in data:
        data = _CODE.sub(b"", data)
    if b"\r" not in data:
        return data
    return b"\n".join(_drop_overwritten(line, is_open) for line in _LINE_END.sub(b"\n", data).split(b"\n"))


def _drop_overwritten(line: bytes, is_open: bool) -> bytes:
    parts = line.split(b"\r")
    last = next((index for index in range(len(parts) - 1, -1, -1) if parts[index].strip()), len(parts) - 1)
    return b"\r".join(parts[last:]) if is_open else parts[last]


class LimitedOutput:
    """A buffer that keeps the head and tail of output, and saves output beyond `limit_bytes` to the file `path`.

    Secrets are masked. Codes for a terminal are removed, unless `keeps_codes` is set or the output is binary.
    `size_bytes` counts all bytes as they came, `new_bytes` those kept since the last `take_new`.

    Of endless output the file has the first 50 MB and the last. On a disk that is nearly full, saving stops while the
    session can still be written. Neither that nor an error stops the output: the model reads what is missing.
    """

    def __init__(self, path: Path, limit_bytes: int, *, keeps_codes: bool = False) -> None:
        self.path = path
        self.limit_bytes = limit_bytes
        self.size_bytes = 0
        self._new_bytes = 0
        self._new_lines = 0
        self._head = bytearray()
        self._tail = bytearray()
        self._plain = None if keeps_codes else PlainBytes()
        self._raw = None if keeps_codes else bytearray()  # the start as it came, in case that it is binary
        self._masked = MaskedBytes()
        self._file: BinaryIO | None = None
        self._saved_bytes = 0
        self._file_tail = bytearray()
        self._beyond_bytes = 0
        self._error: OSError | None = None
        self._is_closed = False

    @property
    def new_bytes(self) -> int:
        """The number of bytes since the last `take_new`."""
        return self._new_bytes + (len(self._plain.waiting) if self._plain else 0)

    @property
    def is_over_limit(self) -> bool:
        """True when the model receives only an excerpt."""
        return self._new_bytes > self.limit_bytes

    def save_all(self) -> None:
        """Save all output to the file from now on, however short it is."""
        self._save(b"")

    def write(self, chunk: bytes) -> None:
        """Append bytes, in chunks of any size."""
        self.size_bytes += len(chunk)
        if self._plain and b"\0" in chunk:
            chunk = self._restore_binary() + chunk
        elif self._raw is not None:
            self._raw += chunk
            self._raw = self._raw if len(self._raw) <= self.limit_bytes else None
        self._append(self._masked.write(self._plain.write(chunk) if self._plain else chunk))

    def _restore_binary(self) -> bytes:
        """Clean no more, and return all bytes to append: if possible those that were cleaned already, too."""
        waiting = self._plain.close() if self._plain else b""
        self._plain = None
        if self._raw is None:
            return waiting
        start, self._raw, self._masked = bytes(self._raw), None, MaskedBytes()
        self._clear()
        return start

    def _clear(self) -> None:
        self._head, self._tail = bytearray(), bytearray()
        self._new_bytes = self._new_lines = 0

    def _append(self, chunk: bytes) -> None:
        self._new_bytes += len(chunk)
        self._new_lines += chunk.count(b"\n")
        if self.is_over_limit or self._file is not None:
            self._save(chunk)
        size = self.limit_bytes * _BUFFER_FACTOR
        room = size - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:][-size:]
        del self._tail[:-size]

    def _save(self, chunk: bytes) -> None:
        """Append to the file. The first time, write everything that came before."""
        if self._error:
            return
        try:
            if self._file is None:
                self.path.parent.mkdir(0o700, parents=True, exist_ok=True)
                self.path.touch(0o600)
                self._file, self._raw = self.path.open("wb"), None
                chunk = bytes(self._head + self._tail) + chunk
            room = MAX_HEAD_BYTES - self._saved_bytes
            self._write_file(self._file, chunk[:room])
            self._file_tail += chunk[room:][-MAX_TAIL_BYTES:]
            del self._file_tail[:-MAX_TAIL_BYTES]
            self._beyond_bytes += len(chunk[room:])
        except OSError as error:
            self._error = error

    def _write_file(self, file: BinaryIO, data: bytes) -> None:
        disk = os.fstatvfs(file.fileno())
        reserve = min(MAX_RESERVE_BYTES, disk.f_blocks * disk.f_frsize // _RESERVED_SHARE)
        if data and disk.f_bavail * disk.f_frsize < len(data) + reserve:
            raise OSError(errno.ENOSPC, "the disk is nearly full; free some space")
        file.write(data)
        file.flush()
        self._saved_bytes += len(data)

    def close(self) -> None:
        """Close the file. No more output may follow."""
        if not self._is_closed:
            self._append(self._masked.write(self._plain.close() if self._plain else b"") + self._masked.close())
        self._is_closed = True
        try:
            if self._file is not None:
                if self._file_tail and not self._error:
                    left_out = self._beyond_bytes - len(self._file_tail)
                    note = f"\n[... {left_out:,} bytes left out here ...]\n" if left_out else ""
                    self._write_file(self._file, note.encode() + self._file_tail)
                    self._file_tail.clear()
                self._file.close()
        except OSError as error:
            self._error = error

    def take_new(self) -> str:
        """Return the output since the last call, formatted by `format_for_model`.

        Call `save_all` first so that the file is complete. The bytes of an unfinished character wait for the next
        call, unless the output is closed.
        """
        self._flush()
        end = self._tail or self._head
        unfinished = None if self._is_closed else _UNFINISHED.search(end[-4:])
        rest = bytes(unfinished[0]) if unfinished and unfinished[0][0] >= 0x80 else b""
        del end[len(end) - len(rest) :]
        self._new_bytes -= len(rest)
        text = self.format_for_model()
        self._clear()
        self._head += rest
        self._new_bytes = len(rest)
        return text

    def get_tail(self, size_bytes: int) -> str:
        """Return the last bytes as text."""
        self._flush()
        return (self._head + self._tail)[-size_bytes:].decode(errors="replace")

    def _flush(self) -> None:
        if self._plain and not self._is_closed:
            self._raw = None
            self._append(self._masked.write(self._plain.flush()))

    def format_for_model(self) -> str:
        """Return everything, or the first and last lines, the size of the rest and the file's path.

        Call `close` first. Binary output is saved, not shown.
        """
        is_binary = b"\0" in self._head or b"\0" in self._tail
        if is_binary and self._file is None:
            self._save(b"")
            self.close()
        if is_binary:
            place = self._describe_place() if self._error else f"saved as {self.path}"
            return f"[binary output, {self._new_bytes:,} bytes, {place}]"
        if not self.is_over_limit:
            return (self._head + self._tail).decode(errors="replace")
        return self._format_excerpt()

    def _format_excerpt(self) -> str:
        """Format as many first and last lines as fit. A long line takes only a part of the limit."""
        half, longest = self.limit_bytes // 2, max(self.limit_bytes // _LONGEST_LINE_SHARE, 1)
        head, tail = _split_lines(bytes(self._head)), _split_lines(bytes(self._tail))
        if self._new_bytes == len(self._head) + len(self._tail):
            head, tail = _split_lines(bytes(self._head + self._tail)), []
        else:  # a part of a line stands on each side of the gap
            head[-1:] = [head[-1][:longest]] if len(head[-1]) > longest else []
            tail[:1] = [tail[0][-longest:]] if len(tail[0]) > longest else []
        first = _take_lines(head, half, longest)
        last = _take_lines((tail or head[len(first) :])[::-1], half, longest)[::-1]
        shown = [line for line, _ in first + last]
        left_bytes = self._new_bytes - sum(map(len, shown))
        left_lines = self._new_lines - sum(line.endswith(b"\n") for line in shown)
        place = self._describe_place()
        start, end = ("".join(text for _, text in part).removesuffix("\n") for part in (first, last))
        if not left_bytes:
            return "\n".join(filter(None, [start, end, f"[long lines are cut; {place}]"]))
        size = f"{left_lines:,} lines ({left_bytes:,} bytes)" if left_lines else f"{left_bytes:,} bytes"
        return f"{start}\n[... {size} left out here; {place} ...]\n{end}"

    def _describe_place(self) -> str:
        if self._error:
            missing = (
                f"only its first {self._saved_bytes:,} bytes are in {self.path}" if self._saved_bytes else "not saved"
            )
            return f"{missing}: {self._error.strerror}"
        part = "its beginning and end are" if self._beyond_bytes > MAX_TAIL_BYTES else "all of it is"
        return f"{part} in {self.path}: search it with rg or read a part of it"


def _split_lines(data: bytes) -> list[bytes]:
    lines = data.split(b"\n")
    return [*(line + b"\n" for line in lines[:-1]), *filter(None, lines[-1:])]


def _take_lines(lines: Iterable[bytes], room: int, longest: int) -> list[tuple[bytes, str]]:
    """Take lines as long as they fit, at least one, each with its text."""
    taken: list[tuple[bytes, str]] = []
    for line in lines:
        text = _shorten_line(line, longest)
        room -= len(text.encode())
        if room < 0 and taken:
            break
        taken.append((line, text))
    return taken


def _shorten_line(line: bytes, longest: int) -> str:
    left_out = len(line) - longest
    if left_out <= _MARK_BYTES:
        return _decode_part(line)
    start, end = line[: longest * 3 // 4], line[len(line) - (longest - longest * 3 // 4) :]
    return f"{_decode_part(start)} [... {left_out:,} bytes of this line left out ...] {_decode_part(end)}"


def _decode_part(data: bytes) -> str:
    """Decode a part of a text without the halves of characters at its ends."""
    unfinished = _UNFINISHED.search(data[-4:])
    end = len(data) - len(unfinished[0]) if unfinished and unfinished[0][0] >= 0x80 else len(data)
    return data[:end].lstrip(bytes(range(0x80, 0xC0))).decode(errors="replace")


def limit_text(text: str, path: Path, limit_bytes: int) -> str:
    """Return the text as valid Unicode, or an excerpt when it is longer than `limit_bytes` and saved at `path`."""
    data = text.encode("utf-8", errors="replace")
    if len(data) <= limit_bytes:
        return data.decode("utf-8")
    output = LimitedOutput(path, limit_bytes, keeps_codes=True)
    output.write(data)
    output.close()
    return output.format_for_model()


def append_notes(text: str, notes: Iterable[str], placeholder: str = "no output") -> str:
    """Append notes to output, each in brackets on its own line. Empty output becomes the placeholder."""
    lines = (f"[{' '.join(note.splitlines())}]" for note in notes)
    return "\n".join([text.removesuffix("\n") if text else f"[{placeholder}]", *lines])
