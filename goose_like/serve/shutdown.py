"""Between the signal to stop and the end: nothing new is answered, and what runs may finish."""

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from .middleware import Room
from .service import Service

_LAST_WORDS_S = 2.0


class Drain:
    """Stands before uvicorn's own handlers of SIGTERM and SIGINT, and calls them when nothing runs any more.

    Until then the port stays open, so that a balancer is told (503) and not just turned away; and libraries that end
    streams once uvicorn has been told to exit find that it has not. A second Ctrl-C ends all at once.
    """

    def __init__(self, service: Service, room: Room) -> None:
        self._service = service
        self._room = room
        self._former: dict[int, Any] = {}
        self._ending: asyncio.Task[None] | None = None

    @property
    def is_begun(self) -> bool:
        return self._ending is not None

    @contextmanager
    def watching(self, parent: int | None) -> Iterator[None]:
        """Takes the signals while the block runs. `parent` is the process without which a worker ends as well."""
        loop = asyncio.get_running_loop()

        def take(number: int, _: FrameType | None) -> None:
            loop.call_soon_threadsafe(self._begin, number)

        self._former = {number: signal.signal(number, take) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            with _orphaned(parent, lambda: self._begin(signal.SIGTERM)):
                yield
        finally:
            for number, former in self._former.items():
                signal.signal(number, former)

    def _begin(self, number: int) -> None:
        if self._ending is None:
            self._ending = asyncio.create_task(self._end(number))
        elif number == signal.SIGINT:
            logging.getLogger("uvicorn.error").disabled = True  # else it tells of all that is cut off now, as wished
            self._pass_on(number)
            self._pass_on(number)  # uvicorn takes the second one for what it is

    async def _end(self, number: int) -> None:
        await self._until_empty(self._service.settings.drain_s)
        self._service.stop()
        await self._until_empty(_LAST_WORDS_S)
        self._pass_on(number)

    async def _until_empty(self, limit_s: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                await self._room.empty.wait()

    def _pass_on(self, number: int) -> None:
        former: Callable[[int, None], object] = self._former[number]
        former(number, None)


@contextmanager
def _orphaned(parent: int | None, tell: Callable[[], object]) -> Iterator[None]:
    """Calls `tell` when that process ends while the block runs; where the system has no means to know, never."""
    if parent is None or not hasattr(os, "pidfd_open"):
        yield
        return
    loop, descriptor = asyncio.get_running_loop(), os.pidfd_open(parent)
    loop.add_reader(descriptor, tell)
    try:
        yield
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
