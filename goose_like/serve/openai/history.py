"""The history of a conversation, rebuilt from the messages of a request."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain, takewhile
from typing import Any

from goose_like.agent.build import ClientPart
from goose_like.core.errors import GooseLikeError
from goose_like.core.events import MessageCompleted, Reminded, TurnFinished, TurnStarted
from goose_like.core.history import History
from goose_like.core.images import create_image
from goose_like.core.json_schema import sanitize_schema
from goose_like.core.message import Image, Message, Part, Text, ToolCall, ToolResult
from goose_like.core.tool import Tool, ToolOptions, ToolSpec, accept_any
from goose_like.serve.state import StateSigner, TurnEvent, TurnState, restore_turn
from goose_like.serve.turn import ImageData, Turn

from .files import decode_base64, decode_file
from .request import (
    AnswerRequest,
    AssistantMessage,
    ChatMessage,
    ContentPart,
    FilePart,
    FunctionTool,
    ImagePart,
    RequestError,
    SystemMessage,
    ToolMessage,
    UserMessage,
)

STATE_FORMAT = "goose-like-v1"
"""The format of the entry of `reasoning_details` that holds our signed state."""

MISSING_START = "[what began this conversation was not sent along]"
NO_NEW_MESSAGE = "[nothing was said since; go on from there]"
EMPTY_MESSAGE = "[a message without words]"

_MUST_CALL = "Your next message must call one of these tools: {}."

_STOPPED = TurnFinished(reason="stop")
_HANDED_OFF = TurnFinished(reason="handed_off")
_CANCELLED = TurnFinished(reason="cancelled")

_DATA_URL = re.compile(r"data:image/[\w.+-]+;base64,")


@dataclass(frozen=True, slots=True)
class ChatTurn(Turn):
    """The turn of a request. `last_user_text` is the text that signed state belongs to."""

    last_user_text: str = ""


def build_context(last_user_text: str, content: str) -> str:
    """Build the text that signed state belongs to: the user's last message, and the answer without white space."""
    return f"{last_user_text}\n\n{''.join(content.split())}"


def build_turn(request: AnswerRequest, signer: StateSigner) -> ChatTurn:
    """Rebuild the conversation of a request. The same request gives the same turn.

    Raises:
        RequestError: a result belongs to no call, a message repeats the id of a call, or an image cannot be read.
    """
    builder = _TurnBuilder(signer)
    for place, message in request.messages:
        builder.add(message, place)
    if request.must_call:
        builder.instructions.append(_MUST_CALL.format(", ".join(function.name for function in request.functions)))
    instructions = "\n\n".join(builder.instructions)
    tools = {function.name: _build_tool(function) for function in request.functions}
    parts = builder.opening or [Text(text=NO_NEW_MESSAGE)]
    return ChatTurn(
        history=builder.history,
        message=Message(role="user", parts=tuple(parts)),
        images=tuple(builder.images),
        client=ClientPart(instructions, tools),
        max_tokens=request.max_tokens,
        temperature=request.temperature,
        answer_schema=request.answer_schema,
        last_user_text=builder.last_user_text,
    )


@dataclass(slots=True)
class _TurnBuilder:
    """A conversation that grows message by message.

    A turn is added to the history only when its first answer arrives. Until then `opening` is the message that starts
    it: of the user, or with results. `open_ids` are the calls of the newest answer that wait for results.
    """

    signer: StateSigner
    history: History = field(default_factory=History)
    instructions: list[str] = field(default_factory=list)
    opening: list[Part] = field(default_factory=list)
    images: list[ImageData] = field(default_factory=list)
    open_ids: set[str] = field(default_factory=set)
    last_user_text: str = ""

    def add(self, message: ChatMessage, place: str) -> None:
        match message:
            case SystemMessage():
                instruction = _join_text(message.content, place).strip()
                if instruction:
                    self.instructions.append(instruction)
            case UserMessage():
                self._add_user_message(message, place)
            case AssistantMessage():
                self._add_answer(message, place)
            case ToolMessage():
                self._add_result(message, place)

    def _add_user_message(self, message: UserMessage, place: str) -> None:
        if self.opening:
            self._start_turn()
            self.history.apply(_CANCELLED)
        self.opening = self._read_parts(message.content, place)
        self.open_ids = set()
        self.last_user_text, images = _split_parts(self.opening)
        if not self.last_user_text.strip() and not images:
            self.opening = [Text(text=EMPTY_MESSAGE)]

    def _add_result(self, message: ToolMessage, place: str) -> None:
        call_id = message.tool_call_id
        if call_id not in self.open_ids:
            text = f"{place}: no call of the answer before it, or none without a result, has the id {call_id!r}"
            raise RequestError(text, f"{place}.tool_call_id")
        self.open_ids.remove(call_id)
        parts = self._read_parts(message.content, place)
        output, images = _split_parts(parts)
        self.opening.append(ToolResult(call_id=call_id, output=output, images=images))

    def _start_turn(self) -> None:
        """Start a turn with the message that waits for it; the history closes calls without results as interrupted."""
        if not self.opening and not self.history.messages:
            self.opening = [Text(text=MISSING_START)]
        self.history.apply(TurnStarted(message=Message(role="user", parts=tuple(self.opening))))
        self.opening = []
        self.open_ids = set()

    def _add_answer(self, message: AssistantMessage, place: str) -> None:
        text = _join_text(message.content, place)
        calls = _read_calls(message, place)
        if not text.strip() and not calls:
            return
        ids = {call.id for call in calls}
        state = self._find_state(message, text, ids)
        if state:
            self._restore_answer(state)
        else:
            self._start_turn()
            self.history.apply(MessageCompleted(message=Message.assistant(text, calls)))
        self.history.apply(_HANDED_OFF if calls else _STOPPED)
        self.open_ids = ids

    def _restore_answer(self, state: TurnState) -> None:
        facts = list(takewhile(_is_fact, state.events))
        for event in facts:  # they came before the turn began
            self.history.apply(event)
        self._start_turn()
        events = state.events[len(facts) :]
        restore_turn(self.history, state.model_copy(update={"events": events}))

    def _find_state(self, message: AssistantMessage, text: str, ids: set[str]) -> TurnState | None:
        """Find the state of an answer, unless the client changed its text or calls."""
        details: Any = message.reasoning_details
        if not isinstance(details, list):
            return None
        context = build_context(self.last_user_text, text)
        for detail in details:
            if not isinstance(detail, dict) or detail.get("format") != STATE_FORMAT:
                continue
            state = self.signer.verify_turn(str(detail.get("data")), context)
            if state and self._is_state_of(state, ids):
                return state
        return None

    def _is_state_of(self, state: TurnState, ids: set[str]) -> bool:
        """Return whether a state is that of an answer with these calls, and the history has none of its calls yet."""
        if not state.answers:
            return False
        own_ids = {call.id for call in state.answers[-1].tool_calls}
        if not ids <= own_ids or bool(ids) != bool(own_ids):
            return False
        calls = chain.from_iterable(answer.tool_calls for answer in state.answers)
        return all(call.id not in self.history.call_ids for call in calls)

    def _read_parts(self, content: Iterable[ContentPart], place: str) -> list[Part]:
        parts: list[Part] = []
        for part in content:
            if isinstance(part, ImagePart):
                source = f"image {len(self.images) + 1}"
                data = _decode_image(part.image_url.url, place)
            elif isinstance(part, FilePart):
                source = part.filename
                data = decode_file(part, place)
            else:
                parts.append(Text(text=part.text))
                continue
            try:
                parts.append(create_image(data, source))
            except GooseLikeError as error:
                raise RequestError(f"{place}: {error}", f"{place}.content", "invalid_image") from None
            self.images.append((data, source))
        return parts


def _is_fact(event: TurnEvent) -> bool:
    return isinstance(event, Reminded) and event.reason == "context"


def _split_parts(parts: Iterable[Part]) -> tuple[str, tuple[Image, ...]]:
    """Return the joined text and the images of some parts."""
    text = ""
    images = []
    for part in parts:
        if isinstance(part, Text):
            text += part.text
        elif isinstance(part, Image):
            images.append(part)
    return text, tuple(images)


def _read_calls(message: AssistantMessage, place: str) -> list[ToolCall]:
    calls = []
    for call in message.tool_calls or ():
        function = call.function
        calls.append(ToolCall(id=call.id, name=function.name, arguments=function.arguments))
    counts = Counter(call.id for call in calls)
    for call_id, number in counts.items():
        if number > 1:
            raise RequestError(f"{place}: several calls have the id {call_id!r}", f"{place}.tool_calls")
    return calls


def _join_text(content: Iterable[ContentPart], place: str) -> str:
    """Join the text of a message that can have no images."""
    texts = []
    for part in content:
        if isinstance(part, ImagePart | FilePart):
            text = f"{place}: only messages of the user and results have images and files"
            raise RequestError(text, f"{place}.content")
        texts.append(part.text)
    return "".join(texts)


def _decode_image(url: str, place: str) -> bytes:
    found = _DATA_URL.match(url)
    if found is None:
        text = f"{place}: this server fetches no images; send the image itself, as data:image/png;base64,..."
        raise RequestError(text, f"{place}.content", "invalid_image_url")
    return decode_base64(url[found.end() :], "image", place)


def _build_tool(function: FunctionTool) -> Tool:
    async def accept(**_: Any) -> None:
        """Accept any object: the client checks the arguments."""

    spec = ToolSpec(function.name, function.description or "", sanitize_schema(function.parameters))
    return Tool(spec, accept, accept_any, ToolOptions(remote=True))
