"""The wire format of chat completions: encodes requests and parses decoded chunks, without SDK or network.

Source: OpenAI's API reference (chat completions, "create" and "streaming"). Comments name servers that differ.
"""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from goose_like.core.errors import BrokenStreamError, ProviderError
from goose_like.core.events import MessageCompleted, TextDelta, ThinkingDelta
from goose_like.core.message import Image, Message, Part, Text, Thinking, ToolCall, Usage

from .base import Delta, Embeddings, Request, SearchAnswer
from .event_stream import DONE
from .text_markup import Kind, ThinkSplitter, split_unopened_thinking
from .wire import (
    SEARCH_PROMPT,
    MessageEncoder,
    build_stream_error,
    complete_answer,
    complete_search,
    encode_image,
    encode_json,
    expect,
    extract_error_text,
    is_json_object,
    read_count,
    read_page,
    sanitize_arguments,
    sanitize_tool_name,
)

# --- requests


class OpenAIEncoder:
    """An encoder of requests that encodes each message once.

    Constant keys come first in the body and `messages` last. The bytes of a request without the closing `]}` are a
    prefix of the next request, so that the server's prompt cache works and a long history costs one join.
    """

    def __init__(self, call_extras: Mapping[str, Any] = {}, thinking_key: str | None = None) -> None:
        """Create an encoder.

        `call_extras` are further keys of every tool call in the history. `thinking_key` is the key for thinking in the
        history; None leaves thinking out.
        """

        def encode(message: Message, images: Path | None) -> bytes:
            return b",".join(map(encode_json, build_message_entries(message, images, call_extras, thinking_key)))

        self._messages = MessageEncoder(encode)

    def encode_request(self, request: Request, extras: Mapping[str, Any] = {}) -> bytes:
        """Encode the JSON body of a request. `extras` are further keys of the body; None removes a key."""
        head: dict[str, Any] = {"model": request.model, "stream": True, "stream_options": {"include_usage": True}}
        head = {key: value for key, value in (head | dict(extras)).items() if value is not None}
        if request.tools:
            head["tools"] = [
                {
                    "type": "function",
                    "function": {"name": tool.name, "description": tool.description, "parameters": tool.schema},
                }
                for tool in request.tools
            ]
        system = encode_json({"role": "system", "content": request.system}) if request.system else b""
        entries = (system, *self._messages.encode(request.messages, request.images))
        return encode_json(head | {"messages": []}).removesuffix(b"]}") + b",".join(filter(None, entries)) + b"]}"


def build_message_entries(
    message: Message,
    images: Path | None = None,
    call_extras: Mapping[str, Any] = {},
    thinking_key: str | None = None,
) -> list[dict[str, Any]]:
    """Build the entries of a message in the body's `messages`; a message of tool results has one per result.

    The format has no place for images in results, so they follow as a user message.
    """
    if message.role == "tool":
        entries: list[dict[str, Any]] = []
        for result in message.tool_results:
            # The format has no flag for errors, so the text must say it.
            is_unclear = result.is_error and not result.output.lower().startswith("error")
            output = f"error: {result.output}" if is_unclear else result.output
            entries.append({"role": "tool", "tool_call_id": result.call_id, "content": output})
        if message.images:
            shown = [entry for image in message.images for entry in _build_content(image, images)]
            entries.append({"role": "user", "content": shown})
        return entries
    if message.images:
        content = [entry for part in message.parts for entry in _build_content(part, images)]
        return [{"role": message.role, "content": content}]
    entry: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.tool_calls:
        entry["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": sanitize_tool_name(call.name), "arguments": sanitize_arguments(call.arguments)},
                **call_extras,
            }
            for call in message.tool_calls
        ]
    if thinking_key:
        thinking = "".join(part.text for part in message.parts if isinstance(part, Thinking))
        if thinking or message.tool_calls:
            entry[thinking_key] = thinking or " "  # earlier thinking is not always known
    return [entry]


def _build_content(part: Part, images: Path | None) -> list[dict[str, Any]]:
    """Build the entries of one part for a content with images."""
    if isinstance(part, Text):
        return [{"type": "text", "text": part.text}]
    if not isinstance(part, Image):
        return []
    data = encode_image(part, images)
    if data is None:
        return [{"type": "text", "text": f"[image {part.source}: its file is gone]"}]
    url = {"url": f"data:{part.media_type};base64,{data}"}
    return [{"type": "text", "text": f"[image {part.source}]"}, {"type": "image_url", "image_url": url}]


def apply_strict_roles(messages: Sequence[Message]) -> list[Message]:
    """Join messages for servers that refuse two user messages in a row, or one directly after tool results.

    Between results and their images, insert a message of the model that asks for the images.
    """
    joined: list[Message] = []
    for message in messages:
        before = joined[-1].role if joined else "assistant"
        if message.role == "tool" and message.images:
            plain = tuple(result.model_copy(update={"images": ()}) for result in message.tool_results)
            joined += [Message(role="tool", parts=plain), _IMAGE_REQUEST, Message(role="user", parts=message.images)]
        elif message.role != "user" or before == "assistant":
            joined.append(message)
        elif before == "user":
            joined[-1] = Message(role="user", parts=(*joined[-1].parts, Text(text="\n\n"), *message.parts))
        else:
            *results, last = joined[-1].tool_results
            extended = last.model_copy(update={"output": f"{last.output}\n\n{message.text}"})
            joined[-1] = Message(role="tool", parts=(*results, extended))
            if message.images:
                joined += [_IMAGE_REQUEST, Message(role="user", parts=message.images)]
    return joined


_IMAGE_REQUEST = Message.assistant("Show me.")


# --- answers

_DELTAS: dict[Kind, type[TextDelta | ThinkingDelta]] = {"text": TextDelta, "thinking": ThinkingDelta}


@dataclass(slots=True)
class _Call:
    """A tool call whose parts are still arriving."""

    id: str
    name: str
    arguments: str = ""


@dataclass(slots=True)
class OpenAIStreamParser:
    """A parser of the chunks of one answer."""

    _pieces: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    _splitter: ThinkSplitter = field(default_factory=ThinkSplitter)
    _half: dict[str, str] = field(default_factory=dict)
    _calls: list[_Call] = field(default_factory=list)
    _by_index: dict[int, _Call] = field(default_factory=dict)
    _usage: Usage = field(default_factory=Usage)
    _finish: str = ""

    @property
    def has_ended(self) -> bool:
        """See `StreamParser.has_ended`."""
        return bool(self._finish)

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
            self._usage = _parse_usage(chunk["usage"])
        choices = expect(list, chunk.get("choices"), "choices")
        if not choices:
            return []
        choice = expect(dict, choices[0], "a choice")
        finish = expect(str, choice.get("finish_reason"), "finish_reason")
        delta = expect(dict, choice.get("delta"), "delta")
        if not delta and not self._pieces and not self._calls:  # MiniMax repeats the whole message at the end
            delta = expect(dict, choice.get("message"), "message")
            finish = finish or ("stop" if delta else "")
        for item in expect(list, delta.get("tool_calls"), "tool_calls"):
            self._take_call(expect(dict, item, "a tool call"))
        if delta.get("function_call"):  # the older form, with at most one call
            self._take_call({"index": 0, "function": delta["function_call"]})
        # DeepSeek, llama-server and vLLM use `reasoning_content`, OpenRouter and Groq `reasoning`, some use both.
        thinking = _join_texts(delta.get("reasoning_content") or delta.get("reasoning"), "reasoning")
        text = _join_texts(delta.get("content"), "content") + _join_texts(delta.get("refusal"), "refusal")
        pieces: list[tuple[Kind, str]] = [("thinking", thinking)] if thinking else []
        pieces += self._splitter.feed(text) if text else []
        self._finish = finish or self._finish
        return [_DELTAS[kind](text=shown) for kind, piece in pieces if (shown := self._take_piece(kind, piece))]

    def build_message(self) -> MessageCompleted:
        """Build the message after the last chunk.

        Raises:
            BrokenStreamError: The answer has no finish reason or no content, or the server stopped with an error.
            ProviderError: The server's content filter stopped the answer.
        """
        if not self._finish:
            raise BrokenStreamError("the answer ended without a finish reason; it may be incomplete")
        if self._finish in ("error", "abort", "network_error", "insufficient_system_resource"):
            raise BrokenStreamError(f"the server gave up within the answer (finish_reason {self._finish!r})")
        if self._finish == "content_filter":
            raise ProviderError(
                "the server's content filter stopped the answer; say it in other words, or choose another model"
            )
        is_cut = self._finish in ("length", "max_tokens")
        for kind, piece in self._splitter.flush():
            self._pieces[kind].append(piece)
        unopened, text = split_unopened_thinking("".join(self._pieces["text"]))
        parts: list[Part] = []
        if thinking := "".join(self._pieces["thinking"]) + unopened:
            parts.append(Thinking(text=thinking))
        if text:
            parts.append(Text(text=text))
        calls = [call for call in self._calls if call.name or not is_cut]  # drop a call that was cut before its name
        parts += [ToolCall(id=call.id, name=call.name, arguments=call.arguments) for call in calls]
        return complete_answer(parts, self._usage, is_cut)

    def _take_piece(self, kind: Kind, piece: str) -> str:
        """Keep a piece and return the text to show, without half a character at its end: some servers split pairs."""
        self._pieces[kind].append(piece)
        piece = self._half.pop(kind, "") + piece
        if "\ud800" <= piece[-1:] <= "\udbff":
            self._half[kind], piece = piece[-1], piece[:-1]
        return piece

    def _take_call(self, item: Mapping[str, Any]) -> None:
        function = expect(dict, item.get("function"), "function")
        index = None if item.get("index") is None else expect(int, item["index"], "index")
        id_, name = expect(str, item.get("id"), "id"), expect(str, function.get("name"), "name")
        arguments = function.get("arguments")
        if isinstance(arguments, Mapping):  # as in Ollama's own API
            arguments = json.dumps(arguments)
        arguments = expect(str, arguments, "arguments")
        call = self._find_continued_call(index, id_, name, arguments)
        if call is not None and id_ and (call.id, call.name, call.arguments) == (id_, name, arguments):
            return  # the same delta twice
        if call is None:
            call = _Call(id_, name)
            self._calls.append(call)
        if index is not None:
            self._by_index[index] = call
        call.id, call.name = call.id or id_, name or call.name
        call.arguments += arguments

    def _find_continued_call(self, index: int | None, id_: str, name: str, arguments: str) -> _Call | None:
        """Return the call that a delta continues, or None if the delta begins a call.

        By the format, `index` identifies a call. Gemini's servers always send the index 0, older Ollama servers send
        none, and others repeat id and name in each delta. So a delta without a name continues a call. A delta with a
        name begins a call if its id or name is new, or if the call so far is complete.
        """
        last = self._calls[-1] if self._calls else None
        call = last if index is None else self._by_index.get(index)
        if call is None:
            return None if name or (last and id_ and id_ != last.id) else last
        if not name:
            return call
        has_other_id = bool(id_ and call.id) and id_ != call.id
        is_same = bool(id_) and (call.id, call.name, call.arguments) == (id_, name, arguments)
        is_complete = arguments.strip() != "" and is_json_object(call.arguments) and not is_same
        return None if has_other_id or is_complete or not name.startswith(call.name) else call


def parse_embeddings(answer: object, text_count: int) -> Embeddings:
    """Parse the answer of /embeddings into the order of the texts.

    Raises:
        BrokenStreamError: The answer is invalid or has another number of vectors.
    """
    whole = expect(dict, answer, "the answer")
    entries = [expect(dict, entry, "data") for entry in expect(list, whole.get("data"), "data")]
    entries.sort(key=lambda entry: expect(int, entry.get("index"), "index"))
    vectors = [expect(list, entry.get("embedding"), "embedding") for entry in entries]
    if len(vectors) != text_count or not all(vectors):
        raise BrokenStreamError(f"{len(vectors)} vectors came for {text_count} texts, or some are empty")
    if not all(isinstance(number, int | float) for vector in vectors for number in vector):
        raise BrokenStreamError("a vector holds something else than numbers")
    return Embeddings(vectors, _parse_usage(whole.get("usage")))


# --- web search, in the format of the Responses API


def build_search(query: str, model: str) -> dict[str, Any]:
    """Build the body of a request that lets a model search the web on the server, which keeps nothing."""
    body = {"model": model, "input": SEARCH_PROMPT.format(query), "tools": [{"type": "web_search"}], "store": False}
    return body | {"include": ["web_search_call.action.sources"]}


def parse_search(answer: object) -> SearchAnswer:
    """Parse the answer to `build_search`. The cited pages come before the others, which have no title.

    Raises:
        BrokenStreamError: A value has a wrong type, or there is no text.
        ProviderError: The search failed.
    """
    whole = expect(dict, answer, "the answer")
    texts: list[str] = []
    cited: list[tuple[str, str]] = []
    others: list[tuple[str, str]] = []
    problem = extract_error_text(whole["error"]) if whole.get("error") else ""
    for item in (expect(dict, item, "an item") for item in expect(list, whole.get("output"), "output")):
        match item.get("type"):
            case "web_search_call":
                texts.clear()
                problem = problem or ("no reason" if item.get("status") == "failed" else "")
                sources = expect(list, expect(dict, item.get("action"), "action").get("sources"), "sources")
                others += [read_page(expect(dict, source, "a source")) for source in sources]
            case "message":
                for part in (expect(dict, part, "a part") for part in expect(list, item.get("content"), "content")):
                    texts.append(expect(str, part.get("text") or part.get("refusal"), "text"))
                    notes = expect(list, part.get("annotations"), "annotations")
                    cited += [read_page(expect(dict, note, "an annotation")) for note in notes]
    usage = expect(dict, whole.get("usage"), "usage")
    counts = {"prompt_tokens": usage.get("input_tokens"), "completion_tokens": usage.get("output_tokens")}
    counts["prompt_tokens_details"] = usage.get("input_tokens_details")
    return complete_search("\n".join(texts), [*cited, *others], _parse_usage(counts), problem)


def _parse_usage(sent: object) -> Usage:
    counts = sent if isinstance(sent, Mapping) else {}
    details = counts.get("prompt_tokens_details")
    details = details if isinstance(details, Mapping) else {}
    return Usage(
        input_tokens=read_count(counts.get("prompt_tokens")),
        output_tokens=read_count(counts.get("completion_tokens")),
        cache_read_tokens=read_count(details.get("cached_tokens")),
        cache_write_tokens=read_count(details.get("cache_write_tokens")),
    )


def _join_texts(content: object, name: str) -> str:
    """Join the texts of a content: a string, or a list of typed parts as from Mistral."""
    if not isinstance(content, list):
        return expect(str, content, name)
    return "".join(expect(str, expect(dict, part, name).get("text"), name) for part in content)
