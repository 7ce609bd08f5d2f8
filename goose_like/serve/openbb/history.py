"""The history of a conversation, rebuilt from the messages of a request."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from typing import Any

from typing_extensions import override

from goose_like.core.events import MessageCompleted, TurnFinished, TurnStarted
from goose_like.core.history import History
from goose_like.core.images import create_image
from goose_like.core.message import Message, Part, Text, ToolCall
from goose_like.serve.state import StateSigner, TurnState, list_open_calls, restore_turn
from goose_like.serve.turn import ImageData, Turn

from .client_tools import WIDGET_DATA_FUNCTIONS, to_model_calls
from .prompt import build_tool_result, decode_context_images, format_client_context
from .query import (
    AgentMessage,
    FunctionCall,
    FunctionResult,
    Outcome,
    Query,
    QueryMessage,
    UserMessage,
)

_STOPPED = TurnFinished(reason="stop")
_HANDED_OFF = TurnFinished(reason="handed_off")
_CANCELLED = TurnFinished(reason="cancelled")

MISSING_START = "[what began this conversation was not sent along]"
NO_NEW_MESSAGE = "[nothing was said since; go on from there]"
EMPTY_MESSAGE = "[a message without words]"


@dataclass(frozen=True, slots=True)
class Conversation(Turn):
    """The turn of a request.

    `pending_calls` are calls of the last model message that the client was not asked for yet; if there are any, the
    response is the next call and no model is asked. `outcomes` are those of the calls since the user's last message.
    `has_prefetch`: the first of these calls is the server's own, so no step was spent on it.
    """

    pending_calls: tuple[ToolCall, ...] = ()
    outcomes: tuple[tuple[ToolCall, Outcome], ...] = ()
    has_prefetch: bool = False

    @property
    @override
    def earlier_steps(self) -> int:
        return len(self.earlier_answers) - self.has_prefetch


def build_conversation(query: Query, signer: StateSigner) -> Conversation:
    """Rebuild the conversation of a request.

    Damaged conversations are repaired, never refused. The same query gives the same history.
    """
    builder = _ConversationBuilder(query, signer)
    for message, following in zip_longest(query.messages, query.messages[1:]):
        builder.add(message, following)
    return builder.finish()


@dataclass(slots=True)
class _ConversationBuilder:
    """A conversation that grows message by message.

    A turn is added to the history only when its first answer arrives. Until then `opening` is the message that starts
    it: text of the user, or results. `requested_calls` wait for results from the client, `pending_calls` for a request.
    """

    query: Query
    signer: StateSigner
    history: History = field(default_factory=History)
    last_user_text: str = ""
    opening: list[Part] = field(default_factory=list)
    answers: list[AgentMessage] = field(default_factory=list)
    requested_calls: list[ToolCall] = field(default_factory=list)
    pending_calls: list[ToolCall] = field(default_factory=list)
    outcomes: list[tuple[ToolCall, Outcome]] = field(default_factory=list)
    images: list[ImageData] = field(default_factory=list)
    has_prefetch: bool = False

    def add(self, message: QueryMessage, following: QueryMessage | None) -> None:
        match message:
            case UserMessage():
                self._add_user_message(message)
            case AgentMessage():
                if message.text.strip():
                    self.answers.append(message)
            case FunctionCall():
                returned = following.state if isinstance(following, FunctionResult) else ""
                self._add_call(message, message.state or returned)
            case FunctionResult():
                if not self.requested_calls:
                    function = message.function or WIDGET_DATA_FUNCTIONS[0]
                    call = FunctionCall(function=function, arguments=message.arguments)
                    self._add_call(call, message.state)
                self._add_outcomes(message.outcomes)

    def finish(self) -> Conversation:
        self._add_answers()
        parts = self.opening or [Text(text=NO_NEW_MESSAGE)]
        pending_calls = self.pending_calls if self.opening else []
        return Conversation(
            history=self.history,
            message=Message(role="user", parts=tuple(parts)),
            images=tuple(self.images),
            pending_calls=tuple(pending_calls),
            outcomes=tuple(self.outcomes),
            has_prefetch=self.has_prefetch,
        )

    def _add_user_message(self, message: UserMessage) -> None:
        self._add_answers()
        if self.opening:
            self._start_turn()
            self.history.apply(_CANCELLED)
        self.opening = self._build_opening(message)
        self.requested_calls = []
        self.pending_calls = []
        self.last_user_text = message.text
        self.outcomes = []
        self.has_prefetch = False

    def _build_opening(self, message: UserMessage) -> list[Part]:
        """Build the parts of a message; the last one of the query gets everything that came beside the messages."""
        text = message.text if message.text.strip() else EMPTY_MESSAGE
        parts: list[Part] = [Text(text=text)]
        if message is not self.query.last_user_message:
            return parts
        context = format_client_context(self.query)
        if context:
            parts.append(Text(text=f"\n{context}"))
        for data, source in decode_context_images(self.query):
            self.images.append((data, source))
            parts.append(create_image(data, source))
        return parts

    def _start_turn(self) -> None:
        """Start a turn with the message that waits for it; the history closes calls without results as interrupted."""
        if not self.opening and not self.history.messages:
            self.opening = [Text(text=MISSING_START)]
        self.history.apply(TurnStarted(message=Message(role="user", parts=tuple(self.opening))))
        self.opening = []
        self.requested_calls = []
        self.pending_calls = []

    def _add_answers(self) -> None:
        """Add answers that were followed by anything but a call, each as a turn of its own."""
        for answer in self.answers:
            self._start_turn()
            self.history.apply(MessageCompleted(message=Message.assistant(answer.text)))
            self.history.apply(_STOPPED)
        self.answers = []

    def _add_call(self, call: FunctionCall, signed_state: str) -> None:
        state = self.signer.verify_turn(signed_state, self.last_user_text)
        model_calls = to_model_calls(call, self.query)
        name, _ = model_calls[0]
        requested = state.requested_calls if state else len(model_calls)
        if self.pending_calls and (state or name == self.pending_calls[0].name):
            if state:
                requested -= len(self.opening)  # it counts the calls whose results are here already
            self.answers = []
            self._request_calls(self.pending_calls, requested)
            return
        if state and state.events and self._is_new(state):
            self._restore_calls(state)
        else:
            is_first = self.query.dialect == "workspace" and not self.outcomes
            if is_first and name == WIDGET_DATA_FUNCTIONS[0]:
                self.has_prefetch = True
            self._record_calls(model_calls)
        self.history.apply(_HANDED_OFF)
        self._request_calls(list_open_calls(self.history), requested)

    def _restore_calls(self, state: TurnState) -> None:
        """Restore the calls of a state, after the answers of other agents that it does not contain."""
        own_text = "".join(message.text for message in state.answers)
        texts = [each.text for each in self.answers if each.agent_id and each.text not in own_text]
        self.answers = []
        text = "\n\n".join(texts)
        if text:
            self._start_turn()
            self.history.apply(MessageCompleted(message=Message.assistant(text)))
        self._start_turn()
        restore_turn(self.history, state)

    def _record_calls(self, model_calls: Iterable[tuple[str, dict[str, Any]]]) -> None:
        """Record calls whose state is unknown, with the answers before them, as one message of the model."""
        text = "\n\n".join(each.text for each in self.answers)
        self.answers = []
        self._start_turn()
        calls = self._create_calls(model_calls)
        self.history.apply(MessageCompleted(message=Message.assistant(text, calls)))

    def _create_calls(self, model_calls: Iterable[tuple[str, dict[str, Any]]]) -> Iterator[ToolCall]:
        taken = self.history.call_ids
        number = len(taken)
        for name, arguments in model_calls:
            number += 1
            while f"call_{number}" in taken:
                number += 1
            yield ToolCall(id=f"call_{number}", name=name, arguments=json.dumps(arguments, ensure_ascii=False))

    def _is_new(self, state: TurnState) -> bool:
        """Tell whether the history does not have the calls yet; else the client repeated a part of the conversation."""
        calls = chain.from_iterable(message.tool_calls for message in state.answers)
        return all(call.id not in self.history.call_ids for call in calls)

    def _request_calls(self, calls: Sequence[ToolCall], requested: int) -> None:
        requested = max(requested, 1)
        self.requested_calls = list(calls[:requested])
        self.pending_calls = list(calls[requested:])

    def _add_outcomes(self, outcomes: Sequence[Outcome]) -> None:
        """Give each requested call its outcome, and the last call all that are left."""
        for index, call in enumerate(self.requested_calls):
            own = outcomes[index : index + 1]
            if call is self.requested_calls[-1]:
                own = outcomes[index:]
            result, images = build_tool_result(call.id, own)
            self.opening.append(result)
            self.images += images
            self.outcomes += [(call, outcome) for outcome in own if not outcome.is_error]
        self.requested_calls = []
