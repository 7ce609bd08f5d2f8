"""The log of a boss: one line per action. The same run always writes the same lines."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from goose_like.core.history import INTERRUPTED, History
from goose_like.core.message import ToolCall, ToolResult

_LINE_CHARACTERS = 200
_REPORT_CHARACTERS = 600
"""The length of a line with a result that is meant for the log, such as the report of a sub-boss."""
_ARGUMENTS_CHARACTERS = 80
_NOTES_CHARACTERS = 60
_MIN_COUNTED_LINES = 4
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_OUTCOME = re.compile(
    r"(FAILED|FAIL|OK|ok)\b.*"  # unittest, go test
    r"|.*\b\d+ (passed|failed|failures?|errors?)\b.*"  # pytest, cargo test, jest, compilers
    r"|[\w.]*(Error|Exception|Interrupt)(: .*)?"  # Python
    r"|(error|fatal|make)(\[\w+\])?: .*"  # compilers, git, make
)
"""A line in which programs sum up what happened."""
_BARE_ERROR = re.compile(r"\w+(Error|Exception)")
_CARETS = re.compile(r"[~^]+")
_PREPARATION = re.compile(r"(import|from|cd)\b|#")


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
        start = f"- {self.number} · {self.call.name}"
        if self.result.replacement is not None:
            return cut_line(f"{start}: {self.result.replacement}", _REPORT_CHARACTERS)
        arguments = cut_line(_join_arguments(self.call), _ARGUMENTS_CHARACTERS)
        outcome, notes = _find_outcome(self.result.output)
        failed, end = "failed: " if self.result.is_error else "", f" {notes}" if notes else ""
        text = f"{start}{f' ({arguments})' if arguments else ''}: {failed}{outcome}"
        return cut_line(text, _LINE_CHARACTERS - len(end)) + end


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


def _find_outcome(output: str) -> tuple[str, str]:
    """Return what a result says about success, and the notes in brackets at its end, such as the exit code."""
    lines = [line for line in map(str.strip, output.split("\n")) if line and not _CARETS.fullmatch(line)]
    count = len(lines)
    while count > 1 and lines[count - 1].startswith("["):
        count -= 1
    notes = cut_line(" ".join(lines[count:]), _NOTES_CHARACTERS)
    if not lines:
        return "no output", notes
    place = next((place for place in reversed(range(count)) if _OUTCOME.fullmatch(lines[place])), None)
    last = lines[count - 1]
    if place is None:
        return (f"{count} lines, the last: {last}" if count >= _MIN_COUNTED_LINES else last), notes
    outcome = lines[place]
    if place and _BARE_ERROR.fullmatch(outcome):
        outcome = f"{lines[place - 1]} · {outcome}"  # the line of code that failed
    return (outcome if place == count - 1 else f"{outcome} … {last}"), notes


def _join_arguments(call: ToolCall) -> str:
    """Join the first telling lines of the text arguments, such as a command or a path."""
    texts = [value.strip() for name, value in call.parse_arguments().items() if name and isinstance(value, str)]
    return ", ".join(_find_first_line(text) for text in texts if text)


def _find_first_line(text: str) -> str:
    lines = text.split("\n")
    return next((line for line in lines if line.strip() and not _PREPARATION.match(line)), lines[0])
