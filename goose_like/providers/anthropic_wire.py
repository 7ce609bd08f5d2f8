"""The wire format of Anthropic's messages: encodes requests and parses events, without SDK or network.

Source: Anthropic's API reference (messages, "create" and "streaming", version 2026-10-21).
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from goose_like.core.errors import BrokenStreamError, ProviderError
from goose_like.core.events import MessageCompleted, TextDelta, ThinkingDelta
from goose_like.core.message import Image, Message, Part, RedactedThinking, Text, Thinking, ToolCall, ToolResult, Usage

from .base import Delta, Request, SearchAnswer
from .text_markup import ThinkSplitter, split_unopened_thinking
from .wire import (
    SEARCH_PROMPT,
    MessageEncoder,
    complete_answer,
    complete_search,
    encode_image,
    encode_json,
    expect,
    read_count,
    read_page,
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

    def __init__(self) -> None:
        self._messages = MessageEncoder(encode_message)

    def encode_request(self, request: Request, extras: Mapping[str, Any] = {}) -> bytes:
        """Encode the JSON body of a request. `extras` are further keys of the body."""
        mark = {"cache_control": {"type": "ephemeral"}}
        head: dict[str, Any] = {"model": request.model, "stream": True, **extras}
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
        entries = self._messages.encode(request.messages, request.images)
        for at in _find_cache_ends(request.messages, entries):
            entries[at] = entries[at].removesuffix(_END) + _MARK + _END
        return encode_json(head | {"messages": []}).removesuffix(b"]}") + b",".join(filter(None, entries)) + b"]}"


def _find_cache_ends(messages: Sequence[Message], entries: Sequence[bytes]) -> set[int]:
    # The ends of this request and of the previous one: their last messages that are not the model's.
    sent = [at for at, entry in enumerate(entries) if entry]
    ours = [at for at in sent if messages[at].role != "assistant"]
    answer = max((at for at in sent if messages[at].role == "assistant"), default=-1)
    return {*ours[-1:], *[at for at in ours if at < answer][-1:]}


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
            arguments = sanitize_arguments(part.arguments).encode()
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

_DELTAS = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("thinking", "signature"),
    "input_json_delta": ("tool_use", "partial_json"),
}
"""The kind of block that each kind of delta extends, and the key of the delta's text."""

_SIGNS = (("tool_use", "name"), ("thinking", "thinking"), ("text", "text"))
"""Kinds of blocks, and a key that only one kind has, for servers that leave the type out."""

_SHOWN: dict[str, type[TextDelta | ThinkingDelta]] = {"text": TextDelta, "thinking": ThinkingDelta}

_ENDS = frozenset({"end_turn", "stop_sequence", "tool_use"})
_CUTS = frozenset({"max_tokens", "model_context_window_exceeded", "pause_turn"})


@dataclass(slots=True)
class _Block:
    """A content block whose parts are still arriving. `start` is its first event, `pieces` its texts by key."""

    kind: str
    start: Mapping[str, Any]
    pieces: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def append(self, key: str, piece: str) -> list[Delta]:
        """Append a piece to the text with a key, and return the delta to show."""
        self.pieces[key].append(piece)
        return [_SHOWN[key](text=piece)] if piece and key in _SHOWN else []

    def join(self, key: str) -> str:
        """Join the text with a key."""
        return "".join(self.pieces[key])


@dataclass(slots=True)
class AnthropicStreamParser:
    """A parser of the events of one answer.

    It ignores unknown kinds of events, blocks and deltas, because the API may add some at any time.
    """

    _blocks: dict[int, _Block] = field(default_factory=dict)
    _usage: dict[str, int] = field(default_factory=dict)
    _stop: str = ""
    _refusal: Mapping[str, Any] = field(default_factory=dict)
    _splitter: ThinkSplitter = field(default_factory=ThinkSplitter)

    @property
    def has_ended(self) -> bool:
        """See `StreamParser.has_ended`."""
        return bool(self._stop)

    def feed(self, event: object) -> list[Delta]:
        """Take an event, or a whole answer of a server that does not stream; return the deltas to show.

        Raises:
            BrokenStreamError: The event has a wrong type or comes in a wrong order.
        """
        event = expect(dict, event, "an event")
        match expect(str, event.get("type"), "type"):
            case "message_start":
                self._update_usage(expect(dict, event.get("message"), "message").get("usage"))
            case "content_block_start":
                return self._start_block(event)
            case "content_block_delta":
                return self._extend_block(event)
            case "message_delta":
                self._finish(event.get("usage"), expect(dict, event.get("delta"), "delta"))
            case "message_stop":
                self._stop = self._stop or "end_turn"
            case "message":
                blocks = expect(list, event.get("content"), "content")
                deltas = [delta for block in blocks for delta in self._start_block({"content_block": block})]
                self._finish(event.get("usage"), {"stop_reason": "end_turn"} | event)
                return deltas
        return []

    def build_message(self) -> MessageCompleted:
        """Build the message after the last event.

        Raises:
            BrokenStreamError: The stream broke off or has no content.
            ProviderError: The model declined to answer.
        """
        if not self._stop:
            raise BrokenStreamError("the answer ended without a stop reason; it may be incomplete")
        if self._stop == "refusal":
            reasons = [expect(str, self._refusal.get(key), key) for key in ("category", "explanation")]
            text = ": ".join(["the model declined to answer", *filter(None, reasons)])
            raise ProviderError(f"{text}; say it in other words, or choose another model")
        if self._stop not in _ENDS | _CUTS:
            raise BrokenStreamError(f"the answer has a stop reason that is not known ({self._stop!r})")
        self._end_text()
        parts = [part for _, block in sorted(self._blocks.items()) for part in _build_parts(block)]
        return complete_answer(parts, _build_usage(self._usage), self._stop in _CUTS)

    def _start_block(self, event: Mapping[str, Any]) -> list[Delta]:
        index = len(self._blocks) if event.get("index") is None else expect(int, event["index"], "index")
        start = expect(dict, event.get("content_block"), "content_block")
        if index in self._blocks:
            raise BrokenStreamError(f"the stream began block {index} twice")
        held = self._end_text()
        kind = expect(str, start.get("type"), "type") or next((kind for kind, key in _SIGNS if key in start), "")
        if not kind:
            raise BrokenStreamError(f"the stream began block {index} without a type")
        block = self._blocks[index] = _Block(kind, start)
        block.append("signature", expect(str, start.get("signature"), "signature"))
        if block.kind not in _SHOWN:
            return held
        return [*held, *self._append(block, block.kind, expect(str, start.get(block.kind), block.kind))]

    def _extend_block(self, event: Mapping[str, Any]) -> list[Delta]:
        delta, last = expect(dict, event.get("delta"), "delta"), next(reversed(self._blocks), 0)
        index = last if event.get("index") is None else expect(int, event["index"], "index")
        block = self._blocks.get(index)
        if block is None:
            raise BrokenStreamError(f"the stream continues block {index}, which it never began")
        type_ = expect(str, delta.get("type"), "type")
        type_ = type_ or next((name for name, (_, key) in _DELTAS.items() if key in delta), "no type")
        kind, key = _DELTAS.get(type_, ("", ""))
        if kind != block.kind and (kind or type_ == "no type"):
            raise BrokenStreamError(f"the stream has {type_!r} within a block of {block.kind!r}")
        if not kind:
            return []
        return self._append(block, key, expect(str, delta.get(key), key))

    def _append(self, block: _Block, key: str, piece: str) -> list[Delta]:
        if key != "text":
            return block.append(key, piece)
        return [delta for kind, part in self._splitter.feed(piece) for delta in block.append(kind, part)]

    def _end_text(self) -> list[Delta]:
        """Append the held piece to the newest block of text, and return the delta to show."""
        deltas: list[Delta] = []
        for kind, piece in self._splitter.flush():
            last = next(block for block in reversed(self._blocks.values()) if block.kind == "text")
            deltas += last.append(kind, piece)
        return deltas

    def _finish(self, usage: object, delta: Mapping[str, Any]) -> None:
        self._update_usage(usage)
        self._refusal = expect(dict, delta.get("stop_details"), "stop_details")
        self._stop = expect(str, delta.get("stop_reason"), "stop_reason") or self._stop

    def _update_usage(self, usage: object) -> None:
        """Replace the counts by later ones, because each count is the total so far."""
        self._usage |= _read_counts(usage)


def _read_counts(usage: object) -> dict[str, int]:
    counts = usage if isinstance(usage, Mapping) else {}
    keys = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    return {key: read_count(counts[key]) for key in keys if counts.get(key) is not None}


def _build_usage(counts: Mapping[str, int]) -> Usage:
    read, written = counts.get("cache_read_input_tokens", 0), counts.get("cache_creation_input_tokens", 0)
    return Usage(
        input_tokens=counts.get("input_tokens", 0) + read + written,
        output_tokens=counts.get("output_tokens", 0),
        cache_read_tokens=read,
        cache_write_tokens=written,
    )


def _build_parts(block: _Block) -> Iterator[Part]:
    match block.kind:
        case "text":
            unopened, text = split_unopened_thinking(block.join("text"))
            if thinking := block.join("thinking") + unopened:
                yield Thinking(text=thinking)
            if text:
                yield Text(text=text)
        case "thinking":
            thinking, signature = block.join("thinking"), block.join("signature")
            if thinking or signature:
                yield Thinking(text=thinking, signature=signature or None)
        case "redacted_thinking":
            yield RedactedThinking(data=expect(str, block.start.get("data"), "data"))
        case "tool_use":
            whole = expect(dict, block.start.get("input"), "input")
            arguments = block.join("partial_json") or encode_json(whole).decode()
            id_, name = (expect(str, block.start.get(key), key) for key in ("id", "name"))
            yield ToolCall(id=id_, name=name, arguments=arguments)


# --- web search

# Later types of this tool filter the results with code that runs on the server, which not every model can do.
_SEARCH_TOOL = {"type": "web_search_20250305", "name": "web_search", "max_uses": 5}
_SEARCH_TOKENS = 8_000


def build_search(query: str, model: str) -> dict[str, Any]:
    """Build the body of a request that lets a model search the web on the server."""
    messages = [{"role": "user", "content": SEARCH_PROMPT.format(query)}]
    return {"model": model, "max_tokens": _SEARCH_TOKENS, "messages": messages, "tools": [_SEARCH_TOOL]}


def parse_search(answer: object) -> SearchAnswer:
    """Parse the answer to `build_search`. The text is that after the last search.

    Raises:
        BrokenStreamError: A value has a wrong type, or there is no text.
        ProviderError: The search failed.
    """
    whole = expect(dict, answer, "the answer")
    texts: list[str] = []
    pages: list[tuple[str, str]] = []
    problem = ""
    for block in (expect(dict, item, "a block") for item in expect(list, whole.get("content"), "content")):
        match block.get("type"):
            case "text":
                texts.append(expect(str, block.get("text"), "text"))
            case "web_search_tool_result":
                texts.clear()
                found = block.get("content")
                if isinstance(found, Mapping):
                    problem = expect(str, found.get("error_code"), "error_code") or "no reason"
                else:
                    results = (expect(dict, result, "a result") for result in expect(list, found, "content"))
                    pages += [read_page(result) for result in results]
    return complete_search("".join(texts), pages, _build_usage(_read_counts(whole.get("usage"))), problem)


# --- refusals

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


def get_error_status(body: object) -> int:
    """Return the HTTP status that fits the type of an error inside a stream."""
    error = body.get("error") if isinstance(body, Mapping) else None
    return _STATUS_OF_TYPE.get(str(error.get("type")), 500) if isinstance(error, Mapping) else 500
