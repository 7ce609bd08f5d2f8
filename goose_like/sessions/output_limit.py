"""Output of any size, limited to an excerpt for the model and saved to a file."""

import errno
import os
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from goose_like.core.masking import MaskedBytes
from goose_like.core.pattern import compile_later

from .failure_lines import FailureLines

MAX_HEAD_BYTES = 50_000_000
MAX_TAIL_BYTES = 1_000_000
MAX_RESERVE_BYTES = 64_000_000
_RESERVED_SHARE = 20
_LONGEST_LINE_SHARE = 8
_FAILURES_SHARE = 4
_MARK_BYTES = 60
_BUFFER_FACTOR = 4
_MAX_HELD_BYTES = 4_096

# Codes of a terminal (ECMA-48): with parameters, with a text, and short ones.
_CODE = compile_later(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b\n]{0,2048}(?:\x07|\x1b\\)|[ -/]*[0-OQ-WYZ`-~])")
_UNFINISHED = compile_later(
    rb"(?:(?<!\r)\r++|\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b\n]{0,2048}\x1b?|[ -/]*)"
    rb"|[\xc2-\xdf]|[\xe0-\xef][\x80-\xbf]?|[\xf0-\xf4][\x80-\xbf]{0,2})\Z"
)
_CONTINUATION_BYTES = bytes(range(0x80, 0xC0))  # all but the first byte of a character
_LINE_END = compile_later(rb"(?<!\r)\r++\n")  # linear also for many \r without \n
_OVERWRITE = compile_later(rb"\A([^\r\n]*)\r+(?=[^\r\n])")


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
        complete = _clean(lines + end)
        if len(self.waiting) > _MAX_HELD_BYTES:
            complete += self.flush()
        return complete

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
        rest = _clean(self.waiting).rstrip(b"\r")
        self.waiting = b""
        return rest


def _clean(data: bytes, *, is_open: bool = False) -> bytes:
    """Remove all codes and overwritten parts of lines. An open line keeps the carriage returns at its end."""
    if b"\x1b" in data:
        data = _CODE.sub(b"", data)
    if b"\r" not in data:
        return data
    lines = _LINE_END.sub(b"\n", data).split(b"\n")
    return b"\n".join(_drop_overwritten(line, is_open) for line in lines)


def _drop_overwritten(line: bytes, is_open: bool) -> bytes:
    """Return the last part of a line that shows something. Without one, return the last part."""
    parts = line.split(b"\r")
    last = len(parts) - 1
    for index in reversed(range(len(parts))):
        if parts[index].strip():
            last = index
            break
    if is_open:
        return b"\r".join(parts[last:])
    return parts[last]


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
        self._plain: PlainBytes | None = None
        self._raw: bytearray | None = None  # the start as it came, in case that it is binary
        self._failures: FailureLines | None = None
        if not keeps_codes:
            self._plain = PlainBytes()
            self._raw = bytearray()
            self._failures = FailureLines()
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
        waiting_bytes = len(self._plain.waiting) if self._plain else 0
        return self._new_bytes + waiting_bytes

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
            if len(self._raw) > self.limit_bytes:
                self._raw = None
        if self._plain:
            chunk = self._plain.write(chunk)
        self._append(self._masked.write(chunk))

    def _restore_binary(self) -> bytes:
        """Clean no more, and return all bytes to append: if possible those that were cleaned already, too."""
        waiting = self._close_plain()
        self._plain = None
        if self._raw is None:
            return waiting
        start = bytes(self._raw)
        self._raw = None
        self._masked = MaskedBytes()
        self._clear()
        return start

    def _close_plain(self) -> bytes:
        return self._plain.close() if self._plain else b""

    def _clear(self) -> None:
        self._head = bytearray()
        self._tail = bytearray()
        self._new_bytes = 0
        self._new_lines = 0
        if self._failures:
            self._failures = FailureLines()

    def _append(self, chunk: bytes) -> None:
        self._new_bytes += len(chunk)
        self._new_lines += chunk.count(b"\n")
        if self._failures:
            self._failures.write(chunk)
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
                self._file = self.path.open("wb")
                self._raw = None
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
            rest = self._masked.write(self._close_plain())
            rest += self._masked.close()
            self._append(rest)
        self._is_closed = True
        if self._file is None:
            return
        try:
            if self._file_tail and not self._error:
                self._write_file_tail(self._file)
            self._file.close()
        except OSError as error:
            self._error = error

    def _write_file_tail(self, file: BinaryIO) -> None:
        note = b""
        left_out = self._beyond_bytes - len(self._file_tail)
        if left_out:
            note = f"\n[... {left_out:,} bytes left out here ...]\n".encode()
        self._write_file(file, note + self._file_tail)
        self._file_tail.clear()

    def take_new(self) -> str:
        """Return the output since the last call, formatted by `format_for_model`.

        Call `save_all` first so that the file is complete. The bytes of an unfinished character wait for the next
        call, unless the output is closed.
        """
        self._flush()
        end = self._tail or self._head
        rest = b""
        if not self._is_closed:
            rest = _find_cut_character(end)
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
            place = f"saved as {self.path}"
            if self._error:
                place = self._describe_place()
            return f"[binary output, {self._new_bytes:,} bytes, {place}]"
        if not self.is_over_limit:
            return (self._head + self._tail).decode(errors="replace")
        return self._format_excerpt()

    def _format_excerpt(self) -> str:
        """Format as many first and last lines as fit, and failures between. A long line takes a part of the limit."""
        room = self.limit_bytes // _FAILURES_SHARE
        failures = self._failures.lines if self._failures else []
        failure_bytes = sum(len(line) for _, line in failures)
        half = (self.limit_bytes - min(room, failure_bytes)) // 2
        longest = max(self.limit_bytes // _LONGEST_LINE_SHARE, 1)
        head, tail = self._split_buffers(longest)
        first = _Excerpt()
        first.take(head, half, longest)
        last = _Excerpt()
        last.take(reversed(tail or head[len(first.lines) :]), half, longest)
        last.reverse()
        shown = first.lines + last.lines
        left_bytes = self._new_bytes - sum(map(len, shown))
        left_lines = self._new_lines - sum(line.endswith(b"\n") for line in shown)
        place = self._describe_place()
        if not left_bytes:
            note = f"[long lines are cut; {place}]"
            return "\n".join(filter(None, [first.text, last.text, note]))
        size = f"{left_bytes:,} bytes"
        if left_lines:
            size = f"{left_lines:,} lines ({size})"
        gap = f"[... {size} left out here; {place} ...]"
        important = self._format_failures(len(first.lines), len(last.lines), room)
        return "\n".join([first.text, gap, *important, last.text])

    def _split_buffers(self, longest: int) -> tuple[list[bytes], list[bytes]]:
        """Split the head and the tail into lines. All lines are in the head if nothing is missing between."""
        if self._new_bytes == len(self._head) + len(self._tail):
            return _split_lines(bytes(self._head + self._tail)), []
        head = _split_lines(bytes(self._head))
        tail = _split_lines(bytes(self._tail))
        # A part of a line stands on each side of the gap. Only a long part says enough.
        before_gap = head.pop()
        if len(before_gap) > longest:
            head.append(before_gap[:longest])
        after_gap = tail.pop(0)
        if len(after_gap) > longest:
            tail.insert(0, after_gap[-longest:])
        return head, tail

    def _format_failures(self, first_count: int, last_count: int, room: int) -> list[str]:
        """Format the lines between the first and the last ones that look like failures, with their number."""
        if not self._failures:
            return []
        is_open = not (self._tail or self._head).endswith(b"\n")
        line_count = self._new_lines + is_open
        failures = self._failures.find_between(first_count, line_count - last_count)
        if not failures:
            return []
        shown = []
        for line in failures:
            room -= len(line) + 1
            if room < 0:
                break
            shown.append(line.decode(errors="replace"))
        count = f"lines of these that look like failures: {len(failures):,}"
        if len(shown) < len(failures):
            count += f"; the first {len(shown):,} are"
        return [f"[{count}]", *shown, "[...]"]

    def _describe_place(self) -> str:
        if self._error:
            saved = "not saved"
            if self._saved_bytes:
                saved = f"only its first {self._saved_bytes:,} bytes are in {self.path}"
            return f"{saved}: {self._error.strerror}"
        part = "all of it is"
        if self._beyond_bytes > MAX_TAIL_BYTES:
            part = "its beginning and end are"
        return f"{part} in {self.path}: search it with rg or read a part of it"


class _Excerpt:
    """Successive lines that a model reads: as they came, and with the middle of long ones left out."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self._texts: list[str] = []

    @property
    def text(self) -> str:
        return "".join(self._texts).removesuffix("\n")

    def take(self, lines: Iterable[bytes], room: int, longest: int) -> None:
        """Take lines as long as they fit, at least one."""
        for line in lines:
            text = _shorten_line(line, longest)
            room -= len(text.encode())
            if room < 0 and self.lines:
                break
            self.lines.append(line)
            self._texts.append(text)

    def reverse(self) -> None:
        """Reverse the lines, which were taken from the end."""
        self.lines.reverse()
        self._texts.reverse()


def _split_lines(data: bytes) -> list[bytes]:
    """Split into lines with their ends. The last one may lack its end."""
    *complete, rest = data.split(b"\n")
    lines = [line + b"\n" for line in complete]
    if rest:
        lines.append(rest)
    return lines


def _shorten_line(line: bytes, longest: int) -> str:
    left_out = len(line) - longest
    if left_out <= _MARK_BYTES:
        return _decode_part(line)
    start_size = longest * 3 // 4
    end_size = longest - start_size
    start = _decode_part(line[:start_size])
    end = _decode_part(line[len(line) - end_size :])
    return f"{start} [... {left_out:,} bytes of this line left out ...] {end}"


def _decode_part(data: bytes) -> str:
    """Decode a part of a text without the halves of characters at its ends."""
    end = len(data) - len(_find_cut_character(data))
    whole = data[:end].lstrip(_CONTINUATION_BYTES)
    return whole.decode(errors="replace")


def _find_cut_character(data: bytes | bytearray) -> bytes:
    """Find the bytes of an unfinished character at the end of a text; empty if there is none."""
    unfinished = _UNFINISHED.search(data[-4:])
    if unfinished is None:
        return b""
    is_character = unfinished[0][0] >= 0x80  # else it is a carriage return or the start of a code
    return bytes(unfinished[0]) if is_character else b""


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
    parts = [f"[{placeholder}]"]
    if text:
        parts = [text.removesuffix("\n")]
    for note in notes:
        line = " ".join(note.splitlines())
        parts.append(f"[{line}]")
    return "\n".join(parts)
