"""Events as lines on a terminal. Screens call the renderer from their own `match`."""

import re
import time
from collections.abc import Iterator, Sequence
from typing import assert_never

from goose_like.core import events
from goose_like.core.history import STOPPED
from goose_like.core.message import ToolResult, Usage
from goose_like.core.spelling import format_count

from .escape import cut_line, escape_controls, escape_invisible, to_one_line
from .lines import MAX_LINE, LineWriter, StyledText
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
_SHORT_FAILURE_CHARS = 60
_STYLES = {"planned": "", "in-progress": "bold cyan", "complete": "green", "failed": "red"}
_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}
_VERDICTS = {
    "allow": "allowed",
    "allow_prefix": "allowed until the session ends",
    "allow_always": "allowed from now on",
    "deny": "denied",
}
_ENDS = {"budget": "stopped:", "step_limit": "stopped at", "stop": ""}
_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)")
_BAR = re.compile(r" [█░]+ *\d+%")
_WORD_WITH_DIGIT = re.compile(r"[\w-]*\d[\w-]*")
_LEFT_OUT = re.compile(r"\[\.\.\. (?:([\d,]+) lines )?\(?[\d,]+ bytes\)? left out here; (.+?)(?:: search it| \.\.\.\])")
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
                names = (event.name and f"session {event.name}", event.profile and f"profile {event.profile}")
                if start := " · ".join(filter(None, (event.mode, *names, event.models.get("processor")))):
                    write_line(start, "dim")  # an imported session has none of these
            case events.PlanUpdated(tasks=tasks):
                for task in tasks:
                    write_line(self._format_task(task))
            case events.Logged(text=text):
                for line in escape_controls(text).split("\n"):
                    rows = self.lines.wrap(line, 2)
                    write_line([("  " + "\n  ".join(rows), "dim")])
            case events.FileChanged(diff=diff):
                if diff:
                    for numbered in number_diff_lines(escape_controls(diff), self.lines):
                        write_line(numbered)
            case events.Asked(question=question):
                self._print_question(question)
            case events.Answered(question=question, answer=answer):
                rows = self.lines.wrap(_describe_answer(question, answer), 2)
                write_line([("  " + "\n  ".join(rows), "yellow")])
            case events.Reminded(reason=reason, text=text):
                if reason not in ("context", "shown"):  # the person sees these elsewhere
                    write_line(f"↺ reminder to the model: {to_one_line(text, self.lines.get_room(26))}", "dim")
            case events.Compacted():
                if not event.is_routine:
                    write_line(f"(context compacted: {_describe_compaction(event)})", "yellow")
            case events.Rewound(message_count=count):
                place = "an earlier point" if count else "its beginning"
                write_line(f"(the conversation is back at {place})", "yellow")
            case events.ArtifactShown(artifact=artifact):
                from .artifact import render_artifact  # imported here: it loads Rich

                for row in render_artifact(artifact, min(self.lines.get_room(4), _MAX_ARTIFACT_COLUMNS)):
                    write_line(row)
            case events.PromptsSuggested(prompts=prompts):
                self._prompts = prompts
            case events.Retrying(text=text, wait_s=wait_s):
                write_line(f"↻ {self._describe_failure(text)}{_format_pause(wait_s)}", "yellow")
            case events.RunFinished(usage=usage, cost_usd=cost_usd):
                if usage.total_tokens:
                    write_line(format_usage(usage, cost_usd), "dim")
            case _:
                assert_never(event)

    def _describe_failure(self, text: str) -> str:
        """Return the text of a failed request; few words if it is the one of before with other figures and ids."""
        kind = _WORD_WITH_DIGIT.sub("", text)
        is_known = kind == self._failure_kind
        self._failure_kind = kind
        is_long = len(text) > _SHORT_FAILURE_CHARS
        return "the same error" if is_known and is_long else escape_controls(text)

    def print_turn_end(self, event: events.TurnFinished, *, is_answer_cut: bool = False) -> None:
        """Print why a turn ended, if not by an answer, and the prompts that were suggested."""
        self.lines.end_line()
        self._failure_kind = ""
        parts = [_ENDS.get(event.reason, event.reason.replace("_", " ")), escape_controls(event.detail)]
        if is_answer_cut and event.reason != "error":
            parts.append("· the answer is cut off")
        if text := " ".join(filter(None, parts)):
            self.lines.write_line(f"■ {text}", "red" if event.reason == "error" else "yellow")
        for prompt in self._prompts:
            self.lines.write_line(f"  → {to_one_line(prompt, self.lines.get_room(4))}", "dim")
        self._prompts = ()

    def print_status(self, text: str) -> None:
        """Print a status where no terminal can show a spinner: once for statuses that differ only in figures."""
        kind = "".join(character for character in text if character.isalpha())
        if not self.lines.is_terminal and kind and kind not in self._printed_statuses:
            self.lines.write_line(_BAR.sub("", escape_controls(text)), "dim")
            self._printed_statuses.add(kind)

    # --- questions

    def _print_question(self, question: events.Question) -> None:
        """Print a question with each row behind a bar, so that no part of a command looks like our own output."""
        first, *more = self._split_rows(question, question.text)
        self.lines.write_line(f"? {first}", "bold yellow")
        for row in more:
            self.lines.write_line(f"  ┃ {row}", "bold yellow")
        if question.kind != "trust":
            self.print_detail(question)
        if (count := len(more) + question.detail.count("\n")) > 20:
            self.lines.write_line(f"  ({count + 1} lines; they begin above)", "bold yellow")
        if len(question.prefix) > MAX_LABEL_CHARS:
            self.lines.write_line(f"  p allows until the session ends: {escape_invisible(question.prefix)}", "yellow")

    def print_detail(self, question: events.Question) -> None:
        """Print the detail of a question in full."""
        for line in question.detail.split("\n") if question.detail else ():
            for row in self._split_rows(question, line):
                style = _DIFF_STYLES.get(line[:1], "") if question.kind != "text" else ""
                self.lines.write_line(f"  ┃ {row}", style)

    def _split_rows(self, question: events.Question, text: str) -> list[str]:
        """Split prose between words, and what is run or written anywhere, so that each of its spaces is seen."""
        split = self.lines.wrap if question.kind == "text" else self.lines.fold
        return split(escape_invisible(text), 4)

    # --- the plan

    def format_plan_rows(self, tasks: Sequence[events.Task], count: int) -> Iterator[StyledText]:
        """Yield at most `count` tasks around the one in progress, and how many are done if some are left out."""
        at = next((index for index, task in enumerate(tasks) if task.is_open), 0)
        first = max(0, min(at - count // 2, len(tasks) - count))
        yield from map(self._format_task, tasks[first : first + count])
        if len(tasks) > count:
            done = sum(task.status == "complete" for task in tasks)
            yield [(f"    {done} of {len(tasks)} are done", "dim")]

    def _format_task(self, task: events.Task) -> StyledText:
        rows = self.lines.wrap(escape_controls(task.description), 4)
        return [(f"  {task.mark} " + "\n    ".join(rows), _STYLES[task.status])]

    # --- tool calls

    def print_head(self, running: RunningCall) -> None:
        """Print the name and arguments of a call once."""
        if not running.is_head_printed:
            running.is_head_printed = True
            self.lines.write_line(self.format_call(running))

    def format_call(self, running: RunningCall) -> StyledText:
        """Return the name and arguments of a call in a few rows."""
        call = running.call
        mark = f"▸{running.number} "
        name = escape_controls(call.name)
        gutter = len(mark) + len(name) + 2
        lines, others = split_code(call)
        if running.display == "name":
            return [(mark, "cyan"), (name, "bold")]
        if running.is_subagent or not lines:
            row_count = 1 if running.is_subagent else CALL_ROWS
            rows = self.lines.wrap(describe_call(call, row_count * self.lines.get_room(gutter)), gutter)
        elif len(lines) == 1:
            rows = self._wrap_code([" · ".join(filter(None, [lines[0].strip(), others]))], gutter)
        else:
            rows = [*self._wrap_code(lines, gutter), *(self.lines.wrap(f"· {others}", gutter) if others else ())]
        return [(mark, "cyan"), (name, "bold"), ("  " + f"\n{' ' * gutter}".join(rows), "")]

    def _wrap_code(self, lines: Sequence[str], gutter: int) -> list[str]:
        """Return the first lines in a few rows beside a gutter, and how many lines follow."""
        rows = list[str]()
        for index, line in enumerate(lines):
            hidden = len(lines) - index
            added = self.lines.wrap(cut_line(line, CALL_ROWS * self.lines.get_room(gutter)), gutter)
            if len(rows) + len(added) > CODE_ROWS - (hidden > 1):
                return [*rows, f"… {format_count(hidden, 'more line')}"]
            rows += added
        return rows

    def print_output_line(self, call: RunningCall, line: str) -> None:
        """Print one line of a call's output."""
        gutter = f"  │{call.label} "
        for row in self.lines.wrap(line, len(gutter)):
            self.lines.write_line(gutter + row, "dim")

    def wrap_excerpt(self, running: RunningCall, row_count: int) -> list[str]:
        """Return as much of the first and last output of a call as fits into so many rows."""
        gutter = f"  │{running.label} "
        room, line_count = 3 * self.lines.get_room(len(gutter)), row_count - 1
        while True:
            head_count = min(line_count // 3, LIVE_LINES)
            lines = running.get_excerpt(head_count, min(line_count - head_count, KEPT_LINES))
            fitted = (cut_line(escape_controls(line), room) for line in lines)
            rows = [gutter + row for line in fitted for row in self.lines.wrap(line, len(gutter))]
            if len(rows) <= row_count or line_count == 1:
                return rows[-row_count:]
            line_count = max(1, min(line_count - 1, line_count * row_count // len(rows)))

    def print_result(self, running: RunningCall, result: ToolResult) -> None:
        """Print the last lines of a call's output and how the call ended."""
        body, notes = running.split_result(result.output)
        long = _LEFT_OUT.search(result.output)
        total = len(body) if long or running.is_command else 0
        total += int(long[1].replace(",", "")) - 1 if long and long[1] else 0
        self._print_tail(running, max(total, running.line_count))
        is_failure = is_failed(result, notes)
        if running.display == "nothing":
            if not is_failure:
                return
            self.lines.write_line(self.format_call(running))
        if result.is_error and not notes:
            notes = [result.output.strip()]
        elif running.is_subagent or not (notes or running.line_count):
            notes = [self._summarize_body(body), *notes]
        if long:
            notes.append(long[2])
        text = escape_controls(" · ".join(filter(None, notes)))
        mark = ("■", "yellow") if result.output.startswith(STOPPED) else ("✗", "red") if is_failure else ("✓", "green")
        self._print_end(running, text, *mark)
        self.lines.write_pictures(result)

    def print_stopped(self, running: RunningCall) -> None:
        """Print the last lines of a call that was stopped, and that it was."""
        self._print_tail(running, running.line_count)
        self._print_end(running, "stopped", "■", "yellow")

    def _print_tail(self, running: RunningCall, total: int) -> None:
        hidden = total - len(running.head) - len(running.tail)
        if running.tail and hidden > 0:
            self.print_output_line(running, f"… {format_count(hidden, 'more line')}{running.hint}")
        for line in running.tail:
            self.print_output_line(running, line)

    def _summarize_body(self, body: list[str]) -> str:
        """Return one line for a result: a first line in brackets describes the other lines."""
        if len(body) > 1 and (about := re.fullmatch(r"\[(.+)\]", body[0])):
            return to_one_line(about[1], self.lines.get_room(14))
        if len(body) > 1 and body[0] in ("[", "{"):  # indented JSON: join as many lines as can be seen
            width = min(self.lines.get_room(14), 86)
            lines = map(str.strip, body[:width])
            return to_one_line("".join(f"{line} " if line.endswith(",") else line for line in lines), width)
        more = f" … {format_count(len(body) - 1, 'more line')}" if len(body) > 1 else ""
        rows = 1 if more else RESULT_ROWS
        return to_one_line(body[0], rows * self.lines.get_room(14 + len(more))) + more if body else ""

    def _print_end(self, running: RunningCall, text: str, mark: str, style: str) -> None:
        head = f"  {mark}{running.label} "
        rows = [row[:MAX_LINE] for row in self.lines.wrap(text, len(head))] if text else []
        if len(rows) > ERROR_ROWS:
            rows = [*rows[: ERROR_ROWS - 1], f"… {len(rows) - ERROR_ROWS + 1} more lines"]
        if running.started_at is not None:
            took = f"{time.monotonic() - running.started_at:.1f} s"
            is_tight = rows and len(head) + len(rows[-1]) + len(took) + 3 > self.lines.get_room(0)
            rows = [*rows, took] if is_tight or not rows else [*rows[:-1], f"{rows[-1]} · {took}"]
        self.lines.write_line(head + f"\n{' ' * len(head)}".join(rows), style)


def _format_pause(wait_s: float) -> str:
    return f" · trying again in {wait_s:g} s" if wait_s else ""


def _describe_answer(question: events.Question, answer: events.Answer) -> str:
    is_unanswered = answer.by == "nobody"
    if question.kind == "text":
        return "answered by nobody" if is_unanswered else f"answered: {escape_controls(answer.text) or 'nothing'}"
    verdict = f"{question.kind} {_VERDICTS[answer.choice]}"
    if answer.choice == "allow_prefix":
        verdict += f": {escape_controls(question.prefix)}"
    if answer.text:
        verdict += f": {escape_controls(answer.text)}"
    return verdict + ", nobody was there to ask" * is_unanswered


def _describe_compaction(event: events.Compacted) -> str:
    if event.summary:
        newest = f" and the newest {event.kept_count} messages" if event.kept_count else ""
        return f"the model now sees a summary{newest}"
    return f"{format_count(len(event.replacements), 'long result')} left out"


def is_failed(result: ToolResult, notes: Sequence[str]) -> bool:
    """Return whether a call failed: by its own word or by the notes of a command."""
    return result.is_error or any(map(FAILURE_NOTE.match, notes))


def number_diff_lines(diff: str, lines: LineWriter) -> Iterator[StyledText]:
    """Yield the lines of a unified diff with numbers: of removed lines before the change, of others after it.

    The rows of a long line stand below each other where `lines` are those of a terminal.
    """
    # A log keeps long lines, and folding would load Rich.
    fold = lines.fold if lines.is_terminal else lambda text, indent: [text]
    before = after = 0
    for line in diff.split("\n"):
        kind, style = line[:1], _DIFF_STYLES.get(line[:1], "dim")
        if hunk := _HUNK.match(line):
            before, after = int(hunk[1]), int(hunk[2])
        if not (before or after) or hunk or kind not in (" ", "+", "-"):
            yield [("  " + "\n  ".join(fold(line, 2)), style if hunk else "dim")]
            continue
        number = f"  {before if kind == '-' else after:>4} "
        indent = len(number) + len(kind)
        yield [(number, "dim"), (kind + f"\n{' ' * indent}".join(fold(line[1:], indent)), style)]
        before += kind != "+"
        after += kind != "-"


def format_usage(usage: Usage, cost_usd: float | None) -> str:
    """Return tokens and money in one line, without money if the price is unknown or zero."""
    cached = f" ({usage.cache_read_tokens:,} cached)" if usage.cache_read_tokens else ""
    money = f" · ${cost_usd:.4f}" if cost_usd else ""
    return f"{usage.input_tokens:,} tokens in{cached}, {usage.output_tokens:,} out{money}"
