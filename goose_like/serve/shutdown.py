"""Graceful shutdown: refuse new queries, let running ones finish, then stop the server."""

import asyncio
import logging
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing import parent_process
from types import FrameType
from typing import Any

from .middleware import QuerySlots
from .service import Service

_FINAL_EVENTS_S = 2.0
"""Seconds that stopped turns get to send their last events."""


@contextmanager
def handle_signals(service: Service, slots: QuerySlots) -> Iterator[None]:
    """Handle SIGTERM and SIGINT until the block ends; for a worker, the end of its parent counts as SIGTERM.

    The first signal reaches uvicorn's handler only when no query runs. Until then the port stays open, so that
    balancers get a 503 instead of a refused connection, and sse_starlette does not end the streams. A second Ctrl-C
    stops everything at once.
    """
    loop = asyncio.get_running_loop()
    parent = parent_process()
    tasks: list[asyncio.Task[None]] = []
    handlers: dict[int, Any] = {}

    def start(number: int) -> None:
        stop = partial(handlers[number], number, None)
        if not tasks:
            slots.is_closed = True
            tasks.append(loop.create_task(_drain(service, slots, stop)))
        elif number == signal.SIGINT:
            logging.getLogger("uvicorn.error").disabled = True  # it would report every request that is cut off now
            stop()
            stop()  # uvicorn stops at once at its second SIGINT

    def handle(number: int, _: FrameType | None) -> None:
        loop.call_soon_threadsafe(start, number)

    def end_with_parent(sentinel: int) -> None:
        loop.remove_reader(sentinel)
        start(signal.SIGTERM)

    for handled in (signal.SIGTERM, signal.SIGINT):
        handlers[handled] = signal.signal(handled, handle)
    if parent:
        loop.add_reader(parent.sentinel, end_with_parent, parent.sentinel)
    try:
        yield
    finally:
        if parent:
            loop.remove_reader(parent.sentinel)
        for number, handler in handlers.items():
            signal.signal(number, handler)


async def _drain(service: Service, slots: QuerySlots, stop: Callable[[], object]) -> None:
    await _wait_until_idle(slots, service.settings.shutdown_timeout_s)
    service.stop_turns()
    await _wait_until_idle(slots, _FINAL_EVENTS_S)
    stop()


async def _wait_until_idle(slots: QuerySlots, timeout_s: float) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(slots.idle.wait(), timeout_s)
