"""The journal: the single path of every event to history, session file and front-end."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import get_args

from typing_extensions import override

from goose_like.config.secrets import register_keys
from goose_like.core.dataclass import dataclass
from goose_like.core.errors import SessionError
from goose_like.core.events import (
    Answer,
    Answered,
    Asked,
    DurableEvent,
    Event,
    Interjected,
    Logged,
    MessageCompleted,
    Question,
    Retrying,
    SessionStarted,
    Status,
    SubagentEvent,
    TextDelta,
    TextShown,
    ThinkingDelta,
    ToolFinished,
    ToolProgress,
    TurnFinished,
)
from goose_like.core.history import History
from goose_like.core.masking import MaskedFormatter, MaskedText, mask_value
from goose_like.core.notifier import Notifier, ask_or_deny
from goose_like.core.threads import is_running
from goose_like.core.tool import current_call
from goose_like.sessions.session import Session
from goose_like.terminal.plain_text import RichNotifier
from goose_like.workspace.permissions.permissions import is_in_question

from .hook_values import Notification
from .toolkit_hooks import ToolkitHooks

Delta = TextDelta | ThinkingDelta | ToolProgress

_ANSWER_STREAMS = frozenset({"text_delta", "thinking_delta"})
_DURABLE = get_args(DurableEvent)

SAVE_BYTES = 1_024
SAVE_INTERVAL_S = 1.0
_WHOLE_BYTES = 8 * SAVE_BYTES
"""Output of a call that is saved as it is shown. Then the newest text is saved once per interval."""


@dataclass(slots=True)
class _ShownText:
    """Text of an unfinished answer or call that people have seen. The session file has all but the `unsaved` end."""

    unsaved: str = ""
    saved_bytes: int = 0


class Journal(RichNotifier):
    """A notifier that records events before it shows them. The toolkits and the exchange share one journal.

    Secrets are masked first, so that the model, the session file and the front-end receive the same text. Text of an
    unfinished answer or call is in the file within a second or a kilobyte, so that a killed process loses little.

    `hooks` may deny a permission before the person is asked for it. While `is_unattended` returns true, the answer to
    each question is no.

    Create it on the event loop; `notify` works from any thread. The first event is `session_started`: events of
    toolkits that are still being built wait for it, except `status` events, which would be useless later.
    """

    def __init__(self, session: Session, front_end: Notifier) -> None:
        self.session = session
        self.hooks: ToolkitHooks | None = None
        self.is_unattended: Callable[[], bool] = lambda: False
        self._front_end = front_end
        self._loop = asyncio.get_running_loop()
        self._question_lock = asyncio.Lock()
        self._early: list[Event] | None = []
        self._is_closed = False
        self._streams: dict[str, tuple[Delta, MaskedText]] = {}  # by id of the tool call, or type of the event
        self._shown: dict[str, _ShownText] = {}  # by id of the tool call; the answer's id is empty
        self._save_timer: asyncio.TimerHandle | None = None
        self._host_questions: set[asyncio.Task[object]] = set()
        self._command_count = 0
        register_keys()
        if logging.lastResort:
            logging.lastResort.setFormatter(MaskedFormatter())

    @property
    def history(self) -> History:
        """The history of the session."""
        return self.session.history

    def emit(self, event: Event) -> None:
        """Mask secrets in an event, fold it into the history, write it to the session file, then notify the front-end.

        Raises:
            SessionError: the session file cannot be written.
        """
        if self._early is not None and not isinstance(event, SessionStarted | Status):
            self._early.append(event)
            return
        if isinstance(event, TextDelta | ThinkingDelta | ToolProgress):
            self._emit_delta(event)
            return
        match event:
            case MessageCompleted():
                self._end_streams(*_ANSWER_STREAMS)
                self._shown.pop("", None)
            case ToolFinished(result=result):
                self._end_streams(result.call_id)
                self._shown.pop(result.call_id, None)
            case TurnFinished() | Interjected():
                self._end_streams(*self._streams)
                self._save_shown_texts()  # an interrupted call has them in its result
                self._shown.clear()
                if isinstance(event, TurnFinished):
                    self._cancel_host_questions()
            case Retrying():
                self._drop_answer()
        if not isinstance(event, SubagentEvent):  # the journal of a subagent has masked its events
            event = mask_value(event)
        self._emit_masked(event)

    def _emit_masked(self, event: Event) -> None:
        if isinstance(event, _DURABLE):
            self.session.record(event)
        elif isinstance(event, TextDelta):
            self._keep_shown_text(event.text, "")
        elif isinstance(event, ToolProgress):
            text = event.text
            if event.skipped_line_count > 0:
                text = f"[... {event.skipped_line_count:,} lines ...]\n{text}"
            self._keep_shown_text(text, event.call_id)
        try:
            self._front_end.notify(event)
        except Exception:
            self._drop_front_end()
        if self.hooks:
            self.hooks.tell_event(event)
        if isinstance(event, SessionStarted):
            waiting = self._early or []
            self._early = None
            for early_event in waiting:
                self.emit(early_event)

    def close(self) -> None:
        """Ignore all later events of toolkits: one of their threads may outlive the exchange."""
        self._is_closed = True
        if self._save_timer:
            self._save_timer.cancel()

    @override
    def notify(self, event: Event) -> None:
        if is_running(self._loop):
            self._emit_unless_late(event)
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._emit_unless_late, event)

    @override
    async def ask(self, question: Question) -> Answer:
        task = asyncio.current_task()
        if question.kind != "domain" or task is None:
            return await self._ask(question)
        # A background process may need a host at any time, but the person expects questions only during work.
        if not self._is_working:
            return Answer()
        self._host_questions.add(task)
        try:
            return await self._ask(question)
        finally:
            self._host_questions.discard(task)

    @property
    @override
    def shows_forms(self) -> bool:
        return self._front_end.shows_forms

    @property
    def _is_working(self) -> bool:
        """True while a turn runs, or what comes before it."""
        return self.history.is_in_turn or self._command_count > 0

    @contextmanager
    def expect_questions(self) -> Iterator[None]:
        """Ask also about hosts although no turn runs: the person waits for a slash command, or for a turn to begin."""
        self._command_count += 1
        try:
            yield
        finally:
            self._command_count -= 1
            if not self._is_working:
                self._cancel_host_questions()

    async def _ask(self, question: Question) -> Answer:
        if self.hooks:  # before the lock: a hook may ask something itself
            denial = await self._judge_question(self._complete_question(question), self.hooks)
            if denial:
                return denial
        async with self._question_lock:  # one question at a time
            question = self._complete_question(question)
            self.emit(Asked(question=question.model_copy(update={"form": None})))
            answer = await self._ask_front_end(question)
            asked = question.model_copy(update={"detail": "", "form": None})
            self.emit(Answered(question=asked, answer=answer))
            return answer

    async def _ask_front_end(self, question: Question) -> Answer:
        if self.is_unattended():
            return Answer()
        if self.hooks:
            self.hooks.notify(Notification("question", question.text))
        return await ask_or_deny(self._front_end, question, self._log_failure)

    def _complete_question(self, question: Question) -> Question:
        """Mask secrets in a question, and name the call that asks it."""
        call_id = question.call_id or current_call.get("")
        if not self.history.is_open(call_id):  # a process can outlive the call that started it
            call_id = ""
        return mask_value(question.model_copy(update={"call_id": call_id}), keeps_lines=True)

    def _log_failure(self, text: str) -> None:
        self.emit(Logged(text=text))

    async def _judge_question(self, question: Question, hooks: ToolkitHooks) -> Answer | None:
        call = self.history.open_calls.get(question.call_id)
        token = is_in_question.set(True)
        try:
            return await hooks.judge_question(question, call)
        finally:
            is_in_question.reset(token)

    def _emit_delta(self, event: Delta) -> None:
        """Emit a piece of a text. The end of the piece waits while it may be the start of a secret."""
        key = event.call_id if isinstance(event, ToolProgress) else event.type
        if key in _ANSWER_STREAMS:
            others = _ANSWER_STREAMS - {key}
            self._end_streams(*others)
        if isinstance(event, ToolProgress) and event.skipped_line_count:
            self._end_streams(key)
            self._emit_masked(event.model_copy(update={"text": ""}))
            event = event.model_copy(update={"skipped_line_count": 0})
        _, masked = self._streams.setdefault(key, (event, MaskedText()))
        text = masked.write(event.text)
        if not text:
            return
        if text != event.text:
            event = event.model_copy(update={"text": text})
        self._emit_masked(event)

    def _end_streams(self, *keys: str) -> None:
        """Emit the rest of these streams."""
        ended = [self._streams.pop(key) for key in keys if key in self._streams]
        for event, masked in ended:
            text = masked.close()
            if text:
                self._emit_masked(event.model_copy(update={"text": text}))

    def _drop_answer(self) -> None:
        """Forget the start of an answer that broke off."""
        for key in _ANSWER_STREAMS:
            self._streams.pop(key, None)
        void = self._shown.pop("", None)
        if void and void.saved_bytes:
            self._save_text("", "")

    def _cancel_host_questions(self) -> None:
        for task in self._host_questions:
            task.cancel()

    def _keep_shown_text(self, text: str, call_id: str) -> None:
        """Save the text now if it completes a kilobyte, else within a second."""
        if call_id and not self.history.is_open(call_id):
            return  # nothing would ever replace it
        shown = self._shown.setdefault(call_id, _ShownText())
        shown.unsaved += text
        if shown.saved_bytes < _WHOLE_BYTES or not call_id:
            if len(shown.unsaved.encode()) >= SAVE_BYTES:
                self._save_shown_text(call_id, shown)
        elif len(shown.unsaved) > 2 * SAVE_BYTES:
            _, _, newest_lines = shown.unsaved[-SAVE_BYTES:].partition("\n")
            shown.unsaved = f"\n[...]\n{newest_lines}"
        if shown.unsaved and self._save_timer is None:
            self._save_timer = self._loop.call_later(SAVE_INTERVAL_S, self._save_shown_texts)

    def _save_shown_texts(self) -> None:
        if self._save_timer:
            self._save_timer.cancel()
            self._save_timer = None
        for call_id, shown in self._shown.items():
            if shown.unsaved:
                self._save_shown_text(call_id, shown)

    def _save_shown_text(self, call_id: str, shown: _ShownText) -> None:
        self._save_text(call_id, shown.unsaved)
        shown.saved_bytes += len(shown.unsaved)
        shown.unsaved = ""

    def _save_text(self, call_id: str, text: str) -> None:
        with suppress(SessionError):  # a full disk will refuse the finished text, too, which ends the turn
            self.session.record(TextShown(text=text, call_id=call_id))

    def _emit_unless_late(self, event: Event) -> None:
        """Emit an event, unless its tool call already has a result."""
        if self._is_closed:
            return
        call_id = current_call.get(None)
        if call_id is None or self.history.is_open(call_id):
            self.emit(event)

    def _drop_front_end(self) -> None:
        """Log the failure of the front-end once and detach it, so that the turn continues."""
        logging.getLogger(__name__).exception("the front-end failed and receives no more events")
        self._front_end = Notifier()
