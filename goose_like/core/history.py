"""State as a fold over events: messages, plan, usage, and the one repair of what was cut off."""

import operator
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Self

from pydantic import JsonValue

from .events import (
    Answered,
    Compacted,
    Durable,
    Interjected,
    MessageCompleted,
    PlanUpdated,
    ProfileChanged,
    Question,
    Reminded,
    Rewound,
    SessionStarted,
    StateSaved,
    Task,
    ToolFinished,
    TurnFinished,
    TurnStarted,
    UsageRecorded,
)
from .message import Image, Message, Text, ToolCall, ToolResult, Usage

PROMPT = "prompt"
"""The key in `History.state` under which the digest of the prompt lies that thinking was thought after."""

INTERRUPTED = "interrupted: this call was cut off before it gave a result; what it had done until then may stand"


IMAGE_TOKENS = 1_500

# Plain numbers while they are summed up: a frozen record for each sum took a third of a long session's replay.
_counts = operator.attrgetter(*Usage.model_fields)


def estimate_tokens(message: Message) -> int:
    """Bytes / 4 of the message's JSON, and something for images: near enough, and no tokenizer to download."""
    return len(message.model_dump_json().encode()) // 4 + IMAGE_TOKENS * len(message.images)


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn that stands: its number among all that were ever begun, and which message it began with."""

    number: int
    start: int


@dataclass(slots=True)
class History:
    """What the events so far amount to. Only `apply` changes it, so that a replay gives the very same state.

    `messages` is well-formed at every moment between turns: each tool call has exactly one result, in the
    message after it, in the order of the calls. `said` are the places in it of what the person said; `failures` are
    the calls of this turn that failed since one succeeded, by name and arguments, with how often they did;
    `same_steps` is how many of its newest steps made the same calls with the same results, 0 before the first;
    `in_turn` says that a turn has no end yet, `is_settled` that a tool gave its final result.
    """

    messages: list[Message] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    said: list[int] = field(default_factory=list)
    turn_count: int = 0
    header: SessionStarted | None = None
    plan: tuple[Task, ...] = ()
    steps_since_plan: int = 0
    is_plan_doubted: bool = False
    state: dict[str, JsonValue] = field(default_factory=dict)
    open_calls: dict[str, ToolCall] = field(default_factory=dict)
    unanswered: list[Question] = field(default_factory=list)
    last_turn: TurnFinished | None = None
    call_ids: set[str] = field(default_factory=set)
    failures: dict[tuple[str, str], int] = field(default_factory=dict)
    same_steps: int = 0
    in_turn: bool = False
    is_settled: bool = False
    measured: tuple[int, int] = (0, 0)
    summary: Message | None = None
    kept_from: int = 0
    after: tuple[int, Message] | None = None
    elided: dict[str, str] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)
    _bare: list[Message] = field(default_factory=list)
    _bare_to: int = 0
    _spent: dict[str, tuple[int, ...]] = field(default_factory=dict)
    _turn_spent: dict[str, tuple[int, ...]] = field(default_factory=dict)
    _results: dict[str, ToolResult] = field(default_factory=dict)
    _reminders: list[str] = field(default_factory=list)
    _passing: dict[str, str] = field(default_factory=dict)
    _step: tuple[tuple[str, str, str, bool, tuple[Image, ...]], ...] = ()

    @classmethod
    def replay(cls, events: Iterable[Durable], *, goes_on: bool = False) -> Self:
        """The state after these events, with what they leave open closed; not so where the turn is to go on."""
        history = cls()
        for event in events:
            history.apply(event)
        if not (goes_on and history.in_turn):
            history.close()
        return history

    @property
    def turn_steps(self) -> int:
        """How many messages of the model the newest turn has."""
        start = self.turns[-1].start if self.turns else 0
        return sum(message.role == "assistant" for message in self.messages[start:])

    @property
    def context(self) -> list[Message]:
        """What stands of the conversation for a model: all of it, or the newest summary and what came after.

        Vendors bind thinking to every word before it, and refuse it after others: what was thought before a summary,
        or with another model, prompt or tools, is left out.
        """
        summary = () if self.summary is None else (self.summary,)
        kept = [*self._bare, *self.messages[self._bare_to :]]
        if self.after is not None:
            place, message = self.after
            kept.insert(place - self.kept_from, message)
        return [*summary, *kept]

    @property
    def tokens(self) -> int:
        """About how many tokens the context has: the newest request's own count, and an estimate of what came after."""
        count, tokens = self.measured
        newer = self.messages[count:] if count else self.context
        return tokens + sum(estimate_tokens(message) for message in newer)

    @property
    def usage(self) -> dict[str, Usage]:
        """All tokens by model."""
        return {model: _usage(counts) for model, counts in self._spent.items()}

    @property
    def turn_usage(self) -> dict[str, Usage]:
        """The tokens of the newest turn by model."""
        return {model: _usage(counts) for model, counts in self._turn_spent.items()}

    @property
    def total_usage(self) -> Usage:
        """All tokens of all models."""
        return sum(self.usage.values(), Usage())

    @property
    def results(self) -> tuple[ToolResult, ...]:
        """Those that are there already while other calls of the same message are open."""
        return tuple(self._results[call_id] for call_id in self.open_calls if call_id in self._results)

    def context_after(self, event: Compacted) -> list[Message]:
        """What the context will be once this event is taken in."""
        summary = [Message.user(event.summary)] if event.summary else []
        after = [Message.user(event.after)] if event.after else []
        elided = self.elided | event.elided
        kept = (message.to_be_kept(elided) for message in self.messages[self._start_of(event.kept) :])
        return [*summary, *kept, *after]

    def apply(self, event: Durable) -> None:
        """Takes one event into the state. Never raises, whatever the order: a damaged file must resume too."""
        match event:  # the most frequent first: a long session is resumed by this
            case TurnStarted(message=message):
                self._start_turn(message)
            case MessageCompleted(message=message, usage=usage):
                self.close()
                self.messages.append(message)
                self.open_calls = {call.id: call for call in message.tool_calls}
                self.call_ids.update(self.open_calls)
                self.steps_since_plan += 1
                self.measured = (len(self.messages), usage.total_tokens if usage.input_tokens else self.tokens)
                self._count(self.header.models.get("processor", "") if self.header else "", usage)
            case ToolFinished(result=result):
                if self.is_open(result.call_id):
                    self._results[result.call_id] = result
                    if result.replacement is not None:
                        self._passing[result.call_id] = result.replacement
                    self.is_settled |= result.is_final
                    self._count_failure(self.open_calls[result.call_id], result.is_error)
                    if len(self._results) == len(self.open_calls):
                        self._answer_calls()
            case TurnFinished():
                self.last_turn, self.in_turn = event, False
                self.close()
            case SessionStarted(goes_on=goes_on):
                if not goes_on:
                    self.close()
                self.header = event
            case PlanUpdated(tasks=tasks):
                self.plan, self.steps_since_plan, self.is_plan_doubted = tasks, 0, False
            case Reminded(text=text, about=about, facts=facts):
                self._reminders.append(text)
                if about in ("plan", "tasks"):
                    self.steps_since_plan = 0
                    self.is_plan_doubted |= about == "tasks"
                self.facts |= facts
                if not self.open_calls:
                    self._remind()
            case Interjected(message=message):
                self.close()
                self.said.append(len(self.messages))
                self.messages.append(message)
            case Answered(question=question, answer=answer):
                if answer.by == "nobody" and question.kind != "words":  # what nobody says is no refusal
                    self.unanswered.append(question)
            case UsageRecorded(model=model, usage=usage):
                self._count(model, usage)
            case Compacted(summary=summary, kept=kept, elided=elided, after=after, is_routine=is_routine):
                self.close()
                self.summary = Message.user(summary) if summary else None
                self.elided |= elided
                self.facts = self.facts if is_routine else {}
                self.kept_from = self._start_of(kept)
                self.after = (len(self.messages), Message.user(after)) if after else None
                self.measured = (0, 0)
                self._forget_thinking()
            case Rewound(to=to):
                self.last_turn, self.facts, self.in_turn = None, {}, False
                self.close()
                del self.messages[to:]
                while self.messages and self.messages[-1].tool_calls:
                    del self.messages[-1]  # nor a call without its result
                if len(self.messages) < self.kept_from:
                    self.summary, self.kept_from = None, 0
                if self.after and len(self.messages) < self.after[0]:
                    self.after = None
                self.turns = [turn for turn in self.turns if turn.start < len(self.messages)]
                self.said = [place for place in self.said if place < len(self.messages)]
                self.measured = (0, 0)
                if len(self.messages) < self._bare_to:
                    self._forget_thinking()
            case ProfileChanged(profile=profile, models=models, tools=tools):
                if self.header:
                    self.header = self.header.model_copy(update={"profile": profile, "models": models, "tools": tools})
            case StateSaved(toolkit=toolkit, value=value):
                self.state[toolkit] = value
                if toolkit == PROMPT:
                    self._forget_thinking()

    def is_open(self, call_id: str) -> bool:
        """Whether this call still waits for its result."""
        return call_id in self.open_calls and call_id not in self._results

    def close(self) -> None:
        """Answers every open call with an error that says it was interrupted; the one repair there is.

        Cancelling, a crash and a resumed session come here alike. Calls handed off to a client stay open while
        their turn is the last one.
        """
        if self.last_turn and self.last_turn.reason == "handed_off":
            return
        if self.open_calls:
            for call_id in self.open_calls:
                self._results.setdefault(call_id, ToolResult(call_id=call_id, output=INTERRUPTED, is_error=True))
            self._answer_calls()

    def _start_of(self, kept: int) -> int:
        """Where the last `kept` messages begin; a result is never sent without its call."""
        start = max(0, len(self.messages) - kept)
        while start < len(self.messages) and self.messages[start].role == "tool":
            start += 1
        return start

    def _forget_thinking(self) -> None:
        self._bare = [message.to_be_kept(self.elided) for message in self.messages[self.kept_from :]]
        self._bare_to = len(self.messages)

    def _start_turn(self, message: Message) -> None:
        for result in message.tool_results:
            if self.is_open(result.call_id):
                self._results[result.call_id] = result
        self._turn_spent, self.unanswered, self.last_turn, self.failures = {}, [], None, {}
        self.in_turn, self.is_settled = True, False
        self.close()
        self.same_steps, self._step = 0, ()
        if self._passing:
            self.elided = self._passing | self.elided  # what was left out to make room stays so
            self._passing, self.measured = {}, (0, 0)
            self._forget_thinking()
        self.turn_count += 1
        self.turns.append(Turn(self.turn_count, len(self.messages)))
        said = tuple(part for part in message.parts if isinstance(part, Text | Image))
        if said:
            self.said.append(len(self.messages))
            self.messages.append(message if said == message.parts else Message(role="user", parts=said))

    def _answer_calls(self) -> None:
        in_order = tuple(self._results[call_id] for call_id in self.open_calls)
        step = tuple(
            (call.name, call.arguments, result.output, result.is_error, result.images)
            for call, result in zip(self.open_calls.values(), in_order, strict=True)
        )
        self.same_steps = self.same_steps + 1 if step == self._step else 1
        self._step = step
        self.messages.append(Message(role="tool", parts=in_order))
        self.open_calls, self._results = {}, {}
        self._remind()

    def _remind(self) -> None:
        """Reminders stand after the results of the calls during which they came."""
        self.messages += map(Message.user, self._reminders)
        self._reminders.clear()

    def _count_failure(self, call: ToolCall, is_error: bool) -> None:
        key = call.name, call.arguments
        if is_error:
            self.failures[key] = self.failures.get(key, 0) + 1
        else:
            self.failures.clear()

    def _count(self, model: str, usage: Usage) -> None:
        spent = _counts(usage)
        for counts in (self._spent, self._turn_spent):
            counts[model] = tuple(map(operator.add, counts[model], spent)) if model in counts else spent


def _usage(counts: tuple[int, ...]) -> Usage:
    return Usage.model_validate(dict(zip(Usage.model_fields, counts, strict=True)))
