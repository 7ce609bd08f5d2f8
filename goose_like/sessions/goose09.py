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
    header = SessionStarted(version=__version__, name="", cwd=str(Path.cwd()), profile="", models={}, tools=())
    yield header, messages[0].created
    new_ids: dict[str, str] = {}  # from the ids in the file, which may repeat, to those of the newest calls
    numbers = count(1)
    is_in_turn = False
    for message in messages:
        time = message.created
        parts: list[Part] = []
        for part in message.content:
            if part.type == "Text" and part.text:
                parts.append(Text(text=part.text))
            elif part.type == "ToolUse" and message.role == "assistant":
                new_ids[part.id] = f"call_{next(numbers)}"
                arguments = _to_text(part.parameters or {})
                parts.append(ToolCall(id=new_ids[part.id], name=part.name, arguments=arguments))
            elif part.type == "ToolResult" and (call_id := new_ids.get(part.tool_use_id)):
                result = ToolResult(call_id=call_id, output=_to_text(part.output), is_error=part.is_error)
                yield ToolFinished(result=result), time
        if parts and message.role == "assistant":
            yield MessageCompleted(message=Message(role="assistant", parts=tuple(parts))), time
        elif parts:
            if is_in_turn:
                yield TurnFinished(reason="stop"), time
            is_in_turn = True
            yield TurnStarted(message=Message(role="user", parts=tuple(parts))), time
    if is_in_turn:
        yield TurnFinished(reason="stop"), message.created


def _to_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
