"""A session file of goose 0.9 as events: JSON Lines of messages whose content is Text, ToolUse and ToolResult."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, ValidationError

from goose_like.core.errors import SessionError
from goose_like.core.events import Durable, MessageCompleted, ToolFinished, TurnFinished, TurnStarted
from goose_like.core.message import Message, Part, Text, ToolCall, ToolResult, Words


class _Text(BaseModel):
    type: Literal["Text"]
    text: Words


class _ToolUse(BaseModel):
    type: Literal["ToolUse"]
    id: Words
    name: Words
    parameters: Any = None


class _ToolResult(BaseModel):
    type: Literal["ToolResult"]
    tool_use_id: Words
    output: Any
    is_error: bool = False


class _Message(BaseModel):
    role: Literal["user", "assistant"]
    content: list[Annotated[_Text | _ToolUse | _ToolResult, Field(discriminator="type")]]
    created: float = 0


class _Reader:
    """Where a conversation stands: which calls wait for their results, and which ids are taken."""

    def __init__(self) -> None:
        self._is_in_turn = False
        self._taken: set[str] = set()
        self._waiting: dict[str, str] = {}

    def take(self, message: _Message) -> Iterator[Durable]:
        """The events of a message. Calls whose results are missing are closed as those of a cancelled turn."""
        for part in message.content:
            if isinstance(part, _ToolResult) and (call_id := self._waiting.pop(part.tool_use_id, None)):
                output = part.output if isinstance(part.output, str) else json.dumps(part.output, ensure_ascii=False)
                yield ToolFinished(result=ToolResult(call_id=call_id, output=output, is_error=part.is_error))
        said: list[Part] = [Text(text=part.text) for part in message.content if isinstance(part, _Text) and part.text]
        if message.role == "user":
            if said:
                yield from self.end()
                self._is_in_turn = True
                yield TurnStarted(message=Message(role="user", parts=tuple(said)))
            return
        self._waiting = {}
        said += [self._call(part) for part in message.content if isinstance(part, _ToolUse)]
        if said:
            yield MessageCompleted(message=Message(role="assistant", parts=tuple(said)))

    def end(self) -> Iterator[Durable]:
        """The end of the turn that is open."""
        if self._is_in_turn:
            is_whole = not self._waiting
            yield TurnFinished(reason="stop") if is_whole else TurnFinished(reason="cancelled", exit_code=130)
        self._is_in_turn, self._waiting = False, {}

    def _call(self, part: _ToolUse) -> ToolCall:
        call_id = part.id
        while not call_id or call_id in self._taken:
            call_id = f"call_{len(self._taken) + 1}_{call_id}"
        self._taken.add(call_id)
        self._waiting[part.id] = call_id
        arguments = part.parameters if isinstance(part.parameters, str) else json.dumps(part.parameters or {})
        return ToolCall(id=call_id, name=part.name, arguments=arguments)


def goose09_events(text: str, file: str) -> Iterator[tuple[Durable, datetime]]:
    """The events and the times of their messages; each call has its result, or is interrupted.

    Raises:
        SessionError: a line is no such message; the text has its number.
    """
    reader, time = _Reader(), datetime.fromtimestamp(0, UTC)
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
        for event in reader.take(message):
            yield event, time
    for event in reader.end():
        yield event, time
