"""Progress of a turn as plain lines with a spinner: for one-shot runs, pipes and simple terminals."""

import time
from collections.abc import Mapping
from typing import assert_never

from typing_extensions import override

from goose_like.core import events
from goose_like.core.message import Message, ToolCall, ToolResult

from .escape import escape_controls, to_one_line
from .lines import LineWriter
from .plain_text import RichNotifier
from .renderer import Renderer
from .tool_call import LIVE_LINES, RunningCall, convert_nested_event, fit_line, number_calls

_STREAM_TAIL_CHARACTERS = 200


class Screen(RichNotifier):
    """A notifier that draws events with a renderer."""

    renderer: Renderer

    def pause(self) -> None:
        """Remove what moves, such as a spinner, so that something else can use the terminal."""

    def skip_time(self, seconds: float) -> None:
        """Leave the time of a question out of the times of the running calls."""


class RunScreen(Screen):
    """A screen that prints each event once, in order.

    With `shows_answer` the model's words are streamed too. A one-shot run leaves them for standard output.
    """

    def __init__(self, lines: LineWriter, *, shows_answer: bool) -> None:
        self.renderer = Renderer(lines)
        self._shows_answer = shows_answer
        self._displays: Mapping[str, events.CallDisplay] = {}
        self._labels: dict[str, str] = {}
        self._calls: dict[str, RunningCall] = {}
        self._is_cut = False
        self._stream_tail = ""
        self._text_beside_plan = ""

    @override
    def notify(self, event: events.Event) -> None:
        match event:
            case events.SessionStarted(displays=displays):
                self._displays = displays
                self.pause()
                self.renderer.print_event(event)
            case events.RunFinished():
                self.pause()
                self.renderer.print_event(event)
            case events.TurnStarted(message=message):
                self._start_turn(message)
            case events.Status(text=text):
                self.renderer.lines.spin(text or "thinking")
                self.renderer.print_status(text)
            case events.TextDelta(text=text):
                self._show_text(text)
            case events.MessageCompleted(message=message, is_cut=is_cut):
                self._complete_message(message, is_cut)
            case events.ToolStarted(call=call):
                self._start_call(call)
            case events.ToolProgress(call_id=call_id, text=text, skipped_line_count=count):
                self._add_output(call_id, text, count)
            case events.SubagentEvent():
                self.notify(convert_nested_event(event, self.renderer.lines.get_room(5)))
            case events.ToolFinished(result=result):
                self._finish_call(result)
            case events.TurnFinished():
                self._finish_turn(event)
            case events.ThinkingDelta() | events.Interjected() | events.UsageRecorded():
                pass
            case events.StateSaved() | events.ModeRestricted() | events.Refused():
                pass
            case events.PromptRecorded() | events.PromptChanged():
                pass
            case events.CommandFinished():
                pass
            case events.Retrying(retry=retry, max_retries=max_retries):
                self.renderer.print_event(event)
                activity = f"retrying {retry} of {max_retries}" if retry else "thinking"
                self.renderer.lines.spin(activity)
            case events.PlanUpdated() | events.Rewound() | events.Logged() | events.Asked() | events.Answered():
                self.renderer.print_event(event)
            case events.FileChanged() | events.ArtifactShown() | events.PromptsSuggested():
                self.renderer.print_event(event)
            case events.Reminded() | events.Compacted():
                self.renderer.print_event(event)
            case _:
                assert_never(event)

    @override
    def pause(self) -> None:
        self.renderer.lines.stop_spinner()

    @override
    def skip_time(self, seconds: float) -> None:
        for running in self._calls.values():
            running.skip_time(seconds)

    def _spin_for_calls(self) -> None:
        if not self._calls:
            self.renderer.lines.spin("thinking")
            return
        names = [running.call.name for running in self._calls.values()]
        self.renderer.lines.spin(f"running {', '.join(names)}")

    def _start_turn(self, message: Message) -> None:
        self._is_cut = False
        lines = self.renderer.lines
        for image in message.images:
            name = to_one_line(image.source, lines.get_room(20))
            lines.write_line(f"{image.kind} attached: {name}", "dim")
        lines.spin("thinking")

    def _show_text(self, text: str) -> None:
        if not self._shows_answer:
            self._stream_tail = (self._stream_tail + text)[-_STREAM_TAIL_CHARACTERS:]
            self.renderer.lines.spin(f"writing: {self._stream_tail}")
        elif text:
            self.pause()
            self.renderer.lines.write_text(escape_controls(text))

    def _complete_message(self, message: Message, is_cut: bool) -> None:
        numbers = number_calls(message, 1, self._displays)
        self._labels = {}
        if len(numbers) > 1:  # the rows of a single call need no number
            self._labels = {call_id: str(number) for call_id, number in numbers.items()}
        self._stream_tail = ""
        self._is_cut = is_cut
        lines = self.renderer.lines
        lines.end_line()
        self._show_text_beside_plan()
        if self._shows_answer:
            if is_cut:
                lines.write_line("(cut off)", "yellow")
            return
        text = message.text.strip()
        if not text or not message.tool_calls:
            return
        if numbers:
            lines.write_line(escape_controls(text), "italic")
        else:
            self._text_beside_plan = text  # perhaps the answer

    def _show_text_beside_plan(self) -> None:
        text = self._text_beside_plan
        self._text_beside_plan = ""
        if text:
            self.renderer.lines.write_line(escape_controls(text), "italic")

    def _start_call(self, call: ToolCall) -> None:
        label = self._labels.get(call.id, "")
        display = self._displays.get(call.name, "whole")
        running = RunningCall(call, label, time.monotonic(), display=display)
        self._calls[call.id] = running
        self.renderer.print_head(running)
        self._spin_for_calls()

    def _add_output(self, call_id: str, text: str, skipped_line_count: int = 0) -> None:
        """Print the first whole lines of a call's output; of later lines the spinner shows the count."""
        running = self._calls.get(call_id)
        if running is None:
            return
        width = self.renderer.lines.get_room(4 + len(running.label))
        shown_count = len(running.head)
        running.skip_lines(skipped_line_count)
        running.add_output(text, width)
        for number, line in enumerate(running.head[shown_count:], shown_count):
            if line or number:  # no blank line at the start
                self.renderer.print_output_line(running, line)
        activity = f"running {running.call.name}"
        if running.line_count > LIVE_LINES:
            activity += f" · {running.line_count:,} lines"
        if running.rest:
            rest = fit_line(running.rest, 0, width)
            activity += f" · {rest}"
        self.renderer.lines.spin(activity)

    def _finish_call(self, result: ToolResult) -> None:
        running = self._calls.get(result.call_id)
        if running is None:
            return
        if running.rest:
            self._add_output(result.call_id, "\n")
        del self._calls[result.call_id]
        self.renderer.print_result(running, result)
        self._spin_for_calls()

    def _finish_turn(self, event: events.TurnFinished) -> None:
        self.pause()
        self._calls.clear()
        self._stream_tail = ""
        if event.answer:
            self._text_beside_plan = ""  # standard output has it
        self._show_text_beside_plan()
        self.renderer.print_turn_end(event, is_answer_cut=self._is_cut and not self._shows_answer)
