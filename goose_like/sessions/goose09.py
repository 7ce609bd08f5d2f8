"""Import of goose 0.9 session files: JSON Lines of messages with Text, ToolUse and ToolResult."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, ValidationError

from goose_like.core.errors import SessionError
from goose_like.core.events import DurableEvent, MessageCompleted, ToolFinished, TurnFinished, TurnStarted
from goose_like.core.message import Message, Part, Text, ToolCall, ToolResult, Utf8Text

_EPOCH = datetime.fromtimestamp(0, UTC)


class _Text(BaseModel):
    type: Literal["Text"]
    text: Utf8Text


class _ToolUse(BaseModel):
    type: Literal["ToolUse"]
    id: Utf8Text
    name: Utf8Text
    parameters: Any = None


class _ToolResult(BaseModel):
    type: Literal["ToolResult"]
    tool_use_id: Utf8Text
    output: Any
    is_error: bool = False


class _Message(BaseModel):
    role: Literal["user", "assistant"]
    content: list[Annotated[_Text | _ToolUse | _ToolResult, Field(discriminator="type")]]
    created: datetime = _EPOCH


def read_goose09_events(text: str, file: str) -> Iterator[tuple[DurableEvent, datetime]]:
    """Yield the events with the times of their messages. A turn with missing results counts as cancelled.

    Raises:
        SessionError: a line is no message of goose 0.9; the error has its number.
    """
    used_ids: set[str] = set()
    waiting: dict[str, str] = {}  # from the id of each call without a result to its new id
    is_in_turn, time = False, _EPOCH
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        message = _parse_message(line, f"{file}, line {number}")
        time = message.created
        for part in message.content:
            if isinstance(part, _ToolResult) and (call_id := waiting.pop(part.tool_use_id, None)):
                output = part.output if isinstance(part.output, str) else json.dumps(part.output, ensure_ascii=False)
                yield ToolFinished(result=ToolResult(call_id=call_id, output=output, is_error=part.is_error)), time
        parts: list[Part] = [Text(text=part.text) for part in message.content if isinstance(part, _Text) and part.text]
        if message.role == "user":
            if parts:
                if is_in_turn:
                    yield _make_turn_end(waiting), time
                is_in_turn, waiting = True, {}
                yield TurnStarted(message=Message(role="user", parts=tuple(parts))), time
            continue
        waiting = {}
        for part in message.content:
            if isinstance(part, _ToolUse):
                call = _convert_call(part, used_ids)
                used_ids.add(call.id)
                waiting[part.id] = call.id
                parts.append(call)
        if parts:
            yield MessageCompleted(message=Message(role="assistant", parts=tuple(parts))), time
    if is_in_turn:
        yield _make_turn_end(waiting), time


def _parse_message(line: str, place: str) -> _Message:
    try:
        return _Message.model_validate_json(line)
    except ValidationError as error:
        first = error.errors()[0]
        reason = ": ".join(filter(None, [".".join(map(str, first["loc"])), first["msg"]]))
        raise SessionError(f"{place} is no message of goose 0.9 ({reason}); nothing was imported") from None


def _make_turn_end(waiting: dict[str, str]) -> TurnFinished:
    return TurnFinished(reason="cancelled", exit_code=130) if waiting else TurnFinished(reason="stop")


def _convert_call(part: _ToolUse, used_ids: set[str]) -> ToolCall:
    call_id = part.id
    while not call_id or call_id in used_ids:
        call_id = f"call_{len(used_ids) + 1}_{call_id}"
    arguments = part.parameters if isinstance(part.parameters, str) else json.dumps(part.parameters or {})
    return ToolCall(id=call_id, name=part.name, arguments=arguments)
