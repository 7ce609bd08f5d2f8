"""The rounds of a controller: update its memory before each one, and tell the model where it stands."""

from collections.abc import Iterable, Mapping
from itertools import takewhile

from goose_like.core.errors import GooseLikeError
from goose_like.core.history import History
from goose_like_toolkits.boss.memory.log import cut_line
from goose_like_toolkits.boss.memory.prompt import MemoryPrompt
from goose_like_toolkits.boss.spec import BossSpec

from .outcome import count_rounds

_MAX_REMINDERS = 3


class Rounds:
    """The position of a controller in its rounds, and its memory."""

    def __init__(self, spec: BossSpec, history: History, memory: MemoryPrompt) -> None:
        self.memory = memory
        self._spec = spec
        self._history = history

    @property
    def goal(self) -> str:
        """The first message of the history."""
        return self._history.messages[self._history.turns[0].start].text

    @property
    def open_steps(self) -> list[int]:
        """Numbers of the plan's steps that are not done yet."""
        return [number for number, task in enumerate(self._history.plan, 1) if task.is_open]

    async def start(self) -> None:
        """Write the heading of the log and read the memory."""
        await self.memory.write_log(cut_line(self.goal.strip().split("\n")[0], 120))
        await self.memory.read()

    async def update(self) -> Mapping[str, str]:
        """Write the log and read the memory before a round. Return changes by other people, and problems."""
        if not self._history.turns:
            return {}
        problems: dict[str, None] = {}
        for step in (self.memory.write_log, self.memory.read):
            try:
                await step()
            except GooseLikeError as error:
                problems[str(error)] = None
        updates = {"memory": f"has a problem: {'; '.join(problems)}"} if problems else {}
        for name, diff in self.memory.take_edits().items():
            updates[self._spec.memory_files[name]] = f"changed by somebody else:\n{diff}"
        return updates

    def build_sections(self) -> list[tuple[str, str]]:
        """Return titles and texts of the memory, and of the next step."""
        number, max_round = count_rounds(self._history) + 1, self._spec.max_round
        last = " It is the last one: finish." if number == max_round else ""
        step = "Check whether the goal is reached; then finish."
        if open_steps := self.open_steps:
            step = f"Work on step {open_steps[0]} of the plan: {self._history.plan[open_steps[0] - 1].description}"
        return [*self.memory.build_sections(), ("Now", f"Round {number} of {max_round}.{last} {step}")]

    def build_reminder(self, tool_names: Iterable[str]) -> str | None:
        """Remind a controller that answered without a call. Return None after three reminders in a row."""
        messages = self._history.messages[self._history.turns[-1].start :]
        answers = reversed([message for message in messages if message.role == "assistant"])
        if len(list(takewhile(lambda message: not message.tool_calls, answers))) > _MAX_REMINDERS:
            return None
        names = ", ".join(tool_names)
        return (
            f"You named no action, and words alone do nothing. Call one: {names} or a tool; `finish` when you are done."
        )

    async def close(self) -> None:
        """Write the actions of the last round into the log."""
        if self._history.turns:
            await self.memory.write_log()
