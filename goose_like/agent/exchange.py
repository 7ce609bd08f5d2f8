"""The loop: ask the model, run the tools it calls, give back the results, until it answers without a call."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from goose_like.agent.compaction.base import MODERATOR, Moderator
from goose_like.agent.compaction.summarize import summarized
from goose_like.config.profile import Limits
from goose_like.core.errors import ContextLengthError, DeniedError, GooseLikeError
from goose_like.core.events import (
    Interjected,
    MessageCompleted,
    Reminded,
    Retrying,
    Rewound,
    StateSaved,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from goose_like.core.history import INTERRUPTED, PROMPT, History
from goose_like.core.images import keep_image
from goose_like.core.message import Message, RedactedThinking, Thinking, ToolCall, ToolResult, in_words
from goose_like.core.output_limit import readable
from goose_like.core.tool import Tool, call_tool, current_call
from goose_like.providers.base import Models, Patience, Request, stream_with_retries
from goose_like.providers.prices import cost_usd
from goose_like.sessions.session import Session
from goose_like.workspace.undo.undo import Undo
from goose_like.workspace.workspace import Workspace

from .inbox import Inbox
from .journal import Journal
from .mentions import message_with
from .slash_command import Command
from .view import ExchangeView

REMIND_AFTER_STEPS = 8
REMIND_AFTER_SAME_STEPS = 3
SAME_FAILURES_TOLD = 3
SAME_FAILURES = 5

OPEN = ("planned", "in-progress")

CUT_ANSWER = "the answer was cut at the model's output limit; ask it to continue, or raise max_output_tokens"


@dataclass(frozen=True, slots=True)
class Exchange:
    """A conversation between a person, two models and some tools. Made by `build_exchange`."""

    models: Models
    moderator: Moderator
    system: str
    tools: Mapping[str, Tool]
    journal: Journal
    session: Session
    limits: Limits
    patience: Patience
    workspace: Workspace
    undo: Undo | None = None
    begins: Sequence[Callable[[], Awaitable[None]]] = ()
    doubts: Sequence[Callable[[], str | None]] = ()
    demands: Sequence[Callable[[], str | None]] = ()
    news: Mapping[str, Callable[[], Awaitable[Mapping[str, str]]]] = field(default_factory=dict)
    commands: Mapping[str, Command] = field(default_factory=dict)
    inbox: Inbox = field(default_factory=Inbox)
    prompt_digest: str = field(init=False)

    def __post_init__(self) -> None:
        prompt = repr((self.models.processor.label, self.system, [tool.spec for tool in self.tools.values()]))
        object.__setattr__(self, "prompt_digest", hashlib.sha256(prompt.encode(errors="replace")).hexdigest()[:16])

    @property
    def view(self) -> ExchangeView:
        """The models with the conversation in sight, for questions aside."""
        return ExchangeView(self.history, self.models, self.journal)

    @property
    def history(self) -> History:
        """The state of the conversation; only the journal changes it."""
        return self.journal.history

    async def reply(self, message: Message | str) -> TurnFinished:
        """One turn: from a person's message to the model's final answer, told event by event to the notifier.

        However it ends, the turn is finished in the history and every tool call has its answer. Cancelling the
        task ends it with reason `cancelled` and passes on, as do errors that nobody foresaw.

        Raises:
            SessionError: when the session file can't be written.
        """
        said, told = self._with_named(message) if isinstance(message, str) else (message, [])
        await self._tell_news()  # ahead of the words, which shall be the last that the model reads
        self._say(TurnStarted(message=said), told)
        return await self._finished(self._steps())

    async def go_on(self) -> TurnFinished:
        """Goes on with the turn that a killed process left, in the same step; its end is as for `reply`.

        Calls that were cut off are answered as interrupted, but those of tools that go on by themselves.

        Raises:
            GooseLikeError: there is no such turn.
            SessionError: when the session file can't be written.
        """
        if not self.history.in_turn:
            raise GooseLikeError("no turn was cut off here; say what to do next")
        return await self._finished(self._rest_of_turn())

    async def _finished(self, steps: Coroutine[Any, Any, TurnFinished]) -> TurnFinished:
        end = TurnFinished(reason="error", detail="a fault in goose_like or in a plugin", exit_code=1)
        try:
            async with asyncio.timeout(self.limits.time_s) as time_limit:
                end = await steps
        except TimeoutError:
            if not time_limit.expired():
                raise
            end = TurnFinished(reason="budget", detail=f"the time limit of {self.limits.time_s:g} s", exit_code=124)
        except GooseLikeError as error:
            end = TurnFinished(reason="error", detail=str(error), exit_code=error.exit_code)
        except asyncio.CancelledError:
            end = TurnFinished(reason="cancelled", exit_code=130)
            raise
        finally:
            if self.undo:
                self.undo.end_turn()
            self.journal.emit(end)
        return end

    async def compact(self, focus: str = "") -> None:
        """Goes on with a summary, written by the fast model, in the place of what was said. `focus` is not to be lost.

        Raises:
            GooseLikeError: there is none, or it would gain little; everything is as it was.
        """
        if self.history.open_calls:
            raise GooseLikeError("calls wait for their results, which could not be told any more; say those first")
        self.journal.emit(await summarized(self.history, self.view.accelerator, focus=focus))

    def rewind(self, to: int) -> None:
        """Takes the conversation back to its first `to` messages. Files stay as they are."""
        self.journal.emit(Rewound(to=to))

    def _say(self, event: TurnStarted | Interjected, told: Sequence[str]) -> None:
        self.journal.emit(event)
        for sentence in told:
            self.journal.log(sentence)

    def _with_named(self, words: str) -> tuple[Message, list[str]]:
        return message_with(words, self.workspace, self.session.outputs, self.models.processor)

    async def _rest_of_turn(self) -> TurnFinished:
        left = [call for call in self.history.open_calls.values() if self.history.is_open(call.id)]
        resumed = [call for call in left if call.name in self.tools and self.tools[call.name].marks.resumes]
        for call in left:
            if call not in resumed:
                cut = ToolResult(call_id=call.id, output=INTERRUPTED, is_error=True)
                self.journal.emit(ToolFinished(result=cut))
        await self._run_tools(resumed)
        return await self._steps()

    async def _steps(self) -> TurnFinished:
        is_doubted = False
        for begin in self.begins:
            await begin()
        while not self.history.is_settled:
            if self.history.turn_steps >= self.limits.steps:
                return TurnFinished(reason="step_limit", detail=f"the limit of {self.limits.steps} steps", exit_code=3)
            if spent := self._spent():
                return spent
            self._take_interjections()
            with self.inbox:
                answer = await self._ask_model()
                await self._run_tools(answer.message.tool_calls)
            if self.inbox.words:
                continue
            if self.history.open_calls:
                return TurnFinished(reason="handed_off")
            if stuck := self._stuck():
                return stuck
            if answer.message.tool_calls:
                continue
            if answer.is_cut:
                return TurnFinished(reason="error", detail=CUT_ANSWER, exit_code=1)
            if demand := next(filter(None, (demand() for demand in self.demands)), None):
                self.journal.emit(Reminded(text=demand))
            elif doubt := self._doubt(is_doubted=is_doubted):
                is_doubted |= not doubt.about
                self.journal.emit(doubt)
            else:
                break
        return self._stopped()

    def _take_interjections(self) -> None:
        for words in self.inbox.take():
            message, told = self._with_named(words)
            self._say(Interjected(message=message), told)

    async def _ask_model(self) -> MessageCompleted:
        """One step: the model's message, recorded. A request that the vendor finds too long is made shorter once."""
        self._remind_of_sameness()
        await self._tell_news()
        self._remind_of_plan()
        self._note_prompt(is_thought=False)
        rewrite = await self.moderator.rewrite(self.history, self.view)
        if rewrite.told:
            self.journal.log(rewrite.told)
        if rewrite.again_tokens is not None:
            self.journal.emit(StateSaved(toolkit=MODERATOR, value=rewrite.again_tokens))
        if rewrite.compacted:
            self.journal.emit(rewrite.compacted)
        try:
            return await self._answer(rewrite.messages)
        except ContextLengthError:
            smaller = await self.moderator.shrink(self.history, self.view)
            if smaller is None or self.history.messages[-1].role == "assistant":  # it broke off, half said
                raise
            self.journal.emit(smaller)
            return await self._answer(self.history.context)

    async def _answer(self, messages: Sequence[Message]) -> MessageCompleted:
        """The model's message to these, recorded. What was heard of one that broke off is recorded as cut."""
        model = self.models.processor
        request = Request(
            model.name,
            self.system,
            tuple(messages if model.takes_images else map(in_words, messages)),
            tuple(tool.spec for tool in self.tools.values()),
            self.session.outputs,
            self.session.folder.name,
        )
        heard: list[str] = []
        answer = None
        try:
            async with aclosing(stream_with_retries(model.provider, request, self.patience)) as deltas:
                async for delta in deltas:
                    if isinstance(delta, MessageCompleted):
                        message = _with_unique_ids(delta.message, self.history.call_ids)
                        heard, answer = [], delta.model_copy(update={"message": message})
                        thought = any(isinstance(part, Thinking | RedactedThinking) for part in message.parts)
                        self._note_prompt(is_thought=thought)
                        self.journal.emit(answer)
                    else:
                        if isinstance(delta, TextDelta):
                            heard.append(delta.text)
                        elif isinstance(delta, Retrying):
                            heard.clear()
                        self.journal.emit(delta)
        except BaseException:
            if heard:
                self.journal.emit(MessageCompleted(message=Message.assistant("".join(heard)), is_cut=True))
            raise
        assert answer, "stream_with_retries ends with a message or raises"
        return answer

    async def _run_tools(self, calls: Sequence[ToolCall]) -> None:
        """Side by side, but for tools marked `alone`; the history puts the results in the order of the calls."""
        for batch in self._batches(calls):
            try:
                async with asyncio.TaskGroup() as group:
                    for call in batch:
                        group.create_task(self._run_tool(call))
            except BaseExceptionGroup as errors:  # tools never raise: the file can't be written, or a fault of ours
                raise errors.exceptions[0] from None

    async def _run_tool(self, call: ToolCall) -> None:
        """Runs it; of one that the client is to run, only the check: a good one stays open."""
        is_remote = call.name in self.tools and self.tools[call.name].marks.remote
        if not is_remote:
            self.journal.emit(ToolStarted(call=call))
        current_call.set(call.id)
        outcome = await call_tool(self.tools, call)
        if is_remote:
            if not outcome.is_error:
                return
            self.journal.emit(ToolStarted(call=call))
        output = readable(outcome.output, self.session.output_of(call.id), self.limits.output_bytes)
        times = self.history.failures.get((call.name, call.arguments), 0) + 1
        if outcome.is_error and times >= SAME_FAILURES_TOLD:
            output += f"\n[this very call has failed {times} times; do something else, or say what you need]"
        later = outcome.later[: self.limits.output_bytes] if outcome.later is not None else None
        result = ToolResult(
            call_id=call.id, output=output, is_error=outcome.is_error, replacement=later, is_final=outcome.is_final
        )
        if outcome.picture:
            image = keep_image(outcome.picture.data, outcome.picture.source, self.session.outputs)
            result = result.model_copy(update={"images": (image,)})
        self.journal.emit(ToolFinished(result=result))

    def _batches(self, calls: Sequence[ToolCall]) -> Iterator[list[ToolCall]]:
        together: list[ToolCall] = []
        for call in calls:
            marks = self.tools[call.name].marks if call.name in self.tools else None
            if marks and marks.alone:
                yield together
                yield [call]
                together = []
            else:
                together.append(call)
        yield together

    def _spent(self) -> TurnFinished | None:
        """The end of the turn when a budget is used up."""
        limits, usage = self.limits, self.history.turn_usage
        tokens = sum(spent.total_tokens for spent in usage.values())
        if limits.tokens and tokens >= limits.tokens:
            return TurnFinished(reason="budget", detail=f"{tokens} of {limits.tokens} tokens are used", exit_code=5)
        if limits.cost_usd:
            cost = cost_usd(usage)
            if cost is None:
                names = ", ".join(usage)
                raise GooseLikeError(
                    f"the price of {names} is not known, so a cost limit can't be kept; use --max-tokens"
                )
            if cost >= limits.cost_usd:
                detail = f"${cost:.4f} of ${limits.cost_usd:g} are spent"
                return TurnFinished(reason="budget", detail=detail, exit_code=4)
        return None

    def _stuck(self) -> TurnFinished | None:
        """The end of a turn in which the model makes one failing call again and again."""
        for (name, arguments), times in self.history.failures.items():
            if times >= SAME_FAILURES:
                call = f"{name} {arguments}"[:200]
                detail = f"the model made the same failing call {times} times: {call}; tell it what to do instead"
                return TurnFinished(reason="error", detail=detail, exit_code=1)
        return None

    def _doubt(self, *, is_doubted: bool) -> Reminded | None:
        """What speaks against being done, when the model says that it is: a toolkit once a turn, and open tasks."""
        if not is_doubted and (text := next(filter(None, (doubt() for doubt in self.doubts)), None)):
            return Reminded(text=text)
        left = [task.description for task in self.history.plan if task.status in OPEN]
        if not left or self.history.is_plan_doubted:
            return None
        tasks = "\n".join(f"- {description}" for description in left)
        text = (
            f"These tasks of your plan are open:\n{tasks}\nGo on with them; or mark what is done, and say what is not."
        )
        return Reminded(text=text, about="tasks")

    def _stopped(self) -> TurnFinished:
        if denied := self.history.unanswered:
            what = ", ".join(f"{question.kind}: {question.subject}" for question in denied)
            return TurnFinished(
                reason="stop", detail=f"denied, as nobody could be asked: {what}", exit_code=DeniedError.exit_code
            )
        return TurnFinished(reason="stop")

    def _remind_of_plan(self) -> None:
        """Puts a plan that has gone stale before the model again, at the end, where the cached prefix stays whole."""
        history = self.history
        is_open = not self.moderator.tells_plan and any(task.status in OPEN for task in history.plan)
        if is_open and history.steps_since_plan >= REMIND_AFTER_STEPS:
            done = sum(task.status == "complete" for task in history.plan)
            lines = "\n".join(f"- [{task.status}] {task.description}" for task in history.plan)
            text = f"Your plan, {done} of {len(history.plan)} tasks complete (update it if it has changed):\n{lines}"
            self.journal.emit(Reminded(text=text, about="plan"))

    def _remind_of_sameness(self) -> None:
        """Tells a model that it runs in a circle. It may also wait for something, so that this is no end."""
        times = self.history.same_steps
        if times and times % REMIND_AFTER_SAME_STEPS == 0 and self.history.messages[-1].role == "tool":
            text = f"Your last {times} steps made the same calls and had the same results. Do something else, or end."
            self.journal.emit(Reminded(text=text, about="sameness"))

    async def _tell_news(self) -> None:
        """What changed since the model was told: at the end, where it stays, so that all before it is cached."""
        true = {
            f"{name}.{key}": (key, value)
            for name, source in self.news.items()
            for key, value in (await source()).items()
        }
        known = self.history.facts
        news = {name: fact for name, fact in true.items() if fact[1] and known.get(name) != fact[1]}
        if news:
            text = "\n".join(f"{key}: {value}" for key, value in news.values())
            facts = {name: value for name, (_, value) in news.items()}
            self.journal.emit(Reminded(text=text, about="news", facts=facts))

    def _note_prompt(self, *, is_thought: bool) -> None:
        """Records which prompt thoughts were thought after; where it is another one now, they are sent no more."""
        known = self.history.state.get(PROMPT)
        if known != self.prompt_digest and (known or is_thought):
            self.journal.emit(StateSaved(toolkit=PROMPT, value=self.prompt_digest))


def _with_unique_ids(message: Message, taken: set[str]) -> Message:
    """The message with an id for every call that has none or one that was used before: answers are found by id."""
    if not message.tool_calls:
        return message
    new: set[str] = set()
    parts = []
    for part in message.parts:
        if isinstance(part, ToolCall):
            if not part.id or part.id in taken or part.id in new:
                number = len(taken) + len(new) + 1
                while f"call_{number}" in taken or f"call_{number}" in new:
                    number += 1
                part = part.model_copy(update={"id": f"call_{number}"})
            new.add(part.id)
        parts.append(part)
    return message.model_copy(update={"parts": tuple(parts)})
