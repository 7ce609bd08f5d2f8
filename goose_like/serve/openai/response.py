"""The response to a request: a turn's events as chunks of a stream or as one object, and errors."""

import json
import time
import uuid
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, assert_never

from starlette.responses import JSONResponse

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
from goose_like.core.message import ToolCall, Usage
from goose_like.serve.state import StateSigner, TurnEvent, build_turn_state, list_open_calls
from goose_like.sessions.artifact_text import render_artifact

from .history import STATE_FORMAT, ChatTurn, build_context
from .request import ChatRequest

_MAX_CALL_CHARACTERS = 200

_STATUSES = {75: 429, 76: 502, 77: 502, 143: 503}
"""The HTTP status for the exit code of a turn that failed. Others are 500."""

_TYPES = {401: "authentication_error", 429: "rate_limit_error"}


class AnswerWriter:
    """The protocol's `ResponseWriter` for one request: chunks of a stream, or one object at the end.

    `status` is the HTTP status of the object.
    """

    def __init__(self, request: ChatRequest, turn: ChatTurn, signer: StateSigner) -> None:
        self.status = 200
        self.is_stream = bool(request.stream)
        self._request = request
        self._turn = turn
        self._signer = signer
        self._has_usage = bool(request.stream_options and request.stream_options.include_usage)
        self._head = {
            "id": f"chatcmpl-{uuid.uuid4().hex}",
            "created": int(time.time()),
            "model": request.model,
        }
        self._turn_events: list[TurnEvent] = []
        self._tool_names: dict[str, str] = {}
        self._content: list[str] = []
        self._reasoning: list[str] = []
        self._chunks: list[bytes] = []
        self._gap = ""
        self._kept = 0  # pieces of content before the message that the model writes now

    def start(self) -> bytes:
        """Open the stream."""
        self._add_delta({"role": "assistant", "content": ""})
        return self._take_chunks()

    def write(self, events: Sequence[Event]) -> bytes:
        """Encode events."""
        for event in events:
            if isinstance(event, TurnEvent):
                self._turn_events.append(event)
            self._translate(event)
        return self._take_chunks()

    def finish(self, finished: TurnFinished) -> bytes:
        """Encode the end: the reason, the calls for the client, and the tokens used; or the error."""
        calls: list[ToolCall] = []
        match finished.reason:
            case "stop":
                reason = "stop"
            case "handed_off":
                reason = "tool_calls"
                calls = list_open_calls(self._turn.history)
                if self._request.parallel_tool_calls is False:
                    calls = calls[:1]
            case "step_limit" | "budget":
                reason = "length"
                self._add_paragraph(f"Stopped: {finished.detail}.")
            case "error" if finished.detail == CUT_ANSWER_ERROR:
                reason = "length"
            case "error" | "cancelled":
                return self._fail(finished)
            case _:
                assert_never(finished.reason)
        message: dict[str, Any] = {}
        if calls:
            message["tool_calls"] = list(map(_encode_call, count(), calls))
        state = self._sign_state(len(calls))
        if state:
            message["reasoning_details"] = [_encode_state(state)]
        usage = _encode_usage(self._turn.history.usage.turn_total)
        if not self.is_stream:
            return self._encode_object(message, reason, usage)
        if message:
            self._add_delta(message)
        self._add_delta({}, reason)
        if self._has_usage:
            self._add_chunk([], usage)
        self._chunks.append(b"data: [DONE]\n\n")
        return self._take_chunks()

    def keep_alive(self) -> bytes:
        """Return a comment in a stream, and nothing before an object."""
        return b":\n\n" if self.is_stream else b""

    def _translate(self, event: Event) -> None:
        match event:
            case TextDelta(text=text):
                self._add_text(text)
            case ThinkingDelta(text=text):
                self._add_reasoning(text)
            case MessageCompleted():
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
        self._add_delta({"content": text})

    def _add_paragraph(self, text: str) -> None:
        """Add text of the server as a paragraph apart from the model's text."""
        self._gap = "\n\n" if self._content else ""
        self._add_text(text)
        self._gap = "\n\n"
        self._kept = len(self._content)

    def _restart_answer(self) -> None:
        """Remove what came of a message that begins again; a stream can only say so."""
        if len(self._content) == self._kept:
            return
        if self.is_stream:
            self._add_paragraph("(The answer broke off here and begins again.)")
        else:
            del self._content[self._kept :]
            self._gap = "\n\n" if self._content else ""

    def _add_reasoning(self, text: str) -> None:
        if text:
            self._reasoning.append(text)
            self._add_delta({"reasoning_content": text})

    def _add_progress(self, text: str) -> None:
        """Add a line about the work of the profile's own tools."""
        line = f"{text.strip()}\n"
        if self._reasoning and not self._reasoning[-1].endswith("\n"):
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

    def _fail(self, finished: TurnFinished) -> bytes:
        self.status = _STATUSES.get(finished.exit_code, 500)
        error = encode_error(finished.detail or "the reason is unknown", self.status)
        if not self.is_stream:
            return json.dumps(error).encode()
        self._chunks.append(f"data: {json.dumps(error)}\n\ndata: [DONE]\n\n".encode())
        return self._take_chunks()

    def _encode_object(self, message: Mapping[str, Any], reason: str, usage: Mapping[str, Any]) -> bytes:
        content: str | None = "".join(self._content)
        calls = message.get("tool_calls", ())
        if calls and not content:
            content = None
        answer = {"role": "assistant", "content": content, "refusal": None, **message}
        if calls:
            answer["tool_calls"] = [_remove_index(call) for call in calls]
        if self._reasoning:
            answer["reasoning_content"] = "".join(self._reasoning)
        choice = {"index": 0, "message": answer, "logprobs": None, "finish_reason": reason}
        completion = {"object": "chat.completion", "choices": [choice], "usage": usage}
        return json.dumps(self._head | completion).encode()

    def _add_delta(self, delta: Mapping[str, Any], reason: str | None = None) -> None:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        self._add_chunk([choice], None)

    def _add_chunk(self, choices: Sequence[Mapping[str, Any]], usage: Mapping[str, Any] | None) -> None:
        if not self.is_stream:
            return
        chunk: dict[str, Any] = self._head | {"object": "chat.completion.chunk", "choices": choices}
        if self._has_usage:
            chunk["usage"] = usage
        data = json.dumps(chunk)  # ASCII: some clients cut lines at U+2028
        self._chunks.append(f"data: {data}\n\n".encode())

    def _take_chunks(self) -> bytes:
        data = b"".join(self._chunks)
        self._chunks.clear()
        return data


def _encode_call(index: int, call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments or "{}"}
    return {"index": index, "id": call.id, "type": "function", "function": function}


def _remove_index(call: Mapping[str, Any]) -> dict[str, Any]:
    """Remove the index of a call, which only a stream has."""
    return {key: value for key, value in call.items() if key != "index"}


def _encode_state(state: str) -> dict[str, Any]:
    return {"type": "reasoning.encrypted", "format": STATE_FORMAT, "id": STATE_FORMAT, "index": 0, "data": state}


def _encode_usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read_tokens},
    }


def encode_error(text: str, status: int, param: str | None = None, code: str | None = None) -> dict[str, Any]:
    """Encode an error as OpenAI's object."""
    default = "invalid_request_error" if status < 500 else "server_error"
    kind = _TYPES.get(status, default)
    return {"error": {"message": text, "type": kind, "param": param, "code": code}}


def build_error_response(
    text: str,
    status: int,
    param: str | None = None,
    code: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    """Build the response with an error."""
    return JSONResponse(encode_error(text, status, param, code), status, headers)
