"""The screen of an interactive session: finished events scroll away, the work in progress stays above the prompt."""

import asyncio
import io
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Literal, assert_never

from rich.console import Console, RenderableType
from rich.text import Text
from typing_extensions import override

from goose_like.core import events
from goose_like.core.history import INTERRUPTED, SHOWN_UNTIL_THEN
from goose_like.core.message import Message, ToolCall, ToolResult

from .activity import describe_calls, format_subagent
from .escape import cut_line, escape_controls, to_one_line
from .input import KEY_HELP, Prompt
from .interaction import ask_person
from .lines import join_rows
from .markdown_stream import MarkdownStream
from .plain_text import RichNotifier
from .renderer import Renderer, is_failed
from .tool_call import RunningCall, convert_nested_event, number_calls
from .wrap import ConsoleLines

FRAME_S = 1 / 15
TICK_S = 0.1
OPEN_ROWS = 12
MESSAGE_ROWS = 12
PLAN_ROWS = 8
HEAD_ROWS = 3
TAIL_ROWS = 5
KEY_COLUMNS = 18
OTHER_ROWS = 6
"""Rows of the terminal that unfolded output leaves to the rest, without queue and plan."""
THINKING_CHARACTERS = 400
BELL_AFTER_S = 10.0
_NOT_ENDED = "this call has not ended yet; Ctrl-O unfolds it while it runs"
_DOTS = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class SessionScreen(RichNotifier):
    """A screen around the prompt of a session, drawn at most fifteen times a second.

    `finished` holds the calls with their results; `/show N` takes an index into it, from 1. `get_queue` returns the
    messages that wait for the next step, and `add_to_queue` adds one. `get_plan` returns the current plan. Lines that
    `is_command` names answer no question. `find_result` returns the result that the history has for a call that was
    stopped.
    """

    def __init__(self, prompt: Prompt, bell: Literal["bell", "osc9", "off"] = "bell") -> None:
        self._above = _PrintBuffer()
        self._console = Console(
            file=self._above, force_terminal=True, highlight=False, markup=False, emoji=False, soft_wrap=True
        )
        self.renderer = Renderer(ConsoleLines(self._console))
        self.finished: list[tuple[ToolCall, ToolResult]] = []
        self.get_queue: Callable[[], Sequence[str]] = tuple
        self.get_plan: Callable[[], Sequence[events.Task]] = tuple
        self.describe_wait: Callable[[], str] = str
        self.add_to_queue: Callable[[str], None] = lambda text: None
        self.is_command: Callable[[str], bool] = lambda line: False
        self.find_result: Callable[[str], ToolResult | None] = lambda call_id: None
        self._prompt = prompt
        self._bell = bell
        self._prompt.live = self._render_below
        self._answer = MarkdownStream()
        self._calls: dict[str, RunningCall] = {}
        self._displays: Mapping[str, events.CallDisplay] = {}
        self._numbers: dict[str, int] = {}
        self._thought = ""
        self._status = ""
        self._turn_started_at: float | None = None
        self._is_open = False
        self._has_answer_text = False
        self._shows_keys = False
        self._is_unfolded = False
        self._last_call: RunningCall | None = None
        self._plan: Sequence[events.Task] = ()
        self._below = ""  # the rows between the printed text and the input
        self._below_width = 0  # zero if they have to be rendered again
        self._frame: asyncio.TimerHandle | None = None
        self._drawn_at = 0.0
        self._loop = asyncio.get_running_loop()

    @override
    def notify(self, event: events.Event) -> None:
        match event:
            case events.SessionStarted(displays=displays):
                self._displays = displays
                self._status = ""
                self.renderer.print_event(event)
            case events.TurnStarted(message=message) | events.Interjected(message=message):
                self._stop_calls()
                self._start_message(message)
            case events.Status(text=text):
                self._status = escape_controls(text)
            case events.ThinkingDelta(text=text):
                self._thought = (self._thought + text)[-THINKING_CHARACTERS:]
            case events.TextDelta(text=text):
                self._add_answer_text(text)
            case events.Retrying(retry=retry, max_retries=max_retries):
                self._answer = MarkdownStream()
                self._status = f"retrying {retry} of {max_retries}" if retry else ""
                self.renderer.print_event(event)
            case events.MessageCompleted(message=message, is_cut=is_cut):
                self._complete_message(message, is_cut)
            case events.ToolStarted(call=call):
                self._start_call(call)
            case events.ToolProgress(call_id=call_id, text=text, skipped_line_count=count):
                self._add_output(call_id, text, count)
            case events.SubagentEvent():
                self._show_subagent(event)
            case events.ToolFinished(result=result):
                self._finish_call(result)
            case events.PlanUpdated(tasks=tasks):
                self._plan = tasks
                if not self._is_plan_open:
                    self.renderer.print_event(event)
            case events.Rewound():
                self._plan = self.get_plan()
                self.renderer.print_event(event)
            case events.Logged():
                if len(self._calls) == 1:  # else the entry can belong to any call
                    self.renderer.print_head(*self._calls.values())
                self.renderer.print_event(event)
            case events.Asked(question=question):
                self._print_head_of(self._find_asking(question))
                self.renderer.print_event(event)
            case events.ArtifactShown(call_id=call_id) | events.FileChanged(call_id=call_id):
                self._print_head_of(self._calls.get(call_id))
                self.renderer.print_event(event)
            case events.TurnFinished():
                self._finish_turn(event)
            case events.UsageRecorded() | events.StateSaved() | events.ModeRestricted() | events.Refused():
                pass
            case events.PromptRecorded() | events.PromptChanged() | events.CommandFinished():
                pass
            case events.Answered() | events.Reminded() | events.Compacted():
                self.renderer.print_event(event)
            case events.PromptsSuggested() | events.RunFinished():
                self.renderer.print_event(event)
            case _:
                assert_never(event)
        self._draw_soon()

    @override
    async def ask(self, question: events.Question) -> events.Answer:
        self._ring_bell()
        self.draw()
        read_answer = partial(self._prompt.read_answer, is_command=self.is_command)
        asked_at = time.monotonic()
        self._status = "waiting for your answer"
        asking = self._calls.get(question.call_id)
        if asking:
            asking.is_asking = True
        try:
            return await ask_person(question, read_answer, self.renderer.print_detail, self.show, self._add_to_queue)
        finally:
            self._status = ""
            if asking:
                asking.is_asking = False
            for running in self._calls.values():
                running.skip_time(time.monotonic() - asked_at)

    def _find_asking(self, question: events.Question) -> RunningCall | None:
        """Find the call that a question is about. A question about a host and one of an older session do not say it."""
        if question.call_id:
            return self._calls.get(question.call_id)
        calls = list(self._calls.values())
        for running in calls:
            if running.is_named_in(question.text):
                return running
        return calls[0] if len(calls) == 1 else None

    def _print_head_of(self, running: RunningCall | None) -> None:
        """Print the head of a call above what it asks or shows."""
        if running:
            self.renderer.print_head(running)

    def _add_to_queue(self, text: str) -> None:
        self.add_to_queue(text)
        self._draw_soon()

    def show(self, renderable: object) -> None:
        """Print text or a Rich renderable above the prompt."""
        if isinstance(renderable, str):
            self.renderer.lines.write_line(escape_controls(renderable))
        else:
            self._console.print(renderable)
        self._draw_soon()

    def toggle_keys(self) -> None:
        """Show the keys above the prompt, or hide them."""
        self._shows_keys = not self._shows_keys
        self.draw()

    def toggle_output(self) -> None:
        """Unfold the output of the last call above the prompt, or fold it.

        Output of an ended call that has no room there is printed as a whole.
        """
        last = self._last_call
        is_ended = last is not None and last.call.id not in self._calls
        if last and is_ended and not self._is_unfolded and self._is_too_long(last):
            self._prompt.send_line(f"/show {last.number}")
            return
        self._is_unfolded = not self._is_unfolded
        self.draw()

    def _is_too_long(self, running: RunningCall) -> bool:
        shown = "".join(self.renderer.wrap_excerpt(running, self._count_free_rows()))
        return bool(running.hint) and running.hint in shown

    def hide_panels(self) -> None:
        """Hide the keys and fold the output."""
        self._shows_keys = False
        self._is_unfolded = False

    def show_startup(self) -> None:
        """Show status texts until `show_session` is called."""
        self._is_open = False

    def show_session(self, earlier: Iterable[events.DurableEvent], *, is_new: bool) -> None:
        """Show a session from now on, starting with its earlier events. `is_new` restarts the numbers of calls."""
        self._console.width = self._prompt.size.columns
        self._is_open = True
        if is_new:
            self.finished.clear()
        for event in earlier:
            self._replay(event)
        self._calls.clear()
        self._turn_started_at = None
        self._status = ""
        self._plan = self.get_plan()
        self._draw_soon()

    def _replay(self, event: events.DurableEvent) -> None:
        """Show an earlier event: calls have no start time, and their output is in their results."""
        match event:
            case events.SessionStarted():
                return  # the one of this process is shown
            case events.ToolFinished(result=result):
                self._restore_output(result)
            case events.Logged() if self._calls:  # calls that log run in the order of their message
                first = next(iter(self._calls.values()))
                self.renderer.print_head(first)
        self.notify(event)
        if isinstance(event, events.MessageCompleted):
            calls = event.message.tool_calls
            self._calls = {call.id: self._make_running_call(call) for call in calls}

    def _restore_output(self, result: ToolResult) -> None:
        """Add the output of a command that was run to its call."""
        running = self._calls.get(result.call_id)
        if running is None or not running.is_command:
            return
        body, notes = running.split_result(result.output)
        if notes or not result.is_error:
            output = "".join(f"{line}\n" for line in body)
            self._add_output(result.call_id, output)

    # --- messages

    def _start_message(self, message: Message) -> None:
        """Print the person's message, without attached files, and with the names of attached images."""
        if self._turn_started_at is None:
            self._turn_started_at = time.monotonic()
        self._has_answer_text = False
        self._shows_keys = False
        self._status = ""
        lines = self.renderer.lines
        rows = lines.wrap(escape_controls(message.first_text), 2)
        if len(rows) > MESSAGE_ROWS:
            shown = rows[: MESSAGE_ROWS - 1]
            rows = [*shown, f"… {len(rows) - len(shown):,} more lines"]
        self._print_space()
        lines.write_line(Text("> " + join_rows(rows, 2), "bold cyan"))
        for image in message.images:
            name = to_one_line(image.source, lines.get_room(20))
            lines.write_line(f"  {image.kind} attached: {name}", "cyan")

    def _add_answer_text(self, text: str) -> None:
        if not self._has_answer_text:
            self._print_space()
        self._has_answer_text = True
        self._status = ""
        self._thought = ""
        self._answer.feed(text)

    def _complete_message(self, message: Message, is_cut: bool) -> None:
        if not self._has_answer_text and message.text:
            self._add_answer_text(message.text)
        lines = self.renderer.lines
        self._console.print(self._answer.finish(self._console.width))
        self._answer = MarkdownStream()
        self._has_answer_text = False
        self._thought = ""
        self._numbers = number_calls(message, len(self.finished) + 1, self._displays)
        for call in message.tool_calls:
            if call.id in self._numbers:
                result = ToolResult(call_id=call.id, output=_NOT_ENDED)
                self.finished.append((call, result))
        if is_cut:
            lines.write_line("(cut off)", "yellow")

    def _finish_turn(self, event: events.TurnFinished) -> None:
        self._stop_calls()
        self._status = ""
        self.renderer.print_turn_end(event)
        self._print_space()
        self._ring_bell()
        self._turn_started_at = None

    def _print_space(self) -> None:
        """Print an empty line unless the last line is empty."""
        if not self._above.is_spaced:
            self.renderer.lines.write_line("")

    # --- tool calls

    def _start_call(self, call: ToolCall) -> None:
        if self._last_call and self._last_call.call.id not in self._calls:
            self._is_unfolded = False  # the output is in the transcript
        running = self._make_running_call(call, time.monotonic())
        self._calls[call.id] = running
        if running.number:
            self._last_call = running
        self._status = ""

    def _make_running_call(self, call: ToolCall, started_at: float | None = None) -> RunningCall:
        number = str(self._numbers.get(call.id, ""))
        label = number if len(self._numbers) > 1 else ""
        display = self._displays.get(call.name, "whole")
        return RunningCall(call, label, started_at, number, display)

    def _show_subagent(self, event: events.SubagentEvent) -> None:
        inner = event.event
        running = self._calls.get(event.call_id)
        if running:
            running.is_subagent = True
            running.status = ""
            if isinstance(inner, events.Status):
                running.status = escape_controls(inner.text)
            if isinstance(inner, events.ToolStarted):
                running.call_count += 1
        shown = convert_nested_event(event, self.renderer.lines.get_room(5))
        if isinstance(shown, events.ToolProgress):
            self.notify(shown)

    def _add_output(self, call_id: str, text: str, skipped_line_count: int = 0) -> None:
        running = self._calls.get(call_id)
        if running:
            width = self.renderer.lines.get_room(4 + len(running.label))
            running.skip_lines(skipped_line_count)
            running.add_output(text, width)

    def _finish_call(self, result: ToolResult) -> None:
        running = self._calls.get(result.call_id)
        if running is None:
            return
        if result.output.startswith(INTERRUPTED):
            self._print_stopped(running, result)
            del self._calls[result.call_id]
            return
        if running.is_subagent:
            running.drop_output()
        _, notes = running.split_result(result.output)
        if is_failed(result, notes):
            running.favor_end()
        self._print_output(running)
        del self._calls[result.call_id]
        self._keep_result(running, result)
        if running.number:
            self._last_call = running
        self.renderer.print_result(running, result)
        if not running.line_count:  # the output was in the result only; Ctrl-O can unfold it
            running.add_output(f"{result.output}\n", self.renderer.lines.get_room(4))
        self._status = ""

    def _stop_calls(self) -> None:
        """Print the calls that were stopped before they had a result, and keep what they showed for `/show`."""
        for call_id, running in self._calls.items():
            stopped = ToolResult(call_id=call_id, output=INTERRUPTED, is_error=True)
            self._print_stopped(running, self.find_result(call_id) or stopped)
        self._is_unfolded = self._is_unfolded and not self._calls
        self._calls.clear()

    def _print_stopped(self, running: RunningCall, result: ToolResult) -> None:
        if running.display == "nothing":
            return
        if not running.line_count and SHOWN_UNTIL_THEN in result.output:  # a resumed session
            _, _, output = result.output.partition(SHOWN_UNTIL_THEN)
            self._add_output(running.call.id, output)
        self._print_output(running)
        self._keep_result(running, result)
        self.renderer.print_stopped(running)

    def _keep_result(self, running: RunningCall, result: ToolResult) -> None:
        if running.number:
            self.finished[int(running.number) - 1] = running.call, result
            running.hint = f" · /show {running.number}"

    def _print_output(self, running: RunningCall) -> None:
        """Print the head and the first lines of a call that ends."""
        if running.rest:
            self._add_output(running.call.id, "\n")
        self.renderer.print_head(running)
        for line in running.head:
            self.renderer.print_output_line(running, line)

    # --- frames

    def _draw_soon(self) -> None:
        if self._frame is None:
            wait_s = max(0.0, self._drawn_at + FRAME_S - time.monotonic())
            self._frame = self._loop.call_later(wait_s, self.draw)

    def draw(self) -> None:
        """Print what is final above the prompt and draw the rest again, now."""
        if self._frame:
            self._frame.cancel()
            self._frame = None
        self._drawn_at = time.monotonic()
        console = self._console
        console.width = self._prompt.size.columns
        console.print(self._answer.take_final(console.width))
        text = self._above.getvalue()
        self._above.seek(0)
        self._above.truncate()
        self._below_width = 0
        if text:
            self._prompt.print(text)
        else:
            self._prompt.redraw()
        if self._turn_started_at is not None:  # the clock advances even without events
            self._frame = self._loop.call_later(TICK_S, self.draw)

    def _render_below(self, width: int) -> str:
        """Return the rows between the printed text and the input, rendered once per frame."""
        if self._below_width == width:
            return self._below
        console = self._console
        console.width = width
        with console.capture() as capture:
            for piece in self._iterate_below(width):
                console.print(piece)
        self._below = capture.get().rstrip("\n")
        self._below_width = width
        return self._below

    def _iterate_below(self, width: int) -> Iterator[RenderableType]:
        """Yield what is in progress, from the answer down to the plan next to the input."""
        rows = self._answer.render_open(width, OPEN_ROWS)
        if rows:
            yield rows
        for running in self._calls.values():
            yield from self._format_running(running, width)
        if self._is_unfolded and self._last_call and not self._is_running_subagent(self._last_call):
            yield from self._format_unfolded(self._last_call, width)
        if self._shows_keys:
            yield from self._format_keys()
        if self._turn_started_at is not None:
            elapsed_s = time.monotonic() - self._turn_started_at
            yield self._format_activity(width, elapsed_s)
        elif self._status and not self._is_open:
            yield Text(to_one_line(self._status, width - 2), "dim")
        for message in self.get_queue():
            words = to_one_line(message, width - 34)
            yield Text(f"  ⏎ {words}  ({self.describe_wait()})", "cyan")
        yield from self._format_plan()

    def _format_running(self, running: RunningCall, width: int) -> Iterator[Text]:
        """Yield the head of a call and the rows of its folded output; one line for a subagent."""
        if running.is_subagent and not self._is_unfolded:
            yield format_subagent(running, width)
            return
        if not running.is_head_printed:
            head = self.renderer.format_call(running)
            if running.is_asking and len(self._calls) > 1:
                head.append((f" · {running.state}", "yellow"))
            yield Text.assemble(*head)
        is_unfolded = self._is_unfolded and running is self._last_call
        if is_unfolded and not running.is_subagent:
            return
        for line in running.get_excerpt(HEAD_ROWS, TAIL_ROWS):
            shown = cut_line(escape_controls(line), width - 6)
            yield Text(f"  │{running.label} {shown}", "dim")

    def _format_keys(self) -> Iterator[Text]:
        for key, effect in KEY_HELP:
            label = f"  {key}".ljust(KEY_COLUMNS)
            rows = self.renderer.lines.wrap(effect, KEY_COLUMNS)
            yield Text(label + join_rows(rows, KEY_COLUMNS), "cyan")

    def _is_running_subagent(self, running: RunningCall) -> bool:
        return running.is_subagent and running.call.id in self._calls

    def _format_unfolded(self, running: RunningCall, width: int) -> Iterator[RenderableType]:
        """Yield as much of the output of a call as fits on the screen."""
        row_count = self._count_free_rows()
        name = to_one_line(running.call.name, width - 40)
        yield Text(f"  output of {name} · Ctrl-O folds it", "cyan")
        yield Text("\n".join(self.renderer.wrap_excerpt(running, row_count)), "dim")

    def _count_free_rows(self) -> int:
        others = OTHER_ROWS + len(self.get_queue()) + len(self._format_plan())
        return max(self._prompt.size.rows - others, HEAD_ROWS + TAIL_ROWS)

    def _format_plan(self) -> list[Text]:
        if not self._is_plan_open:
            return []
        rows = self.renderer.format_plan_rows(self._plan, PLAN_ROWS)
        return [Text.assemble(*row) for row in rows]

    @property
    def _is_plan_open(self) -> bool:
        return any(task.is_open for task in self._plan)

    def _format_activity(self, width: int, elapsed_s: float) -> Text:
        dot = _DOTS[int(elapsed_s * 10) % len(_DOTS)]
        times = self._format_times(elapsed_s)
        activity = self._describe_activity(max(width - 30, 10))
        line = to_one_line(activity, width - len(times) - 6)
        return Text(f"{dot} {line} · {times}", "dim")

    def _format_times(self, turn_s: float) -> str:
        """Return how long the oldest call runs, if one does, and how long the turn."""
        starts = [running.started_at for running in self._calls.values() if running.started_at is not None]
        if not starts:
            return f"{turn_s:.0f} s"
        call_s = time.monotonic() - min(starts)
        return f"{call_s:.0f} s · turn {turn_s:.0f} s"

    def _describe_activity(self, width: int) -> str:
        if self._thought and not self._has_answer_text:
            thought = " ".join(self._thought.split())
            return f"thinking: {thought[-width:]}"
        if self._status or not self._calls:
            return self._status or "thinking"
        return describe_calls(self._calls.values())

    def _ring_bell(self) -> None:
        """Call the person back after a turn that took long."""
        if self._turn_started_at is None:
            return
        elapsed_s = time.monotonic() - self._turn_started_at
        if elapsed_s > BELL_AFTER_S:
            self._prompt.alert(self._bell)


class _PrintBuffer(io.StringIO):
    """Text to print above the prompt; `is_spaced` says whether an empty line was written last."""

    is_spaced = True

    def write(self, text: str) -> int:
        if text:
            self.is_spaced = text.endswith("\n\n") or text == "\n"
        return super().write(text)
