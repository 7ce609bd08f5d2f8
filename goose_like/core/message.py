"""Messages of a conversation: parts, messages and token counts, independent of wire formats and screens."""

import json
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import lru_cache
from inspect import Signature
from typing import Annotated, Any, Literal, Self, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, GetCoreSchemaHandler, JsonValue
from pydantic_core import CoreSchema, core_schema

from goose_like.core.dataclass import dataclass


def replace_surrogates(text: str) -> str:
    """Join the halves of surrogate pairs, and replace halves that stand alone: UTF-8 cannot encode them."""
    if text.isascii():
        return text
    data = text.encode("utf-16", "surrogatepass")
    return data.decode("utf-16", "replace")


class _Utf8:
    """A validator that skips text from JSON: pydantic reads only valid UTF-8, and a session has 100,000 texts."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        text = handler(source)
        repaired = core_schema.no_info_after_validator_function(replace_surrogates, text)
        return core_schema.json_or_python_schema(json_schema=text, python_schema=repaired)


Utf8Text = Annotated[str, _Utf8]
"""Text that UTF-8 can encode. Surrogate halves, from broken streams and file names, are joined or become U+FFFD."""

_load = json.JSONDecoder(parse_constant=lambda name: None).decode


def _clean_json(value: Any) -> Any:
    """Replace what a session file cannot hold, on the way through JSON."""
    text = json.dumps(value, ensure_ascii=False)
    return _load(replace_surrogates(text))


JsonData = Annotated[JsonValue, AfterValidator(_clean_json)]
"""JSON that a session file can hold: text as in `Utf8Text`, and null in place of NaN and infinity."""


class _DeferredSignature:
    """The signature of a model, which `help()` shows. Pydantic replaces it when it builds the model."""

    def __get__(self, instance: object, owner: type[BaseModel]) -> Signature:
        owner.model_rebuild()
        return owner.__signature__


class FrozenModel(BaseModel):
    """A frozen record that refuses unknown fields; the base of all values that cross a boundary."""

    # Deferred: a process pays only for the models that it uses.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.__signature__ = _DeferredSignature()  # type: ignore[assignment]

    @classmethod
    def make_unchecked(cls, **fields: Any) -> Self:
        """Make a record of values that are known to be right: a check would build the model, which takes long.

        For records that each start makes, mostly default values. The fields that are not given have their defaults.
        """
        return cast(Self, cls.model_construct(**fields))  # pydantic's plugin for mypy says FrozenModel


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """The description of a tool for the model. `schema` is the JSON schema (an object) of the arguments.

    `has_long_arguments` and `native` are explained at `tool`. A tool with a `deferred_group` is for servers that search
    tools themselves: the model gets its definition when it looks for it, within that group. Other models do not get it.
    """

    name: str
    description: str
    schema: dict[str, Any]
    has_long_arguments: bool = False
    # Not compared: a model that knows the tool by its schema need not be told of a change.
    native: Annotated[str, Field(exclude_if=operator.not_)] = field(default="", compare=False)
    deferred_group: Annotated[str, Field(exclude_if=operator.not_)] = field(default="", compare=False)


def _clean_spec(spec: ToolSpec) -> ToolSpec:
    """Replace what a session file cannot hold: a server of tools may send anything."""
    name, description, schema = _clean_json([spec.name, spec.description, spec.schema])
    return replace(spec, name=name, description=description, schema=schema)


SavedToolSpec = Annotated[ToolSpec, AfterValidator(_clean_spec)]
"""The description of a tool in a session file."""


class Text(FrozenModel):
    """Text from the model or the user."""

    type: Literal["text"] = "text"
    text: Utf8Text


class Thinking(FrozenModel):
    """Reasoning of a model, for people. Vendors get it back in `Message.verbatim`; `signature` is in older sessions."""

    type: Literal["thinking"] = "thinking"
    text: Utf8Text
    signature: Utf8Text | None = None


class RedactedThinking(FrozenModel):
    """Reasoning that the vendor encrypted, in older sessions. Today `Message.verbatim` has it."""

    type: Literal["redacted_thinking"] = "redacted_thinking"
    data: Utf8Text


PDF = "application/pdf"


class Image(FrozenModel):
    """An image or PDF file, stored as the file `name` in the outputs folder of the session. `source` is its origin."""

    type: Literal["image"] = "image"
    name: str = Field(pattern=r"^[\w-][\w.-]*$")  # an imported session must not name other files
    media_type: Literal["image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf"]
    source: Utf8Text

    @property
    def is_document(self) -> bool:
        """True for a PDF file."""
        return self.media_type == PDF

    @property
    def kind(self) -> str:
        """The word for such a file in texts."""
        return "document" if self.is_document else "image"


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
        if not isinstance(arguments, dict):
            return {"": arguments}
        return arguments


class ToolResult(FrozenModel):
    """The result of the call `call_id`. `output` is for the model; people see events.

    After the turn, `replacement` stands in for `output` as soon as the conversation is shortened. A result that
    `is_final` ends the turn.
    """

    type: Literal["tool_result"] = "tool_result"
    call_id: Utf8Text
    output: Utf8Text
    is_error: bool = False
    images: tuple[Image, ...] = Field(default=(), exclude_if=operator.not_)
    replacement: Utf8Text | None = Field(default=None, exclude_if=lambda value: value is None)
    is_final: bool = Field(default=False, exclude_if=operator.not_)


class NewTools(FrozenModel):
    """Tools that the model may use from here on, in addition to those before the conversation."""

    type: Literal["new_tools"] = "new_tools"
    tools: tuple[SavedToolSpec, ...]


class EffortChange(FrozenModel):
    """The effort of the model from here on. An empty `effort` is the default of the server."""

    type: Literal["effort_change"] = "effort_change"
    effort: str


class Verbatim(FrozenModel):
    """An answer exactly as its server sent it, item by item. Arguments of calls may be in the parts only.

    Only the server that sent the items can read all of them, such as encrypted reasoning, and only if they return
    unchanged. Other servers get the parts of the message. `wire` names the format, and `origin` the server's host.
    For `chat` the only item holds the keys that return beside text and calls.
    """

    wire: Literal["responses", "chat", "messages"]
    origin: str
    items: tuple[JsonData, ...]

    @property
    def is_bound(self) -> bool:
        """True if the server refuses the thinking in the items after another text than that before it."""
        return self.wire != "chat"


Part = Annotated[
    Text | Image | Thinking | RedactedThinking | ToolCall | ToolResult | NewTools | EffortChange,
    Field(discriminator="type"),
]


class Message(FrozenModel):
    """One entry of a conversation.

    A `user` message holds text and images. An `assistant` message holds text, thinking and tool calls. A `tool`
    message holds the results of all calls of one assistant message, in the order of the calls. A `system` message is
    written by goose_like: a reminder, or a change of what precedes the conversation. `verbatim` is the form in which
    the server sent an assistant message, if it must return unchanged, or a summary in the form of the server.
    """

    role: Literal["user", "assistant", "tool", "system"]
    parts: tuple[Part, ...]
    verbatim: Verbatim | None = Field(default=None, exclude_if=lambda value: value is None)

    @classmethod
    def user(cls, text: str) -> "Message":
        """Create a user message."""
        return cls(role="user", parts=(Text(text=text),))

    @classmethod
    def system(cls, text: str) -> "Message":
        """Create a message that goose_like writes."""
        return cls(role="system", parts=(Text(text=text),))

    @classmethod
    def assistant(cls, text: str, calls: Iterable[ToolCall] = ()) -> "Message":
        """Create an assistant message from text and tool calls."""
        parts: list[Part] = []
        if text:
            parts.append(Text(text=text))
        parts += calls
        return cls(role="assistant", parts=tuple(parts))

    @property
    def first_text(self) -> str:
        """The typed text. Attached files follow as separate text parts."""
        for part in self.parts:
            if isinstance(part, Text):
                return part.text
        return ""

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

    @property
    def new_tools(self) -> tuple[ToolSpec, ...]:
        """The tools that this message brings."""
        tools: list[ToolSpec] = []
        for part in self.parts:
            if isinstance(part, NewTools):
                tools += part.tools
        return tuple(tools)

    def strip_thinking(self, replacements: Mapping[str, str], *, is_refused: bool = False) -> "Message":
        """Return the message without bound thinking and with replaced results.

        Some vendors accept thinking only after exactly the text that preceded it; `Verbatim.is_bound` says which. The
        others still get it, unless it `is_refused`. `replacements` maps call ids to the new outputs. The message itself
        returns when nothing changes.
        """
        verbatim = self.verbatim
        if verbatim and not verbatim.is_bound and not is_refused:
            return self
        parts: list[Part] = []
        for part in self.parts:
            if isinstance(part, Thinking | RedactedThinking):
                continue
            if isinstance(part, ToolResult) and part.call_id in replacements:
                part = part.model_copy(update={"output": replacements[part.call_id], "images": ()})
            parts.append(part)
        if tuple(parts) == self.parts and verbatim is None:
            return self
        # Without its reasoning, a server refuses the rest of an answer under the same ids.
        return self.model_copy(update={"parts": tuple(parts), "verbatim": None})


def join_answers(messages: Iterable[Message]) -> str:
    """Join the texts of a model's messages without calls. A reminder asks for more, but replaces no answer."""
    answers = []
    for message in messages:
        if message.role != "assistant" or message.tool_calls:
            continue
        text = message.text
        if text.strip():
            answers.append(text)
    return "\n\n".join(answers)


def replace_images(message: Message) -> Message:
    """Replace images with text, for a model that takes none. Equal messages give the same object."""
    if not message.images:
        return message
    return _replace_images(message, None, "you can't see images")


def leave_out_images(
    messages: Sequence[Message], names: frozenset[str], reason: str = "the server refused it"
) -> list[Message]:
    """Replace the images with these names with text. Equal messages give the same objects."""
    if not names:
        return list(messages)
    replaced = []
    for message in messages:
        is_affected = any(image.name in names for image in message.images)
        if is_affected:
            message = _replace_images(message, names, reason)
        replaced.append(message)
    return replaced


@lru_cache(maxsize=1_024)
def _replace_images(message: Message, names: frozenset[str] | None, reason: str) -> Message:
    """Replace the images with these names, or all images, with a line that gives the reason."""
    parts: list[Part] = []
    for part in message.parts:
        if isinstance(part, Image) and (names is None or part.name in names):
            part = Text(text=f"\n[{part.kind} {part.source}: {reason}]")
        elif isinstance(part, ToolResult):
            lines = [part.output]
            kept = []
            for image in part.images:
                if names is None or image.name in names:
                    lines.append(f"[{image.kind} {image.source}: {reason}]")
                else:
                    kept.append(image)
            part = part.model_copy(update={"output": "\n".join(lines), "images": tuple(kept)})
        parts.append(part)
    return message.model_copy(update={"parts": tuple(parts)})


class Usage(FrozenModel):
    """Tokens as counted by the provider. `input_tokens` includes cached input.

    `cache_write_tokens` includes `cache_write_long_tokens`, which the server keeps for hours at a higher price.
    `web_searches` counts the searches of the server, which have a price of their own.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cache_write_long_tokens: int = Field(default=0, exclude_if=operator.not_)
    web_searches: int = Field(default=0, exclude_if=operator.not_)

    @property
    def total_tokens(self) -> int:
        """The sum of input and output tokens."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: "Usage") -> "Usage":
        sums = {}
        for name in Usage.model_fields:
            sums[name] = getattr(self, name) + getattr(other, name)
        return Usage(**sums)
