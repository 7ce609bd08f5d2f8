"""The screen of an interactive session: finished events scroll away, the work in progress stays above the prompt."""

import asyncio
import io
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Literal

from rich.console import Console, RenderableType
from rich.text import Text
from typing_extensions import override

from goose_like.core import events
from goose_like.core.history import INTERRUPTED, SHOWN_UNTIL_THEN
from goose_like.core.message import Message, ToolCall, ToolResult
from goose_like.core.spelling import format_count

from .escape import cut_line, escape_controls, to_one_line
from .input import KEY_HELP, Prompt
from .interaction import ask_person
from .markdown_stream import MarkdownStream
from .plain_text import RichNotifier
from .renderer import Renderer, is_failed
from .tool_call import RunningCall, convert_nested_event, describe_call, number_calls
from .wrap import ConsoleLines

FRAME_S = 1 / 15
TICK_S = 0.1
OPEN_ROWS = 12
MESSAGE_ROWS = 12
PLAN_ROWS = 8
HEAD_ROWS, TAIL_ROWS = 3, 5
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
        self._thought = self._status = ""
        self._turn_started_at: float | None = None
        self._is_open = False
        self._has_answer_text = self._shows_keys = self._is_unfolded = False
        self._last_call: RunningCall | None = None
        self._plan: Sequence[events.Task] = ()
        self._cached_below = (0, "")
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
            case events.SubagentEvent(call_id=call_id, event=inner):
                if running := self._calls.get(call_id):
                    running.is_subagent = True
                    running.call_count += isinstance(inner, events.ToolStarted)
                    running.status = escape_controls(inner.text) if isinstance(inner, events.Status) else ""
                shown = convert_nested_event(event, self.renderer.lines.get_room(5))
                if isinstance(shown, events.ToolProgress):
                    self.notify(shown)
            case events.ToolFinished(result=result):
                self._finish_call(result)
            case events.PlanUpdated() | events.Rewound():
                self._change_plan(event)
            case events.Logged():
                if len(self._calls) == 1:  # else the entry can belong to any call
                    self.renderer.print_head(*self._calls.values())
                self.renderer.print_event(event)
            case events.Asked(question=question):
                if asking := self._find_asking(question):
                    self.renderer.print_head(asking)
                self.renderer.print_event(event)
            case events.ArtifactShown(call_id=call_id) | events.FileChanged(call_id=call_id):
                if running := self._calls.get(call_id):
                    self.renderer.print_head(running)
                self.renderer.print_event(event)
            case events.TurnFinished():
                self._finish_turn(event)
            case events.UsageRecorded() | events.StateSaved() | events.ModeRestricted():
                pass
            case events.PromptRecorded() | events.PromptChanged():
                pass
            case _:
                self.renderer.print_event(event)
        self._draw_soon()

    @override
    async def ask(self, question: events.Question) -> events.Answer:
        self._ring_bell()
        self.draw()
        read_answer = partial(self._prompt.read_answer, is_command=self.is_command)
        asked_at, self._status = time.monotonic(), "waiting for your answer"
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
        calls = [*self._calls.values()]
        fitting = [running for running in calls if running.is_named_in(question.text)]
        if not fitting and len(calls) == 1:
            fitting = calls
        return next(iter(fitting), None)

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

    def _change_plan(self, event: events.PlanUpdated | events.Rewound) -> None:
        self._plan = event.tasks if isinstance(event, events.PlanUpdated) else self.get_plan()
        if isinstance(event, events.Rewound) or not any(task.is_open for task in self._plan):
            self.renderer.print_event(event)

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
        self._shows_keys = self._is_unfolded = False

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
        if isinstance(event, events.SessionStarted):
            return  # the one of this process is shown
        if isinstance(event, events.ToolFinished) and (running := self._calls.get(event.result.call_id)):
            body, notes = running.split_result(event.result.output)
            if running.is_command and (notes or not event.result.is_error):  # it was run
                self._add_output(running.call.id, "\n".join([*body, ""]))
        if isinstance(event, events.Logged) and self._calls:  # calls that log run in the order of their message
            self.renderer.print_head(next(iter(self._calls.values())))
        self.notify(event)
        if isinstance(event, events.MessageCompleted):
            calls = event.message.tool_calls
            self._calls = {call.id: self._make_running_call(call) for call in calls}

    # --- messages

    def _start_message(self, message: Message) -> None:
        """Print the person's message, without attached files, and with the names of attached images."""
        self._turn_started_at = self._turn_started_at or time.monotonic()
        self._has_answer_text = self._shows_keys = False
        self._status = ""
        rows = self.renderer.lines.wrap(escape_controls(message.first_text), 2)
        if len(rows) > MESSAGE_ROWS:
            rows = [*rows[: MESSAGE_ROWS - 1], f"… {len(rows) - MESSAGE_ROWS + 1:,} more lines"]
        self._print_space()
        self.renderer.lines.write_line(Text("> " + "\n  ".join(rows), "bold cyan"))
        for image in message.images:
            name = to_one_line(image.source, self.renderer.lines.get_room(20))
            self.renderer.lines.write_line(f"  image attached: {name}", "cyan")

    def _add_answer_text(self, text: str) -> None:
        if not self._has_answer_text:
            self._print_space()
        self._has_answer_text, self._status, self._thought = True, "", ""
        self._answer.feed(text)

    def _complete_message(self, message: Message, is_cut: bool) -> None:
        if not self._has_answer_text and message.text:
            self._add_answer_text(message.text)
        lines = self.renderer.lines
        self._console.print(self._answer.finish(self._console.width))
        self._answer, self._has_answer_text, self._thought = MarkdownStream(), False, ""
        self._numbers = number_calls(message, len(self.finished) + 1, self._displays)
        calls = [call for call in message.tool_calls if call.id in self._numbers]
        self.finished += [(call, ToolResult(call_id=call.id, output=_NOT_ENDED)) for call in calls]
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
        running = self._calls[call.id] = self._make_running_call(call, time.monotonic())
        if running.number:
            self._last_call = running
        self._status = ""

    def _make_running_call(self, call: ToolCall, started_at: float | None = None) -> RunningCall:
        number = str(self._numbers.get(call.id, ""))
        label = number if len(self._numbers) > 1 else ""
        return RunningCall(call, label, started_at, number, self._displays.get(call.name, "whole"))

    def _add_output(self, call_id: str, text: str, skipped_line_count: int = 0) -> None:
        if running := self._calls.get(call_id):
            running.skip_lines(skipped_line_count)
            running.add_output(text, self.renderer.lines.get_room(4 + len(running.label)))

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
        if is_failed(result, running.split_result(result.output)[1]):
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
            self._add_output(running.call.id, result.output.partition(SHOWN_UNTIL_THEN)[2])
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
        self._cached_below = (0, "")
        if text:
            self._prompt.print(text)
        else:
            self._prompt.redraw()
        if self._turn_started_at is not None:  # the clock advances even without events
            self._frame = self._loop.call_later(TICK_S, self.draw)

    def _render_below(self, width: int) -> str:
        """Return the rows between the printed text and the input, rendered once per frame."""
        if self._cached_below[0] != width:
            console = self._console
            console.width = width
            with console.capture() as capture:
                for piece in self._iterate_below(width):
                    console.print(piece)
            self._cached_below = (width, capture.get().rstrip("\n"))
        return self._cached_below[1]

    def _iterate_below(self, width: int) -> Iterator[RenderableType]:
        """Yield what is in progress, from the answer down to the plan next to the input."""
        if rows := self._answer.render_open(width, OPEN_ROWS):
            yield rows
        for running in self._calls.values():
            if running.is_subagent and not self._is_unfolded:
                yield self._format_subagent(running, width)
                continue
            if not running.is_head_printed:
                state = [(f" · {running.state}", "yellow")] if len(self._calls) > 1 and running.is_asking else []
                yield Text.assemble(*self.renderer.format_call(running), *state)
            if running.is_subagent or not (self._is_unfolded and running is self._last_call):
                for line in running.get_excerpt(HEAD_ROWS, TAIL_ROWS):
                    yield Text(f"  │{running.label} {cut_line(escape_controls(line), width - 6)}", "dim")
        if self._is_unfolded and self._last_call and not self._is_running_subagent(self._last_call):
            yield from self._format_unfolded(self._last_call, width)
        if self._shows_keys:
            for key, effect in KEY_HELP:
                effect_rows = self.renderer.lines.wrap(effect, KEY_COLUMNS)
                yield Text(f"  {key:<{KEY_COLUMNS - 2}}" + f"\n{'':{KEY_COLUMNS}}".join(effect_rows), "cyan")
        if self._turn_started_at is not None:
            yield self._format_activity(width, time.monotonic() - self._turn_started_at)
        elif self._status and not self._is_open:
            yield Text(to_one_line(self._status, width - 2), "dim")
        for words in self.get_queue():
            yield Text(f"  ⏎ {to_one_line(words, width - 34)}  ({self.describe_wait()})", "cyan")
        yield from self._format_plan()

    def _is_running_subagent(self, running: RunningCall) -> bool:
        return running.is_subagent and running.call.id in self._calls

    def _format_subagent(self, running: RunningCall, width: int) -> Text:
        """Return one line for a subagent: its task, the number of its calls, and the newest one."""
        mark, count = f"▸{running.number} ", running.call_count
        room = width - len(mark) - len(running.call.name) - 4
        newest = running.status or "".join([*running.head, *running.newest][-1:])
        newest = running.state if running.is_asking else newest
        calls = format_count(count, "call") if count else ""
        steps = " · ".join(filter(None, [calls, newest]))
        task = describe_call(running.call, max(room // 2, room - len(steps) - 3))
        step = f" · {to_one_line(steps, max(room - len(task) - 3, 10))}" if steps else ""
        return Text.assemble((mark, "cyan"), (running.call.name, "bold"), f"  {task}", (step, "dim"))

    def _format_unfolded(self, running: RunningCall, width: int) -> Iterator[RenderableType]:
        """Yield as much of the output of a call as fits on the screen."""
        row_count = self._count_free_rows()
        yield Text(f"  output of {to_one_line(running.call.name, width - 40)} · Ctrl-O folds it", "cyan")
        yield Text("\n".join(self.renderer.wrap_excerpt(running, row_count)), "dim")

    def _count_free_rows(self) -> int:
        others = OTHER_ROWS + len(self.get_queue()) + len(self._format_plan())
        return max(self._prompt.size.rows - others, HEAD_ROWS + TAIL_ROWS)

    def _format_plan(self) -> list[Text]:
        rows = self.renderer.format_plan_rows(self._plan, PLAN_ROWS) if any(task.is_open for task in self._plan) else ()
        return [Text.assemble(*row) for row in rows]

    def _format_activity(self, width: int, elapsed_s: float) -> Text:
        dot, activity, time_text = _DOTS[int(elapsed_s * 10) % len(_DOTS)], self._status, f"{elapsed_s:.0f} s"
        if started := [running.started_at for running in self._calls.values() if running.started_at is not None]:
            time_text = f"{time.monotonic() - min(started):.0f} s · turn {time_text}"
        if self._thought and not self._has_answer_text:
            activity = f"thinking: {' '.join(self._thought.split())[-max(width - 30, 10) :]}"
        elif self._calls and not activity:
            counts = Counter(f"{running.state}: {running.call.name}" for running in self._calls.values())
            activity = ", ".join(f"{text} ({count})" if count > 1 else text for text, count in counts.items())
        line = f"{dot} {to_one_line(activity or 'thinking', width - len(time_text) - 6)} · {time_text}"
        return Text(line, "dim")

    def _ring_bell(self) -> None:
        """Call the person back after a turn that took long."""
        if self._turn_started_at is not None and time.monotonic() - self._turn_started_at > BELL_AFTER_S:
            self._prompt.alert(self._bell)


class _PrintBuffer(io.StringIO):
    """Text to print above the prompt; `is_spaced` says whether an empty line was written last."""

    is_spaced = True

    def write(self, text: str) -> int:
        if text:
            self.is_spaced = text.endswith("\n\n") or text == "\n"
        return super().write(text)
