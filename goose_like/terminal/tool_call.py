"""A call that is being shown: what it is, what it printed so far, and how its result is read."""

import json
import re
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from rich.cells import cell_len

from goose_like.core.message import ToolCall

from .escape import NO_TEXT, one_line, visible

LIVE_LINES = 12
TAIL_LINES = 3
CODE_LINES = 12
MAX_LINE = 1_000

# What commands and cells tell in brackets at the end of their output (toolkits/developer, toolkits/code).
_NOTE = re.compile(r"\[([a-z].{0,998})\]")
FAILED = re.compile(r"exit code \d|killed by |raised ")


class Running:
    """A call that is being shown: how much it printed, the end of it, and the line that is not whole yet."""

    def __init__(self, call: ToolCall, label: str, started: float | None = None) -> None:
        self.call = call
        self.label = label
        self.started = started
        self.line_count = 0
        self.head: list[str] = []
        self.tail: deque[str] = deque(maxlen=TAIL_LINES)
        self.rest = ""
        self._dropped = 0
        self._last = ""

    @property
    def is_command(self) -> bool:
        return not arguments_of(self.call).keys().isdisjoint(("command", "code")) or self.line_count > 0

    def take(self, text: str, width: int) -> Iterator[str]:
        """Yields the lines that are whole now, as they are shown where there are `width` columns."""
        first, *more = text.split("\n")
        self._grow(first)
        for piece in more:
            self._last = _after_return(self.rest)
            line = shown(self._last, self._dropped, width)
            self.rest, self._dropped = "", 0
            self._grow(piece)
            self.line_count += 1
            (self.head if self.line_count <= LIVE_LINES else self.tail).append(line)
            yield line

    def recent(self, count: int) -> list[str]:
        """The last lines, with the one that is not whole yet."""
        lines = [*(self.head if len(self.tail) < TAIL_LINES else ()), *self.tail]
        return [*lines, *([self.rest] if self.rest else [])][-count:]

    def _grow(self, piece: str) -> None:
        """A carriage return starts the line over; one at the end may be half of a line's end and waits."""
        line = self.rest + piece
        if start := line.rfind("\r", 0, len(line) - 1) + 1:
            line, self._dropped = line[start:], 0
        self._dropped += max(0, len(line) - MAX_LINE)
        self.rest = line[:MAX_LINE]

    def read(self, output: str) -> tuple[list[str], list[str]]:
        """The result's lines, and the notes that a command's result ends with; how it failed stands first."""
        body, notes = output.removesuffix("\n").split("\n"), list[str]()
        while self.is_command and body and (note := _NOTE.fullmatch(body[-1])):
            if self.line_count and _after_return(body[-1]) == self._last:
                break  # the command printed that itself
            notes.insert(0, note[1])
            body.pop()
        return body, sorted(notes, key=lambda note: not FAILED.match(note))


def _after_return(line: str) -> str:
    return line.rstrip("\r").rpartition("\r")[2]


def shown(line: str, dropped: int, width: int) -> str:
    """A line of output as it is shown: in three rows at most. `dropped` characters more of it were not kept."""
    size = len(line) + dropped
    if sum(character in NO_TEXT for character in line) > max(3, len(line) // 10):
        return f"[binary, {size:,} byte{'s' * (size != 1)}]"
    if dropped == 0 and cell_len(shown := visible(line)) <= 3 * width:
        return shown
    told = f" [{size:,} characters]"
    return one_line(line, min(width, 100) - len(told)) + told


def arguments_of(call: ToolCall) -> dict[str, Any]:
    """The call's arguments by name; those that are no JSON object under no name."""
    try:
        arguments = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        arguments = call.arguments
    return arguments if isinstance(arguments, dict) else {"": arguments}


def nested_line(event: Mapping[str, Any], width: int) -> str:
    """What a nested exchange does, in one line; empty for what needs none."""
    match event:
        case {"type": "tool_started", "call": call}:
            made = ToolCall.model_validate(call)
            return one_line(f"▸ {made.name} {describe(made, width)}", width)
        case {"type": "tool_finished", "result": {"is_error": True, "output": str(output)}}:
            return f"✗ {one_line(output, width - 2)}"
        case {"type": "retrying", "text": str(text)}:
            return f"↻ {one_line(text, width - 2)}"
        case {"type": "nested", "event": Mapping() as inner}:
            line = nested_line(inner, width - 2)
            return f"▸ {line}" if line else ""
        case _:
            return ""


def code_lines(call: ToolCall) -> list[str]:
    """The lines of a call's code, the first of many; none where it has no more than one."""
    code = arguments_of(call).get("code")
    lines = visible(code).strip("\n").split("\n") if isinstance(code, str) else []
    if len(lines) > CODE_LINES:
        lines = [*lines[: CODE_LINES - 1], f"… {len(lines) - CODE_LINES + 1:,} more lines"]
    return lines if len(lines) > 1 else []


def describe(call: ToolCall, width: int) -> str:
    """A call's arguments in one line: a command, a path or a task as it is, the others by name, content by its size."""
    shown = []
    for name, value in arguments_of(call).items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        if name in ("command", "code", "path", "task", "goal", "question", ""):
            shown.append(text)
        elif name == "content":
            size = len(text.encode(errors="replace"))
            shown.append(f"{size:,} byte{'s' * (size != 1)}")
        elif isinstance(value, list) and any(isinstance(entry, dict) for entry in value):
            shown.append(f"{len(value)} {name if len(value) != 1 else name.removesuffix('es')}")
        else:
            shown.append(f"{name}={one_line(text, 40)}")
    return one_line(" · ".join(shown), width)
