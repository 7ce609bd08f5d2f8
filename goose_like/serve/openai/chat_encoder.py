"""The answer of a chat completion: chunks of a stream, or one object."""

import json
import time
import uuid
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

from goose_like.core.message import ToolCall, Usage

from .chat_body import ChatBody
from .errors import encode_error
from .history import STATE_FORMAT
from .response import AnswerEnd


class ChatEncoder:
    """The `AnswerEncoder` of chat completions."""

    def __init__(self, body: ChatBody) -> None:
        self._is_stream = bool(body.stream)
        self._has_usage = body.includes_usage
        self._head = {
            "id": f"chatcmpl-{uuid.uuid4().hex}",
            "created": int(time.time()),
            "model": body.model,
        }
        self._content: list[str] = []
        self._reasoning: list[str] = []
        self._written: list[bytes] = []

    def start(self) -> None:
        """Open the stream."""
        self._add_delta({"role": "assistant", "content": ""})

    def add_text(self, text: str) -> None:
        """Add text for the person."""
        self._content.append(text)
        self._add_delta({"content": text})

    def add_reasoning(self, text: str) -> None:
        """Add reasoning."""
        self._reasoning.append(text)
        self._add_delta({"reasoning_content": text})

    def finish(self, end: AnswerEnd) -> None:
        """Complete the answer."""
        message: dict[str, Any] = {}
        if end.calls:
            message["tool_calls"] = list(map(_encode_call, count(), end.calls))
        if end.state:
            message["reasoning_details"] = [_encode_state(end.state)]
        usage = _encode_usage(end.usage)
        if not self._is_stream:
            self._written.append(self._encode_object(message, end.reason, usage))
            return
        if message:
            self._add_delta(message)
        self._add_delta({}, end.reason)
        if self._has_usage:
            self._add_chunk([], usage)
        self._written.append(b"data: [DONE]\n\n")

    def fail(self, text: str, status: int) -> None:
        """End the answer with an error."""
        error = json.dumps(encode_error(text, status))
        if self._is_stream:
            error = f"data: {error}\n\ndata: [DONE]\n\n"
        self._written.append(error.encode())

    def take_bytes(self) -> bytes:
        """Return what was written since the last time."""
        data = b"".join(self._written)
        self._written.clear()
        return data

    def _encode_object(self, message: Mapping[str, Any], reason: str, usage: Mapping[str, Any]) -> bytes:
        content: str | None = "".join(self._content)
        calls = message.get("tool_calls", ())
        if calls and not content:
            content = None
        answer = {"role": "assistant", "content": content, "refusal": None, "annotations": [], **message}
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
        if not self._is_stream:
            return
        chunk: dict[str, Any] = self._head | {"object": "chat.completion.chunk", "choices": choices}
        if self._has_usage:
            chunk["usage"] = usage
        data = json.dumps(chunk)  # ASCII: some clients cut lines at U+2028
        self._written.append(f"data: {data}\n\n".encode())


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
