"""The channel: the events of an exchange as an async stream."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable
from contextlib import suppress

from typing_extensions import override

from goose_like.core.events import Event, TextDelta
from goose_like.core.notifier import EventNotifier


class Channel(EventNotifier):
    """A notifier that turns the events of one coroutine into an async stream.

    Text deltas that arrive between two reads are merged: a fast model sends hundreds of them.
    """

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._texts: list[str] = []
        self._has_news = asyncio.Event()

    @override
    def notify(self, event: Event) -> None:
        if isinstance(event, TextDelta):
            self._texts.append(event.text)
        else:
            self._merge_texts()
            self._events.append(event)
        self._has_news.set()

    async def stream(self, work: Awaitable[object], heartbeat_s: float | None = None) -> AsyncGenerator[list[Event]]:
        """Yield the events that `work` emits until it ends, then raise its error if it failed.

        Each list holds all waiting events; after `heartbeat_s` without events, the list is empty. Leaving the stream
        early cancels the work and waits for its end.
        """
        task = asyncio.ensure_future(work)
        task.add_done_callback(lambda _: self._has_news.set())
        is_done = False
        try:
            while not is_done:
                with suppress(TimeoutError):
                    async with asyncio.timeout(heartbeat_s):
                        await self._has_news.wait()
                self._has_news.clear()
                is_done = task.done()
                batch = self._take_batch()
                if batch or not is_done:
                    yield batch
            await task
        finally:
            if not is_done:
                task.cancel()
                await asyncio.wait([task])
                self._take_batch()  # leave no events of this work to the next one

    def _take_batch(self) -> list[Event]:
        self._merge_texts()
        batch = self._events
        self._events = []
        return batch

    def _merge_texts(self) -> None:
        if self._texts:
            self._events.append(TextDelta(text="".join(self._texts)))
            self._texts = []
