"""The sink of everything that happens: the base class that a front-end fills in, and three small ones."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable
from contextlib import aclosing, suppress

from .events import Answer, Event, Logged, Question, Status, TextDelta
from .plain import plain_text


class Notifier:
    """What a front-end gives. Override `notify` and, where a person can answer, `ask`.

    `notify` is called on the event loop, in the order of what happened; it must not block and should not raise
    (one that does is told and then left out; the turn goes on).
    """

    def notify(self, event: Event) -> None:
        """Takes one event. The base class ignores it."""

    async def ask(self, question: Question) -> Answer:
        """A person's answer; the base class has nobody to ask and denies."""
        return Answer(choice="deny", by="nobody")

    def log(self, renderable: object) -> None:
        """Records something concrete that happened: a string or any Rich renderable. It lasts."""
        self.notify(Logged(text=plain_text(renderable)))

    def status(self, text: str) -> None:
        """Shows what is going on now. It does not last."""
        self.notify(Status(text=text))


class Recorder(Notifier):
    """Keeps every event, and gives the answer it was made with; for tests."""

    def __init__(self, answer: Answer = Answer()) -> None:
        self.events: list[Event] = []
        self.questions: list[Question] = []
        self._answer = answer

    def notify(self, event: Event) -> None:
        self.events.append(event)

    async def ask(self, question: Question) -> Answer:
        self.questions.append(question)
        return self._answer


class Tee(Notifier):
    """Gives every event to several notifiers; the first one answers questions. One that raises is told and left out."""

    def __init__(self, *notifiers: Notifier) -> None:
        self._notifiers = list(notifiers)
        self._first = notifiers[0]

    def notify(self, event: Event) -> None:
        for notifier in list(self._notifiers):
            try:
                notifier.notify(event)
            except Exception:
                logging.getLogger(__name__).exception("a front-end failed and is shown nothing more")
                self._notifiers.remove(notifier)

    async def ask(self, question: Question) -> Answer:
        return await self._first.ask(question)


class Channel(Notifier):
    """Turns the events of one coroutine into an async stream, for front-ends that want to pull.

    Words that came since the last look are one event: a fast model makes hundreds.
    """

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._words: list[str] = []
        self._came = asyncio.Event()

    def notify(self, event: Event) -> None:
        if isinstance(event, TextDelta):
            self._words.append(event.text)
        else:
            self._join()
            self._events.append(event)
        self._came.set()

    async def stream(self, work: Awaitable[object]) -> AsyncIterator[Event]:
        """Yields the events that `work` emits until it ends; then raises what it raised.

        Leaving the stream early cancels the work and waits for its end.
        """
        async with aclosing(self.batches(work)) as batches:
            async for batch in batches:
                for event in batch:
                    yield event

    async def batches(self, work: Awaitable[object], beat_s: float | None = None) -> AsyncGenerator[list[Event]]:
        """The same with all events at once that are there; one without any says that none came for `beat_s`."""
        task = asyncio.ensure_future(work)
        task.add_done_callback(lambda _: self._came.set())
        is_over = False
        try:
            while not is_over:
                with suppress(TimeoutError):
                    async with asyncio.timeout(beat_s):
                        await self._came.wait()
                self._came.clear()
                is_over = task.done()
                batch = self._taken()
                if batch or not is_over:
                    yield batch
            await task
        finally:
            if not is_over:
                task.cancel()
                await asyncio.wait([task])
                self._taken()  # what this work still told is not the next one's

    def _taken(self) -> list[Event]:
        self._join()
        batch, self._events = self._events, []
        return batch

    def _join(self) -> None:
        if self._words:
            self._events.append(TextDelta(text="".join(self._words)))
            self._words = []
