"""The picture of a boss at work: what was done scrolls away, plan, log and round stand below."""

import asyncio
import re
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import ValidationError
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text as Styled

from goose_like.core.events import (
    Answer,
    Event,
    Logged,
    MessageCompleted,
    PlanUpdated,
    Question,
    RunFinished,
    SessionStarted,
    SubagentEvent,
    Task,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnFinished,
    UsageRecorded,
    event_adapter,
)
from goose_like.core.history import INTERRUPTED, History
from goose_like.core.message import ToolResult, Usage
from goose_like.providers.prices import compute_cost_usd
from goose_like.terminal.escape import to_one_line, visible
from goose_like.terminal.interaction import PersonScreen, has_person
from goose_like.terminal.renderer import PLAN_TOOL, Screen
from goose_like.terminal.tool_call import FAILURE_NOTE, RunningCall, describe_call, parse_arguments
from goose_like_toolkits.boss.memory.log import Entry, entries

from .spec import BossSpec

_PLAN_ROWS = 10
_LOG_ROWS = 3
_TAIL_ROWS = 2
_FRAME_S = 0.1
_WIDEST = 110
_DOTS = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
# What stands at the beginning of the result of a boss below (lower.py).
_NOT_FINISHED = re.compile(r"\[.+: (max round|budget|interrupted|failed)\]$")
_BEYOND = " \u203a "


@dataclass(slots=True)
class _Work:
    """What is known of one boss. `below` are those that its calls run, by the call."""

    name: str
    spec: BossSpec | None
    is_headed: bool = False
    rounds: int = 0
    actions: int = 0
    plan: Sequence[Task] = ()
    log: deque[str] = field(default_factory=lambda: deque(maxlen=_LOG_ROWS))
    running: dict[str, RunningCall] = field(default_factory=dict)
    below: dict[str, "_Work"] = field(default_factory=dict)

    def inner(self, call_id: str) -> "_Work":
        """The one that this call runs."""
        if call_id not in self.below:
            name = self.running[call_id].call.name
            branch = self.spec.branches.get(name) if self.spec else None
            self.below[call_id] = _Work(name, branch.boss if branch else None)
        return self.below[call_id]

    def line(self) -> "Iterator[_Work]":
        """Itself, and who works for it now, each for the one before."""
        yield self
        if self.below:
            yield from next(reversed(self.below.values())).line()


class Picture(Screen):
    """Draws a boss and those below it; without a terminal a line for each action."""

    def __init__(self, console: Console, spec: BossSpec) -> None:
        super().__init__(console, says_answer=False)
        self._boss = _Work(spec.name, spec)
        self._memory = spec.memory_files
        self._spent: dict[str, Usage] = {}
        self._money = ""
        self._model = ""
        self._doing = ""
        self._began = time.monotonic()
        self._live: Live | None = None
        self._frame: asyncio.TimerHandle | None = None
        self._is_drawn = console.is_terminal and not console.is_dumb_terminal

    def open(self, history: History) -> None:
        """Shows what was so far, of a run that is gone on with."""
        self._boss.rounds = sum(message.role == "assistant" for message in history.messages)
        self._boss.plan = history.plan
        done = list(entries(history))
        self._boss.actions = len(done)
        self._boss.log.extend(entry.line for entry in done)
        self._spent = dict(history.usage)
        self._price()

    def notify(self, event: Event) -> None:
        match event:
            case SessionStarted(models=models):
                self._model = models["processor"]
                super().notify(event)
                for folder, files in self._places():
                    self._line(visible(f"  memory in {folder}: {', '.join(files)}"), "dim")
            case MessageCompleted(usage=usage):
                self._count(self._model, usage)
                self._take(self._boss, event)
            case UsageRecorded(model=model, usage=usage):
                self._count(model, usage)
            case PlanUpdated() | ToolStarted() | ToolProgress() | ToolFinished() | SubagentEvent():
                self._take(self._boss, event)
            case TurnFinished() | RunFinished():  # closing tells something, too, which draws again
                self._boss.running.clear()
                self._boss.below.clear()
                super().notify(event)
                self._stop()
                return
            case _:
                super().notify(event)
        self._draw()

    def _places(self) -> Iterator[tuple[str, list[str]]]:
        """The folders of the memory, and the files in each."""
        by_folder: dict[str, list[str]] = {}
        for file in self._memory.values():
            folder, _, name = file.rpartition("/")
            by_folder.setdefault(folder or ".", []).append(name)
        yield from by_folder.items()

    def pause(self) -> None:
        """Takes the lower part away, so that something else may use the terminal."""
        live, self._live = self._live, None
        if live:
            live.stop()

    # --- what happens, here or in an exchange below

    def _take(self, work: _Work, event: Event, depth: int = 0) -> None:
        match event:
            case MessageCompleted():
                work.rounds += 1
                self._doing = ""
            case PlanUpdated(tasks=tasks):
                work.plan = tasks
            case ToolStarted(call=call):
                work.running[call.id] = RunningCall(call, "", time.monotonic())
                self._doing = ""
            case ToolProgress(call_id=call_id, text=text) if call_id in work.running:
                for _ in work.running[call_id].add_output(text, _WIDEST):
                    pass  # it keeps them
            case ToolFinished(result=result) if result.call_id in work.running:
                self._ended(work, result, depth)
            case SubagentEvent(call_id=call_id, event=within) if call_id in work.running:
                self._take_nested(work, call_id, within, depth)
            case SubagentEvent(event={"type": "turn_started"}):
                self._doing = "planning"
            case Logged(text=text) if depth:
                for line in text.split("\n"):
                    self._line(Styled(f"{'  ' * depth}  {to_one_line(line, self._room(2 * depth + 2))}", "dim"))
            case _:
                pass

    def _take_nested(self, work: _Work, call_id: str, within: Mapping[str, object], depth: int) -> None:
        try:
            event = event_adapter.validate_python(within)
        except ValidationError:  # what another version's exchange tells
            return
        inner = work.inner(call_id)
        if not inner.is_headed and isinstance(event, ToolStarted | Logged):
            inner.is_headed = True
            running = work.running[call_id]
            what = describe_call(running.call, self._room(2 * depth + len(running.call.name) + 6))
            self._line(Styled.assemble(("  " * depth + "▸ ", "cyan"), (visible(running.call.name), "bold"), "  ", what))
        self._take(inner, event, depth + 1)

    def _ended(self, work: _Work, result: ToolResult, depth: int) -> None:
        """An action in one line; where it failed, why, in a second one."""
        running = work.running.pop(result.call_id)
        work.below.pop(result.call_id, None)
        if running.rest:
            list(running.add_output("\n", _WIDEST))
        body, notes = running.split_result(result.output)
        is_failure = result.is_error or any(map(FAILURE_NOTE.match, notes)) or any(map(_NOT_FINISHED.match, body[:1]))
        if result.output != INTERRUPTED:
            work.actions += 1
            work.log.append(Entry(work.actions, running.call, result, 0).line)
        name, took = visible(running.call.name), f"{time.monotonic() - (running.started_at or self._began):.1f} s"
        room = max(min(self._room(0), _WIDEST) - 2 * depth - len(name) - len(took) - 7, 8)
        if name == PLAN_TOOL and not is_failure and self._is_drawn:
            return  # the plan itself is drawn
        mark = ("✗ ", "red") if is_failure else ("✓ ", "green")
        told = parse_arguments(running.call).get("summary") if name == "finish" else None
        what = to_one_line(str(told), room) if told else describe_call(running.call, room)
        self._line(
            Styled.assemble("  " * depth, mark, (name, "bold"), f"  {what}" if what else "", (f" · {took}", "dim"))
        )
        lines = (line for line in body if not _NOT_FINISHED.match(line))  # why stands below it
        said = [line for line in map(str.strip, lines) if line]
        why = " · ".join([*notes, *said[-1:]] if notes else said[:1]) if is_failure else ""
        if why:
            self._line(Styled(f"{'  ' * depth}  {to_one_line(why, self._room(2 * depth + 3))}", "red"))

    def _count(self, model: str, usage: Usage) -> None:
        self._spent[model] = self._spent.get(model, Usage()) + usage
        self._price()

    def _price(self) -> None:
        cost = compute_cost_usd(self._spent)
        self._money = f"${cost:.2f}" if cost else ""

    # --- what stands below

    def _draw(self) -> None:
        """Draws the lower part soon, and again and again until it is taken away."""
        if self._is_drawn and self._frame is None:
            self._frame = asyncio.get_running_loop().call_later(_FRAME_S, self._show)

    def _show(self) -> None:
        self._frame = asyncio.get_running_loop().call_later(_FRAME_S, self._show)
        if self._live is None:
            self._live = Live(console=self.console, auto_refresh=False, transient=True, redirect_stdout=False)
            self._live.start()
        self._live.update(Group(*self._below(self.console.width - 1)), refresh=True)

    def _stop(self) -> None:
        self.pause()
        if self._frame:
            self._frame.cancel()
            self._frame = None

    def _below(self, width: int) -> Iterator[RenderableType]:
        """Plans, the newest of the log, what the running action prints, and the line that says where all stands."""
        line = list(self._boss.line())
        planned = [(depth, work.plan) for depth, work in enumerate(line) if work.plan]
        yield Styled("")
        for depth, plan in planned:
            for row in self._plan_rows(plan, max(_PLAN_ROWS // len(planned), 2)):
                yield Styled.assemble("  " * depth, row, no_wrap=True, overflow="ellipsis")
        for entry in self._boss.log:
            yield Styled(f"  {to_one_line(entry, width - 2)}", "dim", no_wrap=True)
        for running in line[-1].running.values():
            for output in running.last_lines(_TAIL_ROWS):
                yield Styled(f"  │ {to_one_line(output, width - 4)}", "dim", no_wrap=True)
        yield self._standing(line, width)

    def _standing(self, line: Sequence[_Work], width: int) -> Styled:
        """`round 7 of 30 · Coder > write_code · 12,345 tokens · $0.02 · 1:23`, as much of it as there is room for."""
        elapsed = time.monotonic() - self._began
        spec, acting = self._boss.spec, ", ".join(running.call.name for running in line[-1].running.values())
        names = [*(work.name for work in line[1:]), acting or self._doing.partition(":")[0] or "thinking"]
        tokens = sum(usage.total_tokens for usage in self._spent.values())
        seconds = int(elapsed)
        parts = {
            "round": f"round {self._round()} of {spec.max_round if spec else '?'}",
            "who": _BEYOND.join(names),
            "tokens": f"{tokens:,} tokens" if tokens else "",
            "money": self._money,
            "time": f"{seconds // 60}:{seconds % 60:02}",
        }
        for left_out in ("tokens", "money", ""):
            if cell_len(" · ".join(filter(None, parts.values()))) <= width - 2 or not left_out:
                break
            parts[left_out] = ""
        room = width - 2 - sum(cell_len(text) + 3 for key, text in parts.items() if text and key != "who")
        while len(names) > 1 and cell_len(parts["who"]) > room:
            names.pop(0)
            parts["who"] = _BEYOND.join(["…", *names])
        parts["who"] = to_one_line(parts["who"], max(room, 8))
        dot = _DOTS[int(elapsed / _FRAME_S) % len(_DOTS)]
        said = " · ".join(filter(None, parts.values()))
        return Styled.assemble((f"{dot} ", "cyan"), (visible(said), "bold"), no_wrap=True, overflow="ellipsis")

    def _round(self) -> int:
        """The round that it is in; between two of them the one that is being decided on."""
        most = self._boss.spec.max_round if self._boss.spec else self._boss.rounds + 1
        return max(min(self._boss.rounds + (not self._boss.running), most), 1)

    # --- what the plain screen does otherwise

    def _close(self, end: TurnFinished) -> None:
        if end.reason == "step_limit":
            end = end.model_copy(update={"detail": f"round {self._boss.rounds}, the last one"})
        super()._close(end)

    def _wait(self, text: str) -> None:
        self._doing = visible(text)

    def _tell_status(self, text: str) -> None:
        self._doing = visible(text)
        if not self.console.is_terminal:
            super()._tell_status(text)


class _PersonPicture(PersonScreen, Picture):
    """One that a person sits before: a question has the terminal to itself."""

    def __init__(self, console: Console, spec: BossSpec) -> None:
        Picture.__init__(self, console, spec)
        self._asking = asyncio.Lock()

    async def ask(self, question: Question) -> Answer:
        async with self._asking:  # Ctrl-C asks for a note beside what the boss asks
            return await super().ask(question)

    async def _answer(self, question: Question) -> Answer:
        self._stop()
        return await super()._answer(question)


def picture(spec: BossSpec) -> Picture:
    """What draws a boss on stderr, and asks there when somebody is there."""
    console = Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)
    return (_PersonPicture if has_person() else Picture)(console, spec)
