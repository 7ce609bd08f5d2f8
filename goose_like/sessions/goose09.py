"""Import of goose 0.9 session files: JSON Lines of messages with Text, ToolUse and ToolResult."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, ValidationError

from goose_like.core.errors import SessionError
from goose_like.core.events import DurableEvent, MessageCompleted, ToolFinished, TurnFinished, TurnStarted
from goose_like.core.message import Message, Part, Text, ToolCall, ToolResult, Utf8Text


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
    created: float = 0


class _Converter:
    """A converter from messages to events, which tracks the calls without results and the ids in use."""

    def __init__(self) -> None:
        self._is_in_turn = False
        self._used_ids: set[str] = set()
        self._waiting: dict[str, str] = {}

    def convert(self, message: _Message) -> Iterator[DurableEvent]:
        """Yield the events of a message. A turn with missing results counts as cancelled."""
        for part in message.content:
            if isinstance(part, _ToolResult) and (call_id := self._waiting.pop(part.tool_use_id, None)):
                output = part.output if isinstance(part.output, str) else json.dumps(part.output, ensure_ascii=False)
                yield ToolFinished(result=ToolResult(call_id=call_id, output=output, is_error=part.is_error))
        parts: list[Part] = [Text(text=part.text) for part in message.content if isinstance(part, _Text) and part.text]
        if message.role == "user":
            if parts:
                yield from self.end_turn()
                self._is_in_turn = True
                yield TurnStarted(message=Message(role="user", parts=tuple(parts)))
            return
        self._waiting = {}
        parts += [self._convert_call(part) for part in message.content if isinstance(part, _ToolUse)]
        if parts:
            yield MessageCompleted(message=Message(role="assistant", parts=tuple(parts)))

    def end_turn(self) -> Iterator[DurableEvent]:
        """Yield the end of the open turn, if there is one."""
        if self._is_in_turn:
            has_all_results = not self._waiting
            yield TurnFinished(reason="stop") if has_all_results else TurnFinished(reason="cancelled", exit_code=130)
        self._is_in_turn, self._waiting = False, {}

    def _convert_call(self, part: _ToolUse) -> ToolCall:
        call_id = part.id
        while not call_id or call_id in self._used_ids:
            call_id = f"call_{len(self._used_ids) + 1}_{call_id}"
        self._used_ids.add(call_id)
        self._waiting[part.id] = call_id
        arguments = part.parameters if isinstance(part.parameters, str) else json.dumps(part.parameters or {})
        return ToolCall(id=call_id, name=part.name, arguments=arguments)


def read_goose09_events(text: str, file: str) -> Iterator[tuple[DurableEvent, datetime]]:
    """Yield the events with the times of their messages. Every call has a result or is interrupted.

    Raises:
        SessionError: a line is no message of goose 0.9; the error has its number.
    """
    converter, time = _Converter(), datetime.fromtimestamp(0, UTC)
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            message = _Message.model_validate_json(line)
            time = datetime.fromtimestamp(message.created, UTC)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            what = f"{where}: {first['msg']}" if where else first["msg"]
            raise SessionError(
                f"{file}, line {number} is no message of goose 0.9 ({what}); nothing was imported"
            ) from None
        except (ValueError, OverflowError, OSError):
            raise SessionError(f"{file}, line {number}: `created` is no time; nothing was imported") from None
        for event in converter.convert(message):
            yield event, time
    for event in converter.end_turn():
        yield event, time
