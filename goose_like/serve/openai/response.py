"""The response to a request: a turn's events as text, reasoning and an end, which an encoder of each API writes."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, assert_never

from goose_like.agent.exchange import CUT_ANSWER_ERROR
from goose_like.core.events import (
    Answered,
    ArtifactShown,
    Asked,
    CommandFinished,
    Compacted,
    Event,
    FileChanged,
    Interjected,
    Logged,
    MessageCompleted,
    ModeRestricted,
    PlanUpdated,
    PromptChanged,
    PromptRecorded,
    PromptsSuggested,
    Refused,
    Reminded,
    Retrying,
    Rewound,
    RunFinished,
    SessionStarted,
    StateSaved,
    Status,
    SubagentEvent,
    TextDelta,
    ThinkingDelta,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnFinished,
    TurnStarted,
    UsageRecorded,
)
from goose_like.core.message import Message, ToolCall, Usage
from goose_like.serve.state import StateSigner, TurnEvent, build_turn_state, list_open_calls
from goose_like.sessions.artifact_text import render_artifact

from .history import ChatTurn, build_context
from .request import AnswerRequest
from .stop_text import StopText

_MAX_CALL_CHARACTERS = 200

_STATUSES = {75: 429, 76: 502, 77: 502, 143: 503}
"""The HTTP status for the exit code of a turn that failed. Others are 500."""


@dataclass(frozen=True, slots=True)
class AnswerEnd:
    """The end of an answer. `calls` are for the client. `state` is signed, and empty if there is nothing to keep."""

    reason: Literal["stop", "tool_calls", "length"]
    calls: Sequence[ToolCall]
    state: str
    usage: Usage


class AnswerEncoder(Protocol):
    """An API's way to write an answer: the events of a stream, or one object at the end."""

    def start(self) -> None:
        """Open the answer."""

    def add_text(self, text: str) -> None:
        """Add text for the person."""

    def add_reasoning(self, text: str) -> None:
        """Add reasoning, or progress of the profile's own tools."""

    def finish(self, end: AnswerEnd) -> None:
        """Complete the answer."""

    def fail(self, text: str, status: int) -> None:
        """End the answer with an error. `status` is the HTTP status that it would have."""

    def take_bytes(self) -> bytes:
        """Return what was written since the last time."""


class AnswerWriter:
    """The protocol's `ResponseWriter` for one request. `status` is the HTTP status of an object."""

    def __init__(self, request: AnswerRequest, turn: ChatTurn, signer: StateSigner, encoder: AnswerEncoder) -> None:
        self.status = 200
        self.is_stream = request.is_stream
        self._request = request
        self._turn = turn
        self._signer = signer
        self._encoder = encoder
        # Text of an object can still change, and of JSON the client gets only what was checked.
        self._is_text_held = not request.is_stream or request.answer_schema is not None
        self._stop = StopText(request.stop)
        self._turn_events: list[TurnEvent] = []
        self._tool_names: dict[str, str] = {}
        self._content: list[str] = []
        self._last_reasoning = "\n"
        self._gap = ""
        self._kept = 0  # pieces of content before the message that the model writes now

    @property
    def has_enough(self) -> bool:
        """True once a text of `stop` came: the rest of the turn is not wanted."""
        return self._stop.is_found

    def start(self) -> bytes:
        """Open the response."""
        self._encoder.start()
        return self._encoder.take_bytes()

    def write(self, events: Sequence[Event]) -> bytes:
        """Encode events."""
        for event in events:
            if self.has_enough:
                break
            if isinstance(event, TurnEvent):
                self._turn_events.append(event)
            self._translate(event)
        return self._encoder.take_bytes()

    def finish(self, finished: TurnFinished) -> bytes:
        """Encode the end: the reason, the calls for the client, and the tokens used; or the error."""
        self._add_text(self._stop.flush())
        calls: list[ToolCall] = []
        reason: Literal["stop", "tool_calls", "length"]
        match finished.reason:
            case "stop" if self._request.must_call and not self.has_enough:
                return self._fail("the model called no tool, although `tool_choice` asks for a call", 502)
            case "stop":
                reason = "stop"
                if self._request.answer_schema:
                    messages = self._turn.history.messages
                    if self.has_enough:  # the history lacks the cut answer
                        messages = [Message.assistant("".join(self._content[self._kept :]).strip())]
                    value, problems = self._request.answer_schema.read_last_answer(messages)
                    if problems:
                        return self._fail(f"the answer does not fit the schema: {' '.join(problems)}", 502)
                    self._content = [json.dumps(value, ensure_ascii=False)]
            case "handed_off":
                reason = "tool_calls"
                calls = list_open_calls(self._turn.history)
                if not self._request.has_parallel_calls:
                    calls = calls[:1]
            case "step_limit" | "budget":
                reason = "length"
                self._add_paragraph(f"Stopped: {finished.detail}.")
            case "error" if finished.detail == CUT_ANSWER_ERROR:
                reason = "length"
            case "error" | "cancelled":
                status = _STATUSES.get(finished.exit_code, 500)
                return self._fail(finished.detail or "the reason is unknown", status)
            case _:
                assert_never(finished.reason)
        if self._is_text_held and self._content:
            self._encoder.add_text("".join(self._content))
        state = self._sign_state(len(calls))
        self._encoder.finish(AnswerEnd(reason, calls, state, self._turn.history.usage.turn_total))
        return self._encoder.take_bytes()

    def keep_alive(self) -> bytes:
        """Return a comment in a stream, and nothing before an object."""
        return b":\n\n" if self.is_stream else b""

    def _translate(self, event: Event) -> None:
        match event:
            case TextDelta(text=text):
                self._add_text(self._stop.feed(text))
                if self.has_enough:
                    self._record_cut_answer()
            case ThinkingDelta(text=text):
                self._add_reasoning(text)
            case MessageCompleted():
                self._add_text(self._stop.flush())
                self._gap = "\n\n" if self._content else ""
                self._kept = len(self._content)
            case Retrying(text=text):
                self._restart_answer()
                self._add_progress(text)
            case ToolStarted(call=call) | SubagentEvent(event=ToolStarted(call=call)):
                self._tool_names[call.id] = call.name
                self._add_progress(f"Using {call.name} {call.arguments}"[:_MAX_CALL_CHARACTERS])
            case ToolFinished(result=result):
                if result.is_error:  # without the output, which is for the model
                    name = self._tool_names.get(result.call_id, "A tool")
                    self._add_progress(f"{name} failed")
            case Logged(text=text) | SubagentEvent(event=Logged(text=text)):
                self._add_progress(text)
            case FileChanged(diff=diff) | SubagentEvent(event=FileChanged(diff=diff)):
                if diff:
                    self._add_progress(diff)
            case Answered(question=question, answer=answer):
                if not answer.is_allowed and question.kind != "text":
                    self._add_progress(f"Not allowed here: {question.subject}")
            case ArtifactShown(artifact=artifact):
                self._add_paragraph(render_artifact(artifact))
            case (
                TurnFinished()  # see `finish`
                | Status()  # replaces the one before, which a stream cannot do
                | ToolProgress()
                | SubagentEvent()
                | SessionStarted()
                | TurnStarted()
                | PlanUpdated()
                | PromptsSuggested()
                | Asked()
                | Refused()
                | Reminded()
                | Interjected()
                | UsageRecorded()
                | Compacted()
                | Rewound()
                | StateSaved()
                | ModeRestricted()
                | PromptRecorded()
                | PromptChanged()
                | CommandFinished()
                | RunFinished()
            ):
                pass
            case _:
                assert_never(event)

    def _add_text(self, text: str) -> None:
        if not text:
            return
        text = self._gap + text
        self._gap = ""
        self._content.append(text)
        if not self._is_text_held:
            self._encoder.add_text(text)

    def _record_cut_answer(self) -> None:
        """Record the answer that ends before a text of `stop`, as it will come back."""
        text = "".join(self._content[self._kept :])
        self._turn_events.append(MessageCompleted(message=Message.assistant(text.strip())))

    def _add_paragraph(self, text: str) -> None:
        """Add text of the server as a paragraph apart from the model's text."""
        self._gap = "\n\n" if self._content else ""
        self._add_text(text)
        self._gap = "\n\n"
        self._kept = len(self._content)

    def _restart_answer(self) -> None:
        """Remove what came of a message that begins again, or tell the client that the text which it got is void."""
        self._stop.flush()
        if len(self._content) == self._kept:
            return
        if self._is_text_held:
            del self._content[self._kept :]
            self._gap = "\n\n" if self._content else ""
        else:
            self._add_paragraph("(The answer broke off here and begins again.)")

    def _add_reasoning(self, text: str) -> None:
        if text:
            self._last_reasoning = text
            self._encoder.add_reasoning(text)

    def _add_progress(self, text: str) -> None:
        """Add a line about the work of the profile's own tools."""
        line = f"{text.strip()}\n"
        if not self._last_reasoning.endswith("\n"):
            line = f"\n{line}"
        self._add_reasoning(line)

    def _sign_state(self, requested_calls: int) -> str:
        """Sign what the client's messages do not show: calls that ran here with their results, and reminders.

        Some vendors also want the thinking before a call back.
        """
        has_hidden_events = any(isinstance(event, ToolFinished | Reminded) for event in self._turn_events)
        if not requested_calls and not has_hidden_events:
            return ""
        state = build_turn_state(self._turn.history, self._turn_events, requested_calls)
        context = build_context(self._turn.last_user_text, "".join(self._content))
        return self._signer.sign(state, context)

    def _fail(self, text: str, status: int) -> bytes:
        self.status = status
        self._encoder.fail(text, status)
        return self._encoder.take_bytes()
