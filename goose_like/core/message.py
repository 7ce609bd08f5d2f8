"""Messages of a conversation: parts, messages and token counts, independent of wire formats and screens."""

import json
import operator
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, GetCoreSchemaHandler, JsonValue
from pydantic_core import CoreSchema, core_schema


def _replace_surrogates(text: str) -> str:
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class _Utf8:
    """A validator that skips text from JSON: pydantic reads only valid UTF-8, and a session has 100,000 texts."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        text = handler(source)
        repaired = core_schema.no_info_after_validator_function(_replace_surrogates, text)
        return core_schema.json_or_python_schema(json_schema=text, python_schema=repaired)


Utf8Text = Annotated[str, _Utf8]
"""Text that UTF-8 can encode. Surrogate halves, from broken streams and file names, are joined or become U+FFFD."""

_load = json.JSONDecoder(parse_constant=lambda name: None).decode
JsonData = Annotated[JsonValue, AfterValidator(lambda v: _load(_replace_surrogates(json.dumps(v, ensure_ascii=False))))]
"""JSON that a session file can hold: text as in `Utf8Text`, and null in place of NaN and infinity."""


class FrozenModel(BaseModel):
    """A frozen record that refuses unknown fields; the base of all values that cross a boundary."""

    # Deferred: a process pays only for the models that it uses.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Text(FrozenModel):
    """Text from the model or the user."""

    type: Literal["text"] = "text"
    text: Utf8Text


class Thinking(FrozenModel):
    """Reasoning of a model. `signature` is opaque and returns to the vendor unchanged."""

    type: Literal["thinking"] = "thinking"
    text: Utf8Text
    signature: Utf8Text | None = None


class RedactedThinking(FrozenModel):
    """Reasoning that the vendor encrypts. The data returns to the vendor unchanged."""

    type: Literal["redacted_thinking"] = "redacted_thinking"
    data: Utf8Text


class Image(FrozenModel):
    """An image, stored as the file `name` in the outputs folder of the session. `source` is its origin."""

    type: Literal["image"] = "image"
    name: str = Field(pattern=r"^[\w-][\w.-]*$")  # an imported session must not name other files
    media_type: Literal["image/png", "image/jpeg", "image/gif", "image/webp"]
    source: Utf8Text


class ToolCall(FrozenModel):
    """A model's request to run a tool. `arguments` is the JSON text as received, which may be broken."""

    type: Literal["tool_call"] = "tool_call"
    id: Utf8Text
    name: Utf8Text
    arguments: Utf8Text

    def parse_arguments(self) -> dict[str, Any]:
        """Return the arguments by name; arguments that are not a JSON object have the name `""`."""
        try:
            arguments = json.loads(self.arguments or "{}")
        except (ValueError, RecursionError):
            arguments = self.arguments
        return arguments if isinstance(arguments, dict) else {"": arguments}


class ToolResult(FrozenModel):
    """The result of the call `call_id`. `output` is for the model; people see events.

    From the next turn on, `replacement` stands in for `output`. A result that `is_final` ends the turn.
    """

    type: Literal["tool_result"] = "tool_result"
    call_id: Utf8Text
    output: Utf8Text
    is_error: bool = False
    images: tuple[Image, ...] = Field(default=(), exclude_if=operator.not_)
    replacement: Utf8Text | None = Field(default=None, exclude_if=lambda value: value is None)
    is_final: bool = Field(default=False, exclude_if=operator.not_)


Part = Annotated[Text | Image | Thinking | RedactedThinking | ToolCall | ToolResult, Field(discriminator="type")]


class Message(FrozenModel):
    """One entry of a conversation.

    A `user` message holds text and images. An `assistant` message holds text, thinking and tool calls. A `tool`
    message holds the results of all calls of one assistant message, in the order of the calls.
    """

    role: Literal["user", "assistant", "tool"]
    parts: tuple[Part, ...]

    @classmethod
    def user(cls, text: str) -> "Message":
        """Create a user message."""
        return cls(role="user", parts=(Text(text=text),))

    @classmethod
    def assistant(cls, text: str, calls: Iterable[ToolCall] = ()) -> "Message":
        """Create an assistant message from text and tool calls."""
        texts = (Text(text=text),) if text else ()
        return cls(role="assistant", parts=(*texts, *calls))

    @property
    def first_text(self) -> str:
        """The typed text. Attached files follow as separate text parts."""
        return next((part.text for part in self.parts if isinstance(part, Text)), "")

    @property
    def text(self) -> str:
        """All text parts, joined."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def images(self) -> tuple[Image, ...]:
        """All images, including those of tool results."""
        images: list[Image] = []
        for part in self.parts:  # a plain loop: this runs for each message of a conversation
            if isinstance(part, Image):
                images.append(part)
            elif isinstance(part, ToolResult):
                images += part.images
        return tuple(images)

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The tool calls, in the order of the model."""
        return tuple([part for part in self.parts if part.type == "tool_call"])

    @property
    def tool_results(self) -> tuple[ToolResult, ...]:
        """The tool results, in the order of the calls."""
        return tuple([part for part in self.parts if part.type == "tool_result"])

    def strip_thinking(self, replacements: Mapping[str, str]) -> "Message":
        """Return the message without thinking and with replaced results.

        Vendors accept thinking only after exactly the text that preceded it. `replacements` maps call ids to the new
        outputs. The message itself returns when nothing changes.
        """
        parts = tuple(
            part.model_copy(update={"output": replacements[part.call_id], "images": ()})
            if isinstance(part, ToolResult) and part.call_id in replacements
            else part
            for part in self.parts
            if not isinstance(part, Thinking | RedactedThinking)
        )
        return self if parts == self.parts else self.model_copy(update={"parts": parts})


def join_answers(messages: Iterable[Message]) -> str:
    """Join the texts of a model's messages without calls. A reminder asks for more, but replaces no answer."""
    texts = (message.text for message in messages if message.role == "assistant" and not message.tool_calls)
    return "\n\n".join(text for text in texts if text.strip())


def replace_images(message: Message) -> Message:
    """Replace images with text, for a model that takes none. Equal messages give the same object."""
    return _replace_images(message) if message.images else message


@lru_cache(maxsize=64)
def _replace_images(message: Message) -> Message:
    def describe(image: Image) -> str:
        return f"[image {image.source}: you can't see images]"

    parts: list[Part] = []
    for part in message.parts:
        if isinstance(part, Image):
            part = Text(text=f"\n{describe(part)}")
        elif isinstance(part, ToolResult):
            output = "\n".join([part.output, *map(describe, part.images)])
            part = part.model_copy(update={"output": output, "images": ()})
        parts.append(part)
    return message.model_copy(update={"parts": tuple(parts)})


class Usage(FrozenModel):
    """Tokens as counted by the provider. `input_tokens` includes cached input."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        """The sum of input and output tokens."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(**{name: getattr(self, name) + getattr(other, name) for name in Usage.model_fields})
