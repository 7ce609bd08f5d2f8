"""What a boss is told: its memory, its branches, its limits."""

from typing import Any, Literal, get_args

from pydantic import AliasChoices, Field, JsonValue, model_validator

from goose_like.config.profile import ToolkitChoice
from goose_like.core.message import FrozenModel, Utf8Text

PLAN, LOGS, LIBRARY = "plan", "logs", "code_library"
"""The names of memory files that have a meaning; others are read to the controller as they are."""

FILES = {PLAN: "plan.md", LOGS: "logs.md", LIBRARY: "library.py"}
"""What these are called where nobody says it."""

CONTROLLER = "boss_controller"
"""The toolkit that a boss gives its controller."""

Action = Literal["ask_user", "re_plan", "update_plan", "write_code", "save_code", "run_code", "finish"]
"""The branches that every boss knows by their names; `finish` is there without being named."""

FINISH: Action = "finish"

ACTIONS: tuple[Action, ...] = get_args(Action)


class Interface(FrozenModel):
    """What is done to a payload's keys between two flows, in this order (aiflows: `KeyInterface`)."""

    keys_to_rename: dict[str, str] = {}
    keys_to_copy: dict[str, str] = {}
    keys_to_set: dict[str, JsonValue] = {}
    additional_transformations: tuple["Interface", ...] = ()
    keys_to_select: tuple[str, ...] = ()
    keys_to_delete: tuple[str, ...] = ()
    keys_to_unpack: tuple[str, ...] = ()


class Branch(FrozenModel):
    """What a controller may choose: the tools of some toolkits, another boss, or, with neither, what its name says.

    Its name is one of `ACTIONS`, or one that a flow of the Python API was given under. `parameters` are the names of
    that flow's arguments.
    """

    description: Utf8Text = ""
    toolkits: tuple[ToolkitChoice, ...] = ()
    boss: "BossSpec | None" = None
    parameters: tuple[Utf8Text, ...] = ()
    input_interface: Interface = Interface()
    output_interface: Interface = Interface()

    @model_validator(mode="before")
    @classmethod
    def _toolkit_names(cls, value: Any) -> Any:
        if value is None:
            return {}
        if isinstance(value, dict) and isinstance(value.get("toolkits"), list):
            named = [{"name": one} if isinstance(one, str) else one for one in value["toolkits"]]
            return {**value, "toolkits": named}
        return value


class Part(FrozenModel):
    """What is said to the planner or the controller beside what they are told anyway, and which model that is."""

    directions: Utf8Text = ""
    model: Literal["processor", "accelerator"] = "processor"


class BossSpec(FrozenModel):
    """A boss. Paths of memory files are those of the folder that it works in.

    Without `branches` these are the toolkits of the profile and, with a code library, what is done with one.
    `planner` None: there is no plan. With `review_plan` the person is asked what to change in it before it counts.
    `tokens`, `cost_usd` and `time_s` are this boss's own limits, within those of its caller.
    """

    name: Utf8Text = "boss"
    description: Utf8Text = ""
    memory_files: dict[str, Utf8Text] = {}
    branches: dict[str, Branch] = {}
    max_round: int = Field(default=30, ge=1, validation_alias=AliasChoices("max_round", "max_rounds"))
    early_exit_key: Utf8Text = "EARLY_EXIT"
    planner: Part | None = Part()
    review_plan: bool = False
    controller: Part = Part()
    tokens: int | None = Field(default=None, ge=1)
    cost_usd: float | None = Field(default=None, gt=0)
    time_s: float | None = Field(default=None, gt=0)


Interface.model_rebuild()
Branch.model_rebuild()
BossSpec.model_rebuild()
