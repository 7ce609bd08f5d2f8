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
from goose_like.core.message import ToolResult, Usage
from goose_like.providers.prices import compute_cost_usd
from goose_like.terminal.escape import escape_controls, to_one_line
from goose_like.terminal.renderer import Renderer, is_failed
from goose_like.terminal.run_screen import Screen
from goose_like.terminal.tool_call import RunningCall, describe_call
from goose_like.terminal.wrap import ConsoleLines
from goose_like_toolkits.boss.flow.boss import count_rounds
from goose_like_toolkits.boss.memory.log import LogEntry, list_entries

from .spec import BossSpec

_PLAN_ROWS = 10
_LOG_ROWS = 3
_OUTPUT_ROWS = 2
_FRAME_S = 0.1
_MAX_COLUMNS = 110
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_UNFINISHED = re.compile(r"\[.+: (max round|budget|interrupted|failed)\]$")
"""First line in the result of a sub-boss that did not finish (see `run_sub_boss`)."""


@dataclass(slots=True)
class _Work:
    """The state of one boss. `children` are the bosses that its running calls started, by call."""

    name: str
    spec: BossSpec | None
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
            branch = self.spec.branches.get(name) if self.spec else None
            self.children[call_id] = _Work(name, branch.boss if branch else None)
        return self.children[call_id]

    def walk(self) -> "Iterator[_Work]":
        """Yield this boss, the boss at work for it, and so on."""
        yield self
        if self.children:
            yield from next(reversed(self.children.values())).walk()


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
            case events.MessageCompleted(usage=usage):
                self._add_usage(self._model, usage)
                self._update(self._work, event)
            case events.UsageRecorded(model=model, usage=usage):
                self._add_usage(model, usage)
            case events.ToolStarted() | events.ToolProgress() | events.ToolFinished():
                self._update(self._work, event)
            case events.PlanUpdated() | events.SubagentEvent():
                self._update(self._work, event)
            case events.TurnFinished() | events.RunFinished():
                self._finish(event)
                return
            case events.ThinkingDelta() | events.Interjected() | events.StateSaved() | events.ModeRestricted():
                pass
            case events.PromptRecorded() | events.PromptChanged():
                pass
            case _:
                self.renderer.print_event(event)
        self._schedule_frame()

    @override
    def pause(self) -> None:
        if self._frame:
            self._frame.cancel()
            self._frame = None
        live, self._live = self._live, None
        if live:
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

    def _update(self, work: _Work, event: events.Event, depth: int = 0) -> None:
        """Apply an event of a boss at this depth: 0 is the outermost boss."""
        match event:
            case events.SessionStarted(displays=displays):
                work.displays = displays
            case events.MessageCompleted():
                work.rounds += 1
                self._activity = ""
            case events.PlanUpdated(tasks=tasks):
                work.plan = tasks
            case events.ToolStarted(call=call):
                display = work.displays.get(call.name, "whole")
                work.running[call.id] = RunningCall(call, "", time.monotonic(), display=display)
                self._activity = ""
            case events.ToolProgress(call_id=call_id, text=text, skipped_line_count=count) if call_id in work.running:
                work.running[call_id].skip_lines(count)
                work.running[call_id].add_output(text, _MAX_COLUMNS)
            case events.ToolFinished(result=result) if result.call_id in work.running:
                self._finish_action(work, result, depth)
            case events.SubagentEvent(call_id=call_id, event=inner) if call_id in work.running:
                self._update_child(work, call_id, inner, depth)
            case events.Status(text=text):
                self._activity = escape_controls(text)
            case events.Logged(text=text) if depth:
                self._write_lines(text, depth)
            case events.FileChanged(diff=diff) if depth and diff:
                self._write_lines(diff, depth)
            case _:
                pass

    def _write_lines(self, text: str, depth: int) -> None:
        for line in text.split("\n"):
            self._write(f"{'  ' * depth}  {to_one_line(line, self._get_room(2 * depth + 2))}", "dim")

    def _update_child(self, work: _Work, call_id: str, event: events.Event, depth: int) -> None:
        child = work.get_child(call_id)
        if not child.has_heading and isinstance(event, events.ToolStarted | events.Logged | events.FileChanged):
            child.has_heading = True
            call = work.running[call_id].call
            text = describe_call(call, self._get_room(2 * depth + len(call.name) + 6))
            self._write(Text.assemble(("  " * depth + "▸ ", "cyan"), (escape_controls(call.name), "bold"), "  ", text))
        self._update(child, event, depth + 1)

    def _finish_action(self, work: _Work, result: ToolResult, depth: int) -> None:
        """Print a finished action on one line, and after a failure its reason on a second one."""
        running = work.running.pop(result.call_id)
        work.children.pop(result.call_id, None)
        if running.rest:
            running.add_output("\n", _MAX_COLUMNS)
        body, notes = running.split_result(result.output)
        is_failure = is_failed(result, notes) or any(map(_UNFINISHED.match, body[:1]))
        if not result.output.startswith(INTERRUPTED):
            work.actions += 1
            work.log.append(LogEntry(work.actions, running.call, result, 0).line)
        if running.display == "nothing" and not is_failure and self._is_drawn:
            return  # the plan itself is drawn
        self._write(self._format_action(running, is_failure, depth))
        if is_failure:
            lines = [line.strip() for line in body if line.strip() and not _UNFINISHED.match(line)]
            reason = " · ".join([*notes, *lines[-1:]] if notes else lines[:1])
            if reason:
                self._write(f"{'  ' * depth}  {to_one_line(reason, self._get_room(2 * depth + 3))}", "red")

    def _format_action(self, running: RunningCall, is_failure: bool, depth: int) -> Text:
        name = escape_controls(running.call.name)
        took = f"{time.monotonic() - (running.started_at or self._began):.1f} s"
        room = max(min(self._get_room(0), _MAX_COLUMNS) - 2 * depth - len(name) - len(took) - 7, 8)
        summary = running.call.parse_arguments().get("summary") if running.call.name == "finish" else None
        text = to_one_line(str(summary), room) if summary else describe_call(running.call, room)
        mark = ("✗ ", "red") if is_failure else ("✓ ", "green")
        return Text.assemble("  " * depth, mark, (name, "bold"), f"  {text}" if text else "", (f" · {took}", "dim"))

    def _add_usage(self, model: str, usage: Usage) -> None:
        self._usage[model] = self._usage.get(model, Usage()) + usage

    def _write(self, text: str | Text, style: str = "") -> None:
        self.renderer.lines.write_line(Text(text, style) if isinstance(text, str) else text)

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
        plans = [(depth, work.plan) for depth, work in enumerate(active) if work.plan]
        yield Text("")
        for depth, plan in plans:
            for row in self.renderer.format_plan_rows(plan, max(_PLAN_ROWS // len(plans), 2)):
                yield Text.assemble("  " * depth, *row, no_wrap=True, overflow="ellipsis")
        for entry in self._work.log:
            yield Text(f"  {to_one_line(entry, width - 2)}", "dim", no_wrap=True)
        for running in active[-1].running.values():
            for line in running.get_excerpt(0, _OUTPUT_ROWS - 1):
                yield Text(f"  │ {to_one_line(line, width - 4)}", "dim", no_wrap=True)
        yield self._build_status_line(active, width)

    def _build_status_line(self, active: Sequence[_Work], width: int) -> Text:
        """Build `round 7 of 30 · Coder > write_code · 12,345 tokens · $0.02 · 1:23`, shortened to the width."""
        elapsed_s = time.monotonic() - self._began
        rounds = self._work.rounds + (not self._work.running)  # between two rounds, show the next one
        start = f"round {max(min(rounds, self._spec.max_round), 1)} of {self._spec.max_round}"
        end = f"{int(elapsed_s) // 60}:{int(elapsed_s) % 60:02}"
        tokens = sum(usage.total_tokens for usage in self._usage.values())
        cost_usd = compute_cost_usd(self._usage)
        details = [f"{tokens:,} tokens"] * bool(tokens) + [f"${cost_usd or 0:.2f}"] * bool(cost_usd)
        calls = ", ".join(running.call.name for running in active[-1].running.values())
        activity = calls or self._activity.partition(":")[0] or "thinking"
        names = " \u203a ".join([*(work.name for work in active[1:]), activity])
        while details and cell_len(" · ".join([start, names, *details, end])) > width - 2:
            details.pop(0)
        room = max(width - 2 - len(" · ".join([start, "", *details, end])), 8)
        names = names if len(names) <= room else f"…{names[1 - room :]}"
        spinner = _SPINNER[int(elapsed_s / _FRAME_S) % len(_SPINNER)]
        text = escape_controls(" · ".join([start, names, *details, end]))
        return Text.assemble((f"{spinner} ", "cyan"), (text, "bold"), no_wrap=True, overflow="ellipsis")
