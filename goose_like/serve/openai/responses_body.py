"""The body of a request to the Responses API, whose items are converted to messages."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, JsonValue, Tag

from .history import STATE_FORMAT
from .request import (
    AnswerFormat,
    AnswerRequest,
    AssistantMessage,
    CalledFunction,
    ChatMessage,
    ClientCall,
    Content,
    FunctionTool,
    Part,
    SystemMessage,
    TextPart,
    ToolMessage,
    UserMessage,
    choose_functions,
    parse_body,
)

_UNSUPPORTED: dict[str, tuple[JsonValue, ...]] = {
    "previous_response_id": (),
    "conversation": (),
    "background": (False,),
    "prompt": (),
    "context_management": ([],),
}
"""Fields that need a server with a memory, with the values that change nothing."""


class CallItem(Part):
    """A call that the client was asked to run."""

    type: Literal["function_call"]
    call_id: str = Field(min_length=1)
    name: str
    arguments: str = ""


class ResultItem(Part):
    """The result of a call."""

    type: Literal["function_call_output"]
    call_id: str
    output: Content


class ReasoningItem(Part):
    """Reasoning of an earlier answer, which may hold our signed state."""

    type: Literal["reasoning"]
    encrypted_content: str | None = None


AnswerItem = AssistantMessage | CallItem | ReasoningItem


def _find_kind(item: Any) -> str:
    """Return the type of an item, or the role of a message. Some clients leave the type of a message out."""
    if not isinstance(item, dict):
        return ""
    kind = item.get("type") or "message"
    return str(item.get("role") if kind == "message" else kind)


Item = Annotated[
    Annotated[SystemMessage, Tag("system")]
    | Annotated[SystemMessage, Tag("developer")]
    | Annotated[UserMessage, Tag("user")]
    | Annotated[AssistantMessage, Tag("assistant")]
    | Annotated[CallItem, Tag("function_call")]
    | Annotated[ResultItem, Tag("function_call_output")]
    | Annotated[ReasoningItem, Tag("reasoning")],
    Discriminator(_find_kind),
]


def _wrap_text(value: Any) -> Any:
    return [{"role": "user", "content": value}] if isinstance(value, str) else value


class ResponsesTool(FunctionTool):
    """A tool of the client."""

    type: Literal["function"]
    strict: bool | None = None


class TextOptions(Part):
    """Options of the text of an answer."""

    format: AnswerFormat | None = None


class ReasoningOptions(Part):
    """Options of the reasoning."""

    effort: str | None = None
    summary: str | None = None
    generate_summary: str | None = None


class ResponsesBody(Part):
    """A checked body."""

    model: str
    input: Annotated[list[Item], BeforeValidator(_wrap_text)] = Field(min_length=1)
    instructions: str | None = None
    stream: bool | None = None
    tools: list[ResponsesTool] | None = None
    tool_choice: JsonValue = None
    parallel_tool_calls: bool | None = None
    max_output_tokens: int | None = Field(default=None, ge=1)
    temperature: float | None = Field(default=None, ge=0, le=2, allow_inf_nan=False)
    text: TextOptions | None = None
    reasoning: ReasoningOptions | None = None
    metadata: dict[str, str] | None = None

    @classmethod
    def parse(cls, body: bytes, max_messages: int = 2_000) -> "ResponsesBody":
        """Parse the body of a request.

        Raises:
            RequestError: the body is not JSON, a field is wrong, or it asks for something that a profile cannot do.
        """
        return parse_body(body, cls, "input", _UNSUPPORTED, max_messages)

    @property
    def format(self) -> AnswerFormat | None:
        """The wanted form of the answer."""
        return self.text.format if self.text else None

    @property
    def summary(self) -> str | None:
        """The wanted kind of reasoning summary, if any."""
        if self.reasoning is None:
            return None
        return self.reasoning.summary or self.reasoning.generate_summary

    def convert(self) -> AnswerRequest:
        """Convert the body to what both APIs share.

        Raises:
            RequestError: the choice of a tool or the schema of the answer is wrong.
        """
        functions, must_call = choose_functions(tuple(self.tools or ()), self.tool_choice, _find_name(self.tool_choice))
        schema = None
        if self.format:
            schema = self.format.read_schema("text.format")
        messages = _join_items(self.input)
        if self.instructions:
            part = TextPart(type="text", text=self.instructions)
            messages.insert(0, ("instructions", SystemMessage(role="system", content=[part])))
        return AnswerRequest(
            model=self.model,
            messages=tuple(messages),
            is_stream=bool(self.stream),
            functions=functions,
            must_call=must_call,
            has_parallel_calls=self.parallel_tool_calls is not False,
            max_tokens=self.max_output_tokens,
            temperature=self.temperature,
            answer_schema=schema,
        )


def _find_name(choice: Any) -> str | None:
    """Find the name in a `tool_choice` such as {"type": "function", "name": ...}."""
    match choice:
        case {"type": "function", "name": str(name)}:
            return name
    return None


def _join_items(items: list[Item]) -> list[tuple[str, ChatMessage]]:
    """Join the items of each answer to one message, and return all messages with the places where they end."""
    messages: list[tuple[str, ChatMessage]] = []
    answer: list[AnswerItem] = []
    for index, item in enumerate(items):
        place = f"input[{index}]"
        if isinstance(item, AnswerItem):
            answer.append(item)
            is_last = index + 1 == len(items) or not isinstance(items[index + 1], AnswerItem)
            if is_last:
                messages.append((place, _join_answer(answer)))
                answer = []
        elif isinstance(item, ResultItem):
            result = ToolMessage(role="tool", tool_call_id=item.call_id, content=item.output)
            messages.append((place, result))
        else:
            messages.append((place, item))
    return messages


def _join_answer(items: list[AnswerItem]) -> AssistantMessage:
    content: list[Any] = []
    calls: list[ClientCall] = []
    states: list[JsonValue] = []
    for item in items:
        match item:
            case AssistantMessage():
                if content:
                    content.append(TextPart(type="text", text="\n\n"))
                content += item.content
            case CallItem():
                function = CalledFunction(name=item.name, arguments=item.arguments)
                calls.append(ClientCall(id=item.call_id, function=function))
            case ReasoningItem() if item.encrypted_content:
                states.append({"format": STATE_FORMAT, "data": item.encrypted_content})
    return AssistantMessage(role="assistant", content=content, tool_calls=calls, reasoning_details=states)
