"""Live output: the newest output of a command, shown while the command runs."""

import asyncio
import codecs
from collections.abc import Callable

from goose_like.core.masking import MaskedBytes

SHOW_INTERVAL_S = 0.1
SHOW_BYTES = 4096
MASKED_BYTES = 16_384  # a private key at the start of what is shown must be whole when it is masked


class LiveOutput:
    """A filter that shows output as it comes, at most 4 KiB ten times a second, and skips the rest.

    Secrets are masked.
    """

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._waiting = b""
        self._masked = MaskedBytes()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._timer: asyncio.TimerHandle | None = None

    def write(self, chunk: bytes) -> None:
        """Show the chunk, now or at the next interval."""
        self._waiting += chunk
        if len(self._waiting) > MASKED_BYTES:
            self._waiting, self._masked = self._waiting[-MASKED_BYTES:], MaskedBytes()
        if self._timer is None:
            self._flush()

    def close(self) -> None:
        """Show the rest."""
        if self._timer:
            self._timer.cancel()
        self._flush(is_last=True)

    def _flush(self, *, is_last: bool = False) -> None:
        data = self._masked.write(self._waiting) + (self._masked.close() if is_last else b"")
        self._waiting = b""
        if len(data) > SHOW_BYTES:
            data = b"\n[...]\n" + data[-SHOW_BYTES:].partition(b"\n")[2]
            self._decoder.reset()
        text = self._decoder.decode(data, is_last)
        is_idle = is_last or not text
        self._timer = None if is_idle else asyncio.get_running_loop().call_later(SHOW_INTERVAL_S, self._flush)
        if text:
            self._show(text)
