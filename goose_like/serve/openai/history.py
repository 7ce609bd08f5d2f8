"""The history of a conversation, rebuilt from the messages of a request."""

import base64
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from goose_like.agent.build import ClientPart
from goose_like.core.errors import GooseLikeError
from goose_like.core.events import MessageCompleted, Reminded, TurnFinished, TurnStarted
from goose_like.core.history import History
from goose_like.core.images import create_image
from goose_like.core.json_schema import sanitize_schema
from goose_like.core.message import Image, Message, Part, Text, ToolCall, ToolResult
from goose_like.core.tool import AnyArguments, Tool, ToolOptions, ToolSpec
from goose_like.serve.state import StateSigner, TurnEvent, TurnState, restore_turn
from goose_like.serve.turn import ImageData, Turn

from .request import (
    AssistantMessage,
    ChatMessage,
    ChatRequest,
    ContentPart,
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


def build_turn(request: ChatRequest, signer: StateSigner) -> ChatTurn:
    """Rebuild the conversation of a request. The same request gives the same turn.

    Raises:
        RequestError: a result belongs to no call, a message repeats the id of a call, or an image cannot be read.
    """
    builder = _TurnBuilder(signer)
    for index, message in enumerate(request.messages):
        builder.add(message, f"messages[{index}]")
    return ChatTurn(
        history=builder.history,
        message=Message(role="user", parts=tuple(builder.opening or [Text(text=NO_NEW_MESSAGE)])),
        images=tuple(builder.images),
        client=ClientPart(
            "\n\n".join(builder.instructions), {tool.name: _build_tool(tool) for tool in request.functions}
        ),
        max_tokens=min(filter(None, (request.max_tokens, request.max_completion_tokens)), default=None),
        temperature=request.temperature,
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
                self.instructions += filter(None, [_join_text(message.content, place).strip()])
            case UserMessage():
                if self.opening:
                    self._start_turn()
                    self.history.apply(_CANCELLED)
                self.opening, self.open_ids = self._read_parts(message.content, place), set()
                self.last_user_text = "".join(part.text for part in self.opening if isinstance(part, Text))
                if not self.last_user_text.strip() and not any(isinstance(part, Image) for part in self.opening):
                    self.opening = [Text(text=EMPTY_MESSAGE)]
            case AssistantMessage():
                self._add_answer(message, place)
            case ToolMessage(tool_call_id=call_id):
                if call_id not in self.open_ids:
                    text = f"{place}: no call of the answer before it, or none without a result, has the id {call_id!r}"
                    raise RequestError(text, f"{place}.tool_call_id")
                self.open_ids.remove(call_id)
                parts = self._read_parts(message.content, place)
                output = "".join(part.text for part in parts if isinstance(part, Text))
                images = tuple(part for part in parts if isinstance(part, Image))
                self.opening.append(ToolResult(call_id=call_id, output=output, images=images))

    def _start_turn(self) -> None:
        """Start a turn with the message that waits for it; the history closes calls without results as interrupted."""
        if not self.opening and not self.history.messages:
            self.opening = [Text(text=MISSING_START)]
        self.history.apply(TurnStarted(message=Message(role="user", parts=tuple(self.opening))))
        self.opening, self.open_ids = [], set()

    def _add_answer(self, message: AssistantMessage, place: str) -> None:
        text = _join_text(message.content, place)
        calls = [
            ToolCall(id=call.id, name=call.function.name, arguments=call.function.arguments)
            for call in message.tool_calls or ()
        ]
        ids = Counter(call.id for call in calls)
        if repeated := next((call_id for call_id, number in ids.items() if number > 1), None):
            raise RequestError(f"{place}: several calls have the id {repeated!r}", f"{place}.tool_calls")
        if not text.strip() and not calls:
            return
        state = self._find_state(message, text, {*ids})
        facts = [*takewhile(_is_fact, state.events)] if state else []
        for event in facts:  # they came before the turn began
            self.history.apply(event)
        self._start_turn()
        if state:
            restore_turn(self.history, state.model_copy(update={"events": state.events[len(facts) :]}))
        else:
            self.history.apply(MessageCompleted(message=Message.assistant(text, calls)))
        self.history.apply(_HANDED_OFF if calls else _STOPPED)
        self.open_ids = set(ids)

    def _find_state(self, message: AssistantMessage, text: str, ids: set[str]) -> TurnState | None:
        """Find the state of an answer, unless the client changed its text or calls."""
        details: Any = message.reasoning_details
        context = build_context(self.last_user_text, text)
        for detail in details if isinstance(details, list) else ():
            if not (isinstance(detail, dict) and detail.get("format") == STATE_FORMAT):
                continue
            state = self.signer.verify_turn(str(detail.get("data")), context)
            if state is None or not state.answers:
                continue
            own_ids = {call.id for call in state.answers[-1].tool_calls}
            all_ids = {call.id for answer in state.answers for call in answer.tool_calls}
            if ids <= own_ids and bool(ids) == bool(own_ids) and self.history.call_ids.isdisjoint(all_ids):
                return state
        return None

    def _read_parts(self, content: Iterable[ContentPart], place: str) -> list[Part]:
        parts: list[Part] = []
        for part in content:
            if not isinstance(part, ImagePart):
                parts.append(Text(text=part.text))
                continue
            source = f"image {len(self.images) + 1}"
            data = _decode_image(part.image_url.url, place)
            try:
                parts.append(create_image(data, source))
            except GooseLikeError as error:
                raise RequestError(f"{place}: {error}", f"{place}.content", "invalid_image") from None
            self.images.append((data, source))
        return parts


def _is_fact(event: TurnEvent) -> bool:
    return isinstance(event, Reminded) and event.reason == "context"


def _join_text(content: Iterable[ContentPart], place: str) -> str:
    """Join the text of a message that can have no images."""
    texts = []
    for part in content:
        if isinstance(part, ImagePart):
            raise RequestError(f"{place}: only messages of the user and results have images", f"{place}.content")
        texts.append(part.text)
    return "".join(texts)


def _decode_image(url: str, place: str) -> bytes:
    found = _DATA_URL.match(url)
    if found is None:
        text = f"{place}: this server fetches no images; send the image itself, as data:image/png;base64,..."
        raise RequestError(text, f"{place}.content", "invalid_image_url")
    try:
        return base64.b64decode(url[found.end() :], validate=True)
    except ValueError as error:
        raise RequestError(f"{place}: the image is not base64: {error}", f"{place}.content", "invalid_image") from None


def _build_tool(function: FunctionTool) -> Tool:
    async def accept(**_: Any) -> None:
        """Accept any object: the client checks the arguments."""

    spec = ToolSpec(function.name, function.description or "", sanitize_schema(function.parameters))
    return Tool(spec, accept, AnyArguments, ToolOptions(remote=True))
