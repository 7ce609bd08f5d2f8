"""The wire format of Anthropic's messages: encodes requests and parses events, without SDK or network.

Source: Anthropic's API reference (messages, "create" and "streaming", version 2026-10-21).
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from goose_like.core.errors import BrokenStreamError
from goose_like.core.events import MessageCompleted
from goose_like.core.message import Image, Message, Part, Text, ToolCall, ToolResult, Usage, Verbatim

from .anthropic_block import KNOWN_KINDS, SHOWN, Block, read_kind
from .anthropic_hosted import HostedBlocks, find_used_tools
from .anthropic_places import END, find_cache_ends, place_system_messages
from .anthropic_tools import build_tools, is_tool_search
from .anthropic_usage import build_usage, read_counts
from .base import Delta, Request
from .known_models import HOSTED_TOOLS
from .wire import (
    MessageEncoder,
    StartEncoder,
    build_declined_error,
    complete_answer,
    encode_image,
    encode_json,
    expect,
    expect_index,
    merge_body,
    read_list,
    read_object,
    sanitize_arguments,
    sanitize_tool_name,
)

if TYPE_CHECKING:
    from anthropic.types import (
        CacheControlEphemeralParam,
        DocumentBlockParam,
        ImageBlockParam,
        TextBlockParam,
        ToolResultBlockParam,
    )
    from anthropic.types.message_create_params import MessageCreateParamsStreaming

WIRE = "messages"

MAX_OUTPUT_TOKENS = 64_000

# --- requests

_MAX_TITLE = 500
"""The longest title of a document that the API takes."""


class AnthropicEncoder:
    """An encoder of requests that encodes each message once and sets the marks of the prompt cache.

    The server caches everything before a mark (`cache_control`), and looks for it at the marks of the next request.
    The API allows four marks. This encoder sets three: after tools and system prompt, at the end of the request, and
    at the end of the previous request, which is before the newest message of the model. So each request but the first
    reads the whole previous one from the cache. Without the two moving marks and the closing `]}`, the bytes of a
    request are a prefix of the next one.
    """

    def __init__(
        self,
        origin: str = "",
        *,
        keeps_blanks: bool = True,
        has_long_cache: bool = False,
        streams_arguments: bool = False,
    ) -> None:
        """Create an encoder for the server `origin`, whose answers return unchanged.

        Without `keeps_blanks`, text blocks of white space are left out of them. With `has_long_cache` the server keeps
        the prompt for an hour, else for five minutes. With `streams_arguments` it sends long arguments of tools as the
        model writes them; only Anthropic's servers know this key.
        """
        self._streams_arguments = streams_arguments
        self._mark: CacheControlEphemeralParam = {"type": "ephemeral"}
        if has_long_cache:
            # All marks are alike: those of an hour would have to stand before the others.
            self._mark["ttl"] = "1h"
        self._mark_bytes = b',"cache_control":' + encode_json(self._mark)

        self._origin = origin
        self._keeps_blanks = keeps_blanks
        self._searches_tools = False
        self._hosted: Set[str] = frozenset()
        self._messages = MessageEncoder(self._encode_message)
        self._start = StartEncoder()

    def _encode_message(self, message: Message, images: Path | None) -> bytes:
        return encode_message(
            message,
            images,
            self._origin,
            keeps_blanks=self._keeps_blanks,
            keeps_searches=self._searches_tools,
            hosted=self._hosted,
        )

    def encode_request(
        self,
        request: Request,
        extras: Mapping[str, Any] = {},
        max_tokens: int = MAX_OUTPUT_TOKENS,
        *,
        has_system_messages: bool = False,
        searches_tools: bool = False,
    ) -> bytes:
        """Encode the JSON body of a request. `extras` are further keys of the body; None removes a key.

        With `has_system_messages` the model takes messages of goose_like as such, and else as those of the user. With
        `searches_tools` the server searches the deferred tools.
        """
        searches_tools = searches_tools and bool(request.deferred_tools)
        hosted = {tool.native for tool in request.all_tools if tool.native in request.hosted.domains}
        if searches_tools != self._searches_tools or hosted != self._hosted:
            self._searches_tools = searches_tools
            self._hosted = hosted
            self._messages = MessageEncoder(self._encode_message)
        head: MessageCreateParamsStreaming = {
            "model": request.model,
            "stream": True,
            "max_tokens": max_tokens,
            "messages": (),
        }
        has_system = bool(request.system.strip())
        tools, last_cached = build_tools(
            request, searches_tools=searches_tools, streams_arguments=self._streams_arguments
        )
        if tools:
            head["tools"] = tools
        if last_cached and not has_system:
            last_cached["cache_control"] = self._mark
        if has_system:
            head["system"] = [{"type": "text", "text": request.system, "cache_control": self._mark}]
        entries = self._messages.encode(request.messages, request.images)
        if has_system_messages:
            entries = place_system_messages(request.messages, entries)
        for at in find_cache_ends(request.messages, entries):
            entries[at] = entries[at].removesuffix(END) + self._mark_bytes + END
        body = merge_body(head, extras)
        del body["messages"]  # it comes last
        start = self._start.encode(body | {"messages": []})
        return start + b",".join(filter(None, entries)) + b"]}"


def encode_message(
    message: Message,
    images: Path | None = None,
    origin: str = "",
    *,
    keeps_blanks: bool = True,
    keeps_searches: bool = True,
    hosted: Set[str] = HOSTED_TOOLS,
) -> bytes:
    """Encode a message as an entry of `messages`, or as nothing if the API accepts none of its parts.

    An answer of the server `origin` returns as it came, without `keeps_searches` less its searches of tools, and only
    if the request has the `hosted` tools that it used. Thinking of another server would be refused.
    """
    verbatim = message.verbatim
    blocks: list[bytes] = []
    is_known = verbatim and verbatim.wire == WIRE and verbatim.origin == origin
    if verbatim and is_known and find_used_tools(verbatim.items) <= hosted:
        items = verbatim.items
        if not keeps_searches:
            items = tuple(item for item in items if not (isinstance(item, dict) and is_tool_search(item)))
        blocks += _restore_blocks(items, message.tool_calls, keeps_blanks=keeps_blanks)
    else:
        for part in message.parts:
            blocks += _encode_blocks(part, images)
    if not blocks and message.role not in ("assistant", "system"):
        blocks = [encode_json({"type": "text", "text": "(nothing)"})]
    if not blocks:
        return b""
    role = b"user"
    if message.role == "assistant" or has_compaction([message], origin):
        role = b"assistant"
    return b'{"role":"%s","content":[%s]}' % (role, b",".join(blocks))


def has_compaction(messages: Sequence[Message], origin: str) -> bool:
    """Return whether messages begin with a summary of the server `origin` in its own form."""
    if not messages or messages[0].role != "user" or messages[0].verbatim is None:
        return False
    return messages[0].verbatim.wire == WIRE and messages[0].verbatim.origin == origin


def _restore_blocks(items: Iterable[Any], calls: Sequence[ToolCall], *, keeps_blanks: bool) -> Iterator[bytes]:
    """Yield the blocks of an answer as they came. A call has the id under which its result is found."""
    waiting = iter(calls)
    for item in items:
        if not isinstance(item, dict):
            continue
        if item.get("type") == "tool_use":
            call = next(waiting, None)
            if call is not None:
                yield _encode_call(call, item)
            continue
        if keeps_blanks or not _is_blank(item):
            yield encode_json(item)


def _is_blank(item: Mapping[str, Any]) -> bool:
    """Return whether an item is a text of white space."""
    if item.get("type") != "text":
        return False
    return not str(item.get("text")).strip()


def _encode_call(call: ToolCall, item: Mapping[str, Any]) -> bytes:
    """Encode a call, with further keys of an item. The bytes of valid arguments stay the same."""
    id_ = _sanitize_id(call.id)
    name = sanitize_tool_name(call.name)
    head = {"type": "tool_use", **item, "id": id_, "name": name}
    start = encode_json(head).removesuffix(b"}")
    arguments = sanitize_arguments(call.arguments).encode(errors="replace")
    return start + b',"input":%s}' % arguments


def _encode_blocks(part: Part, images: Path | None) -> Iterator[bytes]:
    match part:
        case Text(text=text):
            if text.strip():  # the API refuses blocks of white space
                yield encode_json({"type": "text", "text": text})
        case Image():
            yield encode_json(_build_image(part, images))
        case ToolCall():
            yield _encode_call(part, {})
        case ToolResult():
            yield encode_json(_build_result(part, images))


def _build_result(result: ToolResult, images: Path | None) -> "ToolResultBlockParam":
    text = result.output
    if not text.strip():
        text = "(no output)"  # a failed result must not be empty
    entry: ToolResultBlockParam = {
        "type": "tool_result",
        "tool_use_id": _sanitize_id(result.call_id),
        "content": text,
    }
    if result.images:
        shown = [_build_image(image, images) for image in result.images]
        entry["content"] = [{"type": "text", "text": text}, *shown]
    if result.is_error:
        entry["is_error"] = True
    return entry


def _build_image(image: Image, images: Path | None) -> "ImageBlockParam | DocumentBlockParam | TextBlockParam":
    data = encode_image(image, images)
    if data is None:
        return {"type": "text", "text": f"[{image.kind} {image.source}: its file is gone]"}
    if image.media_type == "application/pdf":
        document: DocumentBlockParam = {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": data},
            "title": image.source[:_MAX_TITLE],
        }
        return document
    block: ImageBlockParam = {
        "type": "image",
        "source": {"type": "base64", "media_type": image.media_type, "data": data},
    }
    return block


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

_ENDS = frozenset({"end_turn", "stop_sequence", "tool_use"})
_CUTS = frozenset({"max_tokens", "model_context_window_exceeded", "pause_turn"})

MAX_PAUSES = 10
"""How often a server may pause an answer, each time after several uses of its own tools."""

_LOST_KINDS = frozenset({"thinking", "redacted_thinking", "connector_text", "tool_use"})
"""Kinds of blocks that the server does not take back if another model took over after them.

Source: Anthropic's guide on refusals and fallback, "Continuing the conversation".
"""


@dataclass(slots=True)
class AnthropicStreamParser:
    """A parser of the events of one answer from the server `origin`. Another model of `provider` may give it.

    It ignores unknown kinds of events, and keeps unknown kinds of blocks, because the API may add some at any time.
    Text is never read as thinking or as calls: servers of this format send blocks of their own for both.
    """

    origin: str = ""
    provider: str = ""
    hosted: HostedBlocks = field(default_factory=HostedBlocks)
    _earlier: list[Block] = field(default_factory=list)
    _pause_count: int = 0
    _other_model: str = ""
    _blocks: dict[int, Block] = field(default_factory=dict)
    _usage: dict[str, int] = field(default_factory=dict)
    _stop: str = ""
    _refusal: Mapping[str, Any] = field(default_factory=dict)

    @property
    def has_ended(self) -> bool:
        """See `StreamParser.has_ended`."""
        return bool(self._stop)

    @property
    def usage(self) -> Usage:
        """See `StreamParser.usage`."""
        return build_usage(self._usage)

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
            case "content_block_stop":
                block = self._blocks.get(self._find_index(event))
                return self.hosted.finish(block) if block else []
            case "message_delta":
                delta = expect(dict, event.get("delta"), "delta")
                self._finish(event.get("usage"), delta)
            case "message_stop":
                self._stop = self._stop or "end_turn"
            case "message":
                return self._take_whole(event)
        return []

    def _take_whole(self, answer: Mapping[str, Any]) -> list[Delta]:
        """Take a whole answer of a server that does not stream."""
        deltas = []
        for block in expect(list, answer.get("content"), "content"):
            deltas += self._start_block({"content_block": block})
            deltas += self.hosted.finish(self._blocks[len(self._blocks) - 1])
        self._finish(answer.get("usage"), {"stop_reason": "end_turn", **answer})
        return deltas

    def build_message(self) -> MessageCompleted:
        """Build the message after the last event.

        Raises:
            BrokenStreamError: The stream broke off or has no content.
            AnswerRefusedError: The model declined to answer.
        """
        if not self._stop:
            raise BrokenStreamError("the answer ended without a stop reason; it may be incomplete")
        if self._stop == "refusal":
            category = expect(str, self._refusal.get("category"), "category")
            explanation = expect(str, self._refusal.get("explanation"), "explanation")
            raise build_declined_error(": ".join(filter(None, (category, explanation))))
        if self._stop not in _ENDS | _CUTS:
            raise BrokenStreamError(f"the answer has a stop reason that is not known ({self._stop!r})")
        is_cut = self._stop in _CUTS
        blocks = self._list_blocks(is_cut)
        parts = self.hosted.add_sources(_list_parts(blocks))
        has_call = any(isinstance(part, ToolCall) for part in parts)
        lacks_call = self._stop == "tool_use" and not has_call
        label = ""
        if self._other_model:
            label = f"{self.provider}:{self._other_model}"
        verbatim = self._build_verbatim(blocks)
        return complete_answer(parts, self.usage, is_cut, verbatim, lacks_call=lacks_call, model=label)

    def pause(self) -> Message | None:
        """Return what the server sent of an answer that it paused, and go on with the next stream.

        Tokens are counted anew. Return None if the answer is whole, or was paused too often.
        """
        blocks = self._list_blocks(is_cut=False)
        is_paused = self._stop == "pause_turn" and self._pause_count < MAX_PAUSES
        if not is_paused or any(block.kind == "tool_use" for block in blocks):
            return None
        self._pause_count += 1
        self._earlier = blocks
        self._blocks = {}
        self._usage = {}
        self._stop = ""
        parts = _list_parts(blocks)
        return Message(role="assistant", parts=tuple(parts), verbatim=self._build_verbatim(blocks))

    def _build_verbatim(self, blocks: Sequence[Block]) -> Verbatim:
        items = [block.build_item() for block in blocks]
        return Verbatim(wire=WIRE, origin=self.origin, items=tuple(items))

    def _list_blocks(self, is_cut: bool) -> list[Block]:
        """List the blocks that the server takes back."""
        blocks = [*self._earlier]
        for index in sorted(self._blocks):
            blocks.append(self._blocks[index])
        answered = [block.start.get("tool_use_id") for block in blocks]
        last_handover = 0
        for at, block in enumerate(blocks):
            if block.kind == "fallback":
                last_handover = at
        kept = []
        for at, block in enumerate(blocks):
            is_handed_over = at < last_handover
            is_lost = is_handed_over and block.kind in _LOST_KINDS
            is_unfinished = (is_cut or is_handed_over) and not block.is_valid(answered)
            if not is_lost and not is_unfinished:
                kept.append(block)
        return kept

    def _start_block(self, event: Mapping[str, Any]) -> list[Delta]:
        index = expect_index(event)
        if index is None:
            index = len(self._blocks)
        start = expect(dict, event.get("content_block"), "content_block")
        if index in self._blocks:
            raise BrokenStreamError(f"the stream began block {index} twice")
        kind = read_kind(start)
        if not kind:
            raise BrokenStreamError(f"the stream began block {index} without a type")
        block = Block(kind, start, lead=self.hosted.choose_lead(kind))
        self._blocks[index] = block
        if kind == "fallback":
            self._other_model = _read_model(start.get("to"))
        block.join("signature")  # raises for a wrong type
        if kind not in SHOWN:
            return self.hosted.start(block)
        return block.show(block.join(kind))

    def _extend_block(self, event: Mapping[str, Any]) -> list[Delta]:
        delta = expect(dict, event.get("delta"), "delta")
        index = self._find_index(event)
        block = self._blocks.get(index)
        if block is None:
            raise BrokenStreamError(f"the stream continues block {index}, which it never began")
        type_ = _read_delta_type(delta)
        kind, key = _DELTAS.get(type_, ("", ""))
        is_other_kind = bool(kind) and kind != block.kind and block.kind in KNOWN_KINDS
        if is_other_kind or type_ == _NO_TYPE:
            raise BrokenStreamError(f"the stream has {type_!r} within a block of {block.kind!r}")
        if not kind:
            block.fold(delta)
            return []
        piece = expect(str, delta.get(key), key)
        return block.append(key, piece)

    def _find_index(self, event: Mapping[str, Any]) -> int:
        """Find the index of the block that an event is about: the newest one, if the event names none."""
        index = expect_index(event)
        if index is None:
            return next(reversed(self._blocks), 0)
        return index

    def _finish(self, usage: object, delta: Mapping[str, Any]) -> None:
        self._update_usage(usage)
        self._refusal = expect(dict, delta.get("stop_details"), "stop_details")
        self._stop = expect(str, delta.get("stop_reason"), "stop_reason") or self._stop

    def _update_usage(self, usage: object) -> None:
        """Replace the counts by later ones, because each count is the total so far."""
        for attempt in read_list(read_object(usage).get("iterations")):
            if read_object(attempt).get("type") == "fallback_message":
                self._other_model = _read_model(attempt)
        self._usage |= read_counts(usage)


_NO_TYPE = "no type"


def _list_parts(blocks: Iterable[Block]) -> list[Part]:
    """List the parts of blocks that people and other vendors' models can read."""
    parts: list[Part] = []
    for block in blocks:
        parts += block.build_parts()
    return parts


def _read_delta_type(delta: Mapping[str, Any]) -> str:
    """Read the type of a delta, or find it by its key for servers that leave the type out."""
    type_ = expect(str, delta.get("type"), "type")
    if type_:
        return type_
    for known_type, (_, key) in _DELTAS.items():
        if key in delta:
            return known_type
    return _NO_TYPE


def _read_model(entry: object) -> str:
    name = expect(dict, entry, "to").get("model")
    return expect(str, name, "model")


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
    error = read_object(read_object(body).get("error"))
    type_ = str(error.get("type"))
    return _STATUS_OF_TYPE.get(type_, 500)
