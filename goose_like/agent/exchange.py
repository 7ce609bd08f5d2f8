"""The loop: ask the model, run its tools, repeat, until the model answers without a call."""

import asyncio
import hashlib
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from goose_like.agent.compaction.moderators import Moderator
from goose_like.agent.compaction.summary import saves_enough, summarize_history
from goose_like.core import events
from goose_like.core.errors import (
    ContextLengthError,
    DeniedError,
    GooseLikeError,
    PromptBlockedError,
    ProviderError,
    TimeLimitError,
)
from goose_like.core.example import Example
from goose_like.core.history import PROMPT_STATE_KEY, History
from goose_like.core.masking import mask_value
from goose_like.core.message import Message, leave_out_images, replace_images
from goose_like.core.tool import Tool
from goose_like.providers.base import ModelPair, Request, TellsFacts
from goose_like.providers.foreign_code import name_faults
from goose_like.providers.retry import RetryPolicy
from goose_like.sessions.session import Session
from goose_like.workspace.undo.undo import Undo
from goose_like.workspace.workspace import Workspace

from .answer_stream import stream_answer
from .hook_values import Notification
from .inbox import Inbox
from .journal import Journal
from .limits import TurnLimits
from .mentions import build_message
from .prompt_changes import find_prompt_change
from .refused_content import find_refused_content, list_refused_images
from .reminders import Reminders
from .tool_call import run_tools
from .toolkit_hooks import ToolkitHooks
from .view import ExchangeView

MISSING_CALL_ERROR = (
    "the model announced a tool call twice, but none came; choose another model, or see `markup` and `tools` in "
    "`goose-like help providers`"
)
CUT_CALL_NOTE = "the model's message reached its output limit within a call; raise max_output_tokens in the profile"
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
    examples: Sequence[Sequence[Example]] = ()
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

    async def reply(self, message: Message | str, *, is_fresh: bool = False) -> events.TurnFinished:
        """Run one turn, from a user message to the model's final answer. Events go to the notifier.

        In a turn that `is_fresh`, the model sees nothing of the conversation before.
        However the turn ends, the history contains its end, and every tool call has a result. Cancelling the task ends
        the turn as `cancelled`. The cancellation and unexpected errors propagate.

        Raises:
            PromptBlockedError: a toolkit blocks the message. No turn starts.
            TimeLimitError: toolkits took all the time for the message. No turn starts.
            SessionError: the session file cannot be written.
        """
        await self._submit(message if isinstance(message, str) else message.text)
        if not is_fresh:
            await self.reminders.add_context_updates()  # before the message, which should be the last text
        is_read_only = self.workspace.is_turn_read_only
        self._add_message(partial(events.TurnStarted, is_read_only=is_read_only, is_fresh=is_fresh), message)
        self.reminders.add_hook_context()
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
        kept = await self.hooks.before_compaction(is_requested=True, focus=focus)
        focus = "\n".join(filter(None, (focus, kept)))
        event = await summarize_history(self.history, self.view.accelerator, focus=focus)
        if not saves_enough(self.history, event):
            raise GooseLikeError("a summary would save too little; continue without one")
        self.journal.emit(event)
        await self.hooks.after_compaction(event.summary)

    def rewind(self, message_count: int) -> None:
        """Return to the first `message_count` messages. Files stay unchanged."""
        self.journal.emit(events.Rewound(message_count=message_count))

    async def _run_steps(self) -> events.TurnFinished:
        self._update_prompt()
        await self.hooks.start_turn()
        try:
            return await self._ask_and_run()
        except ProviderError as error:
            if (model := self.models.processor.find_fallback(error)) is None:
                raise
            text = f"{error}; {model.label} answers until this turn ends"
            self.journal.emit(events.Retrying(text=text, wait_s=0))
            exchange = replace(self, models=replace(self.models, processor=model))
            return await exchange._ask_and_run()

    async def _ask_and_run(self) -> events.TurnFinished:
        answer_beside_calls = ""
        while not self.history.has_final_result:
            if end := self.limits.find_spent():
                return end
            answer = await self._take_step()
            if answer is None:
                continue
            if end := self._find_early_end():
                return end
            if answer.message.tool_calls:
                if not self._is_answered(answer):
                    continue
                answer_beside_calls = answer.message.text
            if answer.is_cut:
                return events.TurnFinished(reason="error", detail=CUT_ANSWER_ERROR, exit_code=1)
            if answer.lacks_call and not self.reminders.add_missing_call():
                return events.TurnFinished(reason="error", detail=MISSING_CALL_ERROR, exit_code=1)
            is_last_step = self.limits.find_spent() is not None
            if not answer.lacks_call and not await self.reminders.add_before_finish(is_last_step=is_last_step):
                break
        await self._log_changes()
        return self._describe_stop(answer_beside_calls)

    async def _take_step(self) -> events.MessageCompleted | None:
        """Ask for the next message, and run its calls. Return None if the person sent a message meanwhile."""
        while self.inbox.has_messages():
            await self._interject(self.inbox.pending[0])
        answer = None
        with self.inbox:  # a message of the person may end the block
            answer = await self._ask_model()
            await run_tools(answer.message.tool_calls, self.tools, self.journal, self.limits, self.hooks.calls)
        if answer is None or self.inbox.has_messages():
            return None
        if answer.is_cut and answer.message.tool_calls:
            self.journal.log(CUT_CALL_NOTE)
        return answer

    async def _submit(self, text: str) -> None:
        """Let the toolkits judge a message within the time limit of its turn."""
        try:
            async with asyncio.timeout(self.limits.time_left_s):
                await self.hooks.submit(text)
        except TimeoutError:
            detail = self.limits.describe_timeout().detail
            raise TimeLimitError(f"hooks of toolkits took all of {detail}; allow more with --timeout") from None

    async def _interject(self, text: str) -> None:
        """Add a message of the person to the running turn, or leave it for the person if a toolkit blocks it."""
        try:
            await self.hooks.submit(text, is_interjected=True)
        except PromptBlockedError as error:
            if self.inbox.remove(text):
                self.journal.log(str(error))
                self.inbox.refused.append(text)
            return
        if self.inbox.remove(text):  # only now: a cancellation must not lose it
            self._add_message(events.Interjected, text)
            self.reminders.add_hook_context()

    def _find_early_end(self) -> events.TurnFinished | None:
        """Return the end of the turn, if the client must run calls or the model does not get on."""
        if self.history.open_calls:
            return events.TurnFinished(reason="handed_off")
        return self.limits.find_stuck()

    async def _log_changes(self) -> None:
        """Tell the person about changed hooks and settings: the person may run git next."""
        for note in await self.workspace.inspect_changes(timeout_s=None):
            self.journal.log(note)

    def _is_answered(self, answer: events.MessageCompleted) -> bool:
        """Check for an answer beside calls that only accompany it, such as the last update of the plan."""
        if answer.is_cut or not answer.message.text.strip() or any(task.is_open for task in self.history.plan):
            return False
        calls = answer.message.tool_calls
        accompany = [call.name in self.tools and self.tools[call.name].options.accompanies_answer for call in calls]
        return all(accompany) and not any(result.is_error for result in self.history.messages[-1].tool_results)

    def _update_prompt(self) -> None:
        """Record the prompt before the first request. Later, tell the model what is different now."""
        wanted = self._describe_prompt()
        model = self.models.processor
        prompt = self.history.context.prompt
        known = self.history.context.known_prompt
        if prompt is None or known is None or self.moderator.rewrites_each_step:
            if wanted != prompt:
                self._record_prompt(wanted)  # a moderator that rewrites keeps no cache, no thinking and no changes
            return
        # Each model has levels of its own, and the default of a server has no name.
        effort = model.effort if model.effort and model.label == prompt.model else None
        change = find_prompt_change(known, wanted.system, {tool.name: tool for tool in wanted.tools}, effort)
        if change is not None:
            self.journal.emit(change)

    def _describe_prompt(self) -> events.PromptRecorded:
        """Describe the prompt of now in the form in which the session file has it."""
        model = self.models.processor
        specs = tuple([tool.spec for tool in self.tools.values()])
        prompt = events.PromptRecorded(system=self.system, tools=specs, model=model.label, effort=model.effort)
        return mask_value(prompt)

    def _record_prompt(self, prompt: events.PromptRecorded) -> None:
        digest = hashlib.sha256(repr((prompt.system, prompt.tools)).encode()).hexdigest()[:16]
        if digest != self.history.state.get(PROMPT_STATE_KEY):
            self.journal.emit(events.StateSaved(toolkit=PROMPT_STATE_KEY, value=digest))
        self.journal.emit(prompt)

    async def _ask_model(self) -> events.MessageCompleted:
        """Ask for the next message. When the vendor refuses the request as too long, shorten it once."""
        provider = self.models.processor.provider
        if isinstance(provider, TellsFacts):
            with name_faults(type(provider), "fetch_facts"):
                await provider.fetch_facts(self.models.processor.name)
        await self.reminders.add_before_request()
        for event in await self.moderator.rewrite(self.history, self.view):
            self.journal.emit(event)
            if isinstance(event, events.Compacted) and not event.is_routine:
                await self._restore_context(event)
        try:
            return await self._send_request()
        except ProviderError as error:
            is_changed = self._leave_out_refused(error) or await self._shrink(error)
            if not is_changed:
                raise
        return await self._send_request()

    def _leave_out_refused(self, error: ProviderError) -> bool:
        """Leave out the content that a server refused. Return whether there is any."""
        refused = find_refused_content(error, self.history)
        if refused is None:
            return False
        event, note = refused
        self.journal.emit(events.Retrying(text=f"{error}; {note}", wait_s=0))
        self.journal.emit(event)
        return True

    async def _shrink(self, error: ProviderError) -> bool:
        """Shorten a context that is too long. Return whether that was possible."""
        if not isinstance(error, ContextLengthError):
            return False
        smaller = await self.moderator.shrink(self.history, self.view)
        if smaller is None or self.history.messages[-1].role == "assistant":  # the answer broke off
            return False
        if not smaller.is_routine:
            await self.hooks.before_compaction()
        self.journal.emit(smaller)
        await self._restore_context(smaller)
        return True

    async def _restore_context(self, compacted: events.Compacted) -> None:
        """Add what a summary left out: the prompt, which may have changed, and the facts of toolkits."""
        if not compacted.is_routine:
            await self.hooks.after_compaction(compacted.summary)
        self._update_prompt()
        await self.reminders.add_context_updates()

    async def _send_request(self) -> events.MessageCompleted:
        model = self.models.processor
        prompt = self.history.context.prompt
        assert prompt is not None  # each turn begins with it
        messages = self.history.context.messages
        if model.takes_images:
            messages = leave_out_images(messages, list_refused_images(self.history))
        else:
            messages = [replace_images(message) for message in messages]
        request = Request(
            model=model.name,
            system=prompt.system,
            messages=tuple(messages),
            tools=prompt.tools,
            images=self.session.outputs,
            session=self.session.folder.name,
            max_tokens=model.max_tokens,
            temperature=model.temperature,
            allowed_tools=tuple(self.tools),
            examples=self.examples,
            first_effort=prompt.effort if model.effort and model.label == prompt.model else None,
        )
        return await stream_answer(model, request, self.retry_policy, self.journal)

    async def _resume_steps(self) -> events.TurnFinished:
        await self.hooks.start_session()
        self.reminders.add_hook_context()
        open_calls = [call for call in self.history.open_calls.values() if self.history.is_open(call.id)]
        resumable = [call for call in open_calls if call.name in self.tools and self.tools[call.name].options.resumable]
        for call in open_calls:
            if call not in resumable:
                self.journal.emit(events.ToolFinished(result=self.history.interrupt_call(call.id)))
        await run_tools(resumable, self.tools, self.journal, self.limits, self.hooks.calls)
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
            self.hooks.notify(Notification("turn_finished", end.detail or end.reason.replace("_", " ")))
        return end

    def _describe_stop(self, answer: str) -> events.TurnFinished:
        if denied := self.history.unanswered_questions:
            subjects = ", ".join(f"{question.kind}: {question.subject}" for question in denied)
            detail = f"denied, as nobody could be asked: {subjects}"
            return events.TurnFinished(reason="stop", detail=detail, exit_code=DeniedError.exit_code, answer=answer)
        return events.TurnFinished(reason="stop", answer=answer)

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
