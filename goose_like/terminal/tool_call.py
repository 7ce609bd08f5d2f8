"""A running tool call: its arguments as text, its output so far, and its result."""

import json
from collections import deque
from collections.abc import Mapping
from typing import Any

from goose_like.core.events import (
    CallDisplay,
    Event,
    Retrying,
    Status,
    SubagentEvent,
    ToolFinished,
    ToolProgress,
    ToolStarted,
)
from goose_like.core.message import Message, ToolCall
from goose_like.core.pattern import compile_later
from goose_like.core.spelling import format_count

from .escape import NON_TEXT, escape_controls, measure_width, to_one_line
from .lines import MAX_LINE

LIVE_LINES = 12
TAIL_LINES = 3
KEPT_LINES = 100

_MAIN_ARGUMENTS = ("command", "code", "path", "task", "goal", "question", "")

_NOTE = compile_later(r"\[([a-z].{0,9998})\]")
"""A note in brackets at the end of output, as the tools `shell` and `run_code` write it."""
FAILURE_NOTE = compile_later(r"(p\d+: )?(exit code [1-9]|killed by )|raised |not allowed: |no (network|connection): ")


class RunningCall:
    """A call with the first and last lines of its output, the number of lines, and the unfinished last line.

    `is_asking` is true while the person is asked about the call. `is_subagent` is true if a subagent runs for the call:
    its `call_count` calls are output that is folded into one line, and `status` says what it does if it runs no call.
    `number` counts the calls of the session, or is empty where nobody needs it. `label` is the number again if rows of
    parallel calls can mix, else empty. `started_at` is a monotonic time.
    `hint` follows the count of hidden lines, such as the command that shows them.
    `is_head_printed` is true when no head is wanted any more; a call with the display `nothing` has none.
    """

    def __init__(
        self,
        call: ToolCall,
        label: str,
        started_at: float | None = None,
        number: str = "",
        display: CallDisplay = "whole",
    ) -> None:
        self.call = call
        self.display = display
        self.label = label
        self.number = number or label
        self.hint = ""
        self.started_at = started_at
        self.is_head_printed = display == "nothing"
        self.line_count = 0
        self.head: list[str] = []
        self.newest: deque[str] = deque(maxlen=KEPT_LINES)
        self.rest = ""
        self.is_asking = False
        self.is_subagent = False
        self.call_count = 0
        self.status = ""
        self._tail_rows = TAIL_LINES
        self._has_gap = False
        self._dropped = 0
        self._last = ""

    @property
    def is_command(self) -> bool:
        """A command or code: its result is the output, with notes at its end."""
        arguments = self.call.parse_arguments()
        return "command" in arguments or "code" in arguments or self.line_count > 0

    @property
    def tail(self) -> list[str]:
        """The last lines, without those in `head`."""
        return list(self.newest)[-self._tail_rows :]

    @property
    def _has_all_lines(self) -> bool:
        """True if `head` and `newest` have every whole line."""
        return self.line_count == len(self.head) + len(self.newest)

    @property
    def state(self) -> str:
        """The thing that the call waits for."""
        if self.is_asking:
            return "waiting for your answer"
        arguments = self.call.parse_arguments()
        if "url" in arguments or "urls" in arguments:
            return "waiting for the network"
        return "running"

    def is_named_in(self, text: str) -> bool:
        """Return whether the text of a question names the command, code, file or page of the call."""
        arguments = self.call.parse_arguments()
        values = [arguments.get(name) for name in ("command", "code", "path", "url")]
        return any(str(value) in text for value in values if value)

    def skip_time(self, seconds: float) -> None:
        """Leave the time of a question out of the time that the call took."""
        if self.started_at is not None:
            self.started_at += seconds

    def skip_lines(self, count: int) -> None:
        """Count lines of output that are not shown. Lines before them are forgotten, except those of `head`."""
        if count:
            self._has_gap = True
            self.line_count += count
            self.newest.clear()

    def add_output(self, text: str, width: int) -> None:
        """Add output. Lines are fitted to so many columns."""
        first, *more = text.split("\n")
        self._extend_rest(first)
        for piece in more:
            self._end_line(width)
            self._extend_rest(piece)

    def favor_end(self) -> None:
        """Keep fewer of the first lines and show more of the last ones: there a failed command says why."""
        if self.line_count <= LIVE_LINES + TAIL_LINES:
            return
        if self._has_all_lines:
            self.newest = deque([*self.head[TAIL_LINES:], *self.newest], maxlen=KEPT_LINES)
        self.head = self.head[:TAIL_LINES]
        self._tail_rows = LIVE_LINES

    def get_excerpt(self, head_rows: int, tail_rows: int) -> list[str]:
        """Return the first and the last lines, with the unfinished one, and how many are between them."""
        head = self.head[:head_rows]
        lines = list(self.newest)
        line_count = self.line_count
        if self.rest:
            lines.append(self.rest)
            line_count += 1
        if self._has_all_lines:
            lines = [*self.head[head_rows:], *lines]
            # The count of hidden lines would take as much space as one of them.
            if line_count <= head_rows + tail_rows + 1:
                return [*head, *lines]
        tail = lines[-tail_rows:]
        hidden_count = line_count - len(head) - len(tail)
        return [*head, f"… {hidden_count:,} more lines{self.hint}", *tail]

    def _end_line(self, width: int) -> None:
        """Keep the unfinished line as a whole one."""
        self._last = self.rest.rstrip("\r")
        fitted = fit_line(self._last, self._dropped, width)
        if len(self.head) < LIVE_LINES and not self._has_gap:
            self.head.append(fitted)
        else:
            self.newest.append(fitted)
        self.line_count += 1
        self.rest = ""
        self._dropped = 0

    def _extend_rest(self, piece: str) -> None:
        """Extend the unfinished line. A carriage return restarts it; at the end it can be half of a line end."""
        line = self.rest + piece
        start = line.rfind("\r", 0, len(line) - 1) + 1
        if start:
            line = line[start:]
            self._dropped = 0
        self._dropped += max(0, len(line) - MAX_LINE)
        self.rest = line[:MAX_LINE]

    def drop_output(self) -> None:
        """Forget the output so far."""
        self.line_count = 0
        self.rest = ""
        self.head.clear()
        self.newest.clear()

    def split_result(self, output: str) -> tuple[list[str], list[str]]:
        """Split a result into its lines and the notes at its end, with notes about a failure first."""
        body = output.removesuffix("\n").split("\n")
        notes: list[str] = []
        may_have_notes = self.is_command or self.is_subagent
        while may_have_notes and body:
            note = _NOTE.fullmatch(body[-1])
            if note is None or self._was_printed(body[-1]):
                break
            notes.insert(0, note[1])
            body.pop()
        return body, sorted(notes, key=lambda note: not FAILURE_NOTE.match(note))

    def _was_printed(self, line: str) -> bool:
        """Return whether the last line of output is this one: then it is no note, even if it looks like one."""
        _, _, shown = line.rstrip("\r").rpartition("\r")
        return self.line_count > 0 and shown == self._last


def number_calls(message: Message, first: int, displays: Mapping[str, CallDisplay]) -> dict[str, int]:
    """Return the numbers of a message's calls by their ids, beginning at `first`. Calls that are not shown have none.

    `displays` are those of `SessionStarted`.
    """
    calls = [call for call in message.tool_calls if displays.get(call.name) != "nothing"]
    return {call.id: number for number, call in enumerate(calls, first)}


def fit_line(line: str, dropped: int, width: int) -> str:
    """Fit a line of output into three rows; `dropped` counts characters that were not kept."""
    size = len(line) + dropped
    non_text_count = sum(character in NON_TEXT for character in line)
    if non_text_count > max(3, len(line) // 10):
        return f"[binary, {format_count(size, 'byte')}]"
    escaped = escape_controls(line)
    if dropped == 0 and measure_width(escaped) <= 3 * width:
        return escaped
    note = f" [{size:,} characters]"
    room = min(width, 100) - len(note)
    return to_one_line(line, room) + note


def convert_nested_event(event: SubagentEvent, width: int) -> Status | ToolProgress:
    """Return how a screen shows an event of a subagent: a status, or a line of output of the call that runs it."""
    if isinstance(event.event, Status):
        return event.event
    line = _format_nested_event(event.event, width)
    if line:
        line += "\n"
    return ToolProgress(call_id=event.call_id, text=line)


def _format_nested_event(event: Event, width: int) -> str:
    match event:
        case ToolStarted(call=call):
            arguments = describe_call(call, width)
            return to_one_line(f"▸ {call.name} {arguments}", width)
        case ToolFinished(result=result) if result.is_error:
            return f"✗ {to_one_line(result.output, width - 2)}"
        case Retrying(text=text):
            return f"↻ {to_one_line(text, width - 2)}"
        case SubagentEvent(event=inner):
            line = _format_nested_event(inner, width - 2)
            return f"▸ {line}" if line else ""
        case _:
            return ""


def split_code(call: ToolCall) -> tuple[list[str], str]:
    """Return the lines of a call's code or command, and its other arguments in one line."""
    arguments = call.parse_arguments()
    code_name = "code" if "code" in arguments else "command"
    code = arguments.pop(code_name, "")
    lines: list[str] = []
    if isinstance(code, str):
        lines = escape_controls(code).strip("\n").split("\n")
    others = call.model_copy(update={"arguments": json.dumps(arguments)})
    return lines, describe_call(others, MAX_LINE)


def describe_call(call: ToolCall, width: int) -> str:
    """Describe a call's arguments in one line: main arguments in full, content by its size, others as `name=value`."""
    parts = [_describe_argument(name, value) for name, value in call.parse_arguments().items()]
    return to_one_line(" · ".join(parts), width)


def _describe_argument(name: str, value: Any) -> str:
    text = value
    if not isinstance(value, str):
        text = json.dumps(value, ensure_ascii=False)
    if name in _MAIN_ARGUMENTS:
        return str(text)
    if name == "content":
        size = len(text.encode(errors="replace"))
        return format_count(size, "byte")
    if isinstance(value, list) and any(isinstance(entry, dict) for entry in value):
        noun = name.removesuffix("es") if len(value) == 1 else name
        return f"{len(value)} {noun}"
    return f"{name}={to_one_line(text, 40)}"
