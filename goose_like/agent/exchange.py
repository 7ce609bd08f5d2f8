"""The loop: ask the model, run its tools, repeat, until the model answers without a call."""

import asyncio
import hashlib
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from goose_like.agent.compaction.moderators import Moderator
from goose_like.agent.compaction.summary import saves_enough, summarize_history
from goose_like.core import events
from goose_like.core.errors import ContextLengthError, DeniedError, GooseLikeError, ProviderError
from goose_like.core.history import PROMPT_STATE_KEY, History
from goose_like.core.masking import mask_value
from goose_like.core.message import Message, replace_images
from goose_like.core.tool import Tool
from goose_like.providers.base import ModelPair, Request
from goose_like.providers.retry import RetryPolicy
from goose_like.sessions.session import Session
from goose_like.workspace.undo.undo import Undo
from goose_like.workspace.workspace import Workspace

from .answer_stream import stream_answer
from .inbox import Inbox
from .journal import Journal
from .limits import TurnLimits
from .mentions import build_message
from .reminders import Reminders
from .tool_call import run_tools
from .toolkit_hooks import ToolkitHooks
from .view import ExchangeView

CUT_ANSWER_ERROR = "the answer was cut at the model's output limit; ask it to continue, or raise max_output_tokens"


@dataclass(frozen=True, slots=True)
class Exchange:
    """A conversation between a user, two models and their tools. Use `build_exchange` to create one."""

    models: ModelPair
    system: str
    tools: Mapping[str, Tool]
    journal: Journal
    moderator: Moderator
    limits: TurnLimits
    workspace: Workspace
    hooks: ToolkitHooks
    retry_policy: RetryPolicy = RetryPolicy()
    undo: Undo | None = None
    inbox: Inbox = field(default_factory=Inbox)

    @property
    def session(self) -> Session:
        """The session with the history and its files."""
        return self.journal.session

    @property
    def history(self) -> History:
        """The state of the conversation. Only the journal changes it."""
        return self.session.history

    @property
    def view(self) -> ExchangeView:
        """The models together with the conversation, for side questions."""
        return ExchangeView(self.session, self.models, self.journal)

    @property
    def reminders(self) -> Reminders:
        """The texts of goose_like that the model reads at the end of the conversation."""
        return Reminders(
            self.journal,
            self.hooks,
            repeats_plan=not self.moderator.includes_plan,
            follows_plan=self.workspace.approval != "plan",
        )

    async def reply(self, message: Message | str) -> events.TurnFinished:
        """Run one turn, from a user message to the model's final answer. Events go to the notifier.

        However the turn ends, the history contains its end, and every tool call has a result. Cancelling the task ends
        the turn as `cancelled`. The cancellation and unexpected errors propagate.

        Raises:
            SessionError: the session file cannot be written.
        """
        await self.reminders.add_context_updates()  # before the message, which should be the last text
        self._add_message(partial(events.TurnStarted, is_read_only=self.workspace.is_turn_read_only), message)
        return await self._finish_turn(self._run_steps())

    async def resume_turn(self) -> events.TurnFinished:
        """Continue the turn that a killed process left, within the same step. The turn ends as in `reply`.

        Cut-off calls are answered as interrupted, except those of resumable tools, which run again.

        Raises:
            GooseLikeError: there is no such turn.
            SessionError: the session file cannot be written.
        """
        if not self.history.is_in_turn:
            raise GooseLikeError("no turn was cut off here; say what to do next")
        return await self._finish_turn(self._resume_steps())

    async def compact(self, focus: str = "") -> None:
        """Replace the conversation with a summary by the fast model. The summary keeps `focus`.

        Raises:
            GooseLikeError: no summary was made, or it would save little; nothing changed.
        """
        if self.history.open_calls:
            raise GooseLikeError("calls wait for their results, which a summary would lose; send the results first")
        event = await summarize_history(self.history, self.view.accelerator, focus=focus)
        if not saves_enough(self.history, event):
            raise GooseLikeError("a summary would save too little; continue without one")
        self.journal.emit(event)

    def rewind(self, message_count: int) -> None:
        """Return to the first `message_count` messages. Files stay unchanged."""
        self.journal.emit(events.Rewound(message_count=message_count))

    async def _run_steps(self) -> events.TurnFinished:
        self._record_prompt()
        await self.hooks.start_turn()
        try:
            return await self._ask_and_run()
        except ProviderError as error:
            if (model := self.models.processor.find_fallback(error)) is None:
                raise
            text = f"{error}; {model.label} answers until this turn ends"
            self.journal.emit(events.Retrying(text=text, wait_s=0))
            exchange = replace(self, models=replace(self.models, processor=model))
            exchange._record_prompt()
            return await exchange._ask_and_run()

    async def _ask_and_run(self) -> events.TurnFinished:
        while not self.history.has_final_result:
            if end := self.limits.find_spent():
                return end
            for text in self.inbox.take_for_step():
                self._add_message(events.Interjected, text)
            with self.inbox:
                answer = await self._ask_model()
                await run_tools(answer.message.tool_calls, self.tools, self.journal, self.limits)
            if self.inbox.has_messages():
                continue
            if self.history.open_calls:
                return events.TurnFinished(reason="handed_off")
            if end := self.limits.find_stuck():
                return end
            if answer.message.tool_calls:
                continue
            if answer.is_cut:
                return events.TurnFinished(reason="error", detail=CUT_ANSWER_ERROR, exit_code=1)
            if not self.reminders.add_before_finish(is_last_step=self.limits.find_spent() is not None):
                break
        for note in await self.workspace.inspect_changes(timeout_s=None):  # the person may run git next
            self.journal.log(note)
        return self._describe_stop()

    def _record_prompt(self) -> None:
        """Record what precedes the thinking of the model. Thinking after another prompt is sent no more."""
        prompt = repr((self.models.processor.label, self.system, [tool.spec for tool in self.tools.values()]))
        digest = hashlib.sha256(prompt.encode(errors="replace")).hexdigest()[:16]
        if digest != self.history.state.get(PROMPT_STATE_KEY):
            self.journal.emit(events.StateSaved(toolkit=PROMPT_STATE_KEY, value=digest))

    async def _ask_model(self) -> events.MessageCompleted:
        """Ask for the next message. When the vendor refuses the request as too long, shorten it once."""
        await self.reminders.add_before_request()
        for event in await self.moderator.rewrite(self.history, self.view):
            self.journal.emit(event)
        try:
            return await self._send_request()
        except ContextLengthError:
            smaller = await self.moderator.shrink(self.history, self.view)
            if smaller is None or self.history.messages[-1].role == "assistant":  # the answer broke off
                raise
            self.journal.emit(smaller)
            return await self._send_request()

    async def _send_request(self) -> events.MessageCompleted:
        model, messages = self.models.processor, self.history.context
        request = Request(
            model.name,
            self.system,
            tuple(messages if model.takes_images else map(replace_images, messages)),
            tuple(tool.spec for tool in self.tools.values()),
            self.session.outputs,
            self.session.folder.name,
            model.max_tokens,
            model.temperature,
        )
        return await stream_answer(model, request, self.retry_policy, self.journal)

    async def _resume_steps(self) -> events.TurnFinished:
        open_calls = [call for call in self.history.open_calls.values() if self.history.is_open(call.id)]
        resumable = [call for call in open_calls if call.name in self.tools and self.tools[call.name].options.resumable]
        for call in open_calls:
            if call not in resumable:
                self.journal.emit(events.ToolFinished(result=self.history.interrupt_call(call.id)))
        await run_tools(resumable, self.tools, self.journal, self.limits)
        return await self._run_steps()

    async def _finish_turn(self, steps: Coroutine[Any, Any, events.TurnFinished]) -> events.TurnFinished:
        end = events.TurnFinished(reason="error", detail="a fault in goose_like or in a plugin", exit_code=1)
        try:
            async with asyncio.timeout(self.limits.time_left_s) as timeout:
                end = await steps
        except TimeoutError:
            if not timeout.expired():
                raise
            end = self.limits.describe_timeout()
        except GooseLikeError as error:
            end = events.TurnFinished(reason="error", detail=str(error), exit_code=error.exit_code)
        except asyncio.CancelledError:
            end = events.TurnFinished(reason="cancelled", exit_code=130)
            raise
        finally:
            if self.undo:
                self.undo.end_turn()
            self.journal.emit(end)
        return end

    def _describe_stop(self) -> events.TurnFinished:
        if denied := self.history.unanswered_questions:
            subjects = ", ".join(f"{question.kind}: {question.subject}" for question in denied)
            detail = f"denied, as nobody could be asked: {subjects}"
            return events.TurnFinished(reason="stop", detail=detail, exit_code=DeniedError.exit_code)
        return events.TurnFinished(reason="stop")

    def _add_message(
        self, make_event: Callable[..., events.TurnStarted | events.Interjected], message: Message | str
    ) -> None:
        notes: list[str] = []
        if isinstance(message, str):
            message, notes = build_message(message, self.workspace, self.session.outputs, self.models.processor)
        self.journal.emit(make_event(message=message))
        if mask_value(message) is not message:
            notes.append("your message holds a secret, which the model does not receive; put it in a file or variable")
        for note in notes:
            self.journal.log(note)
