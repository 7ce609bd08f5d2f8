"""Notifiers: the base class that a front-end implements, and three general ones."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable

from typing_extensions import override

from .errors import describe_foreign_error
from .event_text import escape_controls, format_log, format_status
from .events import Answer, Event, Logged, Question, Status


class Notifier:
    """The receiver of all events of an exchange: a front-end.

    A front-end overrides `log` and `status`, and gets texts: what happened, and what happens now. One that needs more
    overrides `notify` and gets the events themselves. It overrides `ask` when a user can answer. All run on the event
    loop and in the order of the events, must not block and should not raise: a notifier that raises receives no more
    events, while the turn continues.

    Toolkits log through a notifier, too: the journal, an `EventNotifier` that records an event before the front-end
    receives it.
    """

    def notify(self, event: Event) -> None:
        """Receive one event. The base class passes its texts to `log` and `status`."""
        if text := format_log(event):
            self.log(escape_controls(text))
        status = format_status(event)
        if status is not None:
            self.status(escape_controls(status))

    async def ask(self, question: Question) -> Answer:
        """Ask the user and return the answer. The base class has no user and denies."""
        return Answer(choice="deny", by="nobody")

    @property
    def shows_forms(self) -> bool:
        """True if `ask` shows a question with a `form` as one form."""
        return False

    def log(self, content: object) -> None:
        """Show a lasting text. Front-ends receive strings; toolkits may also pass Rich renderables to the journal."""

    def status(self, text: str) -> None:
        """Show the current activity until the next status. An empty text clears it."""


class EventNotifier(Notifier, ABC):
    """A notifier that handles all events itself. Calls of `log` and `status` become events, too."""

    @abstractmethod
    @override
    def notify(self, event: Event) -> None:
        """Receive one event."""

    @override
    def log(self, content: object) -> None:
        self.notify(Logged(text=str(content)))

    @override
    def status(self, text: str) -> None:
        self.notify(Status(text=text))


class Recorder(EventNotifier):
    """A notifier for tests that stores events and questions and gives a fixed answer."""

    def __init__(self, answer: Answer | None = None) -> None:
        self.events: list[Event] = []
        self.questions: list[Question] = []
        self._answer = answer or Answer()

    @override
    def notify(self, event: Event) -> None:
        self.events.append(event)

    @override
    async def ask(self, question: Question) -> Answer:
        self.questions.append(question)
        return self._answer


class Tee(EventNotifier):
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

    @property
    @override
    def shows_forms(self) -> bool:
        return self._first.shows_forms


async def ask_or_deny(front_end: Notifier, question: Question, log: Callable[[str], None]) -> Answer:
    """Return the answer of a front-end. If it fails to ask, deny this question only, and log why in one sentence."""
    try:
        answer: object = await front_end.ask(question)
    except Exception as error:
        reason = " ".join(describe_foreign_error(error, type(front_end).__module__).split())
    else:
        if isinstance(answer, Answer):
            return answer
        reason = f"it answered with a value of type {type(answer).__name__}"
    log(f"denied, as the front-end failed to ask: {reason}")
    return Answer()
