"""The wire format of chat completions: encodes requests and parses decoded chunks, without SDK or network.

Source: OpenAI's API reference (chat completions, "create" and "streaming"). Comments name servers that differ.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from goose_like.core.errors import BrokenStreamError, ProviderError
from goose_like.core.events import MessageCompleted, TextDelta, ThinkingDelta
from goose_like.core.message import Image, Message, Part, Text, Thinking, ToolCall, Usage
from goose_like.core.tool import ToolSpec

from .base import Delta, Embeddings, Request
from .wire import (
    MessageEncoder,
    build_stream_error,
    build_type_error,
    encode_image,
    encode_json,
    expect,
    is_json_object,
    sanitize_arguments,
    sanitize_tool_name,
)

# --- requests


class OpenAIEncoder:
    """An encoder of requests that encodes each message once.

    Constant keys come first in the body and `messages` last. The bytes of a request without the closing `]}` are a
    prefix of the next request, so that the server's prompt cache works and a long history costs one join.
    """

    def __init__(
        self,
        choice_extras: Mapping[str, Any] = {},
        call_extras: Mapping[str, Any] = {},
        thinking_key: str | None = None,
    ) -> None:
        """Create an encoder for requests with the same settings.

        Args:
            choice_extras: Further keys of every body (limits, temperature, a schema). None removes a key.
            call_extras: Further keys of every tool call in the history.
            thinking_key: The key for thinking in the history; None leaves thinking out.
        """
        self._extras = dict(choice_extras)
        self._call_extras = dict(call_extras)
        self._thinking_key = thinking_key
        self._constants: tuple[str, str, tuple[ToolSpec, ...]] | None = None
        self._head = self._system = b""
        self._sent = MessageEncoder(self._encode)

    def encode_request(self, request: Request) -> bytes:
        """Encode the JSON body of a request."""
        constants = (request.model, request.system, tuple(request.tools))
        if constants != self._constants:
            self._constants = constants
            self._head = self._encode_head(request)
            self._system = encode_json({"role": "system", "content": request.system}) if request.system else b""
        entries = (entry for _, entry in self._sent.encode(request.messages, request.images))
        return self._head + b",".join(filter(None, (self._system, *entries))) + b"]}"

    def _encode(self, message: Message, images: Path | None) -> bytes:
        return b",".join(
            map(encode_json, build_message_entries(message, images, self._call_extras, self._thinking_key))
        )

    def _encode_head(self, request: Request) -> bytes:
        head: dict[str, Any] = {"model": request.model, "stream": True, "stream_options": {"include_usage": True}}
        head = {key: value for key, value in (head | self._extras).items() if value is not None}
        if request.tools:
            head["tools"] = [
                {
                    "type": "function",
                    "function": {"name": tool.name, "description": tool.description, "parameters": tool.schema},
                }
                for tool in request.tools
            ]
        return encode_json(head | {"messages": []}).removesuffix(b"]}")


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
        images_content = [part for image in message.images for part in _build_content(image, images)]
        return [
            # The format has no flag for errors, so the text must say it.
            {
                "role": "tool",
                "tool_call_id": result.call_id,
                "content": f"error: {result.output}"
                if result.is_error and not result.output.lower().startswith("error")
                else result.output,
            }
            for result in message.tool_results
        ] + ([{"role": "user", "content": images_content}] if images_content else [])
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
        if message.role == "tool" and message.images:
            plain = tuple(result.model_copy(update={"images": ()}) for result in message.tool_results)
            joined += [Message(role="tool", parts=plain), _IMAGE_REQUEST, Message(role="user", parts=message.images)]
            continue
        before = joined[-1] if joined else None
        if message.role == "user" and before and before.role == "user":
            gap = Text(text="\n\n")
            joined[-1] = Message(role="user", parts=(*before.parts, gap, *message.parts))
        elif message.role == "user" and before and before.role == "tool":
            *results, last = before.tool_results
            extended = last.model_copy(update={"output": f"{last.output}\n\n{message.text}"})
            joined[-1] = Message(role="tool", parts=(*results, extended))
            if message.images:
                joined += [_IMAGE_REQUEST, Message(role="user", parts=message.images)]
        else:
            joined.append(message)
    return joined


_IMAGE_REQUEST = Message.assistant("Show me.")


# --- answers


@dataclass(slots=True)
class _Call:
    """A tool call whose parts are still arriving."""

    id: str = ""
    name: str = ""
    arguments: str = ""

    def append(self, name: str, arguments: str) -> None:
        # Some servers repeat the name in each chunk, or repeat it with more letters. The format sends each piece once.
        if name != self.name:
            self.name = name if name.startswith(self.name) else self.name + name
        self.arguments += arguments


@dataclass(slots=True)
class OpenAIStreamParser:
    """A parser of the chunks of one answer."""

    _text: list[str] = field(default_factory=list)
    _thinking: list[str] = field(default_factory=list)
    _calls: list[_Call] = field(default_factory=list)
    _by_index: dict[int, _Call] = field(default_factory=dict)
    _half: dict[str, str] = field(default_factory=dict)
    _usage: Usage = field(default_factory=Usage)
    _finish: str = ""

    def feed(self, chunk: Mapping[str, Any]) -> list[Delta]:
        """Take a chunk and return the deltas to show.

        Raises:
            BrokenStreamError: The chunk reports an error or has a value of a wrong type.
            ContextLengthError: The chunk reports that the request was too long.
        """
        chunk = expect(dict, chunk, "a chunk")
        if chunk.get("error"):
            raise build_stream_error(chunk["error"])
        if chunk.get("usage") is not None:
            self._usage = _parse_usage(expect(dict, chunk["usage"], "usage"))
        choices = expect(list, chunk.get("choices"), "choices")
        if not choices:
            return []
        choice = expect(dict, choices[0], "a choice")
        delta = expect(dict, choice.get("delta"), "delta")
        self._finish = expect(str, choice.get("finish_reason"), "finish_reason") or self._finish
        for item in expect(list, delta.get("tool_calls"), "tool_calls"):
            self._take_call(expect(dict, item, "a tool call"))
        if delta.get("function_call"):  # the older form, with at most one call
            self._take_call({"index": 0, "function": delta["function_call"]})
        return [*self._take_thinking(delta), *self._take_text(delta)]

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
        calls = [call for call in self._calls if call.name or not is_cut]
        if is_cut and calls and not calls[-1].arguments.strip():
            calls[-1].arguments = "{"  # cut before its arguments: it must not look like a call without arguments
        if any(not call.name for call in calls):
            raise BrokenStreamError("the answer holds a tool call without a name")
        parts: list[Part] = []
        if thinking := "".join(self._thinking):
            parts.append(Thinking(text=thinking))
        if text := "".join(self._text):
            parts.append(Text(text=text))
        parts += [ToolCall(id=c.id, name=c.name, arguments=c.arguments) for c in calls]
        if not parts and is_cut:
            raise BrokenStreamError(
                "the output limit was used up before the answer began; raise max_output_tokens", is_retryable=False
            )
        if not parts:
            raise BrokenStreamError(f"the answer is empty (finish_reason {self._finish!r})")
        return MessageCompleted(message=Message(role="assistant", parts=tuple(parts)), usage=self._usage, is_cut=is_cut)

    def _take_text(self, delta: Mapping[str, Any]) -> Iterator[Delta]:
        for content in (delta.get("content"), delta.get("refusal")):
            for piece in _iterate_texts(content, "content"):
                self._text.append(piece)
                if complete := self._take_complete_characters("text", piece):
                    yield TextDelta(text=complete)

    def _take_thinking(self, delta: Mapping[str, Any]) -> Iterator[Delta]:
        # DeepSeek, llama-server and vLLM use `reasoning_content`, OpenRouter and Groq `reasoning`, some use both.
        for piece in _iterate_texts(delta.get("reasoning_content") or delta.get("reasoning"), "reasoning"):
            self._thinking.append(piece)
            if complete := self._take_complete_characters("thinking", piece):
                yield ThinkingDelta(text=complete)

    def _take_complete_characters(self, kind: str, piece: str) -> str:
        """Hold back half a character at the end of a piece: some servers split surrogate pairs."""
        piece = self._half.pop(kind, "") + piece
        if piece and "\ud800" <= piece[-1] <= "\udbff":
            self._half[kind], piece = piece[-1], piece[:-1]
        return piece

    def _take_call(self, item: Mapping[str, Any]) -> None:
        function = expect(dict, item.get("function"), "function")
        index = item.get("index")
        if index is not None:
            expect(int, index, "index")
        id_ = expect(str, item.get("id"), "id")
        name = expect(str, function.get("name"), "name")
        arguments = function.get("arguments")
        if isinstance(arguments, Mapping):  # as in Ollama's own API
            arguments = json.dumps(arguments)
        arguments = expect(str, arguments, "arguments")
        call = self._find_continued_call(index, id_, name, arguments)
        if call is None:
            call = _Call()
            self._calls.append(call)
        if index is not None:
            self._by_index[index] = call
        call.id = call.id or id_
        call.append(name or call.name, arguments)

    def _find_continued_call(self, index: int | None, id_: str, name: str, arguments: str) -> _Call | None:
        """Return the call that a delta continues, or None if the delta begins a call.

        By the format, `index` identifies a call. Gemini's servers always send the index 0, older Ollama servers send
        none, and others repeat id and name in each delta. So a delta without a name always continues a call. A delta
        with a name begins a call if its id or name is new, or if the call so far is complete.
        """
        last = self._calls[-1] if self._calls else None
        of_id = next((call for call in reversed(self._calls) if id_ and call.id == id_), None)
        if index is None:
            call = of_id or (None if id_ and name else last)
        else:
            call = self._by_index.get(index) or (None if name else of_id or (None if id_ else last))
        if call is None or not name:
            return call
        if id_ and call.id and id_ != call.id:
            return None
        if not call.arguments:
            # Pieces of one name share an index or an id. Without both, another name means another call.
            return call if index is not None or id_ or name == call.name else None
        is_next = name != call.name or (arguments.strip() != "" and is_json_object(call.arguments))
        return None if is_next else call


def parse_embeddings(answer: object, text_count: int) -> Embeddings:
    """Parse the answer of /embeddings into the order of the texts.

    Raises:
        BrokenStreamError: The answer is invalid or has another number of vectors.
    """
    whole = expect(dict, answer, "the answer")
    entries = [expect(dict, entry, "data") for entry in expect(list, whole.get("data"), "data")]
    entries.sort(key=lambda entry: expect(int, entry.get("index"), "index"))
    values = [expect(list, entry.get("embedding"), "embedding") for entry in entries]
    if any(not value or not all(isinstance(number, int | float) for number in value) for value in values):
        raise build_type_error("embedding", None, "a list of numbers")
    if len(values) != text_count:
        raise BrokenStreamError(f"{len(values)} vectors came for {text_count} texts")
    return Embeddings(values, _parse_usage(expect(dict, whole.get("usage"), "usage")))


def _parse_usage(sent: Mapping[str, Any]) -> Usage:
    details = expect(dict, sent.get("prompt_tokens_details"), "prompt_tokens_details")
    return Usage(
        input_tokens=expect(int, sent.get("prompt_tokens"), "prompt_tokens"),
        output_tokens=expect(int, sent.get("completion_tokens"), "completion_tokens"),
        cache_read_tokens=expect(int, details.get("cached_tokens"), "cached_tokens"),
        cache_write_tokens=expect(int, details.get("cache_write_tokens"), "cache_write_tokens"),
    )


def _iterate_texts(content: object, name: str) -> Iterator[str]:
    """Yield the texts of a content: a string, or a list of typed parts as from Mistral."""
    if not isinstance(content, list):
        if text := expect(str, content, name):
            yield text
        return
    for part in content:
        if text := expect(str, expect(dict, part, name).get("text"), name):
            yield text
