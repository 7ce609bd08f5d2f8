"""The wire format of the Responses API: encodes requests and parses decoded events, without SDK or network.

Source: OpenAI's API reference (responses, "create" and "streaming") and the types in its SDK.
The same format is known as Open Responses on other servers.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import field
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from goose_like.core.dataclass import dataclass
from goose_like.core.errors import BrokenStreamError
from goose_like.core.events import MessageCompleted, TextDelta, ThinkingDelta
from goose_like.core.message import (
    EffortChange,
    Image,
    Message,
    Part,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    Verbatim,
)

from .base import Delta, Request, ServerCompaction
from .known_models import TOOL_SEARCH
from .native_patch import (
    PATCH_CALL,
    PATCH_TOOL,
    build_patch_call,
    build_patch_result,
    get_call_id,
    is_patch,
    parse_patch_call,
)
from .responses_hosted import HostedItems, count_searches
from .responses_tools import belongs_to_search, build_namespaces, build_tools, choose_tools, map_namespaces
from .wire import (
    MessageEncoder,
    StartEncoder,
    build_declined_error,
    build_filter_error,
    complete_answer,
    encode_image,
    encode_json,
    expect,
    expect_index,
    expect_objects,
    mark_error,
    merge_body,
    read_count,
    read_list,
    read_object,
    sanitize_arguments,
    sanitize_tool_name,
)

if TYPE_CHECKING:
    from openai.types.responses import (
        EasyInputMessageParam,
        NamespaceToolParam,
        ResponseFunctionToolCallParam,
        ResponseInputFileParam,
        ResponseInputImageParam,
        ResponseInputTextParam,
    )
    from openai.types.responses.response_compact_params import ResponseCompactParams
    from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
    from openai.types.responses.response_input_item_param import (
        AdditionalTools,
        ApplyPatchCall,
        ApplyPatchCallOutput,
        FunctionCallOutput,
    )

    Content = ResponseInputTextParam | ResponseInputImageParam | ResponseInputFileParam

WIRE = "responses"

_CALL_TYPES = ("function_call", PATCH_CALL)

# --- requests


class ResponsesEncoder:
    """An encoder of requests that encodes each message once.

    Constant keys come first in the body and `input` last. The bytes of a request without the closing `]}` are a prefix
    of the next request, so that the server's prompt cache works and its reasoning stays valid.
    """

    def __init__(self, origin: str) -> None:
        """Create an encoder for the server at the host `origin`. Answers of this server return unchanged."""
        self._origin = origin
        self._native: Set[str] = frozenset()
        self._hosted: Mapping[str, Sequence[str]] = {}
        self._namespaces: Mapping[str, str] = {}
        self._takes_changes = True
        self._sends_efforts = True
        self._start = StartEncoder()
        self._messages = MessageEncoder(self._encode_message)

    def refuse_changes(self) -> None:
        """Send no items that change tools or effort from now on: the server does not know them."""
        self._takes_changes = False
        self._messages = MessageEncoder(self._encode_message)

    def tells_efforts(self, request: Request) -> bool:
        """Return whether items tell the changes of the effort. Then the body keeps the first one."""
        return self._takes_changes and request.first_effort is not None

    def encode_request(self, request: Request, extras: Mapping[str, Any] = {}, native: Set[str] = frozenset()) -> bytes:
        """Encode the JSON body of a request. `extras` are further keys of the body; None removes a key.

        Tools and efforts that changed within the conversation follow as items, so that earlier bytes stay the same.
        `native` names the vendor's own tools that the model has; see `tool`.
        """
        namespaces = self._set_native(request, native)
        # The server keeps nothing: the client sends all items again, with the reasoning in encrypted form.
        head: ResponseCreateParamsStreaming = {
            "model": request.model,
            "stream": True,
            "store": False,
            "include": ["reasoning.encrypted_content"],
        }
        tools = request.tools if self._takes_changes else request.all_tools
        if request.hosted.domains:
            head["include"] = ["reasoning.encrypted_content", "web_search_call.action.sources"]
        entries_of_tools = build_tools(tools, native, namespaces, request.hosted.domains)
        if entries_of_tools:
            head["tools"] = entries_of_tools
        body = merge_body(head, extras)
        start = self._start.encode(body | {"input": []})
        end = b"]}"
        choice = choose_tools(request, native, searches_tools=bool(namespaces))
        if choice is not None and extras.get("tool_choice", "") is not None:
            # It stands after `input`, as it can change from turn to turn.
            end = b'],"tool_choice":%s}' % encode_json(choice)
        entries = self._encode_input(request)
        return start + b",".join(filter(None, entries)) + end

    def encode_compaction(self, request: Request, extras: Mapping[str, Any], native: Set[str]) -> bytes:
        """Encode the JSON body of a request that lets the server shorten the messages; see `encode_request`."""
        self._set_native(request, native)
        head: ResponseCompactParams = {"model": request.model}
        start = encode_json(merge_body(head, extras) | {"input": []}).removesuffix(b"]}")
        return start + b",".join(filter(None, self._encode_input(request))) + b"]}"

    def _set_native(self, request: Request, native: Set[str]) -> "list[NamespaceToolParam]":
        """Take over what the server has, and return the namespaces of the tools that it searches."""
        namespaces: list[NamespaceToolParam] = []
        if TOOL_SEARCH in native:
            namespaces = build_namespaces(request.deferred_tools)
        names = map_namespaces(namespaces)
        is_changed = native != self._native or request.hosted.domains != self._hosted
        if is_changed or names != self._namespaces:
            self._native = native
            self._hosted = request.hosted.domains
            self._namespaces = names
            self._messages = MessageEncoder(self._encode_message)
        return namespaces

    def _encode_input(self, request: Request) -> list[bytes]:
        sends_efforts = self.tells_efforts(request)
        if sends_efforts != self._sends_efforts:
            self._sends_efforts = sends_efforts
            self._messages = MessageEncoder(self._encode_message)
        entries = self._messages.encode(request.messages, request.images)
        if not request.system:
            return entries
        # Newer models read `instructions` after `input`, where no cache covers them.
        developer: EasyInputMessageParam = {"role": "developer", "content": request.system}
        return [encode_json(developer), *entries]

    def _encode_message(self, message: Message, images: Path | None) -> bytes:
        if message.role == "system":
            items = self._build_changes(message)
        else:
            items = build_items(message, images, self._origin, self._native, self._namespaces)
        return b",".join(map(encode_json, items))

    def _build_changes(self, message: Message) -> "list[Item]":
        """Build the items of a message of goose_like, with the changes that the server is told."""
        items: list[Item] = []
        new_tools = build_tools(message.new_tools, self._native, (), self._hosted)
        if new_tools and self._takes_changes:
            added: AdditionalTools = {"type": "additional_tools", "role": "developer", "tools": new_tools}
            items.append(added)
        if message.text:
            developer: EasyInputMessageParam = {"role": "developer", "content": message.text}
            items.append(developer)
        for part in message.parts:
            if isinstance(part, EffortChange) and self._sends_efforts:
                items.append({"type": "configuration_update", "reasoning": {"effort": part.effort}})
        return items


Item = Mapping[str, Any]
"""An item of the body's `input`."""


def build_items(
    message: Message,
    images: Path | None = None,
    origin: str = "",
    native: Set[str] = frozenset(),
    namespaces: Mapping[str, str] = {},
) -> list[Item]:
    """Build the items of a message in the body's `input`; an answer of the server at `origin` returns unchanged.

    `namespaces` are those of the tools that the server searches. Without any, it would refuse what it found before.
    """
    verbatim = message.verbatim
    if verbatim and verbatim.wire == WIRE and verbatim.origin == origin:
        if namespaces or not belongs_to_search(verbatim.items):
            return list(_restore_items(verbatim, message.tool_calls, native))
    if message.role == "tool":
        return [_build_result(result, images, native) for result in message.tool_results]
    items: list[Item] = []
    if message.images:
        content = _build_contents(message.parts, images)
        items.append({"role": message.role, "content": content})
    elif message.text:
        text_item: EasyInputMessageParam = {"role": message.role, "content": message.text}
        items.append(text_item)
    for call in message.tool_calls:
        items.append(_build_call(call, native, namespaces))
    return items


def _restore_items(verbatim: Verbatim, calls: Iterable[ToolCall], native: Set[str]) -> Iterable[Mapping[str, Any]]:
    """Yield the items of an answer as they came. A call has the id under which its result is found."""
    waiting = iter(calls)
    has_lost_reasoning = False
    for item in verbatim.items:
        if not isinstance(item, dict):
            continue
        if _is_unreadable(item):
            has_lost_reasoning = True
            continue
        restored = dict(item)
        if has_lost_reasoning:
            # The server refuses the id of an item whose reasoning is missing.
            restored.pop("id", None)
            has_lost_reasoning = False
        if item.get("type") in _CALL_TYPES:
            call = next(waiting, None)
            if call and item["type"] == PATCH_CALL and PATCH_TOOL not in native:
                yield _build_call(call, native)  # the model has no such tool: a call of a function
                continue
            if call:
                restored["call_id"] = get_call_id(call.id)
        yield restored


def _is_unreadable(item: Mapping[str, Any]) -> bool:
    """Return whether an item is reasoning that the server neither encrypted nor sent as text."""
    if item.get("type") != "reasoning":
        return False
    return not item.get("encrypted_content") and not item.get("content")


def _build_call(
    call: ToolCall, native: Set[str], namespaces: Mapping[str, str] = {}
) -> "ResponseFunctionToolCallParam | ApplyPatchCall":
    if is_patch(call.id) and PATCH_TOOL in native:
        return build_patch_call(call)
    item: ResponseFunctionToolCallParam = {
        "type": "function_call",
        "call_id": get_call_id(call.id),
        "name": sanitize_tool_name(call.name),
        "arguments": sanitize_arguments(call.arguments),
    }
    if call.name in namespaces:
        item["namespace"] = namespaces[call.name]  # the server refuses a call without it
    return item


def _build_result(
    result: ToolResult, images: Path | None, native: Set[str]
) -> "FunctionCallOutput | ApplyPatchCallOutput":
    if is_patch(result.call_id) and PATCH_TOOL in native:
        return build_patch_result(result)
    text = mark_error(result)
    call_id = get_call_id(result.call_id)
    if not result.images:
        return {"type": "function_call_output", "call_id": call_id, "output": text}
    parts: list[Part] = [Text(text=text), *result.images]
    content: list[Any] = [*_build_contents(parts, images)]
    return {"type": "function_call_output", "call_id": call_id, "output": content}


def _build_contents(parts: Iterable[Part], images: Path | None) -> "list[Content]":
    """Build the entries of a content with images."""
    entries: list[Content] = []
    for part in parts:
        entries += _build_content(part, images)
    return entries


def _build_content(part: Part, images: Path | None) -> "list[Content]":
    """Build the entries of one part for a content with images."""
    if isinstance(part, Text):
        return [{"type": "input_text", "text": part.text}]
    if not isinstance(part, Image):
        return []
    data = encode_image(part, images)
    if data is None:
        return [{"type": "input_text", "text": f"[{part.kind} {part.source}: its file is gone]"}]
    url = f"data:{part.media_type};base64,{data}"
    if part.is_document:
        return [{"type": "input_file", "filename": part.source, "file_data": url}]
    return [
        {"type": "input_text", "text": f"[image {part.source}]"},
        {"type": "input_image", "image_url": url, "detail": "auto"},
    ]


# --- answers


@dataclass(slots=True)
class ResponsesStreamParser:
    """A parser of the events of one answer from the server at the host `origin`.

    The tool named `patch_tool` gets the calls of `apply_patch`.
    It ignores unknown kinds of events and keeps unknown kinds of items, because the API may add some at any time.
    """

    origin: str = ""
    patch_tool: str = PATCH_TOOL
    hosted: HostedItems = field(default_factory=HostedItems)
    _items: list["_PlacedItem"] = field(default_factory=list)
    _usage: Usage = field(default_factory=Usage)
    _withheld: tuple[str, ...] = ()
    _status: str = ""
    _reason: str = ""
    _shown_summaries: set[tuple[int, int]] = field(default_factory=set)
    _last_event: Mapping[str, Any] = field(default_factory=dict)

    @property
    def has_ended(self) -> bool:
        """See `StreamParser.has_ended`."""
        return bool(self._status)

    @property
    def usage(self) -> Usage:
        """See `StreamParser.usage`."""
        return self._usage

    def feed(self, event: object) -> list[Delta]:
        """Take an event, or a whole answer of a server that does not stream; return the deltas to show.

        Raises:
            BrokenStreamError: The event has a value of a wrong type.
        """
        event = expect(dict, event, "an event")
        if event.get("sequence_number") and event == self._last_event:  # the same event twice
            return []
        self._last_event = event
        if event.get("object") == "response":
            self._finish(event)
            text = self._join_texts()
            return [TextDelta(text=text)] if text else []
        match expect(str, event.get("type"), "type"):
            case "response.output_text.delta" | "response.refusal.delta":
                return [TextDelta(text=_read_delta(event))]
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                return self._show_thinking(event)
            case "response.output_item.done":
                index = expect_index(event, "output_index")
                if index is None:
                    index = len(self._items)
                item = expect(dict, event.get("item"), "item")
                is_new = self._find_earlier(item) is None
                self._take_item(index, item)
                return self.hosted.describe(item) if is_new else []
            case "response.completed" | "response.incomplete":
                self._finish(expect(dict, event.get("response"), "response"))
        return []

    def build_message(self) -> MessageCompleted:
        """Build the message after the last event.

        Raises:
            BrokenStreamError: The stream broke off or has no content.
            AnswerRefusedError: The server's content filter stopped the answer, or the model declined.
        """
        if not self._status:
            raise BrokenStreamError("the answer ended without `response.completed`; it may be incomplete")
        if self._reason == "content_filter":
            raise build_filter_error()
        items = self._list_items()
        refusal = _find_refusal(items)
        if refusal:
            raise build_declined_error(refusal)
        is_cut = self._status == "incomplete"
        parts = self.hosted.add_sources(self._list_parts(items), items)
        if is_cut:
            # A server refuses unfinished items. Without its follower the reasoning is refused, too.
            return complete_answer(parts, self._usage, is_cut)
        verbatim = Verbatim(wire=WIRE, origin=self.origin, items=tuple(items))
        return complete_answer(parts, self._usage, is_cut, verbatim, withheld=self._withheld)

    def _show_thinking(self, event: Mapping[str, Any]) -> list[Delta]:
        text = _read_delta(event)
        index = expect(int, event.get("output_index"), "output_index")
        part = expect(int, event.get("summary_index"), "summary_index")
        is_new_part = (index, part) not in self._shown_summaries
        if is_new_part and self._shown_summaries:
            text = f"\n\n{text}"
        self._shown_summaries.add((index, part))
        return [ThinkingDelta(text=text)]

    def _finish(self, response: Mapping[str, Any]) -> None:
        """Take what the last event says. Items that came before it are complete, so that these count."""
        output = expect_objects(response.get("output"), "output", "an item")
        if len(output) > len(self._items):
            self._add_missing_items(output)
        searches = count_searches(self._list_items())
        self._usage = _parse_usage(response.get("usage")).model_copy(update={"web_searches": searches})
        details = expect(dict, response.get("incomplete_details"), "incomplete_details")
        self._reason = expect(str, details.get("reason"), "reason")
        self._withheld = _list_withheld(response.get("input_transformations"))
        self._status = expect(str, response.get("status"), "status") or "completed"

    def _add_missing_items(self, output: Sequence[dict[str, Any]]) -> None:
        """Add the items of the last event that did not come before it."""
        known_indexes = {placed.index for placed in self._items}
        missing = []
        for index, item in enumerate(output):
            if index not in known_indexes and self._find_earlier(item) is None:
                missing.append(_PlacedItem(index, item))
        self._items += missing

    def _join_texts(self) -> str:
        parts = self._list_parts(self._list_items())
        return "".join(part.text for part in parts if isinstance(part, Text))

    def _list_parts(self, items: Iterable[Mapping[str, Any]]) -> list[Part]:
        """List the parts of items that people and other vendors' models can read."""
        parts: list[Part] = []
        for item in items:
            if item.get("type") == PATCH_CALL:
                parts.append(parse_patch_call(item, self.patch_tool))
            else:
                parts += _build_parts(item)
        return parts

    def _list_items(self) -> list[dict[str, Any]]:
        in_order = sorted(self._items, key=attrgetter("index"))
        return [placed.item for placed in in_order]

    def _take_item(self, index: int, item: dict[str, Any]) -> None:
        """Take an item. Some routers send an item twice, or give different items the same index."""
        earlier = self._find_earlier(item)
        if earlier is None:
            self._items.append(_PlacedItem(index, item))
        else:
            earlier.index = index
            earlier.item = item

    def _find_earlier(self, item: Mapping[str, Any]) -> "_PlacedItem | None":
        """Find the same item if it has come before, by its id."""
        kind = item.get("type")
        key = "call_id" if kind == "function_call" else "id"
        id_ = item.get(key)
        if not id_:
            return None
        for placed in self._items:
            if placed.item.get("type") == kind and placed.item.get(key) == id_:
                return placed
        return None


@dataclass(slots=True)
class _PlacedItem:
    """An item of an answer, and its index among the items."""

    index: int
    item: dict[str, Any]


def _read_delta(event: Mapping[str, Any]) -> str:
    if event.get("delta") is None:
        raise BrokenStreamError(f"the stream has a {event['type']!r} without a delta")
    return expect(str, event["delta"], "delta")


def _build_parts(item: Mapping[str, Any]) -> list[Part]:
    match item.get("type"):
        case "reasoning":
            texts = _read_texts(item.get("summary"), "summary")
            if not texts:
                texts = _read_texts(item.get("content"), "content")
            if texts:
                return [Thinking(text="\n\n".join(texts))]
        case "message":
            texts = _read_texts(item.get("content"), "content")
            if texts:
                return [Text(text="".join(texts))]
        case "function_call":
            return [
                ToolCall(
                    id=expect(str, item.get("call_id"), "call_id"),
                    name=expect(str, item.get("name"), "name"),
                    arguments=expect(str, item.get("arguments"), "arguments"),
                )
            ]
    return []


def _list_withheld(transformations: object) -> tuple[str, ...]:
    """List the reasons for which earlier reasoning was withheld. At the end of a turn this is normal."""
    reasons: set[str] = set()
    for entry in read_list(transformations):
        if isinstance(entry, Mapping) and entry.get("reason") != "turn_boundary":
            reasons.add(str(entry.get("reason")))
    return tuple(sorted(reasons))


def _find_refusal(items: Iterable[Mapping[str, Any]]) -> str:
    """Find the text in which the model declines to answer."""
    texts = []
    for item in items:
        if item.get("type") != "message":
            continue
        for entry in expect_objects(item.get("content"), "content", "content"):
            texts.append(expect(str, entry.get("refusal"), "refusal"))
    return "".join(texts)


def _read_texts(entries: object, name: str) -> list[str]:
    """Read the texts of a list of entries. A refusal of the model is text, too."""
    texts = []
    for entry in expect_objects(entries, name, name):
        text = expect(str, entry.get("text") or entry.get("refusal"), "text")
        if text:
            texts.append(text)
    return texts


def _parse_usage(sent: object) -> Usage:
    counts = read_object(sent)
    details = read_object(counts.get("input_tokens_details"))
    writes = read_object(details.get("cache_write_tokens_details"))
    return Usage(
        input_tokens=read_count(counts.get("input_tokens")),
        output_tokens=read_count(counts.get("output_tokens")),
        cache_read_tokens=read_count(details.get("cached_tokens")),
        cache_write_tokens=read_count(details.get("cache_write_tokens")),
        cache_write_long_tokens=read_count(writes.get("ttl_12h_tokens")),
    )


def parse_compaction(answer: object, origin: str) -> ServerCompaction:
    """Parse the answer to a request of `encode_compaction`. Only the server can read its items.

    Raises:
        BrokenStreamError: A value has a wrong type, or there is no compaction.
    """
    whole = expect(dict, answer, "the answer")
    items = expect_objects(whole.get("output"), "output", "an item")
    if not any(item.get("type") == "compaction" and item.get("encrypted_content") for item in items):
        raise BrokenStreamError("the answer holds no compaction")
    verbatim = Verbatim(wire=WIRE, origin=origin, items=tuple(items))
    return ServerCompaction(verbatim, "", _parse_usage(whole.get("usage")))


# --- errors


def find_error(event: object) -> Mapping[str, Any] | None:
    """Find the error that an event or a whole answer reports."""
    if not isinstance(event, Mapping):
        return None
    if event.get("type") == "error":
        error = event.get("error") or event
        return error if isinstance(error, Mapping) else {"message": str(error)}
    error = event.get("error")
    if event.get("type") == "response.failed":
        response = read_object(event.get("response"))
        error = response.get("error") or {"message": "the server gave no reason"}
    if isinstance(error, str):
        return {"message": error}
    return error if isinstance(error, Mapping) else None
