"""The screen of a boss at work: finished actions scroll away above; plan, log and round stay below."""

import asyncio
import re
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text
from typing_extensions import override

from goose_like.core import events
from goose_like.core.history import INTERRUPTED, History
from goose_like.core.message import ToolCall, ToolResult, Usage
from goose_like.providers.prices import compute_cost_usd
from goose_like.terminal.escape import escape_controls, to_one_line
from goose_like.terminal.renderer import Renderer, is_failed
from goose_like.terminal.run_screen import Screen
from goose_like.terminal.tool_call import RunningCall, describe_call
from goose_like.terminal.wrap import ConsoleLines
from goose_like_toolkits.boss.flow.boss import count_rounds
from goose_like_toolkits.boss.memory.log import LogEntry, list_entries

from .spec import FINISH, BossSpec

_PLAN_ROWS = 10
_LOG_ROWS = 3
_OUTPUT_ROWS = 2
_FRAME_S = 0.1
_MAX_COLUMNS = 110
_MIN_COLUMNS = 8
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_UNFINISHED = re.compile(r"\[.+: (max round|budget|interrupted|failed)\]$")
"""First line in the result of a sub-boss that did not finish (see `run_sub_boss`)."""


@dataclass(slots=True)
class _Work:
    """The state of one boss. `children` are the bosses that its running calls started, by call.

    The outermost boss has the depth 0.
    """

    name: str
    spec: BossSpec | None
    depth: int = 0
    has_heading: bool = False
    rounds: int = 0
    actions: int = 0
    plan: Sequence[events.Task] = ()
    displays: Mapping[str, events.CallDisplay] = field(default_factory=dict)
    log: deque[str] = field(default_factory=lambda: deque(maxlen=_LOG_ROWS))
    running: dict[str, RunningCall] = field(default_factory=dict)
    children: dict[str, "_Work"] = field(default_factory=dict)

    def get_child(self, call_id: str) -> "_Work":
        if call_id not in self.children:
            name = self.running[call_id].call.name
            spec = None
            if self.spec and name in self.spec.branches:
                spec = self.spec.branches[name].boss
            self.children[call_id] = _Work(name, spec, self.depth + 1)
        return self.children[call_id]

    def walk(self) -> "Iterator[_Work]":
        """Yield this boss, the boss at work for it, and so on."""
        yield self
        if self.children:
            newest = next(reversed(self.children.values()))
            yield from newest.walk()

    def apply(self, event: events.Event) -> None:
        """Apply an event of this boss. A finished call stays until `finish_call`."""
        match event:
            case events.SessionStarted(displays=displays):
                self.displays = displays
            case events.MessageCompleted():
                self.rounds += 1
            case events.PlanUpdated(tasks=tasks):
                self.plan = tasks
            case events.ToolStarted(call=call):
                display = self.displays.get(call.name, "whole")
                self.running[call.id] = RunningCall(call, "", time.monotonic(), display=display)
            case events.ToolProgress(call_id=call_id, text=text, skipped_line_count=count) if call_id in self.running:
                self.running[call_id].skip_lines(count)
                self.running[call_id].add_output(text, _MAX_COLUMNS)

    def finish_call(self, result: ToolResult) -> RunningCall:
        """Remove a call with its boss, and log it unless it was interrupted. Return the call."""
        running = self.running.pop(result.call_id)
        self.children.pop(result.call_id, None)
        if running.rest:
            running.add_output("\n", _MAX_COLUMNS)
        if not result.output.startswith(INTERRUPTED):
            self.actions += 1
            entry = LogEntry(self.actions, running.call, result, 0)
            self.log.append(entry.line)
        return running


class BossScreen(Screen):
    """Draws a boss and its sub-bosses. Without a terminal, prints one line per action."""

    def __init__(self, console: Console, spec: BossSpec) -> None:
        self.renderer = Renderer(ConsoleLines(console))
        self._console = console
        self._spec = spec
        self._work = _Work(spec.name, spec)
        self._usage: dict[str, Usage] = {}
        self._model = ""
        self._activity = ""
        self._began = time.monotonic()
        self._live: Live | None = None
        self._frame: asyncio.TimerHandle | None = None
        self._is_drawn = console.is_terminal and not console.is_dumb_terminal

    def load_history(self, history: History) -> None:
        """Show the state of a resumed run."""
        entries = list(list_entries(history))
        self._work.rounds = count_rounds(history)
        self._work.plan = history.plan
        self._work.actions = len(entries)
        self._work.log.extend(entry.line for entry in entries)
        self._usage = dict(history.usage.by_model)

    @override
    def notify(self, event: events.Event) -> None:
        if isinstance(event, events.TurnFinished | events.RunFinished):
            self._finish(event)
            return
        self._count_usage(event)
        match event:
            case events.SessionStarted():
                self._model = event.models["processor"]
                self._update(self._work, event)
                self.renderer.print_event(event)
                self._print_memory_files()
            case events.TurnStarted():
                self._activity = "thinking"
            case events.TextDelta(text=text):
                self._activity = "writing" if text else self._activity
            case events.Status(text=text):
                self._activity = escape_controls(text)
                self.renderer.print_status(text)
            case (
                events.MessageCompleted()
                | events.ToolStarted()
                | events.ToolProgress()
                | events.ToolFinished()
                | events.PlanUpdated()
                | events.SubagentEvent()
            ):
                self._update(self._work, event)
            case (
                events.ThinkingDelta()
                | events.Interjected()
                | events.UsageRecorded()
                | events.StateSaved()
                | events.ModeRestricted()
                | events.Refused()
                | events.PromptRecorded()
                | events.PromptChanged()
                | events.CommandFinished()
            ):
                pass
            case _:
                self.renderer.print_event(event)
        self._schedule_frame()

    @override
    def pause(self) -> None:
        if self._frame:
            self._frame.cancel()
            self._frame = None
        if self._live:
            live = self._live
            self._live = None
            live.stop()

    @override
    def skip_time(self, seconds: float) -> None:
        bosses = [self._work]
        while bosses:
            work = bosses.pop()
            bosses += work.children.values()
            for running in work.running.values():
                running.skip_time(seconds)

    # --- events

    def _print_memory_files(self) -> None:
        by_folder: dict[str, list[str]] = {}
        for file in self._spec.memory_files.values():
            folder, _, name = file.rpartition("/")
            by_folder.setdefault(folder or ".", []).append(name)
        for folder, names in by_folder.items():
            self._write(escape_controls(f"  memory in {folder}: {', '.join(names)}"), "dim")

    def _finish(self, event: events.TurnFinished | events.RunFinished) -> None:
        self._work.running.clear()
        self._work.children.clear()
        self.pause()
        if isinstance(event, events.RunFinished):
            self.renderer.print_event(event)
            return
        if event.reason == "step_limit":
            event = event.model_copy(update={"detail": f"round {self._work.rounds}, the last one"})
        self.renderer.print_turn_end(event)

    def _count_usage(self, event: events.Event) -> None:
        match event:
            case events.MessageCompleted(usage=usage):
                self._add_usage(self._model, usage)
            case events.UsageRecorded(model=model, usage=usage):
                self._add_usage(model, usage)

    def _update(self, work: _Work, event: events.Event) -> None:
        """Apply an event of a boss, and print what happened."""
        work.apply(event)
        match event:
            case events.MessageCompleted() | events.ToolStarted():
                self._activity = ""
            case events.ToolFinished(result=result) if result.call_id in work.running:
                self._finish_action(work, result)
            case events.SubagentEvent(call_id=call_id, event=inner) if call_id in work.running:
                self._update_child(work, call_id, inner)
            case events.Status(text=text):
                self._activity = escape_controls(text)
            case events.Logged(text=text) if work.depth:
                self._write_lines(text, work.depth)
            case events.FileChanged(diff=diff) if work.depth and diff:
                self._write_lines(diff, work.depth)

    def _write_lines(self, text: str, depth: int) -> None:
        for line in text.split("\n"):
            shown = to_one_line(line, self._get_room(2 * depth + 2))
            self._write(f"{'  ' * depth}  {shown}", "dim")

    def _update_child(self, work: _Work, call_id: str, event: events.Event) -> None:
        child = work.get_child(call_id)
        prints_lines = isinstance(event, events.ToolStarted | events.Logged | events.FileChanged)
        if prints_lines and not child.has_heading:
            child.has_heading = True
            self._write(self._format_heading(work.running[call_id].call, work.depth))
        self._update(child, event)

    def _format_heading(self, call: ToolCall, depth: int) -> Text:
        """Format the line above the actions of a sub-boss, whose caller has this depth."""
        goal = describe_call(call, self._get_room(2 * depth + len(call.name) + 6))
        return Text.assemble(("  " * depth + "▸ ", "cyan"), (escape_controls(call.name), "bold"), "  ", goal)

    def _finish_action(self, work: _Work, result: ToolResult) -> None:
        """Print a finished action on one line, and after a failure its reason on a second one."""
        running = work.finish_call(result)
        body, notes = running.split_result(result.output)
        is_unfinished = any(map(_UNFINISHED.match, body[:1]))
        is_failure = is_failed(result, notes) or is_unfinished
        if running.display == "nothing" and not is_failure and self._is_drawn:
            return  # the plan itself is drawn
        self._write(self._format_action(running, is_failure, work.depth))
        reason = _find_reason(body, notes)
        if is_failure and reason:
            shown = to_one_line(reason, self._get_room(2 * work.depth + 3))
            self._write(f"{'  ' * work.depth}  {shown}", "red")

    def _format_action(self, running: RunningCall, is_failure: bool, depth: int) -> Text:
        call = running.call
        name = escape_controls(call.name)
        took_s = time.monotonic() - (running.started_at or self._began)
        took = f" · {took_s:.1f} s"
        columns = min(self._get_room(0), _MAX_COLUMNS)
        room = max(columns - 2 * depth - len(name) - len(took) - 4, _MIN_COLUMNS)
        text = _describe_action(call, room)
        mark = ("✗ ", "red") if is_failure else ("✓ ", "green")
        parts: list[str | tuple[str, str]] = ["  " * depth, mark, (name, "bold")]
        if text:
            parts.append(f"  {text}")
        return Text.assemble(*parts, (took, "dim"))

    def _add_usage(self, model: str, usage: Usage) -> None:
        self._usage[model] = self._usage.get(model, Usage()) + usage

    def _write(self, text: str | Text, style: str = "") -> None:
        if isinstance(text, str):
            text = Text(text, style)
        self.renderer.lines.write_line(text)

    def _get_room(self, indent: int) -> int:
        return self.renderer.lines.get_room(indent)

    # --- the lower part

    def _schedule_frame(self) -> None:
        if self._is_drawn and self._frame is None:
            self._frame = asyncio.get_running_loop().call_later(_FRAME_S, self._draw_frame)

    def _draw_frame(self) -> None:
        """Draw the lower part, and again after each interval until `pause`."""
        self._frame = asyncio.get_running_loop().call_later(_FRAME_S, self._draw_frame)
        console = self._console
        if self._live is None:
            self._live = Live(console=console, auto_refresh=False, transient=True, redirect_stdout=False)
            self._live.start()
        self._live.update(Group(*self._build_frame(console.width - 1)), refresh=True)

    def _build_frame(self, width: int) -> Iterator[RenderableType]:
        active = list(self._work.walk())
        yield Text("")
        yield from self._build_plan_rows(active)
        for entry in self._work.log:
            yield _format_row(f"  {to_one_line(entry, width - 2)}")
        for running in active[-1].running.values():
            for line in running.get_excerpt(0, _OUTPUT_ROWS - 1):
                yield _format_row(f"  │ {to_one_line(line, width - 4)}")
        yield self._build_status_line(active, width)

    def _build_plan_rows(self, active: Sequence[_Work]) -> Iterator[Text]:
        """Build the rows of the plans of all bosses at work, which share the room."""
        planned = [work for work in active if work.plan]
        for work in planned:
            max_rows = max(_PLAN_ROWS // len(planned), 2)
            for row in self.renderer.format_plan_rows(work.plan, max_rows):
                yield Text.assemble("  " * work.depth, *row, no_wrap=True, overflow="ellipsis")

    def _build_status_line(self, active: Sequence[_Work], width: int) -> Text:
        """Build `round 7 of 30 · Coder > write_code · 12,345 tokens · $0.02 · 1:23`, shortened to the width."""
        elapsed_s = time.monotonic() - self._began
        start = self._describe_round()
        activity = self._name_activity(active)
        facts = self._fit_facts(start, activity, _format_clock(elapsed_s), width - 2)
        spinner = _SPINNER[int(elapsed_s / _FRAME_S) % len(_SPINNER)]
        text = escape_controls(" · ".join(facts))
        return Text.assemble((f"{spinner} ", "cyan"), (text, "bold"), no_wrap=True, overflow="ellipsis")

    def _describe_round(self) -> str:
        number = self._work.rounds
        if not self._work.running:  # between two rounds, show the next one
            number += 1
        max_round = self._spec.max_round
        number = max(min(number, max_round), 1)
        return f"round {number} of {max_round}"

    def _name_activity(self, active: Sequence[_Work]) -> str:
        """Name the sub-bosses at work, and what the innermost boss does."""
        names = [work.name for work in active[1:]]
        calls = ", ".join(running.call.name for running in active[-1].running.values())
        activity = self._activity.partition(":")[0]
        names.append(calls or activity or "thinking")
        return " \u203a ".join(names)

    def _describe_usage(self) -> list[str]:
        """Describe the tokens and their cost, each if there is any."""
        details = []
        tokens = sum(usage.total_tokens for usage in self._usage.values())
        if tokens:
            details.append(f"{tokens:,} tokens")
        cost_usd = compute_cost_usd(self._usage)
        if cost_usd:
            details.append(f"${cost_usd:.2f}")
        return details

    def _fit_facts(self, start: str, activity: str, end: str, room: int) -> list[str]:
        """Return the facts, without tokens and cost and with a shorter activity where the room needs it."""
        details = self._describe_usage()
        while details and cell_len(" · ".join([start, activity, *details, end])) > room:
            details.pop(0)
        others = " · ".join([start, "", *details, end])
        activity_room = max(room - len(others), _MIN_COLUMNS)
        if len(activity) > activity_room:
            activity = f"…{activity[1 - activity_room :]}"
        return [start, activity, *details, end]


def _describe_action(call: ToolCall, room: int) -> str:
    """Describe the arguments of a call; of `finish`, only the summary."""
    if call.name == FINISH:
        summary = call.parse_arguments().get("summary")
        if summary:
            return to_one_line(str(summary), room)
    return describe_call(call, room)


def _find_reason(body: Sequence[str], notes: Sequence[str]) -> str:
    """Return the reason of a failure: the notes and the last line, or else the first line."""
    lines = [line.strip() for line in body if line.strip() and not _UNFINISHED.match(line)]
    if notes:
        return " · ".join([*notes, *lines[-1:]])
    return lines[0] if lines else ""


def _format_row(text: str) -> Text:
    return Text(text, "dim", no_wrap=True, overflow="ellipsis")


def _format_clock(elapsed_s: float) -> str:
    minutes, seconds = divmod(int(elapsed_s), 60)
    return f"{minutes}:{seconds:02}"
