"""The log of a boss: one line per action. The same run always writes the same lines."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from goose_like.core.history import INTERRUPTED, History
from goose_like.core.message import ToolCall, ToolResult

_LINE_CHARACTERS = 200
_ARGUMENTS_CHARACTERS = 80
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A finished action. `place` is the index of its result in the history's messages."""

    number: int
    call: ToolCall
    result: ToolResult
    place: int

    @property
    def line(self) -> str:
        """The line of the log file: number, action and its result."""
        return cut_line(f"- {self.number} · {self.call.name}{_describe(self.call, self.result)}", _LINE_CHARACTERS)


def list_entries(history: History) -> Iterator[LogEntry]:
    """Yield all finished actions. Skip interrupted ones, because the controller repeats them."""
    number = 0
    for place, message in enumerate(history.messages):
        calls = history.messages[place - 1].tool_calls if message.role == "tool" else ()
        for call, result in zip(calls, message.tool_results, strict=False):
            if not result.output.startswith(INTERRUPTED):
                number += 1
                yield LogEntry(number, call, result, place)


def cut_line(text: str, max_characters: int) -> str:
    """Put a text on one line, without control characters and lone surrogates."""
    line = " ".join(_UNPRINTABLE.sub(" ", text).split())
    return line if len(line) <= max_characters else f"{line[: max_characters - 1]}…"


def _describe(call: ToolCall, result: ToolResult) -> str:
    if result.replacement is not None:
        return f": {result.replacement}"
    arguments = cut_line(_join_arguments(call), _ARGUMENTS_CHARACTERS)
    lines = [line for line in map(str.strip, result.output.split("\n")) if line] or ["no output"]
    note = lines[-1] if len(lines) > 1 and lines[-1].startswith("[") else ""
    last = lines[-2] if note else lines[-1]  # a program reports its result at the end
    prefix = f" ({arguments})" if arguments else ""
    return f"{prefix}: {'failed: ' if result.is_error else ''}{last} {note}"


def _join_arguments(call: ToolCall) -> str:
    """Join the first lines of the text arguments, such as a command or a path."""
    texts = [value.strip() for name, value in call.parse_arguments().items() if name and isinstance(value, str)]
    return ", ".join(text.split("\n")[0] for text in texts if text)
