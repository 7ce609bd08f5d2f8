"""The log of a boss: one line per action. The same run always writes the same lines."""

import re
from collections.abc import Iterator, Sequence
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
        if arguments:
            start += f" ({arguments})"
        outcome, notes = _find_outcome(self.result.output)
        if self.result.is_error:
            outcome = f"failed: {outcome}"
        end = f" {notes}" if notes else ""
        return cut_line(f"{start}: {outcome}", _LINE_CHARACTERS - len(end)) + end


def list_entries(history: History) -> Iterator[LogEntry]:
    """Yield all finished actions. Skip interrupted ones, because the controller repeats them."""
    number = 0
    for place, message in enumerate(history.messages):
        if message.role != "tool":
            continue
        calls = history.messages[place - 1].tool_calls
        for call, result in zip(calls, message.tool_results, strict=False):
            if not result.output.startswith(INTERRUPTED):
                number += 1
                yield LogEntry(number, call, result, place)


def cut_line(text: str, max_characters: int) -> str:
    """Put a text on one line, without control characters and lone surrogates."""
    line = " ".join(_UNPRINTABLE.sub(" ", text).split())
    if len(line) <= max_characters:
        return line
    return f"{line[: max_characters - 1]}…"


def _find_outcome(output: str) -> tuple[str, str]:
    """Return what a result says about success, and the notes in brackets at its end, such as the exit code."""
    lines = []
    for line in map(str.strip, output.split("\n")):
        if line and not _CARETS.fullmatch(line):
            lines.append(line)
    end = len(lines)
    while end > 1 and lines[end - 1].startswith("["):
        end -= 1
    notes = cut_line(" ".join(lines[end:]), _NOTES_CHARACTERS)
    return _sum_up(lines[:end]), notes


def _sum_up(lines: Sequence[str]) -> str:
    """Return the last line in which a program sums up what happened, and the last line of all."""
    if not lines:
        return "no output"
    last = lines[-1]
    place = _find_outcome_line(lines)
    if place is None:
        if len(lines) < _MIN_COUNTED_LINES:
            return last
        return f"{len(lines)} lines, the last: {last}"
    outcome = lines[place]
    if place and _BARE_ERROR.fullmatch(outcome):
        outcome = f"{lines[place - 1]} · {outcome}"  # the line of code that failed
    if place == len(lines) - 1:
        return outcome
    return f"{outcome} … {last}"


def _find_outcome_line(lines: Sequence[str]) -> int | None:
    for place in reversed(range(len(lines))):
        if _OUTCOME.fullmatch(lines[place]):
            return place
    return None


def _join_arguments(call: ToolCall) -> str:
    """Join the first telling lines of the text arguments, such as a command or a path."""
    lines = []
    for name, value in call.parse_arguments().items():
        if name and isinstance(value, str) and value.strip():
            lines.append(_find_first_line(value.strip()))
    return ", ".join(lines)


def _find_first_line(text: str) -> str:
    """Return the first line that is no preparation, such as an import, or else the first line."""
    lines = text.split("\n")
    for line in lines:
        if line.strip() and not _PREPARATION.match(line):
            return line
    return lines[0]
