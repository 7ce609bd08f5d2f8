"""The parts that the bodies of both APIs share, and the `AnswerRequest` to which each body is converted."""

import json
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, ValidationError, model_validator

from goose_like.core.errors import GooseLikeError, UsageError
from goose_like.providers.json_answer import AnswerSchema
from goose_like.serve.body import describe_json_type, describe_wrong_field, parse_object

_TAGS = (
    *("system", "developer", "user", "assistant", "tool"),
    *("text", "input_text", "output_text", "image_url", "input_image", "refusal", "file", "input_file"),
    *("reasoning", "function_call", "function_call_output"),
)
"""Values that choose a type in a union. pydantic puts them into the path of an error."""


class RequestError(GooseLikeError):
    """A request that is refused, with the HTTP status and the fields of OpenAI's error."""

    def __init__(self, text: str, param: str | None = None, code: str | None = None, status: int = 400) -> None:
        super().__init__(text)
        self.param = param
        self.code = code
        self.status = status


class Part(BaseModel):
    """A part of a body. Unknown fields are ignored."""

    # Strict, so that a wrong type is an error and not a guess.
    model_config = ConfigDict(frozen=True, extra="ignore", strict=True, defer_build=True)


class TextPart(Part):
    """A text in the content of a message."""

    type: Literal["text", "input_text", "output_text"]
    text: str


class RefusalPart(Part):
    """The text in which a model refused to answer."""

    type: Literal["refusal"]
    text: str = Field(alias="refusal")


class ImageUrl(Part):
    """The address of an image."""

    url: str


def _wrap_url(value: Any) -> Any:
    return {"url": value} if isinstance(value, str) else value


class ImagePart(Part):
    """An image in the content of a message."""

    type: Literal["image_url", "input_image"]
    image_url: Annotated[ImageUrl, BeforeValidator(_wrap_url)]


def _choose_filename(value: Any) -> Any:
    return "file.pdf" if value is None else value


class FilePart(Part):
    """A file in the content of a message. Chat completions has its fields one level deeper."""

    type: Literal["file", "input_file"]
    filename: Annotated[str, BeforeValidator(_choose_filename)] = "file.pdf"
    file_data: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _lift_fields(cls, value: Any) -> Any:
        file = value.get("file") if isinstance(value, dict) else None
        if file is None:
            return value
        if value["type"] != "file":
            raise ValueError("a part 'input_file' has no 'file'; put 'file_data' and 'filename' beside 'type'")
        if not isinstance(file, dict):
            raise ValueError(f"expected an object in 'file', with 'file_data', not {describe_json_type(file)}")
        return {**file, "type": "file"}


def _wrap_content(value: Any) -> Any:
    if isinstance(value, str):
        return [{"type": "text", "text": value}]
    return [] if value is None else value


ContentPart = Annotated[TextPart | RefusalPart | ImagePart | FilePart, Field(discriminator="type")]
Content = Annotated[list[ContentPart], BeforeValidator(_wrap_content)]


class SystemMessage(Part):
    """Instructions of the client."""

    role: Literal["system", "developer"]
    content: Content


class UserMessage(Part):
    """A message of the person."""

    role: Literal["user"]
    content: Content = []


class CalledFunction(Part):
    """The function of a call, with its arguments as JSON text."""

    name: str
    arguments: str = ""


class ClientCall(Part):
    """A call that the client was asked to run."""

    id: str = Field(min_length=1)
    function: CalledFunction


class AssistantMessage(Part):
    """An answer, with the calls that the client was asked to run. `reasoning_details` may hold our signed state."""

    role: Literal["assistant"]
    content: Content = []
    tool_calls: list[ClientCall] | None = None
    reasoning_details: JsonValue = None


class ToolMessage(Part):
    """The result of a call."""

    role: Literal["tool"]
    tool_call_id: str
    content: Content


ChatMessage = Annotated[SystemMessage | UserMessage | AssistantMessage | ToolMessage, Field(discriminator="role")]


class FunctionTool(Part):
    """The description of a function that the client runs."""

    name: str = Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")
    description: str | None = None
    parameters: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class AnswerRequest:
    """A checked request of either API. `model` is the name of a profile.

    `messages` come with their places in the body. The answer is a call of one of the `functions` if it `must_call`. It
    ends before the first text of `stop`, and is JSON that fits the `answer_schema`.
    """

    model: str
    messages: tuple[tuple[str, ChatMessage], ...]
    is_stream: bool = False
    functions: tuple[FunctionTool, ...] = ()
    must_call: bool = False
    has_parallel_calls: bool = True
    max_tokens: int | None = None
    temperature: float | None = None
    stop: tuple[str, ...] = ()
    answer_schema: AnswerSchema | None = None


Body = TypeVar("Body", bound=Part)


def parse_body(
    body: bytes, kind: type[Body], list_name: str, unsupported: Mapping[str, tuple[JsonValue, ...]], max_messages: int
) -> Body:
    """Parse the body of a request. `unsupported` are fields with the values that change nothing.

    Raises:
        RequestError: the body is not JSON, a field is wrong, or it asks for something that a profile cannot do.
    """
    try:
        data = parse_object(body)
    except ValueError as error:
        raise RequestError(str(error)) from None
    messages = data.get(list_name)
    if isinstance(messages, list) and len(messages) > max_messages:
        raise RequestError(f"{len(messages)} messages are more than the maximum of {max_messages}", list_name)
    for name, harmless in unsupported.items():
        value = data.get(name)
        if value is not None and value not in harmless:
            text = f"this server does not support {name!r} with the value {json.dumps(value)[:80]}; leave it out"
            raise RequestError(text, name, "unsupported_value")
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        raise _describe_error(error) from None


def choose_functions(
    functions: tuple[FunctionTool, ...], choice: JsonValue, name: str | None
) -> tuple[tuple[FunctionTool, ...], bool]:
    """Return the functions that the model may call by `tool_choice`, and whether it must. `name` is a named function.

    Raises:
        RequestError: the choice is none that this server knows, or there is no such function.
    """
    if choice in (None, "auto"):
        return functions, False
    if choice == "none":
        return (), False
    if choice == "required":
        chosen = functions
    elif name is not None:
        chosen = tuple(function for function in functions if function.name == name)
    else:
        text = f"this server does not support 'tool_choice' with the value {json.dumps(choice)[:80]}; leave it out"
        raise RequestError(text, "tool_choice", "unsupported_value")
    if not chosen:
        raise RequestError("'tool_choice' asks for a call, but `tools` has no such function", "tool_choice")
    return chosen, True


class AnswerFormat(Part):
    """The wanted form of an answer. Chat completions have the schema one level deeper."""

    model_config = ConfigDict(extra="allow")  # a response repeats all of it

    type: Literal["text", "json_object", "json_schema"]
    json_schema: dict[str, Any] | None = None
    answer_schema: dict[str, Any] | None = Field(default=None, alias="schema")

    def read_schema(self, place: str) -> AnswerSchema | None:
        """Return the schema of the answer, or None for text.

        Raises:
            RequestError: it is no JSON schema.
        """
        match self.type:
            case "text":
                return None
            case "json_object":
                schema: Any = {"type": "object"}
            case "json_schema" if self.json_schema is not None:
                schema = self.json_schema.get("schema")
            case _:
                schema = self.answer_schema
        try:
            return AnswerSchema.read(schema)
        except UsageError as error:
            raise RequestError(f"{place}: {error}", place, "invalid_json_schema") from None


def check_tool_names(request: AnswerRequest, reserved_names: Collection[str]) -> None:
    """Check that the names of the client's tools are unique and none of the profile's.

    Raises:
        RequestError: they are not.
    """
    counts = Counter(function.name for function in request.functions)
    for name, number in counts.items():
        if number > 1:
            raise RequestError(f"{number} tools have the name {name!r}; rename all but one", "tools")
        if name in reserved_names:
            raise RequestError(f"{request.model!r} has a tool {name!r} of its own; rename the client's tool", "tools")


def _describe_error(error: ValidationError) -> RequestError:
    detail = error.errors(include_url=False, include_context=False)[0]
    path = ""
    before: int | str = ""
    for key in detail["loc"]:
        is_tag = key in _TAGS and isinstance(before, int)
        before = key
        if isinstance(key, int):
            path += f"[{key}]"
        elif not is_tag:
            path += f".{key}" if path else key
    return RequestError(f"{path}: {describe_wrong_field(detail)}", path)
