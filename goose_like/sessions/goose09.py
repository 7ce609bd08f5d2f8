"""Import of goose 0.9 session files: JSON Lines of messages with Text, ToolUse and ToolResult."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, TypeAdapter

from goose_like import __version__
from goose_like.core.events import (
    DurableEvent,
    MessageCompleted,
    SessionStarted,
    ToolFinished,
    TurnFinished,
    TurnStarted,
)
from goose_like.core.message import Message, Part, Text, ToolCall, ToolResult, Utf8Text


class _Part(BaseModel):
    type: Literal["Text", "ToolUse", "ToolResult"]
    text: Utf8Text = ""
    id: Utf8Text = ""
    name: Utf8Text = ""
    parameters: Any = None
    tool_use_id: Utf8Text = ""
    output: Any = ""
    is_error: bool = False


class _Message(BaseModel):
    role: Literal["user", "assistant"]
    content: list[_Part]
    created: datetime = datetime.fromtimestamp(0, UTC)


def cut_torn_line(text: str) -> tuple[str, bool]:
    """Return the text without a torn last line, which a killed process leaves, and whether there was one."""
    *lines, last = text.rstrip().split("\n")
    try:
        json.loads(last)
    except ValueError:
        if lines:
            return "\n".join(lines), True
    return text, False


def read_goose09_events(text: str) -> Iterator[tuple[DurableEvent, datetime]]:
    """Yield the events with the times of their messages. A call without a result counts as interrupted.

    Raises:
        ValidationError: a line is no message of goose 0.9; the location starts with the number of the message from 0.
        ValueError: there are no messages.
    """
    lines = ",".join(filter(str.strip, text.split("\n")))
    messages = TypeAdapter(list[_Message]).validate_json(f"[{lines}]")
    if not any(message.content for message in messages):
        raise ValueError("it has no messages")
    header = SessionStarted(
        version=__version__,
        name="",
        cwd=str(Path.cwd()),
        profile="",
        models={},
        tools=(),
    )
    yield header, messages[0].created
    calls = _Calls()
    is_in_turn = False
    for message in messages:
        time = message.created
        for result in calls.take_over(message):
            yield ToolFinished(result=result), time
        if not calls.parts:
            continue
        new = Message(role=message.role, parts=tuple(calls.parts))
        if new.role == "assistant":
            yield MessageCompleted(message=new), time
            continue
        if is_in_turn:
            yield TurnFinished(reason="stop"), time
        is_in_turn = True
        yield TurnStarted(message=new), time
    if is_in_turn:
        yield TurnFinished(reason="stop"), message.created


class _Calls:
    """The calls of a session under new ids, since the ids in the file may repeat. `parts` are of the newest message."""

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self._numbers = count(1)
        self._new_ids: dict[str, str] = {}  # of the newest calls, by id in the file

    def take_over(self, message: _Message) -> list[ToolResult]:
        """Convert the parts of a message, and return the results of earlier calls in it."""
        self.parts = []
        results = []
        for part in message.content:
            if part.type == "Text" and part.text:
                self.parts.append(Text(text=part.text))
            elif part.type == "ToolUse" and message.role == "assistant":
                self.parts.append(self._convert_call(part))
            elif part.type == "ToolResult" and part.tool_use_id in self._new_ids:
                call_id = self._new_ids[part.tool_use_id]
                result = ToolResult(call_id=call_id, output=_to_text(part.output), is_error=part.is_error)
                results.append(result)
        return results

    def _convert_call(self, part: _Part) -> ToolCall:
        new_id = f"call_{next(self._numbers)}"
        self._new_ids[part.id] = new_id
        arguments = _to_text(part.parameters or {})
        return ToolCall(id=new_id, name=part.name, arguments=arguments)


def _to_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)
