"""The one door by which anything happens: fold, then file, then front."""

import asyncio
import logging
from contextvars import copy_context
from typing import get_args

from goose_like.core.events import Answer, Answered, Asked, Durable, Event, Question, SessionStarted, Status
from goose_like.core.history import History
from goose_like.core.notifier import Notifier
from goose_like.core.tool import current_call
from goose_like.sessions.session import Session

_DURABLE = get_args(Durable)


class Journal(Notifier):
    """A Notifier that remembers. Toolkits and exchange hold the same one, so their events share one order.

    Made on the event loop; from other threads `notify` gets there by itself. Its first event is `session_started`:
    what toolkits tell while they are built waits for it, but for their `status`, which could not be shown later.
    """

    def __init__(self, history: History, session: Session | None, front: Notifier) -> None:
        self.history = history
        self._session = session
        self._front = front
        self._loop = asyncio.get_running_loop()
        self._asking = asyncio.Lock()
        self._early: list[Event] | None = []
        self._is_closed = False

    def emit(self, event: Event) -> None:
        """What was shown and is durable is in the file: fold, then file, then front.

        Raises:
            SessionError: when the file can't be written.
        """
        if self._early is not None and not isinstance(event, SessionStarted | Status):
            self._early.append(event)
            return
        if isinstance(event, _DURABLE):
            self.history.apply(event)
            if self._session:
                self._session.append(event)
        try:
            self._front.notify(event)
        except Exception:
            self._drop_front()
        if isinstance(event, SessionStarted):
            early, self._early = self._early or [], None
            for told in early:
                self.emit(told)

    def _drop_front(self) -> None:
        """A front-end's fault must not end the turn: it is told once, and the front-end left out."""
        logging.getLogger(__name__).exception("the front-end failed and is shown nothing more")
        self._front = Notifier()

    def close(self) -> None:
        """What toolkits tell from now on comes too late: a thread of theirs may outlive the exchange."""
        self._is_closed = True

    def notify(self, event: Event) -> None:
        """`emit` for toolkits: from any thread, and nothing from a call that has been answered already."""
        try:
            is_here = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            is_here = False
        if is_here:
            self._emit_unless_late(event)
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._emit_unless_late, event, context=copy_context())

    def _emit_unless_late(self, event: Event) -> None:
        call_id = current_call.get(None)
        if self._is_closed:
            return
        if call_id is None or self.history.is_open(call_id):
            self.emit(event)

    async def ask(self, question: Question) -> Answer:
        """One question at a time; question and answer are recorded."""
        async with self._asking:
            self.emit(Asked(question=question))
            try:
                answer = await self._front.ask(question)
            except Exception:
                self._drop_front()
                answer = Answer()
            self.emit(Answered(question=question.model_copy(update={"detail": ""}), answer=answer))
            return answer
