"""A boss, and one run of it: a goal in, an outcome out, with result, summary and status in every case."""

import asyncio
from collections.abc import Awaitable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Literal, get_args

from goose_like.agent.exchange import Exchange
from goose_like.core.events import TurnFinished
from goose_like.core.history import History
from goose_like.core.message import FrozenModel, Message, Utf8Text
from goose_like_toolkits.boss.memory.log import list_entries
from goose_like_toolkits.boss.python_flow import Detection, Flow, FlowBranch
from goose_like_toolkits.boss.spec import DEFAULT_NAME, BossSpec

Status = Literal["finished", "max_round", "budget", "interrupted", "failed"]

_STATUSES: dict[str, Status] = {"step_limit": "max_round", "budget": "budget", "cancelled": "interrupted"}
_SHOWN_ACTIONS = 10
_RESUME_TEXT = "Continue with the goal, from the point that your memory shows."

Part = Literal["Planner", "Controller", "MemoryReading", "MemoryWriting"]
"""A part of a boss that a flow of a program may replace."""

PARTS: tuple[Part, ...] = get_args(Part)


@dataclass(frozen=True, slots=True)
class Boss:
    """The description of a boss, with the flows that a program adds.

    `flows` and `bosses` are branches by name. `parts` are flows in place of the boss's own parts. `detection` decides
    between controller and executor. `former_log` is a log of earlier work, shown above the log file.
    """

    spec: BossSpec
    flows: Mapping[str, FlowBranch] = field(default_factory=dict)
    bosses: Mapping[str, "Boss"] = field(default_factory=dict)
    parts: Mapping[Part, Flow] = field(default_factory=dict)
    detection: Detection | None = None
    former_log: str = ""

    def get_sub_boss(self, name: str) -> "Boss | None":
        """Return the boss of a branch, or None. The branch gives it the name and description that it lacks."""
        branch = self.spec.branches.get(name)
        if branch is None or branch.boss is None:
            return None
        boss = self.bosses.get(name) or Boss(branch.boss)
        changes = {"description": boss.spec.description or branch.description}
        if boss.spec.name == DEFAULT_NAME:
            changes["name"] = name
        return replace(boss, spec=boss.spec.model_copy(update=changes))


class Outcome(FrozenModel):
    """The end of a boss's work. `result` is for the caller, `summary` for the caller's log."""

    result: Utf8Text
    summary: Utf8Text
    status: Status

    @property
    def status_text(self) -> str:
        """The status in words."""
        return self.status.replace("_", " ")


def build_outcome(history: History) -> Outcome:
    """Return the outcome of the newest turn. Without `finish`, list the newest actions."""
    if history.has_final_result:
        return _read_final_result(history)
    end = history.last_turn or TurnFinished(reason="cancelled")
    status = _STATUSES.get(end.reason, "failed")
    problem = status.replace("_", " ")
    reason = describe_end(history)
    if end.reason == "stop":
        reason = "it named no action"
    if reason:
        problem += f": {reason}"
    heading = f"not finished ({problem})"
    lines = [heading]
    last = history.messages[-1] if history.messages else Message.user("")
    words = last.text.strip()
    if words and last.role == "assistant":
        lines.append(f"said last: {words}")
    actions = [entry.line for entry in list_entries(history)]
    if actions:
        lines.append(f"the newest of {len(actions)} actions:")
        lines += actions[-_SHOWN_ACTIONS:]
    else:
        lines.append("no action was taken")
    return Outcome(result="\n".join(lines), summary=f"{heading} after {len(actions)} actions", status=status)


def _read_final_result(history: History) -> Outcome:
    # A reminder may follow the result.
    newest_first = (message.tool_results for message in reversed(history.messages))
    final = next(result for result in chain.from_iterable(newest_first) if result.is_final)
    return Outcome(result=final.output, summary=final.replacement or final.output, status="finished")


def describe_end(history: History) -> str:
    """Return the reason for the end of the newest turn, or an empty string."""
    end = history.last_turn
    if end is None:
        return ""
    if end.reason == "step_limit":
        return f"round {count_rounds(history)} was the last"
    return end.detail


def count_rounds(history: History, end: int | None = None) -> int:
    """Count the rounds of all turns, up to the message `end`."""
    return sum(message.role == "assistant" for message in history.messages[:end])


class BossRun:
    """One boss at work. `active_runs` are all bosses at work, the outermost first."""

    def __init__(self, name: str, exchange: Exchange, active_runs: "list[BossRun]") -> None:
        self.name = name
        self.history = exchange.history
        self._exchange = exchange
        self._active_runs = active_runs
        self._turn: asyncio.Task[TurnFinished] | None = None
        self._note: Awaitable[str] | None = None

    @property
    def exit_code(self) -> int:
        """Exit code of the newest turn."""
        return self.history.last_turn.exit_code if self.history.last_turn else 1

    @property
    def active_names(self) -> tuple[str, ...]:
        """Names of the bosses at work, the outermost first."""
        return tuple(run.name for run in self._active_runs)

    async def work(self, goal: str | Message) -> Outcome:
        """Work on a goal. A failure is an outcome too. Raise SessionError if the session file can't be written."""
        return await self._finish_turn(self._exchange.reply(goal))

    async def resume(self) -> Outcome:
        """Continue the goal of a former process. A finished goal returns its outcome again."""
        if self.history.is_in_turn:
            return await self._finish_turn(self._exchange.resume_turn())
        if self.history.has_final_result:
            return build_outcome(self.history)
        return await self.work(Message.user(_RESUME_TEXT))

    def stop_innermost(self, note: Awaitable[str]) -> bool:
        """Stop the innermost sub-boss, and give its caller the note. Return False if no sub-boss works."""
        inner = self._active_runs[-1]
        if inner is self or inner._note is not None:
            return False
        if inner._turn is None or not inner._turn.cancel():
            return False
        inner._note = note
        return True

    async def _finish_turn(self, turn: Coroutine[Any, Any, TurnFinished]) -> Outcome:
        self._turn = asyncio.create_task(turn)
        try:
            await self._turn
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self._note is None or (task and task.cancelling()):
                raise
            return _add_note(build_outcome(self.history), await self._note)
        return build_outcome(self.history)


def _add_note(outcome: Outcome, note: str) -> Outcome:
    heading = "the person ended it"
    if note.strip():
        heading += f" and says: {note}"
    return outcome.model_copy(update={"result": f"{heading}\n{outcome.result}", "summary": heading})
