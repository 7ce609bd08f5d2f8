"""Live output: the first and the newest output of a command, shown while the command runs."""

import asyncio
import codecs
from collections.abc import Callable

from goose_like.core.masking import MaskedBytes
from goose_like.core.pattern import compile_later
from goose_like.sessions.output_limit import remove_codes

SHOW_INTERVAL_S = 0.1
HEAD_BYTES = 2048
SHOW_BYTES = 4096
MASKED_BYTES = 16_384  # a private key at the start of what is shown must be whole when it is masked

_CUT_CHARACTER = compile_later(rb"[\x80-\xbf]{1,3}")

ShowOutput = Callable[[str, int], None]
"""Shows a piece of output, and before it the number of lines that were skipped, if it is not 0."""


class LiveOutput:
    """A filter that shows output as it comes: the first 2 KiB, then at most 4 KiB ten times a second.

    The newest output is always shown. Of a line that is longer, the middle is missing. Secrets are masked,
    and colors and cursor moves of a terminal are removed, as in the result.
    """

    def __init__(self, show: ShowOutput) -> None:
        self._show = show
        self._waiting = b""
        self._unfinished = b""
        self._head_bytes = HEAD_BYTES
        self._skipped_lines = 0
        self._is_in_line = False
        self._masked = MaskedBytes()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._timer: asyncio.TimerHandle | None = None

    def write(self, chunk: bytes) -> None:
        """Show the chunk, now or at the next interval."""
        # Codes are removed before secrets are masked: a code can stand within a secret.
        chunk, self._unfinished = remove_codes(self._unfinished + chunk)
        head = chunk[: self._head_bytes]
        rest = chunk[self._head_bytes :]
        if head:
            self._head_bytes -= len(head)
            self._print(self._masked.write(head))
        self._waiting += rest
        if len(self._waiting) > MASKED_BYTES:
            skipped = self._waiting[:-MASKED_BYTES]
            self._skipped_lines += skipped.count(b"\n")
            self._waiting = self._waiting[-MASKED_BYTES:]
            self._masked = MaskedBytes()
        if self._timer is None:
            self._flush()

    def close(self) -> None:
        """Show the rest."""
        if self._timer:
            self._timer.cancel()
        self._waiting += self._unfinished
        self._unfinished = b""
        self._flush(is_last=True)

    def _flush(self, *, is_last: bool = False) -> None:
        data = self._masked.write(self._waiting)
        if is_last:
            data += self._masked.close()
        self._waiting = b""
        skipped_lines = 0
        if len(data) > SHOW_BYTES or self._skipped_lines:
            newest = _cut_to_end(data)
            skipped_lines = self._skipped_lines + data.count(b"\n") - newest.count(b"\n")
            self._skipped_lines = 0
            self._decoder.reset()
            if self._is_in_line and skipped_lines:
                self._print(b"\n")
                skipped_lines -= 1
            data = newest
        has_shown = self._print(data, skipped_lines, is_last=is_last)
        self._timer = None
        if has_shown and not is_last:
            self._timer = asyncio.get_running_loop().call_later(SHOW_INTERVAL_S, self._flush)

    def _print(self, data: bytes, skipped_lines: int = 0, *, is_last: bool = False) -> bool:
        """Show masked output. Return False if there is none."""
        text = self._decoder.decode(data, is_last)
        if text or skipped_lines:
            self._is_in_line = bool(text) and not text.endswith("\n")
            self._show(text, skipped_lines)
        return bool(text or skipped_lines)


def _cut_to_end(data: bytes) -> bytes:
    """Return the newest output from the start of a line on, or of a character in a line that is longer."""
    newest = data[-SHOW_BYTES:]
    line_start = newest.find(b"\n") + 1
    if 0 < line_start < len(newest):
        return newest[line_start:]
    cut_character = _CUT_CHARACTER.match(newest)
    if cut_character:
        return newest[cut_character.end() :]
    return newest
