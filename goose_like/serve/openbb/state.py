"""State of a turn that travels, signed, with a function call, because the protocol has no sessions."""

import base64
import hashlib
import hmac
import json
import math
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field

from pydantic import JsonValue

from goose_like.core.events import Task
from goose_like.core.history import History
from goose_like.core.message import FrozenModel, Message, RedactedThinking, Thinking, ToolResult

_THINKING_TYPES = ("thinking", "redacted_thinking")
_OUTPUT_LIMITS = (math.inf, 4_000, 500)
_MAC_BYTES = 32


class TurnState(FrozenModel):
    """The part of a turn that the client does not record: everything the server did before it sent a function call.

    `history_digest` identifies the messages before the turn; thinking is valid only after the same messages.
    `requested_calls` is how many open calls of the last message the client was asked to run.
    """

    messages: tuple[Message, ...]
    results: tuple[ToolResult, ...] = ()
    plan: tuple[Task, ...] = ()
    state: dict[str, JsonValue] = {}
    history_digest: str = ""
    requested_calls: int = 1


def build_turn_state(history: History, requested_calls: int) -> JsonValue:
    """Collect the state of the last turn as JSON, without data and texts that the client sends again anyway."""
    start = history.turns[-1].start
    start += start in history.user_message_indexes
    messages = [_remove_images(message) for message in history.messages[start:]]
    is_whole = history.summary is None and not history.kept_start and not history.replacements
    return TurnState(
        messages=tuple(messages if is_whole else [message.strip_thinking({}) for message in messages]),
        results=_remove_images(Message(role="tool", parts=history.finished_results)).tool_results,
        plan=history.plan,
        state=history.state,
        history_digest=digest_messages(history.messages[:start]) if any(map(_has_thinking, messages)) else "",
        requested_calls=requested_calls,
    ).model_dump(mode="json")


def _remove_images(message: Message) -> Message:
    """Remove the images of tool results, which are too large to travel."""
    if not message.images:
        return message
    parts = [
        part.model_copy(update={"images": (), "output": f"{part.output}\n[its picture is not kept]".lstrip()})
        if isinstance(part, ToolResult) and part.images
        else part
        for part in message.parts
    ]
    return message.model_copy(update={"parts": tuple(parts)})


def _has_thinking(message: Message) -> bool:
    return any(isinstance(part, Thinking | RedactedThinking) for part in message.parts)


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

        A value that is too long is sent without thinking, then with shortened tool outputs. The result is empty if
        even that is too long. `context` is not part of the text, but `verify` needs the same one.
        """
        for smaller in (value, *(_shrink(value, limit) for limit in _OUTPUT_LIMITS)):
            data = zlib.compress(json.dumps(smaller, separators=(",", ":")).encode())
            text = base64.urlsafe_b64encode(self._compute_mac(data, context) + data).decode()
            if len(text) <= self.max_bytes:
                return text
        return ""

    def verify(self, text: object, context: str) -> JsonValue:
        """Decode a signed value; return None if the text is damaged, forged or belongs to another context."""
        if not isinstance(text, str) or not text.isascii() or len(text) > self.max_bytes:
            return None
        try:
            signed = base64.b64decode(text, altchars=b"-_", validate=True)
        except ValueError:
            return None
        mac, data = signed[:_MAC_BYTES], signed[_MAC_BYTES:]
        if not hmac.compare_digest(mac, self._compute_mac(data, context)):
            return None
        value: JsonValue = json.loads(zlib.decompress(data))
        return value

    def _compute_mac(self, data: bytes, context: str) -> bytes:
        # The context's digest has a fixed length, so no other pair of context and data gives the same bytes.
        return hmac.digest(self.key, hashlib.sha256(context.encode()).digest() + data, "sha256")


def _shrink(value: JsonValue, max_output: float) -> JsonValue:
    """Remove thinking, and shorten tool outputs to some characters."""
    match value:
        case list():
            kept = (entry for entry in value if not (isinstance(entry, dict) and entry.get("type") in _THINKING_TYPES))
            return [_shrink(entry, max_output) for entry in kept]
        case dict():
            output = value.get("output")
            if isinstance(output, str) and len(output) > max_output:
                characters = int(max_output)
                note = f"\n[{len(output) - characters:,} more characters were left out since]"
                return {**value, "output": output[:characters] + note}
            return {key: _shrink(entry, max_output) for key, entry in value.items()}
    return value
