"""The log of a boss: a line for each action, the same for the same run."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from goose_like.core.history import INTERRUPTED, History
from goose_like.core.message import ToolCall, ToolResult

_CHARACTERS = 200
_WHAT_CHARACTERS = 80
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Entry:
    """An action that ended. `place` is where in the history's messages its result stands."""

    number: int
    call: ToolCall
    result: ToolResult
    place: int

    @property
    def line(self) -> str:
        """As it is written: number, action, what came of it."""
        return cut(f"- {self.number} · {self.call.name}{_said(self.call, self.result)}", _CHARACTERS)


def entries(history: History) -> Iterator[Entry]:
    """All actions so far. What was cut off counts for none: it is done again."""
    number = 0
    for place, message in enumerate(history.messages):
        calls = history.messages[place - 1].tool_calls if message.role == "tool" else ()
        for call, result in zip(calls, message.tool_results, strict=False):
            if result.output != INTERRUPTED:
                number += 1
                yield Entry(number, call, result, place)


def cut(text: str, characters: int) -> str:
    """The text on one line, of at most so many characters, without what a terminal obeys or a file can't hold."""
    line = " ".join(_UNSEEN.sub(" ", text).split())
    return line if len(line) <= characters else f"{line[: characters - 1]}…"


def _said(call: ToolCall, result: ToolResult) -> str:
    if result.replacement is not None:
        return f": {result.replacement}"
    what = cut(_what(call), _WHAT_CHARACTERS)
    lines = [line for line in map(str.strip, result.output.split("\n")) if line] or ["no output"]
    notes = lines[-1] if len(lines) > 1 and lines[-1].startswith("[") else ""
    # What ran says at its end how it went.
    last = lines[-2] if notes else lines[-1]
    return f"{f' ({what})' if what else ''}: {'failed: ' if result.is_error else ''}{last} {notes}"


def _what(call: ToolCall) -> str:
    """The first lines of the arguments' texts: a command, a path."""
    try:
        given = json.loads(call.arguments or "{}")
    except ValueError:
        return ""
    given = given if isinstance(given, dict) else {}
    texts = (value.strip().split("\n")[0] for value in given.values() if isinstance(value, str) and value.strip())
    return ", ".join(texts)
