"""A boss, and one run of it: a goal in, an outcome out."""

import asyncio
from collections.abc import Awaitable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

from goose_like.agent.exchange import Exchange
from goose_like.core.events import TurnFinished
from goose_like.core.message import Message
from goose_like.providers.base import Model
from goose_like_toolkits.boss.memory.prompt import ReadMemory, WriteEntry
from goose_like_toolkits.boss.spec import BossSpec

from .executor import Detect, Executor
from .outcome import Outcome, build_outcome

_RESUME_TEXT = "Continue with the goal, from the point that your memory shows."


@dataclass(frozen=True, slots=True)
class Boss:
    """The description of a boss, with the Python parts that a program adds.

    `flows` and `bosses` are branches by name. `detect` decides between controller and executor. `planner` and
    `controller` are models in place of the profile's. `read_memory` and `write_entry` replace reading and logging.
    """

    spec: BossSpec
    flows: Mapping[str, Executor] = field(default_factory=dict)
    bosses: Mapping[str, "Boss"] = field(default_factory=dict)
    detect: Detect | None = None
    planner: Model | None = None
    controller: Model | None = None
    read_memory: ReadMemory | None = None
    write_entry: WriteEntry | None = None

    def get_sub_boss(self, name: str) -> "Boss | None":
        """Return the boss of a branch, or None."""
        spec = self.spec.branches[name].boss if name in self.spec.branches else None
        return self.bosses.get(name) or (Boss(spec) if spec else None)


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
        if inner is self or inner._turn is None or inner._note is not None or not inner._turn.cancel():
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
    heading = f"the person ended it and says: {note}" if note.strip() else "the person ended it"
    return outcome.model_copy(update={"result": f"{heading}\n{outcome.result}", "summary": heading})
