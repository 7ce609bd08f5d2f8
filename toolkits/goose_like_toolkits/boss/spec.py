"""The configuration of a boss: its memory files, branches and limits."""

from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, AliasChoices, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from goose_like.config.profile import ToolkitChoice
from goose_like.core.message import FrozenModel, Utf8Text
from goose_like.core.spelling import did_you_mean

PLAN = "plan"
LOGS = "logs"
LIBRARY = "code_library"
TESTS = "code_tests"
"""Names of the memory files with a meaning of their own. The controller reads all other files as plain text.

The controller does not see the tests. Without a path of their own, they lie beside the library.
"""

DEFAULT_FILES = {PLAN: "plan.md", LOGS: "logs.md", LIBRARY: "library.py"}
"""File names for memory without a path in the configuration."""

DEFAULT_NAME = "boss"

CONTROLLER_TOOLKIT = "boss_controller"

Action = Literal["ask_user", "re_plan", "update_plan", "write_code", "save_code", "run_code", "finish"]
"""Built-in branches. Every boss has `finish`; the others must be listed."""

FINISH: Action = "finish"

ACTIONS: tuple[Action, ...] = get_args(Action)


def _expand_names(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    return [{"name": one} if isinstance(one, str) else one for one in value]


ToolkitList = Annotated[tuple[ToolkitChoice, ...], BeforeValidator(_expand_names)]
"""Toolkits of a branch. A bare name stands for `{name: NAME}`."""


class Branch(FrozenModel):
    """One choice of the controller: the tools of some toolkits, another boss, or the built-in action of that name."""

    description: Utf8Text = ""
    toolkits: ToolkitList = ()
    boss: "BossSpec | None" = None


class RoleSettings(FrozenModel):
    """Extra directions for the planner or the controller, and the planner's model."""

    directions: Utf8Text = ""
    model: Literal["processor", "accelerator"] = "processor"


def _allow_empty_branches(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {name: {} if one is None else one for name, one in value.items()}


def _check_branches(branches: dict[str, Branch]) -> dict[str, Branch]:
    for name, branch in branches.items():
        if not branch.toolkits and not branch.boss and name not in ACTIONS:
            text = "{name} has neither `toolkits` nor a `boss`, and is no action; {hint}"
            context = {"name": repr(name), "hint": did_you_mean(name, ACTIONS)}
            raise PydanticCustomError("user_message", text, context)
    return branches


_Branches = Annotated[
    dict[str, Branch],
    BeforeValidator(_allow_empty_branches),
    AfterValidator(_check_branches),
]


class BossSpec(FrozenModel):
    """The description of a boss. Paths of memory files are relative to the working folder.

    Without `branches`, a boss gets the toolkits of the profile, plus the code actions if it has a code library.
    Without `planner`, it works without a plan. With `review_plan`, the user can change the plan before it is used.
    `tokens`, `cost_usd` and `time_s` are limits of this boss, inside the limits of its caller.
    """

    name: Utf8Text = DEFAULT_NAME
    description: Utf8Text = ""
    memory_files: dict[str, Utf8Text] = {}
    branches: _Branches = {}
    max_round: int = Field(default=30, ge=1, validation_alias=AliasChoices("max_round", "max_rounds"))
    early_exit_key: Utf8Text = "EARLY_EXIT"
    planner: RoleSettings | None = RoleSettings()
    review_plan: bool = False
    controller: RoleSettings = RoleSettings()
    tokens: int | None = Field(default=None, ge=1)
    cost_usd: float | None = Field(default=None, gt=0)
    time_s: float | None = Field(default=None, gt=0)


Branch.model_rebuild()
BossSpec.model_rebuild()
