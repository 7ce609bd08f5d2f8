"""The journal: the single path of every event to history, session file and front-end."""

import asyncio
import logging
from contextvars import copy_context
from typing import get_args

from typing_extensions import override

from goose_like.core.events import Answer, Answered, Asked, DurableEvent, Event, Question, SessionStarted, Status
from goose_like.core.history import History
from goose_like.core.notifier import Notifier
from goose_like.core.tool import current_call
from goose_like.sessions.session import Session

_DURABLE = get_args(DurableEvent)


class Journal(Notifier):
    """A notifier that records events before it shows them. The toolkits and the exchange share one journal.

    Create it on the event loop; `notify` works from any thread. The first event is `session_started`: events of
    toolkits that are still being built wait for it, except `status` events, which would be useless later.
    """

    def __init__(self, session: Session, front_end: Notifier) -> None:
        self.session = session
        self._front_end = front_end
        self._loop = asyncio.get_running_loop()
        self._question_lock = asyncio.Lock()
        self._early: list[Event] | None = []
        self._is_closed = False

    @property
    def history(self) -> History:
        """The history of the session."""
        return self.session.history

    def emit(self, event: Event) -> None:
        """Fold an event into the history, write it to the session file, then notify the front-end.

        Raises:
            SessionError: the session file cannot be written.
        """
        if self._early is not None and not isinstance(event, SessionStarted | Status):
            self._early.append(event)
            return
        if isinstance(event, _DURABLE):
            self.session.record(event)
        try:
            self._front_end.notify(event)
        except Exception:
            self._drop_front_end()
        if isinstance(event, SessionStarted):
            waiting, self._early = self._early or [], None
            for early_event in waiting:
                self.emit(early_event)

    def close(self) -> None:
        """Ignore all later events of toolkits: one of their threads may outlive the exchange."""
        self._is_closed = True

    @override
    def notify(self, event: Event) -> None:
        try:
            is_on_loop = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            is_on_loop = False
        if is_on_loop:
            self._emit_unless_late(event)
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._emit_unless_late, event, context=copy_context())

    @override
    async def ask(self, question: Question) -> Answer:
        async with self._question_lock:  # one question at a time
            self.emit(Asked(question=question))
            try:
                answer = await self._front_end.ask(question)
            except Exception:
                self._drop_front_end()
                answer = Answer()
            self.emit(Answered(question=question.model_copy(update={"detail": ""}), answer=answer))
            return answer

    def _emit_unless_late(self, event: Event) -> None:
        """Emit an event, unless its tool call already has a result."""
        call_id = current_call.get(None)
        if not self._is_closed and (call_id is None or self.history.is_open(call_id)):
            self.emit(event)

    def _drop_front_end(self) -> None:
        """Log the failure of the front-end once and detach it, so that the turn continues."""
        logging.getLogger(__name__).exception("the front-end failed and receives no more events")
        self._front_end = Notifier()
