"""The body of a chat completion."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, JsonValue

from .request import AnswerFormat, AnswerRequest, ChatMessage, FunctionTool, Part, choose_functions, parse_body

_UNSUPPORTED: dict[str, tuple[JsonValue, ...]] = {
    "n": (1,),
    "logprobs": (False,),
    "modalities": (["text"],),
    "audio": (),
    "functions": ([],),
    "function_call": ("auto", "none"),
}
"""Fields that change the form of an answer in a way that a profile cannot keep, with the values that change nothing."""


class ClientTool(Part):
    """A tool of the client."""

    type: Literal["function"]
    function: FunctionTool


class StreamOptions(Part):
    """Options of a stream."""

    include_usage: bool | None = None


def _wrap_stop(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


class ChatBody(Part):
    """A checked body."""

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
    stop: Annotated[list[str] | None, BeforeValidator(_wrap_stop)] = None
    response_format: AnswerFormat | None = None

    @classmethod
    def parse(cls, body: bytes, max_messages: int = 2_000) -> "ChatBody":
        """Parse the body of a request.

        Raises:
            RequestError: the body is not JSON, a field is wrong, or it asks for something that a profile cannot do.
        """
        return parse_body(body, cls, "messages", _UNSUPPORTED, max_messages)

    @property
    def includes_usage(self) -> bool:
        """True if a stream ends with the tokens used."""
        return bool(self.stream_options and self.stream_options.include_usage)

    def convert(self) -> AnswerRequest:
        """Convert the body to what both APIs share.

        Raises:
            RequestError: the choice of a tool or the schema of the answer is wrong.
        """
        places = [f"messages[{index}]" for index in range(len(self.messages))]
        listed = tuple([tool.function for tool in self.tools or ()])
        functions, must_call = choose_functions(listed, self.tool_choice, _find_name(self.tool_choice))
        token_limits = filter(None, (self.max_tokens, self.max_completion_tokens))
        schema = None
        if self.response_format:
            schema = self.response_format.read_schema("response_format")
        return AnswerRequest(
            model=self.model,
            messages=tuple(zip(places, self.messages, strict=True)),
            is_stream=bool(self.stream),
            functions=functions,
            must_call=must_call,
            has_parallel_calls=self.parallel_tool_calls is not False,
            max_tokens=min(token_limits, default=None),
            temperature=self.temperature,
            stop=tuple(filter(None, self.stop or ())),
            answer_schema=schema,
        )


def _find_name(choice: Any) -> str | None:
    """Find the name in a `tool_choice` such as {"type": "function", "function": {"name": ...}}."""
    match choice:
        case {"type": "function", "function": {"name": str(name)}}:
            return name
    return None
