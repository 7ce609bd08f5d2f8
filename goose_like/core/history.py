"""The state of a session as a fold over its events: messages, plan, usage, and the repair of what was cut off."""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from operator import add, itemgetter
from typing import Self, assert_never

from pydantic import JsonValue

from . import events
from .message import Image, Message, Text, ToolCall, ToolResult, Usage

PROMPT_STATE_KEY = "prompt"
"""The key in `History.state` of a hash of the prompt. When the prompt changes, old thinking is removed."""

STOPPED = "the person stopped this"
"""The start of a result that a call gave because the person ended its work."""

INTERRUPTED = "interrupted: this call was cut off before it gave a result; what it had done until then may stand"
SHOWN_UNTIL_THEN = ". It had shown:\n"

_CUT_NOTE = "[Your previous answer was cut off before its end.]"

_IMAGE_TOKENS = 1_500
_SHOWN_CHARACTERS = 4_000

_get_counts = itemgetter(*Usage.model_fields)


def estimate_tokens(message: Message) -> int:
    """Estimate the tokens of a message: a quarter of its JSON bytes, plus a constant for each image."""
    return len(message.model_dump_json().encode()) // 4 + _IMAGE_TOKENS * len(message.images)


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn that still stands: its number among all turns ever started, and the index of its first message.

    `is_read_only`: nothing may be changed in this turn.
    """

    number: int
    start: int
    is_read_only: bool = False


@dataclass(slots=True)
class History:
    """The state after all events so far. Only `apply` changes it, so a replay gives exactly the same state.

    Between turns `messages` is well-formed: each tool call has exactly one result, in the message after it, in the
    order of the calls.

    `failures` counts the failing calls of this turn by name and arguments, and a success clears it.
    `repeated_step_count` counts the newest steps with equal calls and results. `measured_tokens` is the size of the
    first `measured_count` messages. `suffix` is an index and the message that follows the kept messages.
    """

    messages: list[Message] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    user_message_indexes: list[int] = field(default_factory=list)
    turn_count: int = 0
    header: events.SessionStarted | None = None
    plan: tuple[events.Task, ...] = ()
    steps_since_plan: int = 0
    is_reminded_of_open_tasks: bool = False
    state: dict[str, JsonValue] = field(default_factory=dict)
    open_calls: dict[str, ToolCall] = field(default_factory=dict)
    unanswered_questions: list[events.Question] = field(default_factory=list)
    last_turn: events.TurnFinished | None = None
    call_ids: set[str] = field(default_factory=set)
    failures: dict[tuple[str, str], int] = field(default_factory=dict)
    repeated_step_count: int = 0
    is_answer_cut: bool = False
    is_in_turn: bool = False
    has_final_result: bool = False
    measured_count: int = 0
    measured_tokens: int = 0
    summary: Message | None = None
    kept_start: int = 0
    suffix: tuple[int, Message] | None = None
    replacements: dict[str, str] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)
    _stripped_messages: list[Message] = field(default_factory=list)
    _stripped_end: int = 0
    _token_counts: dict[str, tuple[int, ...]] = field(default_factory=dict)
    _turn_token_counts: dict[str, tuple[int, ...]] = field(default_factory=dict)
    _results: dict[str, ToolResult] = field(default_factory=dict)
    _plans: list[tuple[int, tuple[events.Task, ...]]] = field(default_factory=list)  # by number of messages before
    _reminders: list[str] = field(default_factory=list)
    _pending_replacements: dict[str, str] = field(default_factory=dict)
    _last_step: tuple[tuple[str, str, str, bool, tuple[Image, ...]], ...] = ()
    _shown: dict[str, str] = field(default_factory=dict)  # by id of the call; the answer's id is empty
    _repairs: list[events.DurableEvent] = field(default_factory=list, compare=False)

    @classmethod
    def replay(cls, saved_events: Iterable[events.SavedEvent]) -> Self:
        """Fold events into a new history and close it."""
        history = cls()
        deque(history.restore(saved_events), maxlen=0)
        return history

    def restore(
        self, saved_events: Iterable[events.SavedEvent], *, is_resumed: bool = False
    ) -> Iterator[events.DurableEvent]:
        """Fold saved events, then close the history unless a turn is resumed. Yield the events for people.

        In place of shown text, these contain the cut answers and interrupted calls.
        """
        for event in saved_events:
            self.apply(event)
            yield from self._repairs
            if event.type != "text_shown":  # an `isinstance` of a pydantic model is slow when it is false
                yield event
        if not (is_resumed and self.is_in_turn):
            self._repairs.clear()
            self.close()
            yield from self._repairs

    @property
    def turn_step_count(self) -> int:
        """The number of model messages in the newest turn."""
        start = self.turns[-1].start if self.turns else 0
        return [message.role for message in self.messages[start:]].count("assistant")

    @property
    def context(self) -> list[Message]:
        """The messages for a model: all of them, or the newest summary and the messages after it.

        Vendors refuse thinking after a changed text, so thinking from before a summary, or from another model,
        prompt or set of tools, is left out.
        """
        summary = () if self.summary is None else (self.summary,)
        kept = [*self._stripped_messages, *self.messages[self._stripped_end :]]
        if self.suffix is not None:
            index, message = self.suffix
            kept.insert(index - self.kept_start, message)
        return [*summary, *kept]

    @property
    def context_tokens(self) -> int:
        """The approximate size of the context: the count of the newest request plus an estimate of the rest."""
        newer = self.messages[self.measured_count :] if self.measured_count else self.context
        return self.measured_tokens + sum(estimate_tokens(message) for message in newer)

    @property
    def usage(self) -> dict[str, Usage]:
        """All tokens by model."""
        return {model: _make_usage(counts) for model, counts in self._token_counts.items()}

    @property
    def turn_usage(self) -> dict[str, Usage]:
        """The tokens of the newest turn by model."""
        return {model: _make_usage(counts) for model, counts in self._turn_token_counts.items()}

    @property
    def total_usage(self) -> Usage:
        """All tokens of all models."""
        return sum(self.usage.values(), Usage())

    @property
    def finished_results(self) -> tuple[ToolResult, ...]:
        """The results that exist while other calls of the same message are still open."""
        return tuple(self._results[call_id] for call_id in self.open_calls if call_id in self._results)

    def preview_context(self, event: events.Compacted) -> list[Message]:
        """Return the context as it will be after this event."""
        summary = [Message.user(event.summary)] if event.summary else []
        suffix = [Message.user(event.suffix)] if event.suffix else []
        replacements = self.replacements | event.replacements
        kept = (message.strip_thinking(replacements) for message in self.messages[self._find_start(event.kept_count) :])
        return [*summary, *kept, *suffix]

    def apply(self, event: events.SavedEvent) -> None:
        """Fold one event into the state. This never raises: a damaged file with events in any order must resume."""
        self._repairs.clear()
        match event:  # the most frequent first: this loop replays long sessions
            case events.MessageCompleted():
                self._add_answer(event)
            case events.ToolFinished(result=result):
                self._add_result(result)
            case events.TurnStarted(message=message, is_read_only=is_read_only):
                self._start_turn(message, is_read_only)
            case events.TurnFinished():
                self.last_turn, self.is_in_turn = event, False
                self.close()
            case events.SessionStarted(is_resumed=is_resumed):
                if not is_resumed or self._shown.get(""):
                    self.close()
                if is_resumed and self.is_answer_cut:  # the turn goes on without a message of the user
                    self.messages.append(Message.user(_CUT_NOTE))
                    self.is_answer_cut = False
                self.header = event
            case events.ModeRestricted(sandbox=sandbox, approval=approval):
                if header := self.header:
                    modes = {"sandbox": sandbox or header.sandbox, "approval": approval or header.approval}
                    self.header = header.model_copy(update=modes)
            case events.PlanUpdated(tasks=tasks):
                self._plans.append((len(self.messages), tasks))
                self._set_plan(tasks)
            case events.Reminded():
                self._add_reminder(event)
            case events.Interjected(message=message):
                self.close(keeps_handed_off=False)
                self._add_user_message(message)
            case events.Answered(question=question, answer=answer):
                if answer.by == "nobody" and question.kind != "text":  # a missing free-text answer is no refusal
                    self.unanswered_questions.append(question)
            case events.UsageRecorded(model=model, usage=usage):
                self._count(model, usage)
            case events.Compacted():
                self._compact(event)
            case events.Rewound(message_count=message_count):
                self._rewind(message_count)
            case events.StateSaved(toolkit=toolkit, value=value):
                self.state[toolkit] = value
                if toolkit == PROMPT_STATE_KEY:
                    self._strip_thinking()
            case events.TextShown(text=text, call_id=call_id):
                # An answer never follows an answer: such a text is what a killed process did not cut off the file.
                if self.is_open(call_id) if call_id else self.messages and self.messages[-1].role != "assistant":
                    shown = self._shown.get(call_id, "") + text if text else ""
                    self._shown[call_id] = shown[-_SHOWN_CHARACTERS:] if call_id else shown
            case events.Logged() | events.Asked() | events.ArtifactShown() | events.PromptsSuggested():
                pass  # only shown
            case _:
                assert_never(event)

    def is_open(self, call_id: str) -> bool:
        """Return whether this call still waits for its result."""
        return call_id in self.open_calls and call_id not in self._results

    def close(self, *, keeps_handed_off: bool = True) -> None:
        """Complete what was cut off: the answer with the text that was shown, and every open call with an error.

        Cancelling, crashing and resuming share this repair. Calls that were handed off to a client stay open until
        something else follows them.
        """
        if text := self._shown.pop("", ""):
            answer = events.MessageCompleted(message=Message.assistant(text), is_cut=True)
            self._repairs.append(answer)
            self._add_answer(answer)
        if not self.open_calls or (keeps_handed_off and self.last_turn and self.last_turn.reason == "handed_off"):
            return
        for call_id in self.open_calls:
            if call_id not in self._results:
                self._results[call_id] = self.interrupt_call(call_id)
                self._repairs.append(events.ToolFinished(result=self._results[call_id]))
        self._finish_calls()

    def find_result(self, call_id: str) -> ToolResult | None:
        """Return the newest result of a call, or None if the call is open or unknown."""
        messages = (message for message in reversed(self.messages) if message.role == "tool")
        results = (result for message in messages for result in message.tool_results)
        return next((result for result in results if result.call_id == call_id), None)

    def interrupt_call(self, call_id: str) -> ToolResult:
        """Create the result of an interrupted call, with the end of the text that the call had shown."""
        shown = self._shown.get(call_id)
        output = f"{INTERRUPTED}{SHOWN_UNTIL_THEN}{shown}" if shown else INTERRUPTED
        return ToolResult(call_id=call_id, output=output, is_error=True)

    def _start_turn(self, message: Message, is_read_only: bool = False) -> None:
        for result in message.tool_results if self.open_calls else ():
            if self.is_open(result.call_id):
                self._results[result.call_id] = result
        self._turn_token_counts, self.unanswered_questions, self.last_turn, self.failures = {}, [], None, {}
        self.is_in_turn, self.has_final_result = True, False
        self.close()
        self.repeated_step_count, self._last_step = 0, ()
        if self._pending_replacements:
            self.replacements = self._pending_replacements | self.replacements  # those of a compaction stay
            self._pending_replacements, self.measured_count, self.measured_tokens = {}, 0, 0
            self._strip_thinking()
        self.turn_count += 1
        self.turns.append(Turn(self.turn_count, len(self.messages), is_read_only))
        parts = tuple([part for part in message.parts if part.type == "text" or part.type == "image"])
        if parts:
            self._add_user_message(message if parts == message.parts else Message(role="user", parts=parts))

    def _add_user_message(self, message: Message) -> None:
        if self.is_answer_cut:
            self.is_answer_cut = False
            message = Message(role="user", parts=(*message.parts, Text(text=f"\n\n{_CUT_NOTE}")))
        self.user_message_indexes.append(len(self.messages))
        self.messages.append(message)

    def _add_answer(self, event: events.MessageCompleted) -> None:
        message, usage = event.message, event.usage
        self._shown.pop("", None)
        self.close(keeps_handed_off=False)
        self.messages.append(message)
        self.open_calls = {call.id: call for call in message.tool_calls}
        self.is_answer_cut = event.is_cut and not self.open_calls
        self.call_ids.update(self.open_calls)
        self.steps_since_plan += 1
        tokens = usage.total_tokens if usage.input_tokens else self.context_tokens
        self.measured_count, self.measured_tokens = len(self.messages), tokens
        self._count(event.model or (self.header.models.get("processor", "") if self.header else ""), usage)

    def _add_result(self, result: ToolResult) -> None:
        if not self.is_open(result.call_id):
            return
        self._results[result.call_id] = result
        if result.replacement is not None:
            self._pending_replacements[result.call_id] = result.replacement
        self.has_final_result |= result.is_final
        call = self.open_calls[result.call_id]
        if result.is_error:
            self.failures[call.name, call.arguments] = self.failures.get((call.name, call.arguments), 0) + 1
        else:
            self.failures.clear()
        if len(self._results) == len(self.open_calls):
            self._finish_calls()

    def _finish_calls(self) -> None:
        results = tuple([self._results[call_id] for call_id in self.open_calls])
        step = tuple(
            [
                (call.name, call.arguments, result.output, result.is_error, result.images)
                for call, result in zip(self.open_calls.values(), results, strict=True)
            ]
        )
        self.repeated_step_count = self.repeated_step_count + 1 if step == self._last_step else 1
        self._last_step = step
        self.messages.append(Message(role="tool", parts=results))
        self.open_calls, self._results, self._shown = {}, {}, {}
        self._flush_reminders()

    def _add_reminder(self, event: events.Reminded) -> None:
        self._reminders.append(event.text)
        if event.reason in ("plan", "open_tasks"):
            self.steps_since_plan = 0
            self.is_reminded_of_open_tasks |= event.reason == "open_tasks"
        self.facts |= event.facts
        if not self.open_calls:  # else the reminder follows the results
            self._flush_reminders()

    def _flush_reminders(self) -> None:
        if self._reminders:
            self.messages += map(Message.user, self._reminders)
            self._reminders.clear()

    def _compact(self, event: events.Compacted) -> None:
        self.close(keeps_handed_off=False)
        self.summary = Message.user(event.summary) if event.summary else None
        self.replacements |= event.replacements
        self.facts = self.facts if event.is_routine else {}
        self.kept_start = self._find_start(event.kept_count)
        self.suffix = (len(self.messages), Message.user(event.suffix)) if event.suffix else None
        self.measured_count = self.measured_tokens = 0
        self._strip_thinking()

    def _rewind(self, message_count: int) -> None:
        self.last_turn, self.facts, self.is_in_turn = None, {}, False
        self.close()
        self.is_answer_cut = False
        del self.messages[message_count:]
        while self.messages and self.messages[-1].tool_calls:
            del self.messages[-1]  # keep no call without its result
        while self._plans and self._plans[-1][0] > len(self.messages):
            del self._plans[-1]
        self._set_plan(self._plans[-1][1] if self._plans else ())
        if len(self.messages) < self.kept_start:
            self.summary, self.kept_start = None, 0
        if self.suffix and len(self.messages) < self.suffix[0]:
            self.suffix = None
        self.turns = [turn for turn in self.turns if turn.start < len(self.messages)]
        self.user_message_indexes = [index for index in self.user_message_indexes if index < len(self.messages)]
        self.measured_count = self.measured_tokens = 0
        if len(self.messages) < self._stripped_end:
            self._strip_thinking()

    def _set_plan(self, tasks: tuple[events.Task, ...]) -> None:
        self.plan, self.steps_since_plan, self.is_reminded_of_open_tasks = tasks, 0, False

    def _find_start(self, kept_count: int) -> int:
        """Find the first of the last `kept_count` messages. A result is never sent without its call."""
        start = max(0, len(self.messages) - kept_count)
        while start < len(self.messages) and self.messages[start].role == "tool":
            start += 1
        return start

    def _strip_thinking(self) -> None:
        self._stripped_messages = [
            message.strip_thinking(self.replacements) for message in self.messages[self.kept_start :]
        ]
        self._stripped_end = len(self.messages)

    def _count(self, model: str, usage: Usage) -> None:
        # Tuples, because a `Usage` for each sum takes a third of the time to replay a long session.
        new = _get_counts(vars(usage))
        for counts in (self._token_counts, self._turn_token_counts):
            old = counts.get(model)
            counts[model] = tuple(map(add, old, new)) if old else new


def _make_usage(counts: tuple[int, ...]) -> Usage:
    return Usage(**dict(zip(Usage.model_fields, counts, strict=True)))
