"""Events to lines on a terminal: one `match`, and nothing of a model's or a tool's text is obeyed by the terminal."""

import re
import time
from collections.abc import Iterator, Sequence

from rich.cells import chop_cells
from rich.console import Console, RenderableType
from rich.segment import Segment
from rich.status import Status as Spinner
from rich.text import Text as Styled

from goose_like.core.events import (
    Answered,
    Artifact,
    ArtifactShown,
    Asked,
    Compacted,
    Event,
    Logged,
    MessageCompleted,
    Nested,
    PlanUpdated,
    PromptsSuggested,
    Question,
    Reminded,
    Retrying,
    Rewound,
    RunFinished,
    SessionStarted,
    Status,
    Task,
    TextDelta,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from goose_like.core.message import Message, ToolCall, ToolResult, Usage
from goose_like.core.notifier import Notifier

from .artifact import artifact_rows
from .escape import exact, one_line, visible
from .tool_call import FAILED, LIVE_LINES, MAX_LINE, Running, code_lines, describe, nested_line, shown
from .wrap import Rows

ERROR_ROWS = 10
CALL_ROWS = 5
_WIDEST_ARTIFACT = 120
PLAN_TOOL = "update_plan"
_MARKS = {"planned": "☐", "in-progress": "▶", "complete": "☑", "failed": "☒"}
_STYLES = {"planned": "", "in-progress": "bold cyan", "complete": "green", "failed": "red"}
_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}
_VERDICTS = {
    "allow": "allowed",
    "allow_session": "allowed until the session ends",
    "allow_always": "allowed from now on",
    "deny": "denied",
}
_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)")
_BAR = re.compile(r" [█░]+ *\d+%")
# What stands in the place of a part that was too long to send (output.py).
_LEFT_OUT = re.compile(r"\(([\d,]+) lines\) left out here; (.+?)(?:: search it| \.\.\.\])")


class Screen(Notifier):
    """Draws a turn as it goes: calls, their live output, the plan, what is being waited for.

    `says_answer` streams the model's words as well; a one-shot run keeps its last words for stdout.
    """

    def __init__(self, console: Console, *, says_answer: bool) -> None:
        self.console = console
        self._says_answer = says_answer
        self._spinner: Spinner | None = None
        self._labels: dict[str, str] = {}
        self._running: dict[str, Running] = {}
        self._is_mid_line = False
        self._is_cut = False
        self._heard = ""
        self._told_statuses: set[str] = set()
        self._prompts: Sequence[str] = ()

    def notify(self, event: Event) -> None:
        match event:
            case SessionStarted(name=name, profile=profile, models=models):
                self.pause()
                self._line(f"session {name} · profile {profile} · {models['processor']}", "dim")
            case TurnStarted():
                self._is_cut = False
                self._told_statuses.clear()
                self._wait("thinking")
            case Status(text=text):
                self._tell_status(text)
            case TextDelta(text=text):
                self._hear(text)
            case Retrying(text=text, wait_s=wait_s):
                self._heard = ""
                self._line(f"↻ {visible(text)} · trying again in {wait_s:g} s", "yellow")
            case MessageCompleted(message=message, is_cut=is_cut):
                self._complete(message, is_cut)
            case ToolStarted(call=call):
                self._start(call)
            case ToolProgress(call_id=call_id, text=text):
                if call_id in self._running:
                    self._show_output(self._running[call_id], text)
            case Nested(event={"type": "status", "text": str(text)}):
                self._tell_status(text)
            case Nested(call_id=call_id, event=within):
                line = nested_line(within, self._room(5)) if call_id in self._running else ""
                if line:
                    self._show_output(self._running[call_id], f"{line}\n")
            case ToolFinished(result=result):
                if running := self._running.pop(result.call_id, None):
                    self._finish(running, result)
            case PlanUpdated(tasks=tasks):
                self._draw_plan(tasks)
            case Logged(text=text):
                self._log(text)
            case ArtifactShown(call_id=call_id, artifact=artifact):
                self._draw_artifact(call_id, artifact)
            case PromptsSuggested(prompts=prompts):
                self._prompts = prompts  # they stand below the answer
            case Asked(question=question):
                self._draw_question(question)
            case Answered(question=Question(kind="words"), answer=answer):
                said = " by nobody" if answer.by == "nobody" else f": {visible(answer.words) or 'nothing'}"
                self._line(f"  answered{said}", "yellow")
            case Answered(question=question, answer=answer):
                nobody = ", nobody was there to ask" if answer.by == "nobody" else ""
                self._line(f"  {question.kind} {_VERDICTS[answer.choice]}{nobody}", "yellow")
            case Reminded(text=text, about=about) if about != "news":
                self._line(f"↺ the model is told: {one_line(text, self._room(22))}", "dim")
            case Compacted(summary=summary, kept=kept, elided=elided, is_routine=False):
                if summary:
                    newest = f"a summary and the newest {kept} messages" if kept else "a summary"
                    self._line(f"(the model goes on with {newest} in place of all that was said)", "yellow")
                else:
                    results = "result is" if len(elided) == 1 else "results are"
                    self._line(f"({len(elided)} long {results} left out of what the model is sent)", "yellow")
            case Rewound(to=to):
                self._line(f"(the conversation is back at {'an earlier point' if to else 'its beginning'})", "yellow")
            case TurnFinished():
                self._close(event)
            case RunFinished(usage=usage, cost_usd=cost):
                self.pause()
                if usage.total_tokens:
                    self._line(spent(usage, cost), "dim")
            case _:
                pass

    def pause(self) -> None:
        """Takes the spinner away, so that something else may use the terminal."""
        if self._spinner:
            self._spinner.stop()
            self._spinner = None

    # --- what all of it is drawn with

    def _line(self, text: str | RenderableType, style: str = "") -> None:
        self._end_line()
        self.console.print(Styled("\n".join(self._rows(text, 0)), style) if isinstance(text, str) else text)

    def _end_line(self) -> None:
        if self._is_mid_line:
            self._is_mid_line = False
            self.console.print()

    def _rows(self, text: str, indent: int) -> list[str]:
        """The text as rows that fit beside an indent: wrapped on a terminal, as it is where there is none."""
        if not self.console.is_terminal:
            return text.split("\n")
        rows = Styled(text).wrap(self.console, max(self.console.width - indent, 10), overflow="fold")
        return [row.plain.rstrip() for row in rows]

    def _room(self, indent: int) -> int:
        """Columns for a text that should stay on one line; without a terminal lines may be long."""
        return max(self.console.width - indent, 10) if self.console.is_terminal else MAX_LINE

    def _wait(self, text: str) -> None:
        """A spinner, on a terminal that is not in the middle of a line."""
        if not self.console.is_terminal or self._is_mid_line or not text:
            return
        words = Styled(one_line(text, self._room(4)), "dim")
        if self._spinner is None:
            self._spinner = self.console.status(words, spinner="dots")
            self._spinner.start()
        else:
            self._spinner.update(words)

    def _wait_on(self) -> None:
        names = ", ".join(running.call.name for running in self._running.values())
        self._wait(f"running {names}" if names else "thinking")

    # --- one event each

    def _tell_status(self, text: str) -> None:
        """What somebody else waits for: a spinner; without a terminal one line for each kind, figures aside."""
        self._wait(text)
        kind = "".join(character for character in text if character.isalpha())
        if not self.console.is_terminal and kind and kind not in self._told_statuses:
            self._line(_BAR.sub("", visible(text)), "dim")
            self._told_statuses.add(kind)

    def _hear(self, text: str) -> None:
        if not self._says_answer:
            self._heard = (self._heard + text)[-200:]
            self._wait(f"writing: {self._heard}")
        elif text:
            self.pause()
            self.console.print(Styled(visible(text)), end="")
            self._is_mid_line = not text.endswith("\n")

    def _complete(self, message: Message, is_cut: bool) -> None:
        """The calls of one message run side by side: with more than one, each gets a number to be told by."""
        drawn = [call.id for call in message.tool_calls if call.name != PLAN_TOOL]
        self._labels = {call_id: str(number) for number, call_id in enumerate(drawn, 1)} if len(drawn) > 1 else {}
        self._heard = ""
        self._is_cut = is_cut
        self._end_line()
        if not self._says_answer and message.tool_calls and message.text.strip():
            self._line(visible(message.text.strip()), "italic")
        if is_cut and self._says_answer:
            self._line("(cut off)", "yellow")

    def _start(self, call: ToolCall) -> None:
        running = self._running[call.id] = Running(call, self._labels.get(call.id, ""), time.monotonic())
        if call.name != PLAN_TOOL:  # the plan itself is drawn
            self._line(self._marked(running))
        self._wait_on()

    def _marked(self, running: Running) -> Styled:
        """What a call is, in a few rows."""
        call, mark = running.call, f"▸{running.label} "
        name = visible(call.name)
        gutter = len(mark) + len(name) + 2
        lines = code_lines(call) or [describe(call, CALL_ROWS * self._room(gutter))]
        first, *more = [row for line in lines for row in self._rows(line, gutter)]
        what = f"\n{' ' * gutter}".join([first, *more])
        return Styled.assemble((mark, "cyan"), (name, "bold"), "  ", what)

    def _show_output(self, running: Running, text: str) -> None:
        """Whole lines as they come, up to a few; of the rest the count, and at the end the last ones."""
        width = self._room(4 + len(running.label))
        for line in running.take(text, width):
            is_blank_start = not line and running.line_count == 1
            if running.line_count <= LIVE_LINES and not is_blank_start:
                self._show_line(running, line)
        more = f" · {running.line_count:,} lines" if running.line_count > LIVE_LINES else ""
        rest = f" · {shown(running.rest, 0, width)}" if running.rest else ""
        self._wait(f"running {running.call.name}{more}{rest}")

    def _show_line(self, running: Running, line: str) -> None:
        gutter = f"  │{running.label} "
        for row in self._rows(line, len(gutter)):
            self._line(gutter + row, "dim")

    def _finish(self, running: Running, result: ToolResult) -> None:
        if running.rest:
            self._show_output(running, "\n")
        body, notes = running.read(result.output)
        long = _LEFT_OUT.search(result.output)
        every = int(long[1].replace(",", "")) if long else len(body) if running.is_command else 0
        hidden = max(every, running.line_count) - LIVE_LINES - len(running.tail)
        if running.tail and hidden > 0:
            self._show_line(running, self._left_out(hidden))
        for line in running.tail:
            self._show_line(running, line)
        is_failure = result.is_error or any(map(FAILED.match, notes))
        if running.call.name == PLAN_TOOL:
            if not is_failure:
                return self._wait_on()
            self._line(self._marked(running))
        if result.is_error and not notes:
            notes = [result.output.strip()]
        elif not notes and not running.line_count:
            notes = [self._first_line(body)]
        if long:
            notes.append(long[2])
        self._conclude(running, visible(" · ".join(filter(None, notes))), is_failure)
        return self._wait_on()

    def _left_out(self, count: int) -> str:
        return f"… {count:,} more line{'s' * (count > 1)}"

    def _first_line(self, body: list[str]) -> str:
        """What a result begins with; a line in brackets there says what the others are."""
        if len(body) > 1 and (about := re.fullmatch(r"\[(.+)\]", body[0])):
            return one_line(about[1], self._room(14))
        if len(body) > 1 and body[0] in ("[", "{"):  # JSON; of these lines each shows one character at least
            width = min(self._room(14), 86)
            lines = map(str.strip, body[:width])
            return one_line("".join(f"{line} " if line.endswith(",") else line for line in lines), width)
        more = f" (+{len(body) - 1} lines)" if len(body) > 1 else ""
        return one_line(body[0], self._room(14 + len(more))) + more if body else ""

    def _conclude(self, running: Running, what: str, is_failure: bool) -> None:
        head = f"  {'✗' if is_failure else '✓'}{running.label} "
        rows = [row[:MAX_LINE] for row in self._rows(what, len(head))] if what else []
        if len(rows) > ERROR_ROWS:
            rows = [*rows[: ERROR_ROWS - 1], f"… {len(rows) - ERROR_ROWS + 1} more lines"]
        if running.started is not None:
            took = f"{time.monotonic() - running.started:.1f} s"
            is_tight = rows and len(head) + len(rows[-1]) + len(took) + 3 > self._room(0)
            rows = [*rows, took] if is_tight or not rows else [*rows[:-1], f"{rows[-1]} · {took}"]
        text = f"\n{' ' * len(head)}".join(rows)
        self._line(head + text, "red" if is_failure else "green")

    def _draw_plan(self, tasks: Sequence[Task]) -> None:
        for task in tasks:
            self._line(self._drawn_task(task))

    def _plan_rows(self, tasks: Sequence[Task], count: int) -> Iterator[Styled]:
        """The plan around what is in progress, in a few rows."""
        at = next((index for index, task in enumerate(tasks) if task.status in ("in-progress", "planned")), 0)
        first = max(0, min(at - count // 2, len(tasks) - count))
        for task in tasks[first : first + count]:
            drawn = self._drawn_task(task)
            drawn.no_wrap = True
            yield drawn
        if len(tasks) > count:
            done = sum(task.status == "complete" for task in tasks)
            yield Styled(f"    {done} of {len(tasks)} are done", "dim")

    def _drawn_task(self, task: Task) -> Styled:
        rows = self._rows(visible(task.description), 4)
        return Styled(f"  {_MARKS[task.status]} " + "\n    ".join(rows), _STYLES[task.status])

    def _draw_question(self, question: Question) -> None:
        """All of it, each row behind a bar, so that no part of a command passes for a line of ours."""
        first, *more = self._folded(exact(question.text))
        self._line(f"? {first}", "bold yellow")
        for row in more:
            self._line(f"  ┃ {row}", "bold yellow")
        if question.kind != "trust":
            self.show_detail(question)
        if (count := len(more) + question.detail.count("\n")) > 20:
            self._line(f"  ({count + 1} lines; they begin above)", "bold yellow")

    def show_detail(self, question: Question) -> None:
        """What would happen, or what words are asked for, word for word."""
        for line in exact(question.detail).split("\n") if question.detail else ():
            for row in self._folded(line):
                self._line(f"  ┃ {row}", _DIFF_STYLES.get(line[:1], "") if question.kind != "words" else "")

    def _folded(self, text: str) -> list[str]:
        """As `_rows`, but no space is lost between two of them."""
        lines = text.expandtabs(4).split("\n")
        width = max(self.console.width - 4, 10)
        return [row for line in lines for row in chop_cells(line, width) or [""]] if self.console.is_terminal else lines

    def _log(self, text: str) -> None:
        is_diff = text.startswith("--- ") and "\n+++ " in text
        for line in numbered(visible(text)) if is_diff else visible(text).split("\n"):
            self._line(line if isinstance(line, Styled) else Styled(f"  {line}", "dim"))

    def _draw_artifact(self, call_id: str, artifact: Artifact) -> None:
        rows = artifact_rows(artifact, min(self._room(4), _WIDEST_ARTIFACT))
        self._line("")
        self._line(Rows(tuple([Segment("    "), *row] if row else row for row in rows)))
        self._line("")

    def _close(self, end: TurnFinished) -> None:
        self.pause()
        self._running.clear()
        self._heard = ""
        self._end_line()
        words = {"budget": "stopped at", "step_limit": "stopped at", "stop": ""}
        told = [words.get(end.reason, end.reason.replace("_", " ")), visible(end.detail)]
        if self._is_cut and not self._says_answer and end.reason != "error":
            told.append("· the answer is cut off")  # it comes on stdout, after this
        if any(told):
            self._line(f"■ {' '.join(filter(None, told))}", "red" if end.reason == "error" else "yellow")
        for prompt in self._prompts:
            self._line(f"  → {one_line(prompt, self._room(4))}", "dim")
        self._prompts = ()


def numbered(diff: str) -> Iterator[Styled]:
    """A unified diff by lines, with the number of each afterwards; of those that went, before."""
    before = after = 0
    for line in diff.split("\n"):
        kind, style = line[:1], _DIFF_STYLES.get(line[:1], "dim")
        if found := _HUNK.match(line):
            before, after = int(found[1]), int(found[2])
        if not (before or after) or found or kind not in (" ", "+", "-"):
            yield Styled(f"  {line}", style if found else "dim")
            continue
        yield Styled.assemble((f"  {before if kind == '-' else after:>4} ", "dim"), (line, style))
        before += kind != "+"
        after += kind != "-"


def spent(usage: Usage, cost_usd: float | None) -> str:
    """Tokens and money in one line; a price that is not known is left out."""
    cached = f" ({usage.cache_read_tokens:,} cached)" if usage.cache_read_tokens else ""
    money = f" · ${cost_usd:.4f}" if cost_usd else ""
    return f"{usage.input_tokens:,} tokens in{cached}, {usage.output_tokens:,} out{money}"
