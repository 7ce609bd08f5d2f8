"""The history of a conversation, rebuilt from the messages of a request."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from pydantic import JsonValue, ValidationError

from goose_like.core.events import (
    MessageCompleted,
    PlanUpdated,
    Reminded,
    StateSaved,
    ToolFinished,
    TurnFinished,
    TurnStarted,
)
from goose_like.core.history import History
from goose_like.core.message import Message, Part, Text, ToolCall, ToolResult
from goose_like.serve.turn import ImageData

from .client_tools import WIDGET_DATA_FUNCTIONS, to_model_calls
from .prompt import build_tool_result, format_client_context
from .query import (
    AgentMessage,
    DataSource,
    FunctionCall,
    FunctionResult,
    Outcome,
    Query,
    QueryMessage,
    UserMessage,
    Widget,
)
from .state import StateSigner, TurnState, digest_messages

_STOPPED = TurnFinished(reason="stop")
_HANDED_OFF = TurnFinished(reason="handed_off")
_CANCELLED = TurnFinished(reason="cancelled")

MISSING_START = "[what began this conversation was not sent along]"
NO_NEW_MESSAGE = "[nothing was said since; go on from there]"
EMPTY_MESSAGE = "[a message without words]"


@dataclass(frozen=True, slots=True)
class Conversation:
    """A request in the form that an exchange needs.

    `message` is the message to reply to: the user's text, or the results of calls that the client ran.
    `pending_calls` are calls of the last model message that the client was not asked for yet; if there are any, the
    response is the next call and no model is asked. `sources` are the data sources since the user's last message.
    `images` belong to `message`.
    """

    history: History
    message: Message
    pending_calls: tuple[ToolCall, ...] = ()
    sources: tuple[DataSource, ...] = ()
    images: tuple[ImageData, ...] = ()

    @property
    def steps_used(self) -> int:
        """Steps since the user's last message: a turn and its step limit continue after a hand-off."""
        user_indexes = self.history.user_message_indexes
        start = user_indexes[-1] if self.message.tool_results and user_indexes else len(self.history.messages)
        return sum(message.role == "assistant" for message in self.history.messages[start:])


def build_conversation(query: Query, signer: StateSigner) -> Conversation:
    """Rebuild the conversation of a request.

    Damaged conversations are repaired, never refused. The same query gives the same history.
    """
    builder = _ConversationBuilder(query, signer)
    for index, message in enumerate(query.messages):
        following = query.messages[index + 1] if index + 1 < len(query.messages) else None
        builder.add(message, following)
    return builder.finish()


@dataclass(slots=True)
class _ConversationBuilder:
    """A conversation that grows message by message.

    A turn is added to the history only when its first answer arrives. Until then `user_message` or `results` hold the
    message that starts the turn. `requested_calls` wait for results from the client, `pending_calls` for a request.
    """

    query: Query
    signer: StateSigner
    history: History = field(default_factory=History)
    last_user_text: str = ""
    user_message: Message | None = None
    results: list[ToolResult] = field(default_factory=list)
    answers: list[AgentMessage] = field(default_factory=list)
    requested_calls: list[ToolCall] = field(default_factory=list)
    pending_calls: list[ToolCall] = field(default_factory=list)
    outcomes: list[tuple[ToolCall, Outcome]] = field(default_factory=list)
    images: list[ImageData] = field(default_factory=list)

    def add(self, message: QueryMessage, following: QueryMessage | None) -> None:
        match message:
            case UserMessage():
                self._add_answers()
                if self.user_message or self.results:
                    self._start_turn()
                    self.history.apply(_CANCELLED)
                self._forget_calls()
                self.user_message = self._build_user_message(message)
                self.last_user_text, self.outcomes = message.text, []
            case AgentMessage():
                self.answers += [message] if message.text.strip() else []
            case FunctionCall():
                state = self._verify_state(message.state)
                if state is None and isinstance(following, FunctionResult):
                    state = self._verify_state(following.state)
                self._add_call(message, state)
            case FunctionResult():
                if not self.requested_calls:
                    function = message.function or WIDGET_DATA_FUNCTIONS[0]
                    call = FunctionCall(function=function, arguments=message.arguments)
                    self._add_call(call, self._verify_state(message.state))
                self._add_outcomes(message.outcomes)

    def finish(self) -> Conversation:
        self._add_answers()
        pending = self.pending_calls if self.results else []
        parts: tuple[Part, ...] = tuple(self.results)
        message = self.user_message or (Message(role="user", parts=parts) if parts else Message.user(NO_NEW_MESSAGE))
        widgets = {widget.uuid: widget for widget in reversed(self.query.widgets)}
        sources = (_build_source(call, outcome, widgets) for call, outcome in self.outcomes)
        return Conversation(self.history, message, tuple(pending), tuple(filter(None, sources)), tuple(self.images))

    def _build_user_message(self, message: UserMessage) -> Message:
        text = message.text if message.text.strip() else EMPTY_MESSAGE
        last = next(each for each in reversed(self.query.messages) if isinstance(each, UserMessage))
        return self._build_message_with_context(text) if message is last else Message.user(text)

    def _build_message_with_context(self, text: str) -> Message:
        context = format_client_context(self.query)
        parts = (Text(text=text), Text(text=f"\n{context}")) if context else (Text(text=text),)
        return Message(role="user", parts=parts)

    def _start_turn(self) -> None:
        """Start a turn with the message that waits for it; the history closes calls without results as interrupted."""
        message = self.user_message or Message(role="user", parts=tuple(self.results))
        if not message.parts and not self.history.messages:
            has_user_message = any(isinstance(each, UserMessage) for each in self.query.messages)
            message = (
                Message.user(MISSING_START) if has_user_message else self._build_message_with_context(MISSING_START)
            )
        self.history.apply(TurnStarted(message=message))
        self.user_message = None
        self._forget_calls()

    def _forget_calls(self) -> None:
        self.results, self.requested_calls, self.pending_calls = [], [], []

    def _add_answers(self) -> None:
        """Add answers that were followed by anything but a call, each as a turn of its own."""
        for answer in self.answers:
            self._start_turn()
            self.history.apply(MessageCompleted(message=Message.assistant(answer.text)))
            self.history.apply(_STOPPED)
        self.answers = []

    def _add_call(self, call: FunctionCall, state: TurnState | None) -> None:
        model_calls = to_model_calls(call, self.query)
        if self.pending_calls and (state or model_calls[0][0] == self.pending_calls[0].name):
            self.answers = []
            requested = state.requested_calls - len(self.results) if state else len(model_calls)
            self._request_calls(self.pending_calls, requested)
            return
        text, self.answers = self._join_other_answers(state), []
        if state:
            if text:
                self._start_turn()
                self.history.apply(MessageCompleted(message=Message.assistant(text)))
            self._start_turn()
            self._restore_state(state)
        else:
            self._start_turn()
            ids = _generate_ids(self.history.call_ids)
            calls = [
                ToolCall(id=next(ids), name=name, arguments=json.dumps(arguments, ensure_ascii=False))
                for name, arguments in model_calls
            ]
            self.history.apply(MessageCompleted(message=Message.assistant(text, calls)))
        self.history.apply(_HANDED_OFF)
        open_calls = list_open_calls(self.history)
        self._request_calls(open_calls, state.requested_calls if state else len(model_calls))

    def _request_calls(self, calls: Sequence[ToolCall], requested: int) -> None:
        requested = max(requested, 1)
        self.requested_calls, self.pending_calls = [*calls[:requested]], [*calls[requested:]]

    def _join_other_answers(self, state: TurnState | None) -> str:
        """Join the answers before a call that its state does not contain; the state has all texts of this server."""
        own_text = "".join(message.text for message in state.messages) if state else ""
        others = (
            answer.text for answer in self.answers if not state or (answer.agent_id and answer.text not in own_text)
        )
        return "\n\n".join(others)

    def _verify_state(self, signed: str) -> TurnState | None:
        value = self.signer.verify(signed, self.last_user_text) if signed else None
        try:
            return TurnState.model_validate(value) if value else None
        except ValidationError:
            return None  # another version of goose_like signed it

    def _restore_state(self, state: TurnState) -> None:
        """Apply the messages, results, plan and toolkit state that the server had before the call."""
        is_same_history = not state.history_digest or state.history_digest == digest_messages(self.history.messages)
        for toolkit, value in state.state.items():
            if self.history.state.get(toolkit) != value:
                self.history.apply(StateSaved(toolkit=toolkit, value=value))
        ids: dict[str, str] = {}
        for message in state.messages:
            match message.role:
                case "assistant":
                    valid = message if is_same_history else message.strip_thinking({})
                    renamed, ids = _rename_calls(valid, self.history.call_ids)
                    if renamed.parts:
                        self.history.apply(MessageCompleted(message=renamed))
                case "tool":
                    self._apply_results(message.tool_results, ids)
                case "user":
                    self.history.apply(Reminded(text=message.text))
        self._apply_results(state.results, ids)
        if state.plan != self.history.plan:
            self.history.apply(PlanUpdated(tasks=state.plan))

    def _apply_results(self, results: Iterable[ToolResult], ids: dict[str, str]) -> None:
        for result in results:
            renamed = result.model_copy(update={"call_id": ids.get(result.call_id, result.call_id)})
            self.history.apply(ToolFinished(result=renamed))

    def _add_outcomes(self, outcomes: Sequence[Outcome]) -> None:
        """Give each requested call its outcome, and the last call all that are left."""
        for index, call in enumerate(self.requested_calls):
            is_last = call is self.requested_calls[-1]
            own = outcomes[index:] if is_last else outcomes[index : index + 1]
            result, images = build_tool_result(call.id, own)
            self.results.append(result)
            self.images += images
            self.outcomes += ((call, outcome) for outcome in own if not outcome.is_error)
        self.requested_calls = []


def list_open_calls(history: History) -> list[ToolCall]:
    """List the calls of the last model message that have no result."""
    return [call for call in history.open_calls.values() if history.is_open(call.id)]


def _build_source(call: ToolCall, outcome: Outcome, widgets: Mapping[str, Widget]) -> DataSource | None:
    arguments = call.parse_arguments()
    widget = widgets.get(str(arguments.get("widget_uuid"))) if call.name in WIDGET_DATA_FUNCTIONS else None
    if widget is None:
        return DataSource(citations=outcome.citations) if outcome.citations else None
    return DataSource(
        uuid=widget.uuid,
        origin=widget.origin,
        widget_id=widget.widget_id,
        name=widget.name,
        description=widget.description,
        arguments=widget.current_values | _to_dict(arguments.get("arguments")),
        citations=outcome.citations,
        is_citable=any(item.is_citable for item in outcome.items),
    )


def _to_dict(value: Any) -> dict[str, JsonValue]:
    return value if isinstance(value, dict) else {}


def _rename_calls(message: Message, taken: set[str]) -> tuple[Message, dict[str, str]]:
    """Give the calls of a message ids that no earlier call has; return the message and the new id of each old one."""
    own = [call.id for call in message.tool_calls]
    free = _generate_ids(taken.union(own))
    ids = {call_id: next(free) if call_id in taken else call_id for call_id in own}
    if taken.isdisjoint(own):
        return message, ids
    parts = (p.model_copy(update={"id": ids[p.id]}) if isinstance(p, ToolCall) else p for p in message.parts)
    return message.model_copy(update={"parts": tuple(parts)}), ids


def _generate_ids(taken: Collection[str]) -> Iterator[str]:
    names = (f"call_{number}" for number in count(len(taken) + 1))
    return (name for name in names if name not in taken)
