"""State of a turn that travels, signed, with a client's call, because the protocols have no sessions."""

import base64
import hashlib
import hmac
import json
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field, JsonValue, ValidationError

from goose_like.core.events import Compacted, MessageCompleted, PlanUpdated, Reminded, StateSaved, ToolFinished
from goose_like.core.history import History
from goose_like.core.message import FrozenModel, Message, ToolCall

_THINKING_TYPES = ("thinking", "redacted_thinking")
_SHORT_OUTPUT = 1_000
"""Characters of each tool output in a state that would be too long."""

_MAC_BYTES = 32


TurnEvent = MessageCompleted | ToolFinished | Reminded | StateSaved | PlanUpdated | Compacted
"""An event of a turn that changes the history and that the client does not record."""


class TurnState(FrozenModel):
    """The part of a turn that the client does not record: everything the server did before it sent a function call.

    `history_digest` identifies the messages before the events; thinking is valid only after the same messages.
    `requested_calls` is how many open calls of the last message the client was asked to run.
    """

    events: tuple[Annotated[TurnEvent, Field(discriminator="type")], ...]
    history_digest: str = ""
    requested_calls: int = 1

    @property
    def answers(self) -> list[Message]:
        """The messages of the model."""
        return [event.message for event in self.events if isinstance(event, MessageCompleted)]


def build_turn_state(history: History, events: Iterable[TurnEvent], requested_calls: int) -> JsonValue:
    """Build the state after these events of the last turn as JSON, without data that the client sends again anyway."""
    state = TurnState(events=tuple(map(_remove_images, events)), requested_calls=requested_calls)
    if any(message.strip_thinking({}) is not message for message in state.answers):
        start = history.turns[-1].start
        start += start in history.user_message_indexes
        state = state.model_copy(update={"history_digest": digest_messages(history.messages[:start])})
    return state.model_dump(mode="json")


def restore_turn(history: History, state: TurnState) -> None:
    """Apply everything that the server did before the call. Thinking after other messages is left out."""
    is_same_history = not state.history_digest or state.history_digest == digest_messages(history.messages)
    for event in state.events:
        if isinstance(event, MessageCompleted) and not is_same_history:
            event = MessageCompleted(message=event.message.strip_thinking({}))
        if not isinstance(event, MessageCompleted) or event.message.parts:
            history.apply(event)


def list_open_calls(history: History) -> list[ToolCall]:
    """List the calls of the last model message that have no result."""
    return [call for call in history.open_calls.values() if history.is_open(call.id)]


def _remove_images(event: TurnEvent) -> TurnEvent:
    """Remove the images of a tool result, which are too large to travel."""
    if not (isinstance(event, ToolFinished) and event.result.images):
        return event
    output = f"{event.result.output}\n[its picture is not kept]".lstrip()
    return ToolFinished(result=event.result.model_copy(update={"images": (), "output": output}))


def digest_messages(messages: Iterable[Message]) -> str:
    """Compute 16 hex digits that identify a list of messages."""
    text = "\n".join(message.model_dump_json() for message in messages)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class StateSigner:
    """A signer of JSON values with a key that all processes of a service share."""

    key: bytes = field(repr=False)
    max_bytes: int = 48_000

    def sign(self, value: JsonValue, context: str) -> str:
        """Encode and sign a value as text of at most `max_bytes`.

        A value that is too long loses its thinking and most of its tool outputs. The result is empty if even that is
        too long. `context` is not part of the text, but `verify` needs the same one.
        """
        text = self._encode(value, context)
        if len(text) > self.max_bytes:
            text = self._encode(_shrink(value), context)
        return text if len(text) <= self.max_bytes else ""

    def _encode(self, value: JsonValue, context: str) -> str:
        data = zlib.compress(json.dumps(value, separators=(",", ":")).encode())
        signed = self._compute_mac(data, context) + data
        return base64.urlsafe_b64encode(signed).decode()

    def verify(self, text: object, context: str) -> JsonValue:
        """Decode a signed value; return None if the text is damaged, forged or belongs to another context."""
        if not isinstance(text, str) or not text.isascii() or len(text) > self.max_bytes:
            return None
        try:
            signed = base64.b64decode(text, altchars=b"-_", validate=True)
        except ValueError:
            return None
        mac = signed[:_MAC_BYTES]
        data = signed[_MAC_BYTES:]
        if not hmac.compare_digest(mac, self._compute_mac(data, context)):
            return None
        value: JsonValue = json.loads(zlib.decompress(data))
        return value

    def verify_turn(self, text: str, context: str) -> TurnState | None:
        """Decode the signed state of a turn; return None if `verify` refuses it, or another version has signed it."""
        value = self.verify(text, context)
        if not value:
            return None
        try:
            return TurnState.model_validate(value)
        except ValidationError:
            return None

    def _compute_mac(self, data: bytes, context: str) -> bytes:
        # The context's digest has a fixed length, so no other pair of context and data gives the same bytes.
        context_digest = hashlib.sha256(context.encode()).digest()
        return hmac.digest(self.key, context_digest + data, "sha256")


def _shrink(value: JsonValue) -> JsonValue:
    """Remove thinking, and shorten tool outputs."""
    match value:
        case list():
            return [_shrink(entry) for entry in value if not _is_thinking(entry)]
        case dict():
            return _shrink_object(value)
    return value


def _shrink_object(value: dict[str, JsonValue]) -> JsonValue:
    output = value.get("output")
    if isinstance(output, str) and len(output) > _SHORT_OUTPUT:
        note = f"\n[{len(output) - _SHORT_OUTPUT:,} more characters were left out since]"
        return {**value, "output": output[:_SHORT_OUTPUT] + note}
    # The verbatim form of an answer has thinking that is bound to the whole outputs.
    left_out = "verbatim" if "role" in value else ""
    return {key: _shrink(entry) for key, entry in value.items() if key != left_out}


def _is_thinking(value: JsonValue) -> bool:
    return isinstance(value, dict) and value.get("type") in _THINKING_TYPES
