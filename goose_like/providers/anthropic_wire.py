"""The wire format of Anthropic's messages: encodes requests and parses events, without SDK or network.

Source: Anthropic's API reference (messages, "create" and "streaming", version 2026-10-21).
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
    expect,
    extract_error_text,
    sanitize_arguments,
    sanitize_tool_name,
)

# --- requests

_MARK = b',"cache_control":{"type":"ephemeral"}'
_END = b"}]}"


class AnthropicEncoder:
    """An encoder of requests that encodes each message once and sets the marks of the prompt cache.

    The server caches everything before a mark (`cache_control`), and looks for it at the marks of the next request.
    The API allows four marks. This encoder sets three: after tools and system prompt, at the end of the request, and
    at the end of the previous request, which is before the newest message of the model. So each request but the first
    reads the whole previous one from the cache. Without the two moving marks and the closing `]}`, the bytes of a
    request are a prefix of the next one.
    """

    def __init__(self, choice_extras: Mapping[str, Any] = {}) -> None:
        """Create an encoder for requests with the same further keys (`max_tokens`, `thinking`)."""
        self._extras = dict(choice_extras)
        self._constants: tuple[object, ...] | None = None
        self._head = b""
        self._sent = MessageEncoder(encode_message)

    def encode_request(self, request: Request) -> bytes:
        """Encode the JSON body of a request."""
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
        for at in _find_cache_ends(sent):
            entries[at] = entries[at].removesuffix(_END) + _MARK + _END
        return self._head + b",".join(filter(None, entries)) + b"]}"

    def _encode_head(self, request: Request) -> bytes:
        mark = {"cache_control": {"type": "ephemeral"}}
        head: dict[str, Any] = {"model": request.model, "stream": True, **self._extras}
        if request.max_tokens is not None:
            head["max_tokens"] = request.resolve_output_limit(self._extras.get("max_tokens"))
        if request.temperature is not None:
            head["temperature"] = min(request.temperature, 1)  # the limit of the API; other vendors allow 2
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


def _find_cache_ends(sent: Sequence[tuple[Message, bytes]]) -> set[int]:
    # The ends of this request and of the previous one: their last messages that are not the model's.
    ours = [at for at, (message, entry) in enumerate(sent) if entry and message.role != "assistant"]
    answers = [at for at, (message, entry) in enumerate(sent) if entry and message.role == "assistant"]
    previous = [at for at in ours if answers and at < answers[-1]]
    return {*ours[-1:], *previous[-1:]}


def encode_message(message: Message, images: Path | None = None) -> bytes:
    """Encode a message as an entry of `messages`, or as nothing if the API accepts none of its parts."""
    blocks = [block for part in message.parts for block in _encode_blocks(part, images)]
    if not blocks and message.role != "assistant":
        blocks = [encode_json({"type": "text", "text": "(nothing)"})]
    if not blocks:
        return b""
    role = b"assistant" if message.role == "assistant" else b"user"
    return b'{"role":"%s","content":[%s]}' % (role, b",".join(blocks))


def _encode_blocks(part: Part, images: Path | None) -> Iterator[bytes]:
    match part:
        case Text(text=text):
            if text.strip():  # the API refuses blocks of white space
                yield encode_json({"type": "text", "text": text})
        case Image():
            yield encode_json(_build_image(part, images))
        case Thinking(text=text, signature=signature):
            if signature:  # thinking of another vendor, or of a broken stream, has none
                yield encode_json({"type": "thinking", "thinking": text, "signature": signature})
        case RedactedThinking(data=data):
            yield encode_json({"type": "redacted_thinking", "data": data})
        case ToolCall():
            head = {"type": "tool_use", "id": _sanitize_id(part.id), "name": sanitize_tool_name(part.name)}
            arguments = sanitize_arguments(part.arguments).encode("utf-8", "replace")
            yield encode_json(head).removesuffix(b"}") + b',"input":%s}' % arguments
        case ToolResult():
            yield encode_json(_build_result(part, images))


def _build_result(result: ToolResult, images: Path | None) -> dict[str, Any]:
    text = result.output if result.output.strip() else "(no output)"  # a failed result must not be empty
    content: object = text
    if result.images:
        content = [{"type": "text", "text": text}, *(_build_image(image, images) for image in result.images)]
    entry = {"type": "tool_result", "tool_use_id": _sanitize_id(result.call_id), "content": content}
    return entry | ({"is_error": True} if result.is_error else {})


def _build_image(image: Image, images: Path | None) -> dict[str, Any]:
    data = encode_image(image, images)
    if data is None:
        return {"type": "text", "text": f"[image {image.source}: its file is gone]"}
    return {"type": "image", "source": {"type": "base64", "media_type": image.media_type, "data": data}}


def _sanitize_id(call_id: str) -> str:
    # Ids of other vendors may contain dots and colons, and the API would refuse this history in every later request.
    return re.sub(r"[^a-zA-Z0-9_-]", "_", call_id) or "unnamed"


# --- answers


@dataclass(slots=True)
class _Block:
    """A content block whose parts are still arriving. `start` is its first event, `pieces` the texts since then."""

    kind: str
    start: Mapping[str, Any]
    pieces: list[str] = field(default_factory=list)
    signature: str = ""

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self.pieces)


_DELTAS = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("thinking", "signature"),
    "input_json_delta": ("tool_use", "partial_json"),
}
"""The kind of block that each kind of delta extends, and the key of the delta's text."""

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
    """A parser of the events of one answer.

    It ignores unknown kinds of events, blocks and deltas, because the API may add some at any time.
    """

    _blocks: dict[int, _Block] = field(default_factory=dict)
    _usage: dict[str, int] = field(default_factory=dict)
    _stop: str = ""
    _refusal: Mapping[str, Any] = field(default_factory=dict)
    _has_begun: bool = False
    _has_ended: bool = False

    def feed(self, event: object) -> list[Delta]:
        """Take an event and return the deltas to show.

        Raises:
            BrokenStreamError: The event has a wrong type or comes in a wrong order.
        """
        event = expect(dict, event, "an event")
        kind = expect(str, event.get("type"), "type")
        if kind == "message_start":
            if self._has_begun:
                raise BrokenStreamError("the stream began a second answer within the first one")
            self._has_begun = True
            self._update_usage(expect(dict, expect(dict, event.get("message"), "message").get("usage"), "usage"))
        elif kind in ("content_block_start", "content_block_delta", "message_delta", "message_stop"):
            if not self._has_begun:
                raise BrokenStreamError(f"the stream has {kind!r} before its message_start")
            if kind == "content_block_start":
                return self._start_block(_read_index(event), expect(dict, event.get("content_block"), "content_block"))
            if kind == "content_block_delta":
                return self._extend_block(_read_index(event), expect(dict, event.get("delta"), "delta"))
            if kind == "message_delta":
                delta = expect(dict, event.get("delta"), "delta")
                self._stop = expect(str, delta.get("stop_reason"), "stop_reason") or self._stop
                self._refusal = expect(dict, delta.get("stop_details"), "stop_details")
                self._update_usage(expect(dict, event.get("usage"), "usage"))
            self._has_ended = kind == "message_stop"
        return []

    def build_message(self) -> MessageCompleted:
        """Build the message after the last event.

        Raises:
            BrokenStreamError: The stream broke off or has no content.
            ProviderError: The model declined to answer.
        """
        if not (self._has_ended and self._stop):
            missing = "its stop reason" if self._has_ended else "message_stop"
            raise BrokenStreamError(f"the answer ended without {missing}; it may be incomplete")
        if self._stop == "refusal":
            reasons = [expect(str, self._refusal.get(key), key) for key in ("category", "explanation")]
            text = ": ".join(["the model declined to answer", *filter(None, reasons)])
            raise ProviderError(f"{text}; say it in other words, or choose another model")
        if self._stop not in _ENDS | _CUTS:
            raise BrokenStreamError(f"the answer has a stop reason that is not known ({self._stop!r})")
        is_cut = self._stop in _CUTS
        blocks = [block for _, block in sorted(self._blocks.items())]
        parts = [
            part for at, block in enumerate(blocks, 1) for part in _build_parts(block, is_cut and at == len(blocks))
        ]
        if all(isinstance(part, Thinking | RedactedThinking) for part in parts):
            if is_cut:
                raise BrokenStreamError(
                    "the output limit was used up before the answer began; raise max_output_tokens", is_retryable=False
                )
            raise BrokenStreamError(f"the answer is empty (stop reason {self._stop!r})")
        message = Message(role="assistant", parts=tuple(parts))
        return MessageCompleted(message=message, usage=self._build_usage(), is_cut=is_cut)

    def _start_block(self, index: int, start: Mapping[str, Any]) -> list[Delta]:
        if index in self._blocks:
            raise BrokenStreamError(f"the stream began block {index} twice")
        block = self._blocks[index] = _Block(expect(str, start.get("type"), "type"), start)
        key = block.kind if block.kind in ("text", "thinking") else ""
        block.signature = expect(str, start.get("signature"), "signature")
        return self._append_piece(block, expect(str, start.get(key), key))

    def _extend_block(self, index: int, delta: Mapping[str, Any]) -> list[Delta]:
        block = self._blocks.get(index)
        if block is None:
            raise BrokenStreamError(f"the stream continues block {index}, which it never began")
        kind, key = _DELTAS.get(expect(str, delta.get("type"), "type"), ("", ""))
        if not kind:
            return []
        if kind != block.kind:
            raise BrokenStreamError(f"the stream has {delta['type']!r} within a block of {block.kind!r}")
        piece = expect(str, delta.get(key), key)
        if key == "signature":
            block.signature = piece
            return []
        return self._append_piece(block, piece)

    def _append_piece(self, block: _Block, piece: str) -> list[Delta]:
        if piece:
            block.pieces.append(piece)
            if block.kind == "text":
                return [TextDelta(text=piece)]
            if block.kind == "thinking":
                return [ThinkingDelta(text=piece)]
        return []

    def _update_usage(self, usage: Mapping[str, Any]) -> None:
        """Replace the counts by later ones, because each count is the total so far."""
        keys = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        self._usage |= {key: expect(int, usage[key], key) for key in keys if usage.get(key) is not None}

    def _build_usage(self) -> Usage:
        read = self._usage.get("cache_read_input_tokens", 0)
        written = self._usage.get("cache_creation_input_tokens", 0)
        return Usage(
            input_tokens=self._usage.get("input_tokens", 0) + read + written,
            output_tokens=self._usage.get("output_tokens", 0),
            cache_read_tokens=read,
            cache_write_tokens=written,
        )


def _build_parts(block: _Block, is_cut: bool) -> Iterator[Part]:
    """Build the part of a complete block. `is_cut` says that the answer was cut inside the block."""
    match block.kind:
        case "text":
            if block.text:
                yield Text(text=block.text)
        case "thinking":
            if block.text or block.signature:
                yield Thinking(text=block.text, signature=block.signature or None)
        case "redacted_thinking":
            yield RedactedThinking(data=expect(str, block.start.get("data"), "data"))
        case "tool_use":
            name = expect(str, block.start.get("name"), "name")
            if not name:
                raise BrokenStreamError("the answer holds a tool call without a name")
            whole = expect(dict, block.start.get("input"), "input")
            arguments = block.text or encode_json(whole).decode()
            if is_cut and arguments == "{}":
                arguments = "{"  # cut before its arguments: it must not look like a call without arguments
            yield ToolCall(id=expect(str, block.start.get("id"), "id"), name=name, arguments=arguments)


def _read_index(event: Mapping[str, Any]) -> int:
    index = event.get("index")
    if not isinstance(index, int) or isinstance(index, bool):
        raise build_type_error("index", index, "a number")
    return index


# --- refusals


def build_error(body: object, status: int, model: str, key_variable: str, wait_s: float | None = None) -> ProviderError:
    """Build the error for a refused request. Inside a stream the status is 200 and the error's type decides."""
    error = body.get("error") if isinstance(body, Mapping) else None
    kind = error.get("type") if isinstance(error, Mapping) else None
    if status == 200:
        status = _STATUS_OF_TYPE.get(str(kind), 500)
    if status == 400 and "credit balance" in extract_error_text(body):
        status = 402
    return build_status_error(status, body, model, key_variable, wait_s)
