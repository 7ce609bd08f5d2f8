"""Limits on connections, and on the log lines that strangers can cause before any token is checked."""

import asyncio
import logging
import resource
import sys
import time

from typing_extensions import override
from uvicorn.protocols.http.h11_impl import H11Protocol

from goose_like.core.masking import mask_text

_LINES_PER_S = 10.0
_BURST_LINES = 200.0


class LimitedConnection(H11Protocol):
    """A connection that must send the complete head of each request in time.

    Half of the process's descriptors are for connections, so that those of clients that send nothing never use up all.
    """

    head_timeout_s = 15.0
    _deadline: asyncio.TimerHandle | None = None

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        max_descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if len(self.connections) >= max_descriptors // 2:
            self.logger.warning("too many connections; closed a new one")
            transport.abort()
            return
        super().connection_made(transport)
        self._deadline = self.loop.call_later(self.head_timeout_s, self._close)

    @override
    def data_received(self, data: bytes) -> None:
        if self.transport is None:  # refused
            return
        is_idle = self._deadline is None and (self.cycle is None or self.cycle.response_complete)
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before:
            self._stop_deadline()
        elif is_idle and not self.transport.is_closing():  # the first part of the next request's head
            self._deadline = self.loop.call_later(self.head_timeout_s, self._close)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_deadline()
        if self.transport is not None:
            super().connection_lost(exc)

    def _stop_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _close(self) -> None:
        self._deadline = None
        self.transport.abort()


class LimitedLog(logging.Handler):
    """Lines on standard error, at most some per second. The next line tells how many were left out."""

    def __init__(self) -> None:
        super().__init__()
        self._budget = _BURST_LINES
        self._since = time.monotonic()
        self._left_out = 0

    def install(self) -> None:
        """Take the lines of the libraries: asyncio logs each connection that it cannot accept, with its stack."""
        for name in ("uvicorn.error", "asyncio"):
            logger = logging.getLogger(name)
            logger.handlers = [self]
            logger.propagate = False

    def write(self, line: str) -> None:
        """Write a line, or count it as left out."""
        now = time.monotonic()
        self._budget = min(_BURST_LINES, self._budget + (now - self._since) * _LINES_PER_S)
        self._since = now
        if self._budget < 1:
            self._left_out += 1
            return
        self._budget -= 1
        note = ""
        if self._left_out:
            note = f"goose-like: left out {self._left_out:,} such lines\n"
            self._left_out = 0
        sys.stderr.write(f"{note}{mask_text(line)}\n")  # one write: workers share stderr

    @override
    def emit(self, record: logging.LogRecord) -> None:
        self.write(f"goose-like: {record.getMessage()}")
