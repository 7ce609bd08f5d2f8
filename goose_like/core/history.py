"""The state of a session as a fold over its events: messages, plan, and the repair of what was cut off."""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import field
from functools import partial
from typing import NamedTuple, Self, assert_never

from pydantic import JsonValue

from goose_like.core.dataclass import dataclass

from . import events
from .context import Context
from .message import EffortChange, Image, Message, NewTools, Part, Text, ToolCall, ToolResult
from .usage import SessionUsage

PROMPT_STATE_KEY = "prompt"
"""The key in `History.state` of a hash of the recorded prompt.

When it is saved, thinking that is bound to the old text is removed. When the same value is saved again, a server has
refused thinking, and all of it is removed.
"""

STOPPED = "the person stopped this"
"""The start of a result that a call gave because the person ended its work."""

INTERRUPTED = "interrupted: this call was cut off before it gave a result; what it had done until then may stand"
SHOWN_UNTIL_THEN = ". It had shown:\n"

_CUT_NOTE = "[Your previous answer was cut off before its end.]"

_SHOWN_CHARACTERS = 4_000
_KEPT_COMMANDS = 500


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn that still stands: its number among all turns ever started, and the index of its first message.

    `is_read_only`: nothing may be changed in this turn. `is_fresh`: in it the model sees nothing from before.
    """

    number: int
    start: int
    is_read_only: bool = False
    is_fresh: bool = False


@dataclass(frozen=True, slots=True)
class _SavedPlan:
    """A plan, and the number of messages before it."""

    message_count: int
    tasks: tuple[events.Task, ...]


class _Outcome(NamedTuple):
    """A call with its result, compared with those of the step before. A tuple, since long sessions have many."""

    name: str
    arguments: str
    output: str
    is_error: bool
    images: tuple[Image, ...]


@dataclass(slots=True)
class History:
    """The state after all events so far. Only `apply` changes it, so a replay gives exactly the same state.

    Between turns `messages` is well-formed: each tool call has exactly one result, in the message after it, in the
    order of the calls. `context` selects from them what the model receives.

    `has_images`: a message has or had an image.
    `turn_step_count` counts the model's messages in the newest turn.
    `failures` counts the failing calls of this turn by name and arguments, and a success clears it.
    `commands` has the newest commands with their exit codes.
    `repeated_step_count` counts the newest steps with equal calls and results.
    """

    messages: list[Message] = field(default_factory=list)
    context: Context = field(init=False)
    usage: SessionUsage = field(default_factory=SessionUsage)
    turns: list[Turn] = field(default_factory=list)
    user_message_indexes: list[int] = field(default_factory=list)
    turn_count: int = 0
    turn_step_count: int = 0
    header: events.SessionStarted | None = None
    plan: tuple[events.Task, ...] = ()
    steps_since_plan: int = 0
    state: dict[str, JsonValue] = field(default_factory=dict)
    commands: deque[events.CommandFinished] = field(default_factory=partial(deque, maxlen=_KEPT_COMMANDS))
    open_calls: dict[str, ToolCall] = field(default_factory=dict)
    unanswered_questions: list[events.Question] = field(default_factory=list)
    last_turn: events.TurnFinished | None = None
    call_ids: set[str] = field(default_factory=set)
    failures: dict[tuple[str, str], int] = field(default_factory=dict)
    repeated_step_count: int = 0
    is_answer_cut: bool = False
    is_in_turn: bool = False
    has_final_result: bool = False
    has_images: bool = False
    _results: dict[str, ToolResult] = field(default_factory=dict)
    _plans: list[_SavedPlan] = field(default_factory=list)
    _reminders: list[str] = field(default_factory=list)
    _last_step: tuple[_Outcome, ...] = ()
    _shown: dict[str, str] = field(default_factory=dict)  # by id of the call; the answer's id is empty
    _repairs: list[events.DurableEvent] = field(default_factory=list, compare=False)

    def __post_init__(self) -> None:
        self.context = Context(self.messages)

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
    def finished_results(self) -> tuple[ToolResult, ...]:
        """The results that exist while other calls of the same message are still open."""
        return tuple(self._results[call_id] for call_id in self.open_calls if call_id in self._results)

    def apply(self, event: events.SavedEvent) -> None:
        """Fold one event into the state. This never raises: a damaged file with events in any order must resume."""
        self._repairs.clear()
        match event:  # the most frequent first: this loop replays long sessions
            case events.MessageCompleted():
                self._add_answer(event)
            case events.ToolFinished(result=result):
                self._add_result(result)
            case events.TurnStarted():
                self._start_turn(event)
            case events.TurnFinished():
                self._finish_turn(event)
            case events.SessionStarted():
                self._start_process(event)
            case events.PromptRecorded():
                self.context.record_prompt(event)
            case events.PromptChanged():
                self._change_prompt(event)
            case events.ModeRestricted():
                self._restrict_modes(event)
            case events.PlanUpdated(tasks=tasks):
                self._plans.append(_SavedPlan(len(self.messages), tasks))
                self._set_plan(tasks)
            case events.Reminded():
                self._add_reminder(event)
            case events.Interjected(message=message):
                self.close(keeps_handed_off=False)
                self._add_user_message(message)
            case events.Answered(question=question, answer=answer):
                if answer.by == "nobody" and question.kind != "text":  # a missing free-text answer is no refusal
                    self.unanswered_questions.append(question)
            case events.UsageRecorded(model=model, usage=usage, steps=steps):
                self.usage.add(model, usage, steps)
            case events.CommandFinished():
                self.commands.append(event)
            case events.Compacted():
                self._compact(event)
            case events.Rewound(message_count=message_count):
                self._rewind(message_count)
            case events.StateSaved(toolkit=toolkit, value=value):
                self._save_state(toolkit, value)
            case events.TextShown():
                self._add_shown_text(event)
            case events.Logged() | events.FileChanged() | events.Refused() | events.Asked():
                pass  # only shown
            case events.ArtifactShown() | events.PromptsSuggested():
                pass
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
        if not self.open_calls:
            return
        if keeps_handed_off and self.last_turn and self.last_turn.reason == "handed_off":
            return
        for call_id in self.open_calls:
            if call_id in self._results:
                continue
            result = self.interrupt_call(call_id)
            self._results[call_id] = result
            self._repairs.append(events.ToolFinished(result=result))
        self._finish_calls()

    def find_result(self, call_id: str) -> ToolResult | None:
        """Return the newest result of a call, or None if the call is open or unknown."""
        for message in reversed(self.messages):
            if message.role != "tool":
                continue
            for result in message.tool_results:
                if result.call_id == call_id:
                    return result
        return None

    def interrupt_call(self, call_id: str) -> ToolResult:
        """Create the result of an interrupted call, with the end of the text that the call had shown."""
        output = INTERRUPTED
        shown = self._shown.get(call_id)
        if shown:
            output += f"{SHOWN_UNTIL_THEN}{shown}"
        return ToolResult(call_id=call_id, output=output, is_error=True)

    def _start_process(self, event: events.SessionStarted) -> None:
        if not event.is_resumed or self._shown.get(""):
            self.close()
        if event.is_resumed and self.is_answer_cut:  # the turn goes on without a message of the user
            self.messages.append(Message.user(_CUT_NOTE))
            self.is_answer_cut = False
        self.header = event

    def _restrict_modes(self, event: events.ModeRestricted) -> None:
        header = self.header
        if header is None:
            return
        sandbox = event.sandbox or header.sandbox
        approval = event.approval or header.approval
        self.header = header.model_copy(update={"sandbox": sandbox, "approval": approval})

    def _start_turn(self, event: events.TurnStarted) -> None:
        message = event.message
        self._take_handed_off_results(message.tool_results)
        if not self.is_in_turn:  # else a killed process left the turn before, and its budget holds on
            self.usage.start_turn()
        self.is_in_turn = True
        self.has_final_result = False
        self.last_turn = None
        self.unanswered_questions = []
        self.failures = {}
        self.close()
        # Only now: `close` can complete a step of the turn before, and counts it.
        self.turn_step_count = 0
        self.repeated_step_count = 0
        self._last_step = ()
        self.context.start_turn(is_fresh=event.is_fresh)
        self.turn_count += 1
        turn = Turn(
            number=self.turn_count,
            start=len(self.messages),
            is_read_only=event.is_read_only,
            is_fresh=event.is_fresh,
        )
        self.turns.append(turn)
        self._add_typed_parts(message)

    def _add_typed_parts(self, message: Message) -> None:
        """Add the message of a turn without the results in it. These stand in the message of the results."""
        parts = tuple([part for part in message.parts if part.type in ("text", "image")])
        if not parts:
            return
        if parts != message.parts:
            message = Message(role="user", parts=parts)
        self._add_user_message(message)

    def _take_handed_off_results(self, results: Iterable[ToolResult]) -> None:
        for result in results:
            if self.is_open(result.call_id):
                self._results[result.call_id] = result

    def _finish_turn(self, event: events.TurnFinished) -> None:
        self.last_turn = event
        self.is_in_turn = False
        self.context.finish_turn()
        self.close()

    def _add_user_message(self, message: Message) -> None:
        if self.is_answer_cut:
            self.is_answer_cut = False
            note = Text(text=f"\n\n{_CUT_NOTE}")
            message = Message(role="user", parts=(*message.parts, note))
        self.user_message_indexes.append(len(self.messages))
        self.has_images |= bool(message.images)
        self.messages.append(message)

    def _add_shown_text(self, event: events.TextShown) -> None:
        call_id = event.call_id
        if call_id:
            is_expected = self.is_open(call_id)
        else:
            # An answer never follows an answer: such a text is what a killed process did not cut off the file.
            is_expected = bool(self.messages) and self.messages[-1].role != "assistant"
        if not is_expected:
            return
        shown = self._shown.get(call_id, "") + event.text
        if not event.text:  # the text so far is taken back
            shown = ""
        if call_id:
            shown = shown[-_SHOWN_CHARACTERS:]
        self._shown[call_id] = shown

    def _add_answer(self, event: events.MessageCompleted) -> None:
        message = event.message
        self._shown.pop("", None)
        self.close(keeps_handed_off=False)
        self.messages.append(message)
        self.open_calls = {call.id: call for call in message.tool_calls}
        self.is_answer_cut = event.is_cut and not self.open_calls
        self.call_ids.update(self.open_calls)
        self.turn_step_count += 1
        self.steps_since_plan += 1
        self.context.measure(event.usage)
        model = event.model
        if not model and self.header:
            model = self.header.models.get("processor", "")
        self.usage.add(model, event.usage, 1)

    def _add_result(self, result: ToolResult) -> None:
        if not self.is_open(result.call_id):
            return
        self._results[result.call_id] = result
        if result.replacement is not None:
            self.context.replace_result(result.call_id, result.replacement)
        self.has_final_result |= result.is_final
        call = self.open_calls[result.call_id]
        if result.is_error:
            key = (call.name, call.arguments)
            self.failures[key] = self.failures.get(key, 0) + 1
        else:
            self.failures.clear()
        if len(self._results) == len(self.open_calls):
            self._finish_calls()

    def _finish_calls(self) -> None:
        results = []
        step = []
        for call in self.open_calls.values():
            result = self._results[call.id]
            results.append(result)
            outcome = _Outcome(call.name, call.arguments, result.output, result.is_error, result.images)
            step.append(outcome)
            self.has_images |= bool(result.images)
        if tuple(step) != self._last_step:
            self.repeated_step_count = 0
        self.repeated_step_count += 1
        self._last_step = tuple(step)
        self.messages.append(Message(role="tool", parts=tuple(results)))
        self.open_calls = {}
        self._results = {}
        self._shown = {}
        self._flush_reminders()

    def _add_reminder(self, event: events.Reminded) -> None:
        self._reminders.append(event.text)
        if event.reason in ("plan", "open_tasks"):
            self.steps_since_plan = 0
        self.context.facts |= event.facts
        if not self.open_calls:  # else the reminder follows the results
            self._flush_reminders()

    def _flush_reminders(self) -> None:
        if self._reminders:
            self.messages += map(Message.system, self._reminders)
            self._reminders.clear()

    def _change_prompt(self, event: events.PromptChanged) -> None:
        parts: list[Part] = []
        if event.text:
            parts.append(Text(text=event.text))
        if event.tools:
            parts.append(NewTools(tools=event.tools))
        if event.effort is not None:
            parts.append(EffortChange(effort=event.effort))
        self.close(keeps_handed_off=False)
        self.context.change_prompt(event)
        self.messages.append(Message(role="system", parts=tuple(parts)))

    def _compact(self, event: events.Compacted) -> None:
        self.close(keeps_handed_off=False)
        if not event.is_routine:
            self.steps_since_plan = 0  # the summary has the plan
        self.context.compact(event)

    def _rewind(self, message_count: int) -> None:
        self.last_turn = None
        self.is_in_turn = False
        self.close()
        self.is_answer_cut = False
        del self.messages[message_count:]
        while self.messages and self.messages[-1].tool_calls:
            del self.messages[-1]  # keep no call without its result
        count = len(self.messages)
        while self._plans and self._plans[-1].message_count > count:
            del self._plans[-1]
        self._set_plan(self._plans[-1].tasks if self._plans else ())
        self.turns = [turn for turn in self.turns if turn.start < count]
        self.user_message_indexes = [index for index in self.user_message_indexes if index < count]
        self.turn_step_count = self._count_turn_steps()
        fresh_start = None
        if self.turns and self.turns[-1].is_fresh:
            fresh_start = self.turns[-1].start
        self.context.rewind(fresh_start)

    def _count_turn_steps(self) -> int:
        start = self.turns[-1].start if self.turns else 0
        roles = [message.role for message in self.messages[start:]]
        return roles.count("assistant")

    def _set_plan(self, tasks: tuple[events.Task, ...]) -> None:
        self.plan = tasks
        self.steps_since_plan = 0

    def _save_state(self, toolkit: str, value: JsonValue) -> None:
        is_saved_again = self.state.get(toolkit) == value
        self.state[toolkit] = value
        if toolkit == PROMPT_STATE_KEY:
            self.context.expire_thinking(is_refused=is_saved_again)
