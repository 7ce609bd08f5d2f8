"""The loop: ask the model, run its tools, repeat, until the model answers without a call."""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from goose_like.agent.compaction.moderators import Moderator
from goose_like.agent.compaction.summary import compact_history, saves_enough
from goose_like.config.profile import HostedTool
from goose_like.core import events
from goose_like.core.dataclass import dataclass
from goose_like.core.errors import (
    DeniedError,
    GooseLikeError,
    PromptBlockedError,
    ProviderError,
    TimeLimitError,
)
from goose_like.core.example import Example
from goose_like.core.history import History
from goose_like.core.masking import mask_value
from goose_like.core.message import Message, ToolCall
from goose_like.core.tool import Tool
from goose_like.providers.base import HostedTools, ModelPair
from goose_like.providers.retry import RetryPolicy
from goose_like.sessions.session import Session
from goose_like.workspace.undo.undo import Undo
from goose_like.workspace.workspace import Workspace

from .budget import Budget, BudgetError
from .hook_values import Notification
from .hosted_tools import HostedChoice
from .inbox import Inbox
from .journal import Journal
from .mentions import build_message
from .model_client import ModelClient
from .reminders import Reminders
from .tool_runner import ToolRunner
from .toolkit_hooks import ToolkitHooks
from .verification import Verification
from .view import ExchangeView

if TYPE_CHECKING:
    from goose_like.providers.json_answer import AnswerSchema

MISSING_CALL_ERROR = (
    "the model announced a tool call twice, but none came; choose another model, or see `markup` and `tools` in "
    "`goose-like help providers`"
)
CUT_CALL_NOTE = "the model's message reached its output limit within a call; raise max_output_tokens in the profile"
_MAX_EQUAL_FAILURES = 5
_SHOWN_CALL_CHARS = 200
CUT_ANSWER_ERROR = "the answer was cut at the model's output limit; ask it to continue, or raise max_output_tokens"


@dataclass(frozen=True, slots=True)
class Exchange:
    """A conversation between a user, two models and their tools. Use `build_exchange` to create one.

    With an `answer_schema` the last message of each turn is one JSON value that fits.
    """

    models: ModelPair
    system: str
    tools: Mapping[str, Tool]
    journal: Journal
    moderator: Moderator
    budget: Budget
    workspace: Workspace
    hooks: ToolkitHooks
    retry_policy: RetryPolicy = RetryPolicy()
    undo: Undo | None = None
    examples: Sequence[Sequence[Example]] = ()
    inbox: Inbox = field(default_factory=Inbox)
    answer_schema: "AnswerSchema | None" = None
    verification: Verification | None = None
    hosted: Sequence[HostedTool] = ()

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
        return ExchangeView(self.session, self.models, self.journal, self.budget, self._choose_hosted())

    @property
    def reminders(self) -> Reminders:
        """The texts of goose_like that the model reads at the end of the conversation."""
        return Reminders(
            self.journal,
            self.hooks,
            repeats_plan=not self.moderator.includes_plan,
            follows_plan=self.workspace.approval != "plan",
        )

    @property
    def client(self) -> ModelClient:
        """The requests to the processor."""
        return ModelClient(
            model=self.models.processor,
            view=self.view,
            system=self.system,
            tools=self.tools,
            examples=self.examples,
            journal=self.journal,
            moderator=self.moderator,
            reminders=self.reminders,
            hooks=self.hooks,
            retry_policy=self.retry_policy,
            budget=self.budget,
            hosted=self._choose_hosted(),
            reached_hosts=self.workspace.hosts.reached,
        )

    @property
    def tool_runner(self) -> ToolRunner:
        """The runner of the processor's tool calls."""
        reader = None if self.models.processor.takes_documents else self.workspace
        return ToolRunner(self.tools, self.journal, self.hooks.calls, self.budget.limits.output_bytes, reader)

    def _choose_hosted(self) -> HostedTools:
        """Choose the tools that the vendor may run now. A list of sources would spoil an answer in JSON."""
        return self.hosted_choice.choose(self.models.processor, shows_sources=self.answer_schema is None)

    @property
    def hosted_choice(self) -> HostedChoice:
        """The tools that the profile wants from the vendor of the processor."""
        return HostedChoice(self.workspace, self.tools, self.hosted)

    @property
    def hosted_problems(self) -> Sequence[str]:
        """Why the vendor does not run some of these tools, for the person."""
        return list(self.hosted_choice.list_problems(self.models.processor))

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
        text = message if isinstance(message, str) else message.text
        with self.journal.expect_questions():
            await self._submit(text)
        if not is_fresh:
            await self.reminders.add_context_updates()  # before the message, which should be the last text
        is_read_only = self.workspace.is_turn_read_only
        start_turn = partial(events.TurnStarted, is_read_only=is_read_only, is_fresh=is_fresh)
        built, notes = await self._build_message(message)
        self._add_message(start_turn(message=built), notes)
        self.reminders.add_hook_context()
        if self.answer_schema:
            self.journal.emit(events.Reminded(text=self.answer_schema.rule))
        return await self._finish_turn(self._run_turn())

    async def resume_turn(self) -> events.TurnFinished:
        """Continue the turn that a killed process left, within the same step. The turn ends as in `reply`.

        Cut-off calls are answered as interrupted, except those of resumable tools, which run again.

        Raises:
            GooseLikeError: there is no such turn.
            SessionError: the session file cannot be written.
        """
        if not self.history.is_in_turn:
            raise GooseLikeError("no turn was cut off here; say what to do next")
        return await self._finish_turn(self._run_rest_of_turn())

    async def run_calls(self, message: str, calls: Sequence[ToolCall]) -> events.TurnFinished:
        """Run calls that a client chose, as a turn without a model. `message` says who wants them.

        Rules, hooks, undo and the journal see an ordinary turn, which ends as in `reply`.

        Raises:
            SessionError: the session file cannot be written.
        """
        await self.hooks.start_session()
        self.journal.emit(events.TurnStarted(message=Message.user(message)))
        return await self._finish_turn(self._run_calls(calls))

    async def compact(self, focus: str = "") -> events.Compacted:
        """Replace the conversation with a summary, and return its event. The summary keeps `focus`.

        Raises:
            GooseLikeError: no summary was made, or it would save little; nothing changed.
        """
        if self.history.open_calls:
            raise GooseLikeError("calls wait for their results, which a summary would lose; send the results first")
        kept = await self.hooks.before_compaction(is_requested=True, focus=focus)
        focus = "\n".join(filter(None, (focus, kept)))
        event = await compact_history(self.history, self.view, focus=focus)
        if not saves_enough(self.history, event):
            raise GooseLikeError("a summary would save too little; continue without one")
        self.journal.emit(event)
        await self.hooks.after_compaction(event.summary)
        return event

    def rewind(self, message_count: int) -> None:
        """Return to the first `message_count` messages. Files stay unchanged."""
        self.journal.emit(events.Rewound(message_count=message_count))

    async def _run_turn(self) -> events.TurnFinished:
        self.client.update_prompt()
        await self._start_turn()
        try:
            return await self._run_steps()
        except ProviderError as error:
            fallback = self.models.processor.find_fallback(error)
            if fallback is None:
                raise
            text = f"{error}; {fallback.label} answers until this turn ends"
            self.journal.emit(events.Retrying(text=text, wait_s=0))
        models = replace(self.models, processor=fallback)
        exchange = replace(self, models=models)
        return await exchange._run_steps()

    async def _start_turn(self) -> None:
        await self.hooks.start_turn()
        if self.verification:
            self.verification.start_turn()

    async def _run_calls(self, calls: Sequence[ToolCall]) -> events.TurnFinished:
        await self._start_turn()
        self.journal.emit(events.MessageCompleted(message=Message.assistant("", calls)))
        await self.tool_runner.run(calls)
        unchecked = replace(self, verification=None)  # nobody answers here, so nothing is claimed
        return await unchecked._stop("")

    async def _run_rest_of_turn(self) -> events.TurnFinished:
        """Answer the calls that were cut off, or run them again, and go on with the turn."""
        await self.hooks.start_session()
        self.reminders.add_hook_context()
        resumable: list[ToolCall] = []
        for call in list(self.history.open_calls.values()):
            if not self.history.is_open(call.id):
                continue
            if call.name in self.tools and self.tools[call.name].options.resumable:
                resumable.append(call)
            else:
                self.journal.emit(events.ToolFinished(result=self.history.interrupt_call(call.id)))
        await self.tool_runner.run(resumable)
        return await self._run_turn()

    async def _run_steps(self) -> events.TurnFinished:
        """Ask the model, run its tools, repeat."""
        answer_beside_calls = ""
        while not self.history.has_final_result:
            end = self.budget.find_spent()
            if end:
                return end
            await self._add_pending_messages()
            answer = None
            with self.inbox:  # a message of the person may end the block
                answer = await self.client.ask()
                await self.tool_runner.run(answer.message.tool_calls, is_cut=answer.is_cut)
            if answer is None or self.inbox.has_messages():
                continue
            end = self._find_early_end(answer)
            if end:
                return end
            if not self._is_final(answer):
                continue
            if answer.message.tool_calls:
                answer_beside_calls = answer.message.text
            if not await self._must_go_on(answer.message.text):
                break
        if self.answer_schema:
            end = await self._check_answer(self.answer_schema)
            if end:
                return end
        return await self._stop(answer_beside_calls)

    async def _check_answer(self, wanted: "AnswerSchema") -> events.TurnFinished | None:
        """Let the model correct an answer that does not fit the schema. Return the end of the turn if a limit stops it.

        Raises:
            ProviderError: the answer stays wrong.
        """
        _, problems = wanted.read_last_answer(self.history.messages)
        if not problems:
            return None
        end = self.budget.find_spent()
        if end is None:
            await self.client.correct_answer(wanted, problems)
        return end

    def _find_early_end(self, answer: events.MessageCompleted) -> events.TurnFinished | None:
        """Return the end of the turn, if the client must run calls or the model does not get on."""
        has_calls = bool(answer.message.tool_calls)
        if answer.is_cut and has_calls:
            self.journal.log(CUT_CALL_NOTE)
        if self.history.open_calls:
            return events.TurnFinished(reason="handed_off")
        end = _find_stuck(self.history)
        if end:
            return end
        if answer.is_cut and not has_calls:
            return events.TurnFinished(reason="error", detail=CUT_ANSWER_ERROR, exit_code=1)
        if answer.lacks_call and not self.reminders.add_missing_call():
            return events.TurnFinished(reason="error", detail=MISSING_CALL_ERROR, exit_code=1)
        return None

    def _is_final(self, answer: events.MessageCompleted) -> bool:
        """Check for an answer without calls, or beside calls that only accompany it, such as the last plan update."""
        calls = answer.message.tool_calls
        if not calls:
            return not answer.lacks_call
        if answer.is_cut or not answer.message.text.strip():
            return False
        if any(task.is_open for task in self.history.plan):
            return False
        for call in calls:
            if call.name not in self.tools or not self.tools[call.name].options.accompanies_answer:
                return False
        results = self.history.messages[-1].tool_results
        return not any(result.is_error for result in results)

    async def _must_go_on(self, answer: str) -> bool:
        """Tell the model a reason of a toolkit or a check against its answer. Return False if there is none."""
        is_last_step = self.budget.find_spent() is not None
        if await self.reminders.add_before_finish(is_last_step=is_last_step):
            return True
        if self.verification is None:
            return False
        return await self.verification.find_objection(answer, is_last_step=is_last_step)

    async def _stop(self, answer_beside_calls: str) -> events.TurnFinished:
        """Describe the end of a turn that the model finished, after notes about changed hooks and settings."""
        await self.workspace.ledger.settle()
        for note in await self.workspace.inspect_changes(timeout_s=None):
            self.journal.log(note)  # now, because the person may run git next
        denied = self.history.unanswered_questions
        if not denied:
            end = events.TurnFinished(reason="stop", answer=answer_beside_calls)
            return self.verification.mark_end(end) if self.verification else end
        subjects = list(dict.fromkeys(map(_describe_denied, denied)))
        return events.TurnFinished(
            reason="stop",
            detail=f"denied, as nobody could be asked:{_format_list(subjects)}",
            exit_code=DeniedError.exit_code,
            answer=answer_beside_calls,
        )

    async def _submit(self, text: str) -> None:
        """Let the toolkits judge a message within the time limit of its turn."""
        try:
            async with asyncio.timeout(self.budget.time_left_s):
                await self.hooks.submit(text)
        except TimeoutError:
            detail = self.budget.describe_timeout().detail
            raise TimeLimitError(f"hooks of toolkits took all of {detail}; allow more with --timeout") from None

    async def _add_pending_messages(self) -> None:
        while self.inbox.has_messages():
            await self._interject(self.inbox.pending[0])

    async def _interject(self, text: str) -> None:
        """Add a message of the person to the running turn, or leave it for the person if a toolkit blocks it."""
        try:
            await self.hooks.submit(text, is_interjected=True)
        except PromptBlockedError as error:
            if self.inbox.remove(text):
                self.journal.log(str(error))
                self.inbox.refused.append(text)
            return
        message, notes = await self._build_message(text)
        if self.inbox.remove(text):  # only now: a cancellation must not lose it
            self._add_message(events.Interjected(message=message), notes)
            self.reminders.add_hook_context()

    async def _finish_turn(self, steps: Coroutine[Any, Any, events.TurnFinished]) -> events.TurnFinished:
        end = events.TurnFinished(reason="error", detail="a fault in goose_like or in a plugin", exit_code=1)
        if self.undo:
            self.undo.start_turn()  # a hook may run the first command
        try:
            async with asyncio.timeout(self.budget.time_left_s) as timeout:
                end = await steps
        except TimeoutError:
            if not timeout.expired():
                raise
            end = self.budget.describe_timeout()
        except BudgetError as error:
            end = error.end
        except GooseLikeError as error:
            end = events.TurnFinished(reason="error", detail=str(error), exit_code=error.exit_code)
        except asyncio.CancelledError:
            end = events.TurnFinished(reason="cancelled", exit_code=130)
            raise
        finally:
            self.workspace.end_turn()
            if self.undo:
                self.undo.end_turn()
            self.journal.emit(end)
            text = end.detail or end.reason.replace("_", " ")
            self.hooks.notify(Notification("turn_finished", text))
        return end

    async def _build_message(self, message: Message | str) -> tuple[Message, list[str]]:
        """Return a message with the attachments that a text names, and notes about them."""
        if isinstance(message, Message):
            return message, []
        return await build_message(message, self.workspace, self.session.outputs, self.models.processor)

    def _add_message(self, event: events.TurnStarted | events.Interjected, notes: list[str]) -> None:
        self.journal.emit(event)
        if mask_value(event.message) is not event.message:
            notes.append("your message holds a secret, which the model does not receive; put it in a file or variable")
        for note in notes:
            self.journal.log(note)


def _format_list(texts: Sequence[str]) -> str:
    """Put several texts on lines of their own, and a single one on the line before."""
    if len(texts) == 1:
        return f" {texts[0]}"
    return "".join(f"\n- {text}" for text in texts)


def _describe_denied(question: events.Question) -> str:
    """Describe a denied question, and what would have allowed its action."""
    text = f"{question.kind}: {question.subject}"
    if question.allowed_by:
        text += f" (allowed by: {question.allowed_by})"
    return text


def _find_stuck(history: History) -> events.TurnFinished | None:
    """Return the end of the turn when the model made the same failing call too often."""
    for (name, arguments), count in history.failures.items():
        if count < _MAX_EQUAL_FAILURES:
            continue
        call = f"{name} {arguments}"[:_SHOWN_CALL_CHARS]
        detail = f"the model made the same failing call {count} times: {call}; tell it what to do instead"
        return events.TurnFinished(reason="error", detail=detail, exit_code=1)
    return None
