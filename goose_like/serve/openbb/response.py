"""The response to a request: a turn's events as frames of text, statuses, artifacts, citations and function calls."""

import json
import math
import re
from collections.abc import Sequence
from typing import Any, Literal, assert_never

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
from goose_like.core.message import ToolCall
from goose_like.serve.state import StateSigner, TurnEvent, build_turn_state, list_open_calls
from goose_like.sessions.artifact_text import render_artifact

from .artifacts import encode_artifact
from .citations import HIDDEN_DETAILS, cite_outcomes
from .client_tools import to_client_call
from .history import Conversation
from .query import FunctionCall, Query, to_text
from .request import STATE_KEY

Frame = tuple[str, dict[str, Any]]
"""An event: its name and its data."""

FRAME_PREFIX = b"event: copilot"
"""The bytes that every frame starts with."""

_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)

_MASKED_WORDS = ("data:", "event:", "\x85", "\u2028", "\u2029", "copilotFunctionCall")
"""Words that data must not contain.

Some clients cut lines at field names wherever they stand, and end lines at Unicode line breaks. One takes a stream that
contains `copilotFunctionCall` anywhere for a function call.
"""

# The place between a field name and its colon: some clients parse fields again in text that they have decoded.
_FIELD = re.compile(r"(?:(?<=data)|(?<=event)|(?<=\bid)|(?<=retry))(?=:)")

_PARAGRAPH = re.compile(r"\n\s*\n")
_MAX_DETAIL_CHARACTERS = 200

_StatusKind = Literal["INFO", "WARNING", "ERROR"]


class EventWriter:
    """The protocol's `ResponseWriter` for one request.

    The dialect `copilot` has only text and function calls; anything else becomes text or is left out.
    """

    has_enough = False

    def __init__(self, query: Query, conversation: Conversation, signer: StateSigner) -> None:
        self._query = query
        self._is_workspace = query.dialect == "workspace"
        self._conversation = conversation
        self._signer = signer
        self._turn_events: list[TurnEvent] = []
        self._frames: list[Frame] = []
        self._thought = ""
        self._last_status_letters = ""
        self._tool_names: dict[str, str] = {}
        self._prompts: tuple[str, ...] = ()
        self._gap = ""
        self._has_text = False  # text since the last message, which a retry cannot take back
        self._has_warned = False
        self._texts: list[str] = []
        self._is_empty = True
        self._has_sent_frames = False
        self._prefix_sent = 0  # bytes of the next frame that `keep_alive` has sent

    def start(self) -> bytes:
        """Return a byte that shows that the server works; clients expect no event before the answer's own."""
        return self.keep_alive()

    def write(self, events: Sequence[Event]) -> bytes:
        """Encode events."""
        for event in events:
            if isinstance(event, TurnStarted):
                self._turn_events.clear()
            elif isinstance(event, TurnEvent):
                self._turn_events.append(event)
            self._translate(event)
        return self._encode_frames()

    def finish(self, finished: TurnFinished) -> bytes:
        """Encode the end: calls for the client, sources and suggested prompts, or the reason why the turn failed."""
        self._flush_thinking()
        match finished.reason:
            case "handed_off":
                return self.write_calls(list_open_calls(self._conversation.history))
            case "stop":
                self._finish_answer()
            case "cancelled":
                self._add_failure("Stopped before the end")
            case "step_limit" | "budget":
                self._add_failure(f"Stopped: {finished.detail}")
            case "error":
                self._add_failure(f"The answer failed: {finished.detail or 'the reason is unknown'}")
            case _:
                assert_never(finished.reason)
        return self._encode_frames()

    def write_calls(self, calls: Sequence[ToolCall]) -> bytes:
        """Encode the request for the first calls, as many as one request to the client can include."""
        history = self._conversation.history
        call, count = to_client_call(calls, self._query)
        requested = len(list_open_calls(history)) - len(calls) + count
        state = build_turn_state(history, self._turn_events, requested)
        return self.write_call(call, self._signer.sign(state, self._query.last_user_text))

    def write_call(self, call: FunctionCall, signed_state: str = "") -> bytes:
        """Encode a request to the client, after which the stream must end."""
        data: dict[str, Any] = {"function": call.function, "input_arguments": call.arguments}
        if signed_state and self._is_workspace:
            data["extra_state"] = {STATE_KEY: signed_state}
        elif signed_state:
            data[STATE_KEY] = signed_state
        self._frames.append(("copilotFunctionCall", data))
        return self._encode_frames()

    def keep_alive(self) -> bytes:
        """Return a comment, or single bytes of the first frame: some clients fail if a comment is the first line."""
        if self._has_sent_frames:
            return b":\n\n"
        byte = FRAME_PREFIX[self._prefix_sent : self._prefix_sent + 1]
        self._prefix_sent += len(byte)
        return byte

    def _encode_frames(self) -> bytes:
        data = b"".join(map(encode_frame, self._frames))
        if not data:
            return b""
        data = data[self._prefix_sent :]
        self._prefix_sent = 0
        self._has_sent_frames = True
        self._frames.clear()
        return data

    def _translate(self, event: Event) -> None:
        match event:
            case TextDelta(text=text):
                self._flush_thinking()
                self._add_text(text)
            case ThinkingDelta(text=text):
                self._add_thinking(text)
            case MessageCompleted():
                self._flush_thinking()
                self._begin_message()
            case Retrying(text=text):
                self._restart_answer(text)
            case Status(text=text):
                letters = "".join(filter(str.isalpha, text))
                if letters != self._last_status_letters:  # clients keep every status on the screen
                    self._add_status(text)
                self._last_status_letters = letters
            case Logged(text=text) | SubagentEvent(event=Logged(text=text)):
                self._add_status(text)
            case FileChanged(diff=diff) | SubagentEvent(event=FileChanged(diff=diff)):
                if diff:
                    self._add_status(diff)
            case ToolStarted(call=call):
                self._flush_thinking()
                self._tool_names[call.id] = call.name
                self._add_status(f"Using {call.name}", details=_format_details(call))
            case ToolFinished(result=result):
                if result.is_error:  # without the output, which is for the model and may contain secrets
                    name = self._tool_names.get(result.call_id, "A tool")
                    self._add_status(f"{name} failed", "WARNING")
            case Answered(question=question, answer=answer):
                if not answer.is_allowed and question.kind != "text":
                    self._add_status(f"Not allowed here: {question.subject}", "WARNING")
            case SubagentEvent(event=ToolStarted(call=call)):
                self._add_status(f"Using {call.name}")
            case ArtifactShown() if self._is_workspace:
                self._frames.append(("copilotMessageArtifact", encode_artifact(event)))
                self._is_empty = False
            case ArtifactShown(artifact=artifact):
                self._add_paragraph(render_artifact(artifact))
                self._gap = "\n\n"
            case PromptsSuggested(prompts=prompts):
                self._prompts = prompts
            case (
                TurnFinished()  # see `finish`
                | ToolProgress()  # would hide everything else
                | SubagentEvent()
                | SessionStarted()
                | TurnStarted()
                | PlanUpdated()
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

    def _begin_message(self) -> None:
        self._gap = "" if self._is_empty else "\n\n"
        self._has_text = False
        self._has_warned = False

    def _restart_answer(self, text: str) -> None:
        self._flush_thinking()
        if self._has_text:
            self._add_paragraph("(The answer broke off here and begins again.)")
            self._gap = "\n\n"
            self._has_text = False
        if not self._has_warned:  # once for all attempts of a request
            self._add_status(text, "WARNING")
            self._has_warned = True

    def _add_text(self, text: str) -> None:
        if not text:
            return
        text = self._gap + text
        self._gap = ""
        self._has_text = True
        self._is_empty = False
        self._texts.append(text)
        for piece in _FIELD.split(text):
            self._frames.append(("copilotMessageChunk", {"delta": piece}))

    def _add_paragraph(self, text: str) -> None:
        """Send text of the server as a paragraph apart from the model's text."""
        self._gap = "" if self._is_empty else "\n\n"
        self._add_text(text)

    def _finish_answer(self) -> None:
        if self._is_empty:
            self._add_text("The model gave no answer.")
        if not self._is_workspace:
            return
        answer = "".join(self._texts)
        citations = cite_outcomes(self._conversation.outcomes, self._query, answer)
        if citations:
            self._frames.append(("copilotCitationCollection", {"citations": citations}))
        if self._prompts:
            self._frames.append(("copilotPromptSuggestions", {"suggestions": list(self._prompts)}))

    def _add_failure(self, text: str) -> None:
        self._add_status(text, "ERROR")
        self._add_paragraph(f"{text}.")

    def _add_thinking(self, text: str) -> None:
        """Send complete paragraphs of thinking as statuses."""
        *complete, self._thought = _PARAGRAPH.split(self._thought + text)
        for thought in complete:
            self._add_status(thought.strip())

    def _flush_thinking(self) -> None:
        self._add_status(self._thought.strip())
        self._thought = ""

    def _add_status(self, text: str, kind: _StatusKind = "INFO", details: dict[str, str] | None = None) -> None:
        if not text or not self._is_workspace:
            return
        data: dict[str, Any] = {"eventType": kind, "message": text, "group": "reasoning"}
        if details:
            data["details"] = [details]
        self._frames.append(("copilotStatusUpdate", data))


def _format_details(call: ToolCall) -> dict[str, str]:
    hidden = HIDDEN_DETAILS | {"", "url"}
    details = {}
    for key, value in call.parse_arguments().items():
        if key.lower() in hidden:
            continue
        text = to_text(value)
        if len(text) > _MAX_DETAIL_CHARACTERS:
            text = f"{text[:_MAX_DETAIL_CHARACTERS]}…"
        details[key] = text
    return details


# --- bytes


def encode_frame(frame: Frame) -> bytes:
    """Encode an event as two lines: its name, and its data as JSON without nulls and NaN."""
    name, data = frame
    text = _JSON.encode(_remove_nulls(data))
    for word in _MASKED_WORDS:
        text = text.replace(word, _mask(word))
    event = f"event: {name}\ndata: {text}\n\n"
    try:
        return event.encode()
    except UnicodeEncodeError:  # lone surrogates; a pair that was split is joined again
        return event.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def _mask(word: str) -> str:
    """Write the last letter of a word as an escape of JSON."""
    letter = word[-1]
    return f"{word[:-1]}\\u{ord(letter):04x}"


def _remove_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _remove_nulls(entry) for key, entry in value.items() if not _is_null(entry)}
    if isinstance(value, list | tuple):
        return [_remove_nulls(entry) for entry in value if not _is_null(entry)]
    return value


def _is_null(value: Any) -> bool:
    return value is None or (isinstance(value, float) and not math.isfinite(value))
