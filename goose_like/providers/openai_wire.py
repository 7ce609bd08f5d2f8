"""The chat-completions wire as values: requests to bytes, decoded chunks to deltas and one message; no SDK, no socket.

The rules are those of OpenAI's API reference (chat completions, "create" and "streaming"); where servers that speak
the same wire differ from it, the comment names what they do.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from goose_like.core.errors import BrokenStreamError, ProviderError
from goose_like.core.events import MessageCompleted, TextDelta, ThinkingDelta
from goose_like.core.message import Image, Message, Part, Text, Thinking, ToolCall, Usage

from .base import Delta, Embeddings, Request, ToolSpec
from .wire import (
    MessageEncoder,
    build_stream_error,
    build_type_error,
    encode_image,
    encode_json,
    expect_count,
    expect_list,
    expect_object,
    expect_string,
    is_json_object,
    sanitize_arguments,
    sanitize_tool_name,
)

# --- what we send


class OpenAIEncoder:
    """Requests as bytes, each message encoded once.

    What is constant comes first in the body and `messages` last, so that the bytes of a request, without the closing
    `]}`, begin those of the next one: the server's prompt cache holds, and a long history costs one join.
    """

    def __init__(
        self,
        choice_extras: Mapping[str, Any] = {},
        call_extras: Mapping[str, Any] = {},
        thinking_key: str | None = None,
    ) -> None:
        """`choice_extras` are further keys of the body, the same in each request (limits, temperature, a schema).

        One that is None takes the key away. `call_extras` are further keys of each tool call that goes back,
        `thinking_key` is what thinking goes back under.
        """
        self._extras = dict(choice_extras)
        self._call_extras = dict(call_extras)
        self._thinking_key = thinking_key
        self._constants: tuple[str, str, tuple[ToolSpec, ...]] | None = None
        self._head = self._system = b""
        self._sent = MessageEncoder(self._encode)

    def encode_request(self, request: Request) -> bytes:
        """The request's whole JSON body."""
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
    """A message as entries of the wire's `messages`; a message of tool results gives one for each result.

    Thinking is left out where there is no `thinking_key`: the wire itself has no place for it. Nor has it one for
    images in results, which follow them in the user's name.
    """
    if message.role == "tool":
        pictures = [part for image in message.images for part in _said(image, images)]
        return [
            # This wire has no flag for a failed tool, so the words must tell.
            {
                "role": "tool",
                "tool_call_id": result.call_id,
                "content": f"error: {result.output}"
                if result.is_error and not result.output.lower().startswith("error")
                else result.output,
            }
            for result in message.tool_results
        ] + ([{"role": "user", "content": pictures}] if pictures else [])
    if message.images:
        said = [entry for part in message.parts for entry in _said(part, images)]
        return [{"role": message.role, "content": said}]
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
        thought = "".join(part.text for part in message.parts if isinstance(part, Thinking))
        if thought or message.tool_calls:
            entry[thinking_key] = thought or " "  # what was thought is not always known any more
    return [entry]


def _said(part: Part, images: Path | None) -> list[dict[str, Any]]:
    """A part as entries of a content that holds images."""
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
    """The messages for servers that refuse two of the person's side by side, or one right after a tool's: joined.

    Between results and their pictures the model is made to ask for these.
    """
    joined: list[Message] = []
    for message in messages:
        if message.role == "tool" and message.images:
            bare = tuple(result.model_copy(update={"images": ()}) for result in message.tool_results)
            joined += [Message(role="tool", parts=bare), _SHOW_ME, Message(role="user", parts=message.images)]
            continue
        before = joined[-1] if joined else None
        if message.role == "user" and before and before.role == "user":
            gap = Text(text="\n\n")
            joined[-1] = Message(role="user", parts=(*before.parts, gap, *message.parts))
        elif message.role == "user" and before and before.role == "tool":
            *results, last = before.tool_results
            told = last.model_copy(update={"output": f"{last.output}\n\n{message.text}"})
            joined[-1] = Message(role="tool", parts=(*results, told))
            if message.images:
                joined += [_SHOW_ME, Message(role="user", parts=message.images)]
        else:
            joined.append(message)
    return joined


_SHOW_ME = Message.assistant("Show me.")


# --- what we receive


@dataclass(slots=True)
class _Call:
    """A tool call that is still arriving."""

    id: str = ""
    name: str = ""
    arguments: str = ""

    def append(self, name: str, arguments: str) -> None:
        # Some servers repeat the name in each chunk, or send it as it grows, where the wire splits it.
        if name != self.name:
            self.name = name if name.startswith(self.name) else self.name + name
        self.arguments += arguments


@dataclass(slots=True)
class OpenAIStreamParser:
    """The chunks of one streamed answer, folded into deltas and then into the message."""

    _text: list[str] = field(default_factory=list)
    _thinking: list[str] = field(default_factory=list)
    _calls: list[_Call] = field(default_factory=list)
    _by_index: dict[int, _Call] = field(default_factory=dict)
    _half: dict[str, str] = field(default_factory=dict)
    _usage: Usage = field(default_factory=Usage)
    _finish: str = ""

    def feed(self, chunk: Mapping[str, Any]) -> list[Delta]:
        """What is new to show after this chunk.

        Raises:
            BrokenStreamError: the chunk carries an error, or something of another type than the wire has there.
            ContextLengthError: the error that it carries says that the request was too long.
        """
        chunk = expect_object(chunk, "a chunk")
        if chunk.get("error"):
            raise build_stream_error(chunk["error"])
        if chunk.get("usage") is not None:
            self._usage = _usage(expect_object(chunk["usage"], "usage"))
        choices = expect_list(chunk.get("choices"), "choices")
        if not choices:
            return []
        choice = expect_object(choices[0], "a choice")
        delta = expect_object(choice.get("delta"), "delta")
        self._finish = expect_string(choice.get("finish_reason"), "finish_reason") or self._finish
        for item in expect_list(delta.get("tool_calls"), "tool_calls"):
            self._take_call(expect_object(item, "a tool call"))
        if delta.get("function_call"):  # the form before `tool_calls`: one call at most
            self._take_call({"index": 0, "function": delta["function_call"]})
        return [*self._take_thinking(delta), *self._take_text(delta)]

    def build_message(self) -> MessageCompleted:
        """The message, once the stream has ended.

        Raises:
            BrokenStreamError: there was no finish reason, or nothing was said, or the server gave up.
            ProviderError: the server's content filter stopped the answer.
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
            calls[-1].arguments = "{"  # cut before its arguments: that must not pass for a call without any
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
            for piece in _pieces(content, "content"):
                self._text.append(piece)
                if shown := self._whole_characters("text", piece):
                    yield TextDelta(text=shown)

    def _take_thinking(self, delta: Mapping[str, Any]) -> Iterator[Delta]:
        # DeepSeek, llama-server and vLLM say `reasoning_content`, OpenRouter and Groq `reasoning`, some say both.
        for piece in _pieces(delta.get("reasoning_content") or delta.get("reasoning"), "reasoning"):
            self._thinking.append(piece)
            if shown := self._whole_characters("thinking", piece):
                yield ThinkingDelta(text=shown)

    def _whole_characters(self, kind: str, piece: str) -> str:
        """The piece without half a character at its end: `\\ud83d` in one chunk, `\\ude00` in the next."""
        piece = self._half.pop(kind, "") + piece
        if piece and "\ud800" <= piece[-1] <= "\udbff":
            self._half[kind], piece = piece[-1], piece[:-1]
        return piece

    def _take_call(self, item: Mapping[str, Any]) -> None:
        function = expect_object(item.get("function"), "function")
        index = item.get("index")
        if index is not None and (not isinstance(index, int) or isinstance(index, bool)):
            raise build_type_error("index", index, "a number")
        id_ = expect_string(item.get("id"), "id")
        name = expect_string(function.get("name"), "name")
        arguments = function.get("arguments")
        if isinstance(arguments, Mapping):  # as Ollama's own API has them
            arguments = json.dumps(arguments)
        arguments = expect_string(arguments, "arguments")
        call = self._continued(index, id_, name, arguments)
        if call is None:
            call = _Call()
            self._calls.append(call)
        if index is not None:
            self._by_index[index] = call
        call.id = call.id or id_
        call.append(name or call.name, arguments)

    def _continued(self, index: int | None, id_: str, name: str, arguments: str) -> _Call | None:
        """The call that a delta goes on with; None when it begins one.

        The wire tells calls apart by `index`. Gemini's servers give each the index 0, Ollama's older ones none, and
        others repeat id and name in each delta: so a delta without a name always goes on, and one with a name begins
        a call when its id is a new one, or its name is, or the call so far is whole.
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
            # Pieces of a name come under an index or an id; without both, another name is another call.
            return call if index is not None or id_ or name == call.name else None
        is_next = name != call.name or (arguments.strip() != "" and is_json_object(call.arguments))
        return None if is_next else call


def parse_embeddings(answer: object, wanted: int) -> Embeddings:
    """What a server answers at /embeddings, in the order of the texts.

    Raises:
        BrokenStreamError: it is something else, or not of as many texts.
    """
    whole = expect_object(answer, "the answer")
    entries = [expect_object(entry, "data") for entry in expect_list(whole.get("data"), "data")]
    entries.sort(key=lambda entry: expect_count(entry.get("index"), "index"))
    values = [expect_list(entry.get("embedding"), "embedding") for entry in entries]
    if any(not value or not all(isinstance(number, int | float) for number in value) for value in values):
        raise build_type_error("embedding", None, "a list of numbers")
    if len(values) != wanted:
        raise BrokenStreamError(f"{len(values)} vectors came for {wanted} texts")
    return Embeddings(values, _usage(expect_object(whole.get("usage"), "usage")))


def _usage(sent: Mapping[str, Any]) -> Usage:
    details = expect_object(sent.get("prompt_tokens_details"), "prompt_tokens_details")
    return Usage(
        input_tokens=expect_count(sent.get("prompt_tokens"), "prompt_tokens"),
        output_tokens=expect_count(sent.get("completion_tokens"), "completion_tokens"),
        cache_read_tokens=expect_count(details.get("cached_tokens"), "cached_tokens"),
        cache_write_tokens=expect_count(details.get("cache_write_tokens"), "cache_write_tokens"),
    )


def _pieces(content: object, what: str) -> Iterator[str]:
    """The text of a content: a string, or a list of typed parts as Mistral sends them."""
    if not isinstance(content, list):
        if text := expect_string(content, what):
            yield text
        return
    for part in content:
        if text := expect_string(expect_object(part, what).get("text"), what):
            yield text
