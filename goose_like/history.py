"""State as a fold over events: messages, plan, usage, and the one repair of what was cut off."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Self

from pydantic import JsonValue

from .events import (
    Answered,
    Compacted,
    Durable,
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
from .message import Message, Text, ToolCall, ToolResult, Usage

INTERRUPTED = "interrupted: this call was cut off before it gave a result; what it had done until then may stand"


@dataclass(slots=True)
class History:
    """What the events so far amount to. Only `apply` changes it, so that a replay gives the very same state.

    `messages` is well-formed at every moment between turns: each tool call has exactly one result, in the
    message after it, in the order of the calls.
    """

    messages: list[Message] = field(default_factory=list)
    header: SessionStarted | None = None
    plan: tuple[Task, ...] = ()
    steps_since_plan: int = 0
    state: dict[str, JsonValue] = field(default_factory=dict)
    open_calls: dict[str, ToolCall] = field(default_factory=dict)
    usage: dict[str, Usage] = field(default_factory=dict)
    turn_usage: dict[str, Usage] = field(default_factory=dict)
    unanswered: list[Question] = field(default_factory=list)
    last_turn: TurnFinished | None = None
    measured: tuple[int, int] = (0, 0)
    _results: dict[str, ToolResult] = field(default_factory=dict)
    _summary: Message | None = None
    _kept_from: int = 0

    @classmethod
    def replay(cls, events: Iterable[Durable]) -> Self:
        """The state after these events, with what they leave open closed."""
        history = cls()
        for event in events:
            history.apply(event)
        history.close()
        return history

    @property
    def context(self) -> list[Message]:
        """What stands of the conversation for a model: all of it, or the newest summary and what came after."""
        if self._summary is None:
            return self.messages
        return [self._summary, *self.messages[self._kept_from :]]

    @property
    def total_usage(self) -> Usage:
        return sum(self.usage.values(), Usage())

    def apply(self, event: Durable) -> None:
        match event:
            case SessionStarted():
                self.close()
                self.header = event
            case TurnStarted(message=message):
                self._start_turn(message)
            case MessageCompleted(message=message, usage=usage):
                self.messages.append(message)
                self.open_calls = {call.id: call for call in message.tool_calls}
                self.steps_since_plan += 1
                if usage.input_tokens:
                    self.measured = (len(self.messages), usage.total_tokens)
                self._count(self.header.models["processor"] if self.header else "", usage)
            case ToolFinished(result=result):
                if result.call_id in self.open_calls:
                    self._results[result.call_id] = result
                    if len(self._results) == len(self.open_calls):
                        self._answer_calls()
            case PlanUpdated(tasks=tasks):
                self.plan, self.steps_since_plan = tasks, 0
            case Reminded(text=text):
                self.messages.append(Message.user(text))
                self.steps_since_plan = 0
            case Answered(question=question, answer=answer):
                if answer.by == "nobody":
                    self.unanswered.append(question)
            case UsageRecorded(model=model, usage=usage):
                self._count(model, usage)
            case Compacted(summary=summary, kept=kept):
                self._summary = Message.user(summary)
                self._kept_from = len(self.messages) - kept
                self.measured = (0, 0)
            case Rewound(to=to):
                self.close()
                del self.messages[to:]
                if to < self._kept_from:
                    self._summary, self._kept_from = None, 0
                self.measured = (0, 0)
            case ProfileChanged(profile=profile, models=models, tools=tools):
                if self.header:
                    self.header = self.header.model_copy(update={"profile": profile, "models": models, "tools": tools})
            case StateSaved(toolkit=toolkit, value=value):
                self.state[toolkit] = value
            case TurnFinished(reason=reason):
                self.last_turn = event
                if reason != "handed_off":
                    self.close()

    def close(self) -> None:
        """Answers every open call with an error that says it was interrupted; the one repair there is.

        Cancelling, a crash and a resumed session come here alike. Calls handed off to a client stay open while
        their turn is the last one.
        """
        if self.open_calls:
            for call_id in self.open_calls:
                self._results.setdefault(call_id, ToolResult(call_id=call_id, output=INTERRUPTED, is_error=True))
            self._answer_calls()

    def _start_turn(self, message: Message) -> None:
        for result in message.tool_results:
            if result.call_id in self.open_calls:
                self._results[result.call_id] = result
        self.close()
        said = tuple(part for part in message.parts if isinstance(part, Text))
        if said:
            self.messages.append(Message(role="user", parts=said))
        self.turn_usage, self.unanswered, self.last_turn = {}, [], None

    def _answer_calls(self) -> None:
        in_order = tuple(self._results[call_id] for call_id in self.open_calls)
        self.messages.append(Message(role="tool", parts=in_order))
        self.open_calls, self._results = {}, {}

    def _count(self, model: str, usage: Usage) -> None:
        for counts in (self.usage, self.turn_usage):
            counts[model] = counts.get(model, Usage()) + usage
