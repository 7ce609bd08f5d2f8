"""Events as lines on a terminal. Screens call the renderer from their own `match`."""

import re
import time
from collections.abc import Iterator, Sequence
from typing import assert_never

from goose_like.core import events
from goose_like.core.history import STOPPED
from goose_like.core.message import ToolCall, ToolResult, Usage
from goose_like.core.pattern import compile_later
from goose_like.core.spelling import format_count

from .escape import cut_line, escape_controls, escape_invisible, to_one_line
from .lines import MAX_LINE, LineWriter, StyledText, join_rows
from .tool_call import (
    FAILURE_NOTE,
    KEPT_LINES,
    LIVE_LINES,
    RunningCall,
    describe_call,
    split_code,
)

ERROR_ROWS = 10
RESULT_ROWS = 2
CALL_ROWS = 5
CODE_ROWS = 12
MAX_LABEL_CHARS = 30
"""Length of a prefix that the keys of a question can show beside them."""
_MAX_ARTIFACT_COLUMNS = 120
_LONG_QUESTION_LINES = 21
_SHORT_FAILURE_CHARS = 60
_MAX_JSON_COLUMNS = 86
_SUMMARY_INDENT = 14
"""Columns that a mark, a label and a time may need beside the summary of a result."""
_STYLES = {"planned": "", "in-progress": "bold cyan", "complete": "green", "failed": "red"}
_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}
_VERDICTS = {
    "allow": "allowed",
    "allow_prefix": "allowed until the session ends",
    "allow_always": "allowed from now on",
    "deny": "denied",
}
END_OPENINGS = {"budget": "stopped:", "step_limit": "stopped at", "stop": ""}
"""How the line begins that tells why a turn ended, for reasons whose name says less."""
_HUNK = compile_later(r"@@ -(\d+)(?:,\d+)? \+(\d+)")
_ABOUT = compile_later(r"\[(.+)\]")
_BAR = compile_later(r" [█░]+ *\d+%")
_WORD_WITH_DIGIT = compile_later(r"[\w-]*\d[\w-]*")
_LEFT_OUT = compile_later(
    r"\[\.\.\. (?:([\d,]+) lines )?\(?[\d,]+ bytes\)? left out here; (.+?)(?:: search it| \.\.\.\])"
)
"""The note in a shortened result: how many lines were left out, and which file has them."""


PrintableEvent = (
    events.SessionStarted
    | events.PlanUpdated
    | events.Logged
    | events.FileChanged
    | events.Asked
    | events.Answered
    | events.Reminded
    | events.Compacted
    | events.Rewound
    | events.ArtifactShown
    | events.PromptsSuggested
    | events.Retrying
    | events.RunFinished
)
"""An event that looks the same on every screen."""


class Renderer:
    """Lines for each kind of event.

    Text from models, tools and files is escaped: the terminal shows control characters and never obeys them.
    """

    def __init__(self, lines: LineWriter) -> None:
        self.lines = lines
        self._printed_statuses: set[str] = set()
        self._prompts: Sequence[str] = ()
        self._failure_kind = ""

    def print_event(self, event: PrintableEvent) -> None:
        """Print an event. Suggested prompts are printed at the end of the turn."""
        write_line = self.lines.write_line
        match event:
            case events.SessionStarted():
                start = _describe_start(event)
                if start:  # an imported session has nothing to tell
                    write_line(start, "dim")
            case events.PlanUpdated(tasks=tasks):
                for task in tasks:
                    write_line(self._format_task(task))
            case events.Logged(text=text):
                for line in escape_controls(text).split("\n"):
                    self._print_indented(line, "dim")
            case events.FileChanged(diff=diff):
                if diff:
                    self._print_diff(diff)
            case events.Asked(question=question):
                self._print_question(question)
            case events.Answered(question=question, answer=answer):
                self._print_indented(_describe_answer(question, answer), "yellow")
            case events.Reminded(reason=reason, text=text):
                if reason not in ("context", "shown"):  # the person sees these elsewhere
                    reminder = to_one_line(text, self.lines.get_room(26))
                    write_line(f"↺ reminder to the model: {reminder}", "dim")
            case events.Compacted():
                if not event.is_routine:
                    write_line(f"(context compacted: {_describe_compaction(event)})", "yellow")
            case events.Rewound(message_count=count):
                place = "an earlier point" if count else "its beginning"
                write_line(f"(the conversation is back at {place})", "yellow")
            case events.ArtifactShown(artifact=artifact):
                from .artifact import render_artifact  # imported here: it loads Rich

                width = min(self.lines.get_room(4), _MAX_ARTIFACT_COLUMNS)
                for row in render_artifact(artifact, width):
                    write_line(row)
            case events.PromptsSuggested(prompts=prompts):
                self._prompts = prompts
            case events.Retrying(text=text, wait_s=wait_s):
                failure = self._describe_failure(text, wait_s)
                write_line(f"↻ {failure}", "yellow")
            case events.RunFinished(usage=usage, cost_usd=cost_usd):
                if usage.total_tokens:
                    write_line(format_usage(usage, cost_usd), "dim")
            case _:
                assert_never(event)

    def _print_indented(self, text: str, style: str) -> None:
        rows = self.lines.wrap(text, 2)
        self.lines.write_line([("  " + join_rows(rows, 2), style)])

    def _print_diff(self, diff: str) -> None:
        for line in number_diff_lines(escape_controls(diff), self.lines):
            self.lines.write_line(line)

    def _describe_failure(self, text: str, wait_s: float) -> str:
        """Describe a failed request; in few words if its text is the one of before with other figures and ids."""
        kind = _WORD_WITH_DIGIT.sub("", text)
        is_known = kind == self._failure_kind
        self._failure_kind = kind
        failure = escape_controls(text)
        if is_known and len(text) > _SHORT_FAILURE_CHARS:
            failure = "the same error"
        if wait_s:
            failure += f" · trying again in {wait_s:g} s"
        return failure

    def print_turn_end(self, event: events.TurnFinished, *, is_answer_cut: bool = False) -> None:
        """Print why a turn ended, if not by an answer, and the prompts that were suggested."""
        self.lines.end_line()
        self._failure_kind = ""
        is_error = event.reason == "error"
        end = END_OPENINGS.get(event.reason, event.reason.replace("_", " "))
        parts = [end, escape_controls(event.detail)]
        if is_answer_cut and not is_error:
            parts.append("· the answer is cut off")
        text = " ".join(filter(None, parts))
        if text:
            style = "red" if is_error else "yellow"
            self.lines.write_line(f"■ {text}", style)
        for prompt in self._prompts:
            line = to_one_line(prompt, self.lines.get_room(4))
            self.lines.write_line(f"  → {line}", "dim")
        self._prompts = ()

    def print_status(self, text: str) -> None:
        """Print a status where no terminal can show a spinner: once for statuses that differ only in figures."""
        if self.lines.is_terminal:
            return
        kind = "".join(filter(str.isalpha, text))
        if kind and kind not in self._printed_statuses:
            self.lines.write_line(_BAR.sub("", escape_controls(text)), "dim")
            self._printed_statuses.add(kind)

    # --- questions

    def _print_question(self, question: events.Question) -> None:
        """Print a question with each row behind a bar, so that no part of a command looks like our own output."""
        first, *more = self._split_rows(question, question.text)
        self.lines.write_line(f"? {first}", "bold yellow")
        for row in more:
            self.lines.write_line(f"  ┃ {row}", "bold yellow")
        line_count = 1 + len(more)
        if question.kind != "trust":
            self.print_detail(question)
            line_count += question.detail.count("\n")
        if line_count > _LONG_QUESTION_LINES:
            self.lines.write_line(f"  ({line_count} lines; they begin above)", "bold yellow")
        if len(question.prefix) > MAX_LABEL_CHARS:
            prefix = escape_invisible(question.prefix)
            self.lines.write_line(f"  p allows until the session ends: {prefix}", "yellow")

    def print_detail(self, question: events.Question) -> None:
        """Print the detail of a question in full."""
        if not question.detail:
            return
        for line in question.detail.split("\n"):
            style = ""
            if question.kind != "text":
                style = _DIFF_STYLES.get(line[:1], "")
            for row in self._split_rows(question, line):
                self.lines.write_line(f"  ┃ {row}", style)

    def _split_rows(self, question: events.Question, text: str) -> list[str]:
        """Split prose between words, and what is run or written anywhere, so that each of its spaces is seen."""
        visible = escape_invisible(text)
        if question.kind == "text":
            return self.lines.wrap(visible, 4)
        return self.lines.fold(visible, 4)

    # --- the plan

    def format_plan_rows(self, tasks: Sequence[events.Task], count: int) -> Iterator[StyledText]:
        """Yield at most `count` tasks around the one in progress, and how many are done if some are left out."""
        open_places = (index for index, task in enumerate(tasks) if task.is_open)
        middle = next(open_places, 0)
        first = max(0, min(middle - count // 2, len(tasks) - count))
        for task in tasks[first : first + count]:
            yield self._format_task(task)
        if len(tasks) > count:
            statuses = [task.status for task in tasks]
            done_count = statuses.count("complete")
            yield [(f"    {done_count} of {len(tasks)} are done", "dim")]

    def _format_task(self, task: events.Task) -> StyledText:
        rows = self.lines.wrap(escape_controls(task.description), 4)
        text = f"  {task.mark} {join_rows(rows, 4)}"
        return [(text, _STYLES[task.status])]

    # --- tool calls

    def print_head(self, running: RunningCall) -> None:
        """Print the name and arguments of a call once."""
        if not running.is_head_printed:
            running.is_head_printed = True
            self.lines.write_line(self.format_call(running))

    def format_call(self, running: RunningCall) -> StyledText:
        """Return the name and arguments of a call in a few rows."""
        mark = f"▸{running.number} "
        name = escape_controls(running.call.name)
        head = [(mark, "cyan"), (name, "bold")]
        if running.display == "name":
            return head
        gutter = len(mark) + len(name) + 2
        rows = self._wrap_arguments(running, gutter)
        return [*head, ("  " + join_rows(rows, gutter), "")]

    def _wrap_arguments(self, running: RunningCall, gutter: int) -> list[str]:
        """Return the arguments beside a gutter: code line by line, and all others in a few rows."""
        if running.is_subagent:
            return self._wrap_description(running.call, 1, gutter)
        lines, others = split_code(running.call)
        if not lines:
            return self._wrap_description(running.call, CALL_ROWS, gutter)
        if len(lines) == 1:
            parts = filter(None, [lines[0].strip(), others])
            return self._wrap_code([" · ".join(parts)], gutter)
        rows = self._wrap_code(lines, gutter)
        if others:
            rows += self.lines.wrap(f"· {others}", gutter)
        return rows

    def _wrap_description(self, call: ToolCall, row_count: int, gutter: int) -> list[str]:
        width = row_count * self.lines.get_room(gutter)
        return self.lines.wrap(describe_call(call, width), gutter)

    def _wrap_code(self, lines: Sequence[str], gutter: int) -> list[str]:
        """Return the first lines in a few rows beside a gutter, and how many lines follow."""
        width = CALL_ROWS * self.lines.get_room(gutter)
        rows: list[str] = []
        for index, line in enumerate(lines):
            added = self.lines.wrap(cut_line(line, width), gutter)
            left_count = len(lines) - index
            room = CODE_ROWS
            if left_count > 1:
                room -= 1  # for the count
            if len(rows) + len(added) > room:
                return [*rows, f"… {format_count(left_count, 'more line')}"]
            rows += added
        return rows

    def print_output_line(self, running: RunningCall, line: str) -> None:
        """Print one line of a call's output."""
        for row in self._wrap_output_line(running, line):
            self.lines.write_line(row, "dim")

    def _wrap_output_line(self, running: RunningCall, line: str) -> list[str]:
        gutter = f"  │{running.label} "
        return [gutter + row for row in self.lines.wrap(line, len(gutter))]

    def wrap_excerpt(self, running: RunningCall, row_count: int) -> list[str]:
        """Return as much of the first and last output of a call as fits into so many rows."""
        width = 3 * self.lines.get_room(4 + len(running.label))
        line_count = row_count - 1
        while True:
            head_count = min(line_count // 3, LIVE_LINES)
            tail_count = min(line_count - head_count, KEPT_LINES)
            rows: list[str] = []
            for line in running.get_excerpt(head_count, tail_count):
                shown = cut_line(escape_controls(line), width)
                rows += self._wrap_output_line(running, shown)
            if len(rows) <= row_count or line_count == 1:
                return rows[-row_count:]
            fitting_count = line_count * row_count // len(rows)
            line_count = max(1, min(line_count - 1, fitting_count))

    def print_result(self, running: RunningCall, result: ToolResult) -> None:
        """Print the last lines of a call's output and how the call ended."""
        body, notes = running.split_result(result.output)
        left_out = _LEFT_OUT.search(result.output)
        self._print_tail(running, _count_lines(running, body, left_out))
        is_failure = is_failed(result, notes)
        if running.display == "nothing":
            if not is_failure:
                return
            self.lines.write_line(self.format_call(running))
        if result.is_error and not notes:
            notes = [result.output.strip()]
        elif running.is_subagent or not (notes or running.line_count):
            notes = [self._summarize_body(body), *notes]
        if left_out:
            notes.append(left_out[2])
        text = escape_controls(" · ".join(filter(None, notes)))
        if result.output.startswith(STOPPED):
            self._print_end(running, text, "■", "yellow")
        elif is_failure:
            self._print_end(running, text, "✗", "red")
        else:
            self._print_end(running, text, "✓", "green")
        self.lines.write_pictures(result)

    def print_stopped(self, running: RunningCall) -> None:
        """Print the last lines of a call that was stopped, and that it was."""
        self._print_tail(running, running.line_count)
        self._print_end(running, "stopped", "■", "yellow")

    def _print_tail(self, running: RunningCall, total: int) -> None:
        hidden = total - len(running.head) - len(running.tail)
        if running.tail and hidden > 0:
            count = format_count(hidden, "more line")
            self.print_output_line(running, f"… {count}{running.hint}")
        for line in running.tail:
            self.print_output_line(running, line)

    def _summarize_body(self, body: list[str]) -> str:
        """Return one line for a result: a first line in brackets describes the other lines."""
        if not body:
            return ""
        first, *others = body
        width = self.lines.get_room(_SUMMARY_INDENT)
        if not others:
            return to_one_line(first, RESULT_ROWS * width)
        about = _ABOUT.fullmatch(first)
        if about:
            return to_one_line(about[1], width)
        if first in ("[", "{"):
            return _join_json(body, min(width, _MAX_JSON_COLUMNS))
        more = f" … {format_count(len(others), 'more line')}"
        return to_one_line(first, self.lines.get_room(_SUMMARY_INDENT + len(more))) + more

    def _print_end(self, running: RunningCall, text: str, mark: str, style: str) -> None:
        head = f"  {mark}{running.label} "
        rows = self._wrap_end(text, len(head))
        if running.started_at is not None:
            took_s = time.monotonic() - running.started_at
            rows = self._append_time(rows, f"{took_s:.1f} s", len(head))
        self.lines.write_line(head + join_rows(rows, len(head)), style)

    def _wrap_end(self, text: str, indent: int) -> list[str]:
        """Return the first rows of a text, and how many rows follow."""
        if not text:
            return []
        rows = [row[:MAX_LINE] for row in self.lines.wrap(text, indent)]
        if len(rows) <= ERROR_ROWS:
            return rows
        shown = rows[: ERROR_ROWS - 1]
        return [*shown, f"… {len(rows) - len(shown)} more lines"]

    def _append_time(self, rows: list[str], took: str, indent: int) -> list[str]:
        """Append the time to the last row, or below it if the terminal is too narrow."""
        if not rows:
            return [took]
        *first_rows, last = rows
        extended = f"{last} · {took}"
        if indent + len(extended) > self.lines.get_room(0):
            return [*rows, took]
        return [*first_rows, extended]


def _count_lines(running: RunningCall, body: Sequence[str], left_out: re.Match[str] | None) -> int:
    """Return how many lines of output a call had, also of those that its result left out."""
    if left_out is None:
        body_count = len(body) if running.is_command else 0
        return max(body_count, running.line_count)
    line_count = len(body)
    if left_out[1]:
        line_count += int(left_out[1].replace(",", "")) - 1  # the note is a line of the body
    return max(line_count, running.line_count)


def _join_json(lines: Sequence[str], width: int) -> str:
    """Join as many lines of indented JSON as can be seen."""
    text = ""
    for line in lines[:width]:
        text += line.strip()
        if text.endswith(","):
            text += " "
    return to_one_line(text, width)


def _describe_start(event: events.SessionStarted) -> str:
    parts = [event.mode]
    if event.name:
        parts.append(f"session {event.name}")
    if event.profile:
        parts.append(f"profile {event.profile}")
    parts.append(event.models.get("processor", ""))
    parts += [f"also {folder}" for folder in event.folders]
    return " · ".join(filter(None, parts))


def _describe_answer(question: events.Question, answer: events.Answer) -> str:
    is_unanswered = answer.by == "nobody"
    if question.kind == "text":
        if is_unanswered:
            return "answered by nobody"
        text = escape_controls(answer.text)
        return f"answered: {text or 'nothing'}"
    verdict = f"{question.kind} {_VERDICTS[answer.choice]}"
    if answer.choice == "allow_prefix":
        verdict += f": {escape_controls(question.prefix)}"
    if answer.text:
        verdict += f": {escape_controls(answer.text)}"
    if is_unanswered:
        verdict += ", nobody was there to ask"
    return verdict


def _describe_compaction(event: events.Compacted) -> str:
    if not event.summary:
        count = format_count(len(event.replacements), "long result")
        return f"{count} left out"
    text = "the model now sees a summary"
    if event.verbatim:
        text += " by its server"
    if event.kept_count:
        text += f" and the newest {event.kept_count} messages"
    return text


def is_failed(result: ToolResult, notes: Sequence[str]) -> bool:
    """Return whether a call failed: by its own word or by the notes of a command."""
    return result.is_error or any(map(FAILURE_NOTE.match, notes))


def number_diff_lines(diff: str, lines: LineWriter) -> Iterator[StyledText]:
    """Yield the lines of a unified diff with numbers: of removed lines before the change, of others after it.

    The rows of a long line stand below each other where `lines` are those of a terminal.
    """
    before = 0
    after = 0
    for line in diff.split("\n"):
        kind = line[:1]
        style = _DIFF_STYLES.get(kind, "dim")
        hunk = _HUNK.match(line)
        if hunk:
            before = int(hunk[1])
            after = int(hunk[2])
        is_in_hunk = before > 0 or after > 0
        if hunk or not is_in_hunk or kind not in (" ", "+", "-"):
            text = "  " + _fold_diff_line(line, 2, lines)
            yield [(text, style if hunk else "dim")]
            continue
        number = before if kind == "-" else after
        gutter = f"  {number:>4} "
        indent = len(gutter) + len(kind)
        text = kind + _fold_diff_line(line[1:], indent, lines)
        yield [(gutter, "dim"), (text, style)]
        if kind != "+":
            before += 1
        if kind != "-":
            after += 1


def _fold_diff_line(line: str, indent: int, lines: LineWriter) -> str:
    if not lines.is_terminal:  # a log keeps long lines, and folding would load Rich
        return line
    return join_rows(lines.fold(line, indent), indent)


def format_usage(usage: Usage, cost_usd: float | None) -> str:
    """Return tokens and money in one line, without money if the price is unknown or zero."""
    text = f"{usage.input_tokens:,} tokens in"
    if usage.cache_read_tokens:
        text += f" ({usage.cache_read_tokens:,} cached)"
    text += f", {usage.output_tokens:,} out"
    if cost_usd:
        text += f" · ${cost_usd:.4f}"
    return text
