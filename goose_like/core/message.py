"""What is said: parts, messages and token counts, as frozen values that know nothing of wires or screens."""

import operator
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema


def _encodable(text: str) -> str:
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class _Encodable:
    """Text read from JSON, which pydantic takes as UTF-8 only, needs no second look: a session has 100,000 such."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        text = handler(source)
        looked_at = core_schema.no_info_after_validator_function(_encodable, text)
        return core_schema.json_or_python_schema(json_schema=text, python_schema=looked_at)


Words = Annotated[str, _Encodable]
"""Text that UTF-8 can hold. Halves of surrogate pairs, which broken streams and file names bring, are joined where
both are there, and else become U+FFFD: a session file and a request could not hold them."""


class Value(BaseModel):
    """A frozen record that refuses unknown fields; whatever crosses a border is one."""

    # Deferred: what a process never makes or reads costs it nothing.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Text(Value):
    """Words that the model or the person said."""

    type: Literal["text"] = "text"
    text: Words


class Thinking(Value):
    """Reasoning that a model sent beside its answer; `signature` is opaque and goes back to the vendor as it came."""

    type: Literal["thinking"] = "thinking"
    text: Words
    signature: Words | None = None


class RedactedThinking(Value):
    """Reasoning that its vendor sends encrypted only; it goes back as it came."""

    type: Literal["redacted_thinking"] = "redacted_thinking"
    data: Words


class Image(Value):
    """A picture whose bytes lie in the session's outputs under `name`; `source` tells where it came from."""

    type: Literal["image"] = "image"
    name: str = Field(pattern=r"^[\w-][\w.-]*$")  # a session that was imported may not name other files
    media_type: Literal["image/png", "image/jpeg", "image/gif", "image/webp"]
    source: Words


class ToolCall(Value):
    """A model's wish to run a tool. `arguments` is the JSON text as it arrived, which may be broken."""

    type: Literal["tool_call"] = "tool_call"
    id: Words
    name: Words
    arguments: Words


class ToolResult(Value):
    """A tool's answer to the call `call_id`. `output` is for the model; what people see travels in events.

    From the next turn on `later` stands in its place, if there is one. One that `is_final` ends the turn.
    """

    type: Literal["tool_result"] = "tool_result"
    call_id: Words
    output: Words
    is_error: bool = False
    images: tuple[Image, ...] = Field(default=(), exclude_if=operator.not_)
    replacement: Words | None = Field(default=None, exclude_if=lambda value: value is None)
    is_final: bool = Field(default=False, exclude_if=operator.not_)


Part = Annotated[Text | Image | Thinking | RedactedThinking | ToolCall | ToolResult, Field(discriminator="type")]


class Message(Value):
    """One entry of a conversation.

    A `user` message holds text and images; an `assistant` message text, thinking and tool calls; a `tool` message
    the results of one assistant message's calls, in the order of those calls.
    """

    role: Literal["user", "assistant", "tool"]
    parts: tuple[Part, ...]

    @classmethod
    def user(cls, text: str) -> "Message":
        """What a person said, or what we say in their place."""
        return cls(role="user", parts=(Text(text=text),))

    @classmethod
    def assistant(cls, text: str, calls: Iterable[ToolCall] = ()) -> "Message":
        """What a model said and wishes to run."""
        said = (Text(text=text),) if text else ()
        return cls(role="assistant", parts=(*said, *calls))

    @property
    def first_text(self) -> str:
        """What was typed; the text of files that came with it stands in parts of its own."""
        return next((part.text for part in self.parts if isinstance(part, Text)), "")

    @property
    def text(self) -> str:
        """All text parts, one after the other."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def images(self) -> tuple[Image, ...]:
        """All images: the message's own, and those of its tool results."""
        found: list[Image] = []
        for part in self.parts:  # plain, as it is asked of each message of a conversation
            if isinstance(part, Image):
                found.append(part)
            elif isinstance(part, ToolResult):
                found += part.images
        return tuple(found)

    def to_be_kept(self, elided: Mapping[str, str]) -> "Message":
        """The message as it stands after a summary: a vendor takes thinking back only after the very words that it
        was thought after, and `elided` has the words that stand for results too long to be sent again.
        """
        parts = tuple(
            part.model_copy(update={"output": elided[part.call_id], "images": ()})
            if isinstance(part, ToolResult) and part.call_id in elided
            else part
            for part in self.parts
            if not isinstance(part, Thinking | RedactedThinking)
        )
        return self if parts == self.parts else self.model_copy(update={"parts": parts})

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls, in the order in which the model made them."""
        return tuple(part for part in self.parts if isinstance(part, ToolCall))

    @property
    def tool_results(self) -> tuple[ToolResult, ...]:
        """The results, in the order of the calls."""
        return tuple(part for part in self.parts if isinstance(part, ToolResult))


def in_words(message: Message) -> Message:
    """The message for a model that takes no images: told which were there. The same message gives the same object."""
    return _in_words(message) if message.images else message


@lru_cache(maxsize=64)
def _in_words(message: Message) -> Message:
    def told(image: Image) -> str:
        return f"[image {image.source}: you can't see images]"

    parts: list[Part] = []
    for part in message.parts:
        if isinstance(part, Image):
            part = Text(text=f"\n{told(part)}")
        elif isinstance(part, ToolResult):
            output = "\n".join([part.output, *map(told, part.images)])
            part = part.model_copy(update={"output": output, "images": ()})
        parts.append(part)
    return message.model_copy(update={"parts": tuple(parts)})


class Usage(Value):
    """Tokens as the provider counted them. `input_tokens` holds all input, cached or not."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cache_read_tokens=self.cache_read_tokens + other.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
        )
