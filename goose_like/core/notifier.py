"""Notifiers: the base class that a front-end implements, and two general ones."""

import logging
import shutil

from typing_extensions import override

from .events import Answer, Event, Logged, Question, Status


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


def render_plain_text(renderable: object) -> str:
    """Render a string or Rich renderable as text without styles, for a terminal (80 columns without one).

    Two columns are left for the indentation of log entries. Lines have no blanks at their end.
    """
    if isinstance(renderable, str):
        return renderable
    from rich.console import Console  # slow to import, and rarely needed

    width = max(shutil.get_terminal_size().columns - 2, 20)
    console = Console(no_color=True, width=width, force_terminal=False, markup=False, emoji=False)
    with console.capture() as capture:
        console.print(renderable)
    return "\n".join(map(str.rstrip, capture.get().rstrip("\n").split("\n")))


def strip_markup(text: str) -> str:
    """Remove Rich markup such as `[bold]...[/]`. Text with malformed markup returns unchanged."""
    from rich.errors import MarkupError
    from rich.text import Text

    try:
        return Text.from_markup(text).plain
    except MarkupError:
        return text
