"""The wire format of chat completions: encodes requests and parses decoded chunks, without SDK or network.

Source: OpenAI's API reference (chat completions, "create" and "streaming"). Comments name servers that differ.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from goose_like.core.dataclass import dataclass
from goose_like.core.errors import BrokenStreamError
from goose_like.core.events import MessageCompleted, TextDelta, ThinkingDelta
from goose_like.core.message import Image, Message, Part, Text, Thinking, ToolCall, Usage
from goose_like.core.tool import ToolSpec

from .base import Delta, Embeddings, Request
from .chat_thinking import ThinkingRecord, get_returned_keys, split_content
from .event_stream import DONE
from .text_markup import Kind, ThinkSplitter, split_unopened_thinking
from .wire import (
    MAX_ID_LENGTH,
    MessageEncoder,
    StartEncoder,
    build_declined_error,
    build_filter_error,
    build_stream_error,
    complete_answer,
    count_same_start,
    encode_image,
    encode_json,
    expect,
    expect_index,
    expect_objects,
    is_json_object,
    mark_error,
    merge_body,
    read_count,
    read_object,
    sanitize_arguments,
    sanitize_call_id,
    sanitize_tool_name,
)

if TYPE_CHECKING:
    from openai.types.chat import (
        ChatCompletionAssistantMessageParam,
        ChatCompletionContentPartParam,
        ChatCompletionFunctionToolParam,
        ChatCompletionMessageFunctionToolCallParam,
        ChatCompletionMessageParam,
        ChatCompletionSystemMessageParam,
        ChatCompletionUserMessageParam,
    )
    from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming

# --- requests

USER_ROLES = ("user", "system")
"""The roles of messages that are sent as those of the user."""


@dataclass(frozen=True, slots=True)
class HistoryRules:
    """The form in which the history returns to a server.

    Thinking returns to the host `origin` from which it came; None returns it nowhere. `call` are further keys of every
    tool call that came without such keys, and `with_calls` those of every message with calls that lacks them.
    `id_length` is explained at `sanitize_call_id`.
    """

    origin: str | None = None
    call: Mapping[str, Any] = field(default_factory=dict)
    with_calls: Mapping[str, Any] = field(default_factory=dict)
    id_length: int = MAX_ID_LENGTH


class OpenAIEncoder:
    """An encoder of requests that encodes each message once.

    Constant keys come first in the body and `messages` last. The bytes of a request without the closing `]}` are a
    prefix of the next request, so that the server's prompt cache works and a long history costs one join.
    """

    def __init__(self, rules: HistoryRules = HistoryRules()) -> None:
        """Create an encoder for a server with these rules."""

        def encode(message: Message, images: Path | None) -> bytes:
            entries = build_message_entries(message, images, rules)
            return b",".join(map(encode_json, entries))

        self._messages = MessageEncoder(encode)
        self._start = StartEncoder()
        self._joined: list[Message] = []
        self._group_ends: list[int] = []
        self._grouped: list[Message] = []

    def encode_request(self, request: Request, extras: Mapping[str, Any] = {}) -> bytes:
        """Encode the JSON body of a request. `extras` are further keys of the body; None removes a key."""
        head: CompletionCreateParamsStreaming = {
            "model": request.model,
            "stream": True,
            "stream_options": {"include_usage": True},
            "messages": [],
        }
        body = merge_body(head, extras)
        if request.all_tools:
            body["tools"] = list(map(_build_tool, request.all_tools))
        body["messages"] = body.pop("messages")  # the last key
        messages = self._join_user_messages(request.messages)
        entries = self._messages.encode(messages, request.images)
        if request.system:
            system: ChatCompletionSystemMessageParam = {"role": "system", "content": request.system}
            entries = [encode_json(system), *entries]
        start = self._start.encode(body)
        return start + b",".join(filter(None, entries)) + b"]}"

    def _join_user_messages(self, messages: Sequence[Message]) -> list[Message]:
        """Join neighbouring user messages: the templates of many models want alternating roles.

        A message of goose_like counts as one of the user, since many templates take a system message only at the start.
        A group of the last request stays the same object, so that it is not encoded again.
        """
        has_grown = count_same_start(self._grouped, messages) == len(self._grouped)
        if not has_grown:
            self._joined = []
            self._group_ends = []
        # The last group may go on with the new messages.
        del self._joined[-1:]
        del self._group_ends[-1:]
        start = self._group_ends[-1] if self._group_ends else 0
        for group in _group_messages(messages, start):
            self._joined.append(group.joined)
            self._group_ends.append(group.end)
        self._grouped = list(messages)
        return self._joined


@dataclass(frozen=True, slots=True)
class _Group:
    """Neighbouring messages that are sent as one message, `joined`. `end` is the index behind the last of them."""

    joined: Message
    end: int


def _group_messages(messages: Sequence[Message], start: int) -> Iterator[_Group]:
    """Put neighbouring messages of the user into one group, from an index on. Each other message is a group."""
    members: list[Message] = []
    end = start
    for index in range(start, len(messages)):
        message = messages[index]
        if message.role == "system" and not message.text:
            continue
        continues_group = message.role in USER_ROLES and members and members[-1].role in USER_ROLES
        if members and not continues_group:
            yield _Group(_join_messages(members), end)
            members = []
        members.append(message)
        end = index + 1
    if members:
        yield _Group(_join_messages(members), end)


def _join_messages(group: Sequence[Message]) -> Message:
    first, *others = group
    if not others and first.role != "system":
        return first
    parts = list(first.parts)
    for message in others:
        parts.append(_GAP)
        parts += message.parts
    return Message(role="user", parts=tuple(parts))


_GAP = Text(text="\n\n")
"""The text between two messages that are sent as one."""


def _build_tool(tool: ToolSpec) -> "ChatCompletionFunctionToolParam":
    return {
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": dict(tool.schema)},
    }


def build_message_entries(
    message: Message, images: Path | None = None, rules: HistoryRules = HistoryRules()
) -> "list[ChatCompletionMessageParam]":
    """Build the entries of a message in the body's `messages`; a message of tool results has one per result."""
    match message.role:
        case "tool":
            return _build_result_entries(message, images, rules)
        case "assistant":
            return [_build_answer_entry(message, rules)]
    user: ChatCompletionUserMessageParam = {"role": "user", "content": message.text}
    if message.images:
        user["content"] = _build_contents(message.parts, images)
    return [user]


def _build_result_entries(
    message: Message, images: Path | None, rules: HistoryRules
) -> "list[ChatCompletionMessageParam]":
    entries: list[ChatCompletionMessageParam] = []
    for result in message.tool_results:
        call_id = sanitize_call_id(result.call_id, rules.id_length)
        entries.append({"role": "tool", "tool_call_id": call_id, "content": mark_error(result)})
    if message.images:
        # The format has no place for images in results, so they follow as a user message.
        entries.append({"role": "user", "content": _build_contents(message.images, images)})
    return entries


def _build_answer_entry(message: Message, rules: HistoryRules) -> "ChatCompletionAssistantMessageParam":
    """Build the entry of an answer, with the keys that must return to its server."""
    entry: ChatCompletionAssistantMessageParam = {"role": "assistant", "content": message.text}
    returned = dict(get_returned_keys(message, rules.origin))
    content = returned.pop("content", None)
    if content and split_content(content, "content")[0] == message.text:
        entry["content"] = content
    keys_of_calls = returned.pop("tool_calls", None)
    extras = returned
    if message.tool_calls:
        calls = []
        for index, call in enumerate(message.tool_calls):
            keys = rules.call
            if keys_of_calls:
                # Calls that were found in the text have no such keys.
                keys = keys_of_calls[index] if index < len(keys_of_calls) else {}
            calls.append(_build_call(call, keys, rules.id_length))
        entry["tool_calls"] = calls
        extras = {**rules.with_calls, **returned}
    return cast("ChatCompletionAssistantMessageParam", {**entry, **extras})


def _build_call(
    call: ToolCall, extras: Mapping[str, Any], id_length: int
) -> "ChatCompletionMessageFunctionToolCallParam":
    plain: ChatCompletionMessageFunctionToolCallParam = {
        "id": sanitize_call_id(call.id, id_length),
        "type": "function",
        "function": {"name": sanitize_tool_name(call.name), "arguments": sanitize_arguments(call.arguments)},
    }
    return cast("ChatCompletionMessageFunctionToolCallParam", {**plain, **extras})


def _build_contents(parts: Iterable[Part], images: Path | None) -> "list[ChatCompletionContentPartParam]":
    """Build the entries of a content with images."""
    entries: list[ChatCompletionContentPartParam] = []
    for part in parts:
        entries += _build_content(part, images)
    return entries


def _build_content(part: Part, images: Path | None) -> "list[ChatCompletionContentPartParam]":
    """Build the entries of one part for a content with images."""
    if isinstance(part, Text):
        return [{"type": "text", "text": part.text}]
    if not isinstance(part, Image):
        return []
    data = encode_image(part, images)
    if data is None:
        return [{"type": "text", "text": f"[{part.kind} {part.source}: its file is gone]"}]
    url = f"data:{part.media_type};base64,{data}"
    if part.is_document:
        return [{"type": "file", "file": {"filename": part.source, "file_data": url}}]
    return [
        {"type": "text", "text": f"[image {part.source}]"},
        {"type": "image_url", "image_url": {"url": url}},
    ]


def apply_strict_roles(messages: Sequence[Message]) -> list[Message]:
    """Join messages for servers that refuse two user messages in a row, or one directly after tool results.

    Between results and their images, insert a message of the model that asks for the images.
    """
    joined: list[Message] = []
    for message in messages:
        before = joined[-1].role if joined else "assistant"
        if message.role == "system":
            if not message.text:
                continue
            message = Message(role="user", parts=message.parts)
        if message.role == "tool" and message.images:
            joined.append(_remove_images(message))
            joined += _show_images(message)
        elif message.role != "user" or before == "assistant":
            joined.append(message)
        elif before == "user":
            joined[-1] = _join_messages([joined[-1], message])
        else:
            joined[-1] = _extend_results(joined[-1], message.text)
            if message.images:
                joined += _show_images(message)
    return joined


_IMAGE_REQUEST = Message.assistant("Show me.")


def _show_images(message: Message) -> list[Message]:
    """Let the model ask for the images of a message, and the user show them."""
    return [_IMAGE_REQUEST, Message(role="user", parts=message.images)]


def _remove_images(message: Message) -> Message:
    """Return a message of tool results without their images."""
    results = [result.model_copy(update={"images": ()}) for result in message.tool_results]
    return Message(role="tool", parts=tuple(results))


def _extend_results(message: Message, text: str) -> Message:
    """Return a message of tool results with a text at the end of the last result."""
    *results, last = message.tool_results
    output = f"{last.output}\n\n{text}"
    extended = last.model_copy(update={"output": output})
    return Message(role="tool", parts=(*results, extended))


def move_system_prompt(request: Request) -> Request:
    """Move the system prompt into the first message, for models that take none."""
    if not request.system or not request.messages:
        return request
    first, *others = request.messages
    prompt = Text(text=f"{request.system}\n\n")
    opening = Message(role="user", parts=(prompt, *first.parts))
    return replace(request, system="", messages=[opening, *others])


# --- answers

_DELTAS: dict[Kind, type[TextDelta | ThinkingDelta]] = {
    "text": TextDelta,
    "thinking": ThinkingDelta,
}


@dataclass(slots=True)
class _Call:
    """A tool call, or a part of one. `extras` are keys that OpenAI's format does not have, such as a signature."""

    id: str = ""
    name: str = ""
    arguments: str = ""
    extras: dict[str, Any] = field(default_factory=dict)

    def build(self) -> ToolCall:
        """Build the call for the history."""
        return ToolCall(id=self.id, name=self.name, arguments=self.arguments)


@dataclass(slots=True)
class OpenAIStreamParser:
    """A parser of the chunks of one answer from the server at the host `origin`.

    `reads_thinking`: a `<think>` block at the start of the text is thinking.
    """

    reads_thinking: bool = True
    origin: str = ""
    _thinking: ThinkingRecord = field(default_factory=ThinkingRecord)
    _pieces: dict[Kind, list[str]] = field(default_factory=dict)
    _splitter: ThinkSplitter = field(default_factory=ThinkSplitter)
    _half: dict[str, str] = field(default_factory=dict)
    _calls: list[_Call] = field(default_factory=list)
    _by_index: dict[int, _Call] = field(default_factory=dict)
    _usage: Usage = field(default_factory=Usage)
    _finish: str = ""
    _refusal: str = ""

    @property
    def has_ended(self) -> bool:
        """See `StreamParser.has_ended`."""
        return bool(self._finish)

    @property
    def usage(self) -> Usage:
        """See `StreamParser.usage`."""
        return self._usage

    def feed(self, chunk: Mapping[str, Any] | str) -> list[Delta]:
        """Take a chunk, `DONE`, or a whole answer of a server that does not stream; return the deltas to show.

        Raises:
            BrokenStreamError: The chunk reports an error or has a value of a wrong type.
            ContextLengthError: The chunk reports that the request was too long.
        """
        if chunk == DONE:
            self._finish = self._finish or "stop"
            return []
        chunk = expect(dict, chunk, "a chunk")
        if chunk.get("error"):
            raise build_stream_error(chunk["error"])
        if chunk.get("usage") is not None:
            self._usage = parse_usage(chunk["usage"])
        choice = _find_choice(chunk)
        return self._take_choice(choice) if choice else []

    def _take_choice(self, choice: Mapping[str, Any]) -> list[Delta]:
        finish = expect(str, choice.get("finish_reason"), "finish_reason")
        delta = expect(dict, choice.get("delta"), "delta")
        if not delta and not self._pieces and not self._calls:  # MiniMax repeats the whole message at the end
            delta = expect(dict, choice.get("message"), "message")
            if delta and not finish:
                finish = "stop"
        for item in expect(list, delta.get("tool_calls"), "tool_calls"):
            self._take_call(expect(dict, item, "a tool call"))
        if delta.get("function_call"):  # the older form, with at most one call
            self._take_call({"index": 0, "function": delta["function_call"]})
        self._finish = finish or self._finish
        return self._take_texts(delta)

    def _take_texts(self, delta: Mapping[str, Any]) -> list[Delta]:
        pieces: list[tuple[Kind, str]] = []
        thinking = self._thinking.take_delta(delta)
        if thinking:
            pieces.append(("thinking", thinking))
        content, _ = split_content(delta.get("content"), "content")
        refusal, _ = split_content(delta.get("refusal"), "refusal")
        self._refusal += refusal
        text = content + refusal
        if text and self.reads_thinking:
            pieces += self._splitter.feed(text)
        elif text:
            pieces.append(("text", text))
        deltas: list[Delta] = []
        for kind, piece in pieces:
            shown = self._take_piece(kind, piece)
            if shown:
                deltas.append(_DELTAS[kind](text=shown))
        return deltas

    def build_message(self) -> MessageCompleted:
        """Build the message after the last chunk.

        Raises:
            BrokenStreamError: The answer has no finish reason or no content, or the server stopped with an error.
            AnswerRefusedError: The server's content filter stopped the answer, or the model declined.
        """
        if not self._finish:
            raise BrokenStreamError("the answer ended without a finish reason; it may be incomplete")
        if self._finish in ("error", "abort", "network_error", "insufficient_system_resource"):
            raise BrokenStreamError(f"the server gave up within the answer (finish_reason {self._finish!r})")
        if self._finish == "content_filter":
            raise build_filter_error()
        if self._refusal:
            raise build_declined_error(self._refusal)
        is_cut = self._finish in ("length", "max_tokens")
        calls = [call for call in self._calls if call.name or not is_cut]  # drop a call that was cut before its name
        parts = self._join_pieces()
        parts += [call.build() for call in calls]
        verbatim = None
        if not is_cut:
            keys_of_calls = [call.extras for call in calls]
            verbatim = self._thinking.build_verbatim(self.origin, keys_of_calls)
        lacks_call = self._finish in ("tool_calls", "function_call") and not calls
        return complete_answer(parts, self._usage, is_cut, verbatim, lacks_call=lacks_call)

    def _join_pieces(self) -> list[Part]:
        """Join the pieces of thinking and text, also those that were held back."""
        for kind, piece in self._splitter.flush():
            self._keep_piece(kind, piece)
        thinking = "".join(self._pieces.get("thinking", ()))
        text = "".join(self._pieces.get("text", ()))
        if self.reads_thinking:
            unopened, text = split_unopened_thinking(text)
            thinking += unopened
        parts: list[Part] = []
        if thinking:
            parts.append(Thinking(text=thinking))
        if text:
            parts.append(Text(text=text))
        return parts

    def _keep_piece(self, kind: Kind, piece: str) -> None:
        self._pieces.setdefault(kind, []).append(piece)

    def _take_piece(self, kind: Kind, piece: str) -> str:
        """Keep a piece and return the text to show, without half a character at its end: some servers split pairs."""
        self._keep_piece(kind, piece)
        shown = self._half.pop(kind, "") + piece
        ends_in_half = "\ud800" <= shown[-1:] <= "\udbff"
        if ends_in_half:
            self._half[kind] = shown[-1]
            shown = shown[:-1]
        return shown

    def _take_call(self, item: Mapping[str, Any]) -> None:
        index = expect_index(item)
        delta = _read_call(item)
        call = self._find_continued_call(index, delta)
        if call is not None and delta.id and call == delta:
            return  # the same delta twice
        if call is None:
            call = _Call(delta.id, delta.name)
            self._calls.append(call)
        if index is not None:
            self._by_index[index] = call
        call.id = call.id or delta.id
        call.name = delta.name or call.name
        call.arguments += delta.arguments
        call.extras |= delta.extras

    def _find_continued_call(self, index: int | None, delta: _Call) -> _Call | None:
        """Return the call that a delta continues, or None if the delta begins a call.

        By the format, `index` identifies a call. Gemini's servers always send the index 0, older Ollama servers send
        none, and others repeat id and name in each delta. So a delta without a name continues a call. A delta with a
        name begins a call if its id or name is new, or if the call so far is complete.
        """
        last: _Call | None = None
        if self._calls:
            last = self._calls[-1]
        call = last if index is None else self._by_index.get(index)
        if call is None:
            is_new = delta.name or (last and delta.id and delta.id != last.id)
            return None if is_new else last
        if not delta.name or (delta.id and call == delta):
            return call
        has_other_id = bool(delta.id and call.id) and delta.id != call.id
        if has_other_id or not delta.name.startswith(call.name):
            return None
        is_complete = delta.arguments.strip() != "" and is_json_object(call.arguments)
        return None if is_complete else call


def _find_choice(chunk: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Find the first answer of a chunk. A server may give several answers to a request."""
    for entry in expect(list, chunk.get("choices"), "choices"):
        choice = expect(dict, entry, "a choice")
        index = choice.get("index")
        is_other = type(index) is int and index > 0
        if not is_other:
            return choice
    return None


_CALL_KEYS = ("index", "id", "type", "function")


def _read_call(item: Mapping[str, Any]) -> _Call:
    """Read a call, or a part of one, from a delta."""
    function = expect(dict, item.get("function"), "function")
    arguments = function.get("arguments")
    if isinstance(arguments, Mapping):  # as in Ollama's own API
        arguments = json.dumps(arguments)
    extras = {}
    for key, value in item.items():
        if key not in _CALL_KEYS and value is not None:
            extras[key] = value
    return _Call(
        id=expect(str, item.get("id"), "id"),
        name=expect(str, function.get("name"), "name"),
        arguments=expect(str, arguments, "arguments"),
        extras=extras,
    )


def parse_embeddings(answer: object, text_count: int) -> Embeddings:
    """Parse the answer of /embeddings into the order of the texts.

    Raises:
        BrokenStreamError: The answer is invalid or has another number of vectors.
    """
    whole = expect(dict, answer, "the answer")
    entries = expect_objects(whole.get("data"), "data", "data")
    entries.sort(key=lambda entry: expect(int, entry.get("index"), "index"))
    vectors = [expect(list, entry.get("embedding"), "embedding") for entry in entries]
    if len(vectors) != text_count or not all(vectors):
        raise BrokenStreamError(f"{len(vectors)} vectors came for {text_count} texts, or some are empty")
    for vector in vectors:
        if not all(isinstance(number, int | float) for number in vector):
            raise BrokenStreamError("a vector holds something else than numbers")
    return Embeddings(vectors, parse_usage(whole.get("usage")))


def parse_usage(sent: object) -> Usage:
    """Parse the `usage` of an answer. Unreadable counts are zero."""
    counts = read_object(sent)
    details = read_object(counts.get("prompt_tokens_details"))
    return Usage(
        input_tokens=read_count(counts.get("prompt_tokens")),
        output_tokens=read_count(counts.get("completion_tokens")),
        cache_read_tokens=read_count(details.get("cached_tokens")),
        cache_write_tokens=read_count(details.get("cache_write_tokens")),
    )
