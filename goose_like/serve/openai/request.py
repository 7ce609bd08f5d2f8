"""The body of a chat completion, checked and converted to a `ChatRequest`. Unknown fields are ignored."""

import json
from collections import Counter
from collections.abc import Collection
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, ValidationError

from goose_like.core.errors import GooseLikeError
from goose_like.serve.body import describe_wrong_field, parse_object

_TAGS = ("system", "developer", "user", "assistant", "tool", "text", "image_url", "refusal")
"""Values that choose a type in a union. pydantic puts them into the path of an error."""

_UNSUPPORTED: dict[str, tuple[JsonValue, ...]] = {
    "n": (1,),
    "stop": ("", []),
    "logprobs": (False,),
    "tool_choice": ("auto", "none"),
    "response_format": ({"type": "text"},),
    "modalities": (["text"],),
    "audio": (),
    "functions": ([],),
    "function_call": ("auto", "none"),
}
"""Fields that change the form of an answer in a way that a profile cannot keep, with the values that change nothing."""


class RequestError(GooseLikeError):
    """A request that is refused, with the HTTP status and the fields of OpenAI's error."""

    def __init__(self, text: str, param: str | None = None, code: str | None = None, status: int = 400) -> None:
        super().__init__(text)
        self.param = param
        self.code = code
        self.status = status


class _Part(BaseModel):
    # Strict, so that a wrong type is an error and not a guess.
    model_config = ConfigDict(frozen=True, extra="ignore", strict=True, defer_build=True)


class TextPart(_Part):
    """A text in the content of a message."""

    type: Literal["text"]
    text: str


class RefusalPart(_Part):
    """The text in which a model refused to answer."""

    type: Literal["refusal"]
    text: str = Field(alias="refusal")


class ImageUrl(_Part):
    """The address of an image."""

    url: str


class ImagePart(_Part):
    """An image in the content of a message."""

    type: Literal["image_url"]
    image_url: ImageUrl


def _wrap_content(value: Any) -> Any:
    if isinstance(value, str):
        return [{"type": "text", "text": value}]
    return [] if value is None else value


ContentPart = Annotated[TextPart | RefusalPart | ImagePart, Field(discriminator="type")]
Content = Annotated[list[ContentPart], BeforeValidator(_wrap_content)]


class SystemMessage(_Part):
    """Instructions of the client."""

    role: Literal["system", "developer"]
    content: Content


class UserMessage(_Part):
    """A message of the person."""

    role: Literal["user"]
    content: Content = []


class CalledFunction(_Part):
    """The function of a call, with its arguments as JSON text."""

    name: str
    arguments: str = ""


class ClientCall(_Part):
    """A call that the client was asked to run."""

    id: str = Field(min_length=1)
    function: CalledFunction


class AssistantMessage(_Part):
    """An answer, with the calls that the client was asked to run. `reasoning_details` may hold our signed state."""

    role: Literal["assistant"]
    content: Content = []
    tool_calls: list[ClientCall] | None = None
    reasoning_details: JsonValue = None


class ToolMessage(_Part):
    """The result of a call."""

    role: Literal["tool"]
    tool_call_id: str
    content: Content


ChatMessage = Annotated[SystemMessage | UserMessage | AssistantMessage | ToolMessage, Field(discriminator="role")]


class FunctionTool(_Part):
    """The description of a function that the client runs."""

    name: str = Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")
    description: str | None = None
    parameters: dict[str, Any] | None = None


class ClientTool(_Part):
    """A tool of the client."""

    type: Literal["function"]
    function: FunctionTool


class StreamOptions(_Part):
    """Options of a stream."""

    include_usage: bool | None = None


class ChatRequest(_Part):
    """A checked request. `model` is the name of a profile."""

    model: str
    messages: list[ChatMessage] = Field(min_length=1)
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    tools: list[ClientTool] | None = None
    tool_choice: JsonValue = None
    parallel_tool_calls: bool | None = None
    max_tokens: int | None = Field(default=None, ge=1)
    max_completion_tokens: int | None = Field(default=None, ge=1)
    temperature: float | None = Field(default=None, ge=0, le=2, allow_inf_nan=False)

    @property
    def functions(self) -> list[FunctionTool]:
        """The functions that the model may call."""
        if self.tool_choice == "none":
            return []
        return [tool.function for tool in self.tools or ()]


def parse_request(body: bytes, max_messages: int = 2_000) -> ChatRequest:
    """Parse the body of a request.

    Raises:
        RequestError: the body is not JSON, a field is wrong, or it asks for something that a profile cannot do.
    """
    try:
        data = parse_object(body)
    except ValueError as error:
        raise RequestError(str(error)) from None
    messages = data.get("messages")
    if isinstance(messages, list) and len(messages) > max_messages:
        raise RequestError(f"{len(messages)} messages are more than the maximum of {max_messages}", "messages")
    for name, harmless in _UNSUPPORTED.items():
        value = data.get(name)
        if value is not None and value not in harmless:
            text = f"this server does not support {name!r} with the value {json.dumps(value)[:80]}; leave it out"
            raise RequestError(text, name, "unsupported_value")
    try:
        request = ChatRequest.model_validate(data)
    except ValidationError as error:
        raise _describe_error(error) from None
    return request


def check_tool_names(request: ChatRequest, reserved_names: Collection[str]) -> None:
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
