"""The `boss` toolkit: hand a long goal to a boss from any profile."""

from typing import Any

from pydantic import ValidationError
from typing_extensions import override

from goose_like.config.yaml_source import describe_field_error
from goose_like.core.errors import ProfileError
from goose_like.toolkit import Notifier, Requirements, ToolError, Toolkit, TransientResult, tool
from goose_like_toolkits.boss.flow.boss import Boss
from goose_like_toolkits.boss.flow.setup import run_sub_boss

from .spec import BossSpec


class BossToolkit(Toolkit):
    """A boss for goals that need dozens of steps. `config` has the fields of `BossSpec`."""

    def __init__(self, notifier: Notifier, requires: Requirements, **kwargs: Any) -> None:
        super().__init__(notifier, requires, **kwargs)
        config = {key: value for key, value in self.config.items() if key != "tools"}
        try:
            self._boss = Boss(BossSpec.model_validate(config))
        except ValidationError as error:
            problem = error.errors()[0]
            text = describe_field_error(problem, "the boss")
            raise ProfileError(text, ("config", *problem["loc"])) from error

    @override
    def prompt(self) -> str:
        return "Give a goal that takes dozens of steps to `boss`: it plans, remembers in files, and reports its result."

    @tool(time_limit_s=None, resumable=True, kind="think", title="Reach the goal: {goal}")
    async def boss(self, goal: str) -> TransientResult:
        """Hand a long goal to a boss, who works round by round with a plan and a memory of its own.

        Args:
            goal: Everything the boss must know (it sees nothing of this conversation), and what to give back.
        """
        if not goal.strip():
            raise ToolError("the goal is empty; say what the boss must reach and what it must give back")
        return await run_sub_boss(self._boss, goal, self, self.profile)
