"""What happens around each round of a boss: its memory is written and read, and it is told where it stands."""

from collections.abc import Mapping
from itertools import takewhile
from typing import Any

from goose_like.agent.exchange import OPEN
from goose_like.config.profile import Profile
from goose_like.core.errors import GooseLikeError, ProfileError
from goose_like.toolkit import Notifier, Requirements, Toolkit
from goose_like_toolkits.boss.memory.files import Memory
from goose_like_toolkits.boss.memory.log import cut
from goose_like_toolkits.boss.memory.prompt import Notes

from .boss import Boss, Run

_MOST_WORDS = 3


class Rounds(Toolkit):
    """What a controller's toolkit is given by its boss, and the memory from round to round."""

    def __init__(self, notifier: Notifier, requires: Requirements, **kwargs: Any) -> None:
        super().__init__(notifier, requires, **kwargs)
        if not isinstance(self.config.get("boss"), Boss):
            raise ProfileError("it is what a boss gives its controller; put `boss` into the profile")
        self._boss: Boss = self.config["boss"]
        self._profile: Profile = self.config["profile"]
        self._line: list[Run] = self.config["line"]
        self._spec = self._boss.spec
        memory = Memory(self._spec.memory_files, self.workspace, self.session, self.config.get("memory"))
        self._notes = Notes(
            memory,
            self.session.history,
            notifier,
            self.exchange_view,
            reading=self._boss.reading,
            writing=self._boss.writing,
        )

    async def begin(self) -> None:
        """The log's heading, and MemoryReading."""
        await self._notes.write(_first_line(self._goal))
        await self._notes.read()

    async def news(self) -> Mapping[str, str]:
        """MemoryWriting and MemoryReading, ahead of each round; what it gives is what others changed."""
        if not self.session.history.turns:
            return {}
        faults: dict[str, None] = {}
        for step in (self._notes.write, self._notes.read):
            try:
                await step()
            except GooseLikeError as error:
                faults[str(error)] = None
        told = {"memory": f"not as it should be: {'; '.join(faults)}"} if faults else {}
        edits = self._notes.edits().items()
        return told | {self._spec.memory_files[name]: f"changed by somebody else:\n{diff}" for name, diff in edits}

    def live(self) -> list[tuple[str, str]]:
        """The memory, and where in its rounds the controller is."""
        history = self.session.history
        had = sum(message.role == "assistant" for message in history.messages)
        last = " It is the last one: finish." if had + 1 == self._spec.max_round else ""
        left = self._open_steps
        step = "Check whether the goal is reached; then finish."
        if left:
            step = f"Work on step {left[0]} of the plan: {history.plan[left[0] - 1].description}"
        now = f"Round {had + 1} of {self._spec.max_round}.{last} {step}"
        return [*self._notes.told(), ("Now", now)]

    def demand(self) -> str | None:
        """An action, for some times in a turn; then it is given up."""
        history = self.session.history
        answers = [message for message in history.messages[history.turns[-1].start :] if message.role == "assistant"]
        idle = list(takewhile(lambda message: not message.tool_calls, reversed(answers)))
        if len(idle) > _MOST_WORDS:
            return None
        names = ", ".join(each.name for each in self.tools())
        return (
            f"You named no action, and words alone do nothing. Call one: {names} or a tool; `finish` when you are done."
        )

    async def close(self) -> None:
        """What was done in the last round goes into the log, too."""
        if self.session.history.turns:
            await self._notes.write()

    @property
    def _goal(self) -> str:
        history = self.session.history
        return history.messages[history.turns[0].start].text

    @property
    def _open_steps(self) -> list[int]:
        """The numbers of the plan's steps that are still to be done."""
        return [number for number, step in enumerate(self.session.history.plan, 1) if step.status in OPEN]


def _first_line(text: str) -> str:
    return cut(text.strip().split("\n")[0], 120)
