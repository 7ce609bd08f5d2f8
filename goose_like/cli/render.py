"""Events to lines on a terminal: one `match`, and nothing of a model's or a tool's text is obeyed by the terminal."""

import json
import time
from collections.abc import Sequence

from rich.console import Console, RenderableType
from rich.status import Status as Spinner
from rich.text import Text as Styled

from ..events import (
    Answered,
    Asked,
    Compacted,
    Event,
    Logged,
    MessageCompleted,
    PlanUpdated,
    Reminded,
    Retrying,
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
from ..message import ToolCall, Usage
from ..notifier import Notifier

LIVE_LINES = 12
_MARKS = {"planned": "☐", "in-progress": "▶", "complete": "☑", "failed": "☒"}
_STYLES = {"planned": "", "in-progress": "bold cyan", "complete": "green", "failed": "red"}
_SHOWN = {code: f"\\x{code:02x}" for code in [*range(32), *range(127, 160)] if chr(code) not in "\n\t"}
_SHOWN |= {code: f"\\u{code:04x}" for code in [0x200B, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]}


def visible(text: str) -> str:
    """The text with control and direction characters written out, so that a terminal shows instead of obeys them."""
    return text.replace("\r\n", "\n").translate(_SHOWN)


def one_line(text: str, width: int = 100) -> str:
    """The text as one line of at most `width` characters."""
    line = " ".join(visible(text).split())
    return line if len(line) <= width else line[: width - 1] + "…"


class Screen(Notifier):
    """Draws a turn as it goes: calls, their live output, the plan, what is being waited for.

    `says_answer` streams the model's words as well; a one-shot run keeps its last words for stdout.
    """

    def __init__(self, console: Console, *, says_answer: bool) -> None:
        self.console = console
        self._says_answer = says_answer
        self._spinner: Spinner | None = None
        self._running: dict[str, _Running] = {}
        self._is_mid_line = False
        self._heard = ""
        self._last_status = ""

    def notify(self, event: Event) -> None:
        match event:
            case SessionStarted(name=name, profile=profile, models=models):
                self._line(f"session {name} · profile {profile} · {models['processor']}", "dim")
            case TurnStarted():
                self._wait("thinking")
            case Status(text=text):
                self._tell_status(text)
            case TextDelta(text=text):
                self._hear(text)
            case Retrying(text=text, wait_s=wait_s):
                self._heard = ""
                self._line(f"↻ {text} · trying again in {wait_s:g} s", "yellow")
            case MessageCompleted(message=message, is_cut=is_cut):
                if not self._says_answer and message.tool_calls and message.text.strip():
                    self._line(visible(message.text.strip()), "italic")
                self._heard = ""
                self._end_line()
                if is_cut:
                    self._line("(cut off)", "yellow")
            case ToolStarted(call=call):
                self._start(call)
            case ToolProgress(call_id=call_id, text=text):
                if call_id in self._running:
                    self._show_output(self._running[call_id], text)
            case ToolFinished(result=result):
                self._finish(result.call_id, result.output, result.is_error)
            case PlanUpdated(tasks=tasks):
                self._draw_plan(tasks)
            case Logged(text=text):
                self._log(text)
            case Asked(question=question):
                self._line(f"? {visible(question.text)}", "bold yellow")
            case Answered(question=question, answer=answer):
                verdict = "allowed" if answer.is_allowed else "denied"
                nobody = ", nobody was there to ask" if answer.by == "nobody" else ""
                self._line(f"  {question.kind} {verdict}{nobody}", "yellow")
            case Reminded():
                self._line("(the plan was put before the model again)", "dim")
            case Compacted(kept=kept):
                self._line(f"(the window is full: the newest {kept} messages are kept in view)", "yellow")
            case TurnFinished(reason=reason, detail=detail):
                self._close()
                if reason != "stop" or detail:
                    words = {"budget": "stopped at", "step_limit": "stopped at", "cancelled": "cancelled"}
                    what = words.get(reason, "" if reason == "stop" else reason.replace("_", " "))
                    self._line(f"■ {what} {visible(detail)}".rstrip(), "red" if reason == "error" else "yellow")
            case RunFinished(usage=usage, cost_usd=cost):
                self._line(spent(usage, cost), "dim")
            case _:
                pass

    def pause(self) -> None:
        """Takes the spinner away, so that something else may use the terminal."""
        if self._spinner:
            self._spinner.stop()
            self._spinner = None

    def _line(self, text: str | RenderableType, style: str = "") -> None:
        self._end_line()
        self.console.print(Styled(text, style) if isinstance(text, str) else text)

    def _end_line(self) -> None:
        if self._is_mid_line:
            self._is_mid_line = False
            self.console.print()

    def _wait(self, text: str) -> None:
        """A spinner, on a terminal that is not in the middle of a line."""
        if not self.console.is_terminal or self._is_mid_line or not text:
            return
        if self._spinner is None:
            self._spinner = self.console.status(Styled(text, "dim"), spinner="dots")
            self._spinner.start()
        else:
            self._spinner.update(Styled(text, "dim"))

    def _tell_status(self, text: str) -> None:
        """What somebody else waits for: a spinner; without a terminal a line for each kind, figures aside."""
        self._wait(text)
        kind = "".join(character for character in text if character.isalpha())
        if not self.console.is_terminal and kind and kind != self._last_status:
            self._line(text, "dim")
        self._last_status = kind

    def _hear(self, text: str) -> None:
        self._heard += text
        if self._says_answer:
            self.pause()
            self.console.print(Styled(visible(text)), end="")
            self._is_mid_line = not text.endswith("\n")
        else:
            self._wait(f"writing: {one_line(self._heard[-200:], self.console.width - 20)}")

    def _start(self, call: ToolCall) -> None:
        self._running[call.id] = _Running(call)
        self._line(Styled.assemble(("▸ ", "cyan"), (call.name, "bold"), "  ", describe(call, self.console.width - 20)))
        self._wait(f"running {call.name}")

    def _show_output(self, running: "_Running", text: str) -> None:
        """Whole lines as they come, up to a few; of the rest the count."""
        *lines, running.rest = (running.rest + text).split("\n")
        for line in lines:
            running.lines += 1
            if running.lines <= LIVE_LINES:
                self._line(f"  │ {visible(line)}", "dim")
            else:
                self._wait(f"running {running.call.name} · {running.lines} lines")

    def _finish(self, call_id: str, output: str, is_error: bool) -> None:
        running = self._running.pop(call_id, None)
        if running is None:
            return
        if running.rest:
            self._show_output(running, "\n")
        if running.lines > LIVE_LINES:
            self._line(f"  │ … {running.lines - LIVE_LINES} more lines", "dim")
        took = f"{time.monotonic() - running.started:.1f} s"
        if is_error:
            self._line(f"  ✗ {one_line(output, self.console.width - 20)} · {took}", "red")
        else:
            last = "" if running.lines else one_line(output, self.console.width - 20)
            self._line(f"  ✓ {last + ' · ' if last else ''}{took}", "green")
        self._wait("thinking")

    def _draw_plan(self, tasks: Sequence[Task]) -> None:
        for task in tasks:
            self._line(f"  {_MARKS[task.status]} {visible(task.description)}", _STYLES[task.status])

    def _log(self, text: str) -> None:
        is_diff = text.startswith("--- ")
        for line in visible(text).split("\n"):
            colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "dim") if is_diff else ""
            self._line(f"  {line}", colour)

    def _close(self) -> None:
        self.pause()
        self._running.clear()
        self._heard = ""
        self._end_line()


class _Running:
    """A call that is being shown."""

    def __init__(self, call: ToolCall) -> None:
        self.call = call
        self.started = time.monotonic()
        self.lines = 0
        self.rest = ""


def describe(call: ToolCall, width: int) -> str:
    """A call's arguments in one line: a command or a path as it is, the others by name."""
    try:
        arguments = json.loads(call.arguments or "{}")
    except ValueError:
        arguments = call.arguments
    if not isinstance(arguments, dict):
        return one_line(str(arguments), width)
    shown = []
    for name, value in arguments.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        shown.append(text if name in ("command", "path") else f"{name}={one_line(text, 40)}")
    return one_line(" ".join(shown), width)


def spent(usage: Usage, cost_usd: float | None) -> str:
    """Tokens and money in one line; a price that is not known is left out."""
    cached = f" ({usage.cache_read_tokens:,} cached)" if usage.cache_read_tokens else ""
    money = f" · ${cost_usd:.4f}" if cost_usd else ""
    return f"{usage.input_tokens:,} tokens in{cached}, {usage.output_tokens:,} out{money}"
