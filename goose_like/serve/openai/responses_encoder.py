"""The answer of the Responses API: a response with items, and the events of its stream."""

import json
import time
import uuid
from collections.abc import Mapping
from typing import Any

from goose_like.core.message import ToolCall, Usage

from .errors import encode_error
from .response import AnswerEnd
from .responses_body import ResponsesBody

_ERROR_CODES = {429: "rate_limit_exceeded"}
"""Codes of OpenAI's list for a failed answer. Others are `server_error`."""


class ResponsesEncoder:
    """The `AnswerEncoder` of the Responses API.

    The response grows item by item. Reasoning and text open an item, which the other kind or the end closes.
    """

    def __init__(self, body: ResponsesBody) -> None:
        self._is_stream = bool(body.stream)
        self._shows_reasoning = bool(body.summary)
        self._response = _describe_response(body)
        self._output: list[dict[str, Any]] = self._response["output"]
        self._open_text: list[str] = []
        self._is_open = False
        self._event_count = 0
        self._written: list[bytes] = []

    def start(self) -> None:
        """Open the stream."""
        self._add_event("response.created", response=self._response)
        self._add_event("response.in_progress", response=self._response)

    def add_text(self, text: str) -> None:
        """Add text for the person."""
        self._open_item("message")
        self._open_text.append(text)
        self._add_item_event("response.output_text.delta", content_index=0, delta=text, logprobs=[])

    def add_reasoning(self, text: str) -> None:
        """Add reasoning to the summary, if the client wants one."""
        if self._shows_reasoning:
            self._open_item("reasoning")
            self._open_text.append(text)
            self._add_item_event("response.reasoning_summary_text.delta", summary_index=0, delta=text)

    def finish(self, end: AnswerEnd) -> None:
        """Complete the answer. The signed state travels as encrypted reasoning."""
        self._close_item()
        if end.state:
            state = {"type": "reasoning", "id": _create_id("rs"), "summary": [], "encrypted_content": end.state}
            self._add_item(state)
            self._complete_item(state)
        for call in end.calls:
            self._add_call(call)
        status = "completed"
        if end.reason == "length":
            status = "incomplete"
            self._response["incomplete_details"] = {"reason": "max_output_tokens"}
        self._end(status, end.usage)

    def fail(self, text: str, status: int) -> None:
        """End the answer with an error."""
        if not self._is_stream:
            self._written.append(json.dumps(encode_error(text, status)).encode())
            return
        self._close_item()
        self._response["error"] = {"code": _ERROR_CODES.get(status, "server_error"), "message": text}
        self._end("failed", None)

    def take_bytes(self) -> bytes:
        """Return what was written since the last time."""
        data = b"".join(self._written)
        self._written.clear()
        return data

    def _end(self, status: str, usage: Usage | None) -> None:
        self._response["status"] = status
        if status == "completed":
            self._response["completed_at"] = int(time.time())
        if usage:
            self._response["usage"] = _encode_usage(usage)
        if self._is_stream:
            self._add_event(f"response.{status}", response=self._response)
            self._written.append(b"data: [DONE]\n\n")  # Open Responses wants it, OpenAI's SDK takes it
        else:
            self._written.append(json.dumps(self._response).encode())

    def _open_item(self, kind: str) -> None:
        if self._is_open and self._output[-1]["type"] == kind:
            return
        self._close_item()
        self._is_open = True
        if kind == "reasoning":
            item: dict[str, Any] = {"type": kind, "id": _create_id("rs"), "summary": []}
            part: dict[str, Any] = {"type": "summary_text", "text": ""}
            self._add_item(item)
            self._add_item_event("response.reasoning_summary_part.added", summary_index=0, part=part)
        else:
            item = {"type": kind, "id": _create_id("msg"), "role": "assistant", "content": []}
            item["status"] = "in_progress"
            part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
            self._add_item(item)
            self._add_item_event("response.content_part.added", content_index=0, part=part)

    def _close_item(self) -> None:
        if not self._is_open:
            return
        self._is_open = False
        text = "".join(self._open_text)
        self._open_text = []
        item = self._output[-1]
        if item["type"] == "reasoning":
            part: dict[str, Any] = {"type": "summary_text", "text": text}
            item["summary"] = [part]
            self._add_item_event("response.reasoning_summary_text.done", summary_index=0, text=text)
            self._add_item_event("response.reasoning_summary_part.done", summary_index=0, part=part)
        else:
            part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
            item["content"] = [part]
            item["status"] = "completed"
            self._add_item_event("response.output_text.done", content_index=0, text=text, logprobs=[])
            self._add_item_event("response.content_part.done", content_index=0, part=part)
        self._complete_item(item)

    def _add_call(self, call: ToolCall) -> None:
        arguments = call.arguments or "{}"
        item = {"type": "function_call", "id": _create_id("fc"), "call_id": call.id, "name": call.name}
        self._add_item({**item, "arguments": "", "status": "in_progress"})
        self._add_item_event("response.function_call_arguments.delta", delta=arguments)
        self._add_item_event("response.function_call_arguments.done", name=call.name, arguments=arguments)
        self._complete_item({**item, "arguments": arguments, "status": "completed"})

    def _add_item(self, item: dict[str, Any]) -> None:
        self._output.append(item)
        self._add_event("response.output_item.added", output_index=len(self._output) - 1, item=item)

    def _complete_item(self, item: dict[str, Any]) -> None:
        self._output[-1] = item
        self._add_event("response.output_item.done", output_index=len(self._output) - 1, item=item)

    def _add_item_event(self, kind: str, **fields: Any) -> None:
        """Add an event about the newest item."""
        item = self._output[-1]
        self._add_event(kind, item_id=item["id"], output_index=len(self._output) - 1, **fields)

    def _add_event(self, kind: str, **fields: Any) -> None:
        if not self._is_stream:
            return
        event = {"type": kind, "sequence_number": self._event_count, **fields}
        self._event_count += 1
        data = json.dumps(event)  # ASCII: some clients cut lines at U+2028
        self._written.append(f"event: {kind}\ndata: {data}\n\n".encode())


def _create_id(prefix: str) -> str:
    return f"{prefix}_{uuid.uuid4().hex}"


def _describe_response(body: ResponsesBody) -> dict[str, Any]:
    """Describe a response that begins. Fields without an effect have OpenAI's defaults."""
    tools = []
    for tool in body.tools or ():
        # Clients want these two, also where the request has none.
        required = {"parameters": tool.parameters or {}, "strict": bool(tool.strict)}
        tools.append(tool.model_dump() | required)
    effort = None
    if body.reasoning:
        effort = body.reasoning.effort
    return {
        "id": _create_id("resp"),
        "object": "response",
        "created_at": int(time.time()),
        "completed_at": None,
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "instructions": body.instructions,
        "metadata": body.metadata or {},
        "model": body.model,
        "output": [],
        "usage": None,
        "tools": tools,
        "tool_choice": body.tool_choice or "auto",
        "parallel_tool_calls": body.parallel_tool_calls is not False,
        "max_output_tokens": body.max_output_tokens,
        "temperature": 1.0 if body.temperature is None else body.temperature,
        "text": {"format": _encode_format(body)},
        "reasoning": {"effort": effort, "summary": body.summary},
        "store": False,
        "background": False,
        "previous_response_id": None,
        "truncation": "disabled",
        "top_p": 1.0,
        "top_logprobs": 0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "max_tool_calls": None,
        "service_tier": "default",
        "prompt_cache_key": None,
        "safety_identifier": None,
    }


def _encode_format(body: ResponsesBody) -> Mapping[str, Any]:
    if body.format is None:
        return {"type": "text"}
    return body.format.model_dump(by_alias=True, exclude_none=True)


def _encode_usage(usage: Usage) -> dict[str, Any]:
    cached = {"cached_tokens": usage.cache_read_tokens, "cache_write_tokens": usage.cache_write_tokens}
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": cached,
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.total_tokens,
    }
