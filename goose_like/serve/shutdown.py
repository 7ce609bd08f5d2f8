"""Graceful shutdown: refuse new queries, let running ones finish, then stop the server."""

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from .middleware import QuerySlots
from .service import Service

_FINAL_EVENTS_S = 2.0
"""Seconds that stopped turns get to send their last events."""


class GracefulShutdown:
    """A handler of SIGTERM and SIGINT that runs before uvicorn's handlers and calls them when no query runs.

    Until then the port stays open, so that balancers get a 503 instead of a refused connection, and sse_starlette
    does not end the streams. A second Ctrl-C stops everything at once.
    """

    def __init__(self, service: Service, slots: QuerySlots) -> None:
        self._service = service
        self._slots = slots
        self._former_handlers: dict[int, Any] = {}
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def handle_signals(self, parent_pid: int | None) -> Iterator[None]:
        """Handle the signals until the block ends; the end of process `parent_pid` counts as SIGTERM."""
        loop = asyncio.get_running_loop()

        def handle(number: int, _: FrameType | None) -> None:
            loop.call_soon_threadsafe(self._start, number)

        self._former_handlers = {number: signal.signal(number, handle) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            with _watch_process(parent_pid, lambda: self._start(signal.SIGTERM)):
                yield
        finally:
            for number, former in self._former_handlers.items():
                signal.signal(number, former)

    def _start(self, number: int) -> None:
        if self._task is None:
            self._slots.is_closed = True
            self._task = asyncio.create_task(self._run(number))
        elif number == signal.SIGINT:
            logging.getLogger("uvicorn.error").disabled = True  # it would report every request that is cut off now
            self._call_former_handler(number)
            self._call_former_handler(number)  # uvicorn stops at once at its second SIGINT

    async def _run(self, number: int) -> None:
        await self._wait_until_idle(self._service.settings.shutdown_timeout_s)
        self._service.stop_turns()
        await self._wait_until_idle(_FINAL_EVENTS_S)
        self._call_former_handler(number)

    async def _wait_until_idle(self, timeout_s: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._slots.idle.wait()

    def _call_former_handler(self, number: int) -> None:
        handler: Callable[[int, None], object] = self._former_handlers[number]
        handler(number, None)


@contextmanager
def _watch_process(pid: int | None, on_exit: Callable[[], object]) -> Iterator[None]:
    """Call `on_exit` if a process ends while the block runs, on systems that have pidfd."""
    if pid is None or not hasattr(os, "pidfd_open"):
        yield
        return
    loop, descriptor = asyncio.get_running_loop(), os.pidfd_open(pid)
    loop.add_reader(descriptor, on_exit)
    try:
        yield
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
