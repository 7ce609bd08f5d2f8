"""BossToolkit: long goals, handed to a boss."""

from typing import Any

from pydantic import ValidationError

from goose_like.core.errors import ProfileError
from goose_like.toolkit import Notifier, Requirements, ToolError, Toolkit, TransientResult, tool
from goose_like_toolkits.boss.flow.boss import Boss
from goose_like_toolkits.boss.flow.sub_boss import worked

from .spec import BossSpec


class BossToolkit(Toolkit):
    """A boss for goals that outlast one conversation: it plans, remembers in files, and works round by round.

    Its `config` are the fields of a boss (`spec.BossSpec`).
    """

    def __init__(self, notifier: Notifier, requires: Requirements, **kwargs: Any) -> None:
        super().__init__(notifier, requires, **kwargs)
        try:
            self._boss = Boss(BossSpec.model_validate({key: v for key, v in self.config.items() if key != "tools"}))
        except ValidationError as error:
            fault = error.errors()[0]
            where = ".".join(map(str, fault["loc"]))
            raise ProfileError(f"{where}: {fault['msg']}", ("config", *fault["loc"])) from error

    def prompt(self) -> str:
        """When to hand a goal on."""
        return "A goal that takes dozens of steps is for `boss`: it plans, remembers in files, and reports its result."

    @tool(alone=True, time_limit_s=None, resumes=True)
    async def boss(self, goal: str) -> TransientResult:
        """Have a long goal reached by a boss, who works round by round with a plan and a memory of its own.

        Args:
            goal: All that it must know (it sees nothing of this conversation), and what to give back.
        """
        if not goal.strip():
            raise ToolError("the goal is empty; say what is to be reached, and what to give back")
        return await worked(self._boss, goal, self, self.profile, [])
