"""Notifiers: the base class that a front-end implements, and three general ones."""

import asyncio
import logging
import shutil
from collections.abc import AsyncGenerator, Awaitable
from contextlib import suppress

from typing_extensions import override

from .events import Answer, Event, Logged, Question, Status, TextDelta


class Notifier:
    """The receiver of all events of an exchange.

    A front-end overrides `notify` and, when a user can answer, `ask`. Both run on the event loop. `notify` receives
    the events in order, must not block and should not raise: a notifier that raises receives no more events, while
    the turn continues.
    """

    def notify(self, event: Event) -> None:
        """Receive one event. The base class ignores it."""

    async def ask(self, question: Question) -> Answer:
        """Ask the user and return the answer. The base class has no user and denies."""
        return Answer(choice="deny", by="nobody")

    def log(self, renderable: object) -> None:
        """Show a lasting note: a string or any Rich renderable."""
        self.notify(Logged(text=render_plain_text(renderable)))

    def status(self, text: str) -> None:
        """Show the current activity until the next status."""
        self.notify(Status(text=text))


class Recorder(Notifier):
    """A notifier for tests that stores events and questions and gives a fixed answer."""

    def __init__(self, answer: Answer = Answer()) -> None:
        self.events: list[Event] = []
        self.questions: list[Question] = []
        self._answer = answer

    @override
    def notify(self, event: Event) -> None:
        self.events.append(event)

    @override
    async def ask(self, question: Question) -> Answer:
        self.questions.append(question)
        return self._answer


class Tee(Notifier):
    """A notifier that passes events to several others. The first one answers questions."""

    def __init__(self, *notifiers: Notifier) -> None:
        self._notifiers = list(notifiers)
        self._first = notifiers[0]

    @override
    def notify(self, event: Event) -> None:
        for notifier in list(self._notifiers):
            try:
                notifier.notify(event)
            except Exception:
                logging.getLogger(__name__).exception("a front-end failed and receives no more events")
                self._notifiers.remove(notifier)

    @override
    async def ask(self, question: Question) -> Answer:
        return await self._first.ask(question)


class Channel(Notifier):
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
        batch, self._events = self._events, []
        return batch

    def _merge_texts(self) -> None:
        if self._texts:
            self._events.append(TextDelta(text="".join(self._texts)))
            self._texts = []


def render_plain_text(renderable: object) -> str:
    """Render a string or Rich renderable as text without styles, as wide as the terminal (80 columns without one)."""
    if isinstance(renderable, str):
        return renderable
    from rich.console import Console  # slow to import, and rarely needed

    console = Console(no_color=True, width=shutil.get_terminal_size().columns, force_terminal=False)
    with console.capture() as capture:
        console.print(renderable)
    return capture.get().rstrip("\n")


def strip_markup(text: str) -> str:
    """Remove Rich markup such as `[bold]...[/]`. Text with malformed markup returns unchanged."""
    from rich.errors import MarkupError
    from rich.text import Text

    try:
        return Text.from_markup(text).plain
    except MarkupError:
        return text
