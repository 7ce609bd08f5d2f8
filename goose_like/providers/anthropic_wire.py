"""Anthropic's messages as values: requests to bytes, events to deltas and one message; no SDK, no socket.

The rules are those of Anthropic's API reference (messages, "create" and "streaming", version 2026-10-21).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from goose_like.core.errors import BrokenStreamError, ProviderError
from goose_like.core.events import MessageCompleted, TextDelta, ThinkingDelta
from goose_like.core.message import Image, Message, Part, RedactedThinking, Text, Thinking, ToolCall, ToolResult, Usage

from .base import Delta, Request
from .wire import (
    MessageEncoder,
    build_status_error,
    build_type_error,
    encode_image,
    encode_json,
    expect_count,
    expect_object,
    expect_string,
    extract_error_text,
    sanitize_arguments,
    sanitize_tool_name,
)

# --- what we send

_MARK = b',"cache_control":{"type":"ephemeral"}'
_END = b"}]}"


class AnthropicEncoder:
    """Requests as bytes, each message encoded once.

    The server keeps what stands before a mark (`cache_control`) and looks for it again at the next request's marks.
    Three of its four are used: one after tools and system prompt, one at the end of the request, and one where the
    former request ended, which is before the newest message of the model. So each request but the first reads all of
    the former one from the cache, however much came since. Without the two marks that move, and the closing `]}`, the
    bytes of a request begin those of the next one.
    """

    def __init__(self, choice_extras: Mapping[str, Any] = {}) -> None:
        """`choice_extras` are further keys of the body, the same in each request (`max_tokens`, `thinking`)."""
        self._extras = dict(choice_extras)
        self._constants: tuple[object, ...] | None = None
        self._head = b""
        self._sent = MessageEncoder(encode_message)

    def encode_request(self, request: Request) -> bytes:
        """The request's whole JSON body."""
        constants = (
            request.model,
            request.system,
            tuple(request.tools),
            request.max_tokens,
            request.temperature,
        )
        if constants != self._constants:
            self._constants, self._head = constants, self._encode_head(request)
        sent = self._sent.encode(request.messages, request.images)
        entries = [entry for _, entry in sent]
        for at in _ends(sent):
            entries[at] = entries[at].removesuffix(_END) + _MARK + _END
        return self._head + b",".join(filter(None, entries)) + b"]}"

    def _encode_head(self, request: Request) -> bytes:
        mark = {"cache_control": {"type": "ephemeral"}}
        head: dict[str, Any] = {"model": request.model, "stream": True, **self._extras}
        if request.max_tokens is not None:
            head["max_tokens"] = request.resolve_output_limit(self._extras.get("max_tokens"))
        if request.temperature is not None:
            head["temperature"] = min(request.temperature, 1)  # the API refuses more; other vendors' scale ends at 2
        has_system = bool(request.system.strip())
        if request.tools:
            tools: list[dict[str, Any]] = [
                {"name": tool.name, "description": tool.description, "input_schema": tool.schema}
                for tool in request.tools
            ]
            tools[-1] |= {} if has_system else mark
            head["tools"] = tools
        if has_system:
            head["system"] = [{"type": "text", "text": request.system, **mark}]
        return encode_json(head | {"messages": []}).removesuffix(b"]}")


def _ends(sent: Sequence[tuple[Message, bytes]]) -> set[int]:
    """Where this request and the former one end: their last messages that are not the model's."""
    ours = [at for at, (message, entry) in enumerate(sent) if entry and message.role != "assistant"]
    answers = [at for at, (message, entry) in enumerate(sent) if entry and message.role == "assistant"]
    former = [at for at in ours if answers and at < answers[-1]]
    return {*ours[-1:], *former[-1:]}


def encode_message(message: Message, images: Path | None = None) -> bytes:
    """A message as an entry of the wire's `messages`; nothing where there is nothing that the API takes."""
    blocks = [block for part in message.parts for block in _blocks(part, images)]
    if not blocks and message.role != "assistant":
        blocks = [encode_json({"type": "text", "text": "(nothing)"})]
    if not blocks:
        return b""
    role = b"assistant" if message.role == "assistant" else b"user"
    return b'{"role":"%s","content":[%s]}' % (role, b",".join(blocks))


def _blocks(part: Part, images: Path | None) -> Iterator[bytes]:
    match part:
        case Text(text=text):
            if text.strip():  # the API refuses blocks of nothing but white space
                yield encode_json({"type": "text", "text": text})
        case Image():
            yield encode_json(_image(part, images))
        case Thinking(text=text, signature=signature):
            if signature:  # another vendor's has none, and one that broke off none yet
                yield encode_json({"type": "thinking", "thinking": text, "signature": signature})
        case RedactedThinking(data=data):
            yield encode_json({"type": "redacted_thinking", "data": data})
        case ToolCall():
            head = {"type": "tool_use", "id": _allowed_id(part.id), "name": sanitize_tool_name(part.name)}
            arguments = sanitize_arguments(part.arguments).encode("utf-8", "replace")
            yield encode_json(head).removesuffix(b"}") + b',"input":%s}' % arguments
        case ToolResult():
            yield encode_json(_result(part, images))


def _result(result: ToolResult, images: Path | None) -> dict[str, Any]:
    words = result.output if result.output.strip() else "(no output)"  # a failed result must not be empty
    content: object = words
    if result.images:
        content = [{"type": "text", "text": words}, *(_image(image, images) for image in result.images)]
    entry = {"type": "tool_result", "tool_use_id": _allowed_id(result.call_id), "content": content}
    return entry | ({"is_error": True} if result.is_error else {})


def _image(image: Image, images: Path | None) -> dict[str, Any]:
    data = encode_image(image, images)
    if data is None:
        return {"type": "text", "text": f"[image {image.source}: its file is gone]"}
    return {"type": "image", "source": {"type": "base64", "media_type": image.media_type, "data": data}}


def _allowed_id(call_id: str) -> str:
    # Other vendors' ids may hold dots and colons; a history with them would be refused for ever.
    return re.sub(r"[^a-zA-Z0-9_-]", "_", call_id) or "unnamed"


# --- what we receive


@dataclass(slots=True)
class _Block:
    """A block of content that is still arriving. `start` is what it began with, `pieces` what came since."""

    kind: str
    start: Mapping[str, Any]
    pieces: list[str] = field(default_factory=list)
    signature: str = ""

    @property
    def text(self) -> str:
        return "".join(self.pieces)


_DELTAS = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("thinking", "signature"),
    "input_json_delta": ("tool_use", "partial_json"),
}
"""The block that each delta belongs to, and the key of what it brings."""

_ENDS = frozenset({"end_turn", "stop_sequence", "tool_use"})
_CUTS = frozenset({"max_tokens", "model_context_window_exceeded", "pause_turn"})

_STATUS_OF_TYPE = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "overloaded_error": 529,
}


@dataclass(slots=True)
class AnthropicStreamParser:
    """The events of one streamed answer, folded into deltas and then into the message.

    Kinds of events, blocks and deltas that we did not ask for are passed over: the API may add some at any time.
    """

    _blocks: dict[int, _Block] = field(default_factory=dict)
    _usage: dict[str, int] = field(default_factory=dict)
    _stop: str = ""
    _refusal: Mapping[str, Any] = field(default_factory=dict)
    _has_begun: bool = False
    _has_ended: bool = False

    def feed(self, event: object) -> list[Delta]:
        """What is new to show after this event.

        Raises:
            BrokenStreamError: something of another type than the wire has there, or in another order.
        """
        event = expect_object(event, "an event")
        kind = expect_string(event.get("type"), "type")
        if kind == "message_start":
            if self._has_begun:
                raise BrokenStreamError("the stream began a second answer within the first one")
            self._has_begun = True
            self._count(expect_object(expect_object(event.get("message"), "message").get("usage"), "usage"))
        elif kind in ("content_block_start", "content_block_delta", "message_delta", "message_stop"):
            if not self._has_begun:
                raise BrokenStreamError(f"the stream has {kind!r} before its message_start")
            if kind == "content_block_start":
                return self._begin(_index(event), expect_object(event.get("content_block"), "content_block"))
            if kind == "content_block_delta":
                return self._grow(_index(event), expect_object(event.get("delta"), "delta"))
            if kind == "message_delta":
                delta = expect_object(event.get("delta"), "delta")
                self._stop = expect_string(delta.get("stop_reason"), "stop_reason") or self._stop
                self._refusal = expect_object(delta.get("stop_details"), "stop_details")
                self._count(expect_object(event.get("usage"), "usage"))
            self._has_ended = kind == "message_stop"
        return []

    def build_message(self) -> MessageCompleted:
        """The message, once the stream has ended.

        Raises:
            BrokenStreamError: the stream broke off, or nothing was said.
            ProviderError: the model declined to answer.
        """
        if not (self._has_ended and self._stop):
            what = "its stop reason" if self._has_ended else "message_stop"
            raise BrokenStreamError(f"the answer ended without {what}; it may be incomplete")
        if self._stop == "refusal":
            why = [expect_string(self._refusal.get(key), key) for key in ("category", "explanation")]
            told = ": ".join(["the model declined to answer", *filter(None, why)])
            raise ProviderError(f"{told}; say it in other words, or choose another model")
        if self._stop not in _ENDS | _CUTS:
            raise BrokenStreamError(f"the answer has a stop reason that is not known ({self._stop!r})")
        is_cut = self._stop in _CUTS
        blocks = [block for _, block in sorted(self._blocks.items())]
        parts = [part for at, block in enumerate(blocks, 1) for part in _parts(block, is_cut and at == len(blocks))]
        if all(isinstance(part, Thinking | RedactedThinking) for part in parts):
            if is_cut:
                raise BrokenStreamError(
                    "the output limit was used up before the answer began; raise max_output_tokens", is_retryable=False
                )
            raise BrokenStreamError(f"the answer is empty (stop reason {self._stop!r})")
        message = Message(role="assistant", parts=tuple(parts))
        return MessageCompleted(message=message, usage=self._total(), is_cut=is_cut)

    def _begin(self, index: int, start: Mapping[str, Any]) -> list[Delta]:
        if index in self._blocks:
            raise BrokenStreamError(f"the stream began block {index} twice")
        block = self._blocks[index] = _Block(expect_string(start.get("type"), "type"), start)
        key = block.kind if block.kind in ("text", "thinking") else ""
        block.signature = expect_string(start.get("signature"), "signature")
        return self._add(block, expect_string(start.get(key), key))

    def _grow(self, index: int, delta: Mapping[str, Any]) -> list[Delta]:
        block = self._blocks.get(index)
        if block is None:
            raise BrokenStreamError(f"the stream goes on with block {index}, which it never began")
        kind, key = _DELTAS.get(expect_string(delta.get("type"), "type"), ("", ""))
        if not kind:
            return []
        if kind != block.kind:
            raise BrokenStreamError(f"the stream has {delta['type']!r} within a block of {block.kind!r}")
        piece = expect_string(delta.get(key), key)
        if key == "signature":
            block.signature = piece
            return []
        return self._add(block, piece)

    def _add(self, block: _Block, piece: str) -> list[Delta]:
        if piece:
            block.pieces.append(piece)
            if block.kind == "text":
                return [TextDelta(text=piece)]
            if block.kind == "thinking":
                return [ThinkingDelta(text=piece)]
        return []

    def _count(self, usage: Mapping[str, Any]) -> None:
        """The counts are totals so far: a later one replaces the former, where it is there."""
        keys = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        self._usage |= {key: expect_count(usage[key], key) for key in keys if usage.get(key) is not None}

    def _total(self) -> Usage:
        read = self._usage.get("cache_read_input_tokens", 0)
        written = self._usage.get("cache_creation_input_tokens", 0)
        return Usage(
            input_tokens=self._usage.get("input_tokens", 0) + read + written,
            output_tokens=self._usage.get("output_tokens", 0),
            cache_read_tokens=read,
            cache_write_tokens=written,
        )


def _parts(block: _Block, is_cut: bool) -> Iterator[Part]:
    """What a block has become; `is_cut` when the answer was cut within it."""
    match block.kind:
        case "text":
            if block.text:
                yield Text(text=block.text)
        case "thinking":
            if block.text or block.signature:
                yield Thinking(text=block.text, signature=block.signature or None)
        case "redacted_thinking":
            yield RedactedThinking(data=expect_string(block.start.get("data"), "data"))
        case "tool_use":
            name = expect_string(block.start.get("name"), "name")
            if not name:
                raise BrokenStreamError("the answer holds a tool call without a name")
            whole = expect_object(block.start.get("input"), "input")
            arguments = block.text or encode_json(whole).decode()
            if is_cut and arguments == "{}":
                arguments = "{"  # cut before its arguments: that must not pass for a call without any
            yield ToolCall(id=expect_string(block.start.get("id"), "id"), name=name, arguments=arguments)


def _index(event: Mapping[str, Any]) -> int:
    index = event.get("index")
    if not isinstance(index, int) or isinstance(index, bool):
        raise build_type_error("index", index, "a number")
    return index


# --- what it means when the server says no


def build_error(body: object, status: int, model: str, key_variable: str, wait_s: float | None = None) -> ProviderError:
    """The error that a refusal stands for; within a stream, whose status is 200, the error's type says which."""
    error = body.get("error") if isinstance(body, Mapping) else None
    kind = error.get("type") if isinstance(error, Mapping) else None
    if status == 200:
        status = _STATUS_OF_TYPE.get(str(kind), 500)
    if status == 400 and "credit balance" in extract_error_text(body):
        status = 402
    return build_status_error(status, body, model, key_variable, wait_s)
