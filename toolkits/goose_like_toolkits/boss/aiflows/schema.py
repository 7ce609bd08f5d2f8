"""What a configuration of aiflows 0.1.x says, as it is written there: flows within flows, and the ways between them."""

from collections.abc import Mapping
from typing import Any

from pydantic import Field, JsonValue, field_validator, model_validator
from pydantic_core import PydanticCustomError

from goose_like.config.profile import ToolkitChoice
from goose_like.core.message import FrozenModel, Utf8Text
from goose_like_toolkits.boss.spec import Interface

from .catalog import MISSING, is_absent, is_theirs


class Command(FrozenModel):
    """What a controller is told of a branch."""

    description: Utf8Text = ""
    input_args: tuple[Utf8Text, ...] = ()


class Way(FrozenModel):
    """An interface as it is written: a bare list has the keys that a flow takes or gives."""

    target: Any = Field(default=None, alias="_target_")
    keys: tuple[Utf8Text, ...] = ()
    keys_to_rename: dict[str, str] = {}
    keys_to_copy: dict[str, str] = {}
    keys_to_set: dict[str, JsonValue] = {}
    keys_to_select: tuple[str, ...] = ()
    keys_to_delete: tuple[str, ...] = ()
    keys_to_unpack: tuple[str, ...] = ()
    additional_transformations: tuple[dict[str, Any], ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _bare_keys(cls, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return {"keys": value}
        return value if isinstance(value, Mapping) or value is None else {"_target_": value}

    @property
    def method(self) -> str:
        """The name of the method that is called here; empty for an interface of keys."""
        path = getattr(self.target, "__name__", "") or str(self.target or "")
        return "" if path.endswith("KeyInterface") or path == MISSING else path.rpartition(".")[2]

    def interface(self) -> tuple[Interface, list[str]]:
        """What it does, and the names of the transformations that are not known here."""
        unknown: list[str] = []
        further: list[Interface] = []
        for entry in self.additional_transformations:
            name = str(entry.get("_target_", "")).rpartition(".")[2]
            try:
                further += _further(name, entry)
            except (KeyError, TypeError, ValueError):  # another name, or not what it takes
                unknown.append(name or "one without a `_target_`")
        said = self.model_dump(exclude={"target", "keys", "additional_transformations"})
        return Interface(**said, additional_transformations=tuple(further)), unknown


def _further(name: str, entry: Mapping[str, Any]) -> list[Interface]:
    match name:
        case "KeyRename":
            return [Interface(keys_to_rename=entry["old_key2new_key"])]
        case "KeyCopy":
            return [Interface(keys_to_copy=entry["old_key2new_key"])]
        case "KeySet":
            return [Interface(keys_to_set=entry["key2value"])]
        case "KeySelect":
            return [Interface(keys_to_select=tuple(entry["keys_to_select"]))]
        case "KeyDelete":
            return [Interface(keys_to_delete=tuple(entry["keys_to_delete"]))]
        case "UnNesting":
            return [Interface(keys_to_unpack=(entry["input_key"],))]
        case "KeyMatchInput":  # a flow is given no other keys here
            return []
    raise ValueError(name)


class Node(FrozenModel):
    """One entry of a topology."""

    flow: Utf8Text
    goal: Utf8Text = ""
    input_interface: Way = Way()
    output_interface: Way = Way()
    reset: bool = False


class Flow(FrozenModel):
    """A flow of any kind. `config` is all of it where the `_target_` is somebody's own."""

    target: Any = Field(default=None, alias="_target_")
    name: Utf8Text = ""
    description: Utf8Text = ""
    memory_files: dict[str, Utf8Text] = {}
    subflows_config: dict[str, "Flow"] = {}
    topology: tuple[Node, ...] = ()
    max_round: int | None = Field(default=None, ge=1)
    max_rounds: int | None = Field(default=None, ge=1)
    early_exit_key: Utf8Text | None = None
    commands: dict[str, Command] = {}
    input_interface: Way = Way()
    output_interface: Way = Way()
    toolkits: tuple[ToolkitChoice, ...] = ()
    config: dict[str, Any] = Field(default={}, alias="_config_")

    # What is not used here: `MODELS` is told, the rest would change nothing.
    backend: Any = None
    system_message_prompt_template: Any = None
    human_message_prompt_template: Any = None
    init_human_message_prompt_template: Any = None
    query_message_prompt_template: Any = None
    input_interface_initialized: Any = None
    input_interface_non_initialized: Any = None
    previous_messages: Any = None
    enable_cache: Any = None
    user_id: Any = None
    flow_endpoint: Any = None
    flow_class_name: Any = None
    flow_type: Any = None
    private_keys: Any = None
    keys_to_ignore_for_hash: Any = None
    keys_to_ignore_for_hash_flow_config: Any = None
    keys_to_ignore_for_hash_flow_state: Any = None
    keys_to_ignore_for_hash_input_data: Any = None
    clear_flow_namespace_on_run_end: Any = None
    singleton: Any = None
    request_multi_line_input_flag: Any = None
    end_of_input_string: Any = None
    n_api_retries: Any = None
    wait_time_between_retries: Any = None
    persist_directory: Any = None

    @model_validator(mode="before")
    @classmethod
    def _own(cls, value: Any) -> Any:
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            return {"_target_": value} if callable(value) or hasattr(value, "run") else value
        target = value.get("_target_")
        if is_theirs(target):
            found = {**value, **_found(value)}
            is_used = not is_absent(found.get("_target_"))  # what is not used may say what it likes
            return found if is_used else {key: entry for key, entry in found.items() if key in OF_A_FLOW}
        known = OF_A_BOSS if "subflows_config" in value else OF_A_FLOW
        return {key: entry for key, entry in value.items() if key in known} | {"_config_": dict(value)}

    @field_validator("memory_files", mode="before")
    @classmethod
    def _still_to_be_given(cls, value: Any) -> Any:
        return {} if value in (None, MISSING) else value

    @field_validator("toolkits", mode="before")
    @classmethod
    def _toolkit_names(cls, value: Any) -> Any:
        return [{"name": one} if isinstance(one, str) else one for one in value] if isinstance(value, list) else value

    @model_validator(mode="after")
    def _one_limit(self) -> "Flow":
        if None not in (self.max_round, self.max_rounds) and self.max_round != self.max_rounds:
            raise PydanticCustomError(
                "told", f"`max_round` is {self.max_round} and `max_rounds` is {self.max_rounds}; give one of them"
            )
        return self


def _found(value: Mapping[str, Any]) -> dict[str, Any]:
    """A tool's class stands in its backend or, in later versions, under another key."""
    backend = value.get("backend")
    inner = backend.get("_target_") if isinstance(backend, Mapping) else None
    target = value.get("_target_") or value.get("flow_class_name") or inner
    return {} if target is None else {"_target_": target}


OF_A_FLOW = frozenset({"_target_", "name", "description", "input_interface", "output_interface"})
OF_A_BOSS = frozenset({field.alias or name for name, field in Flow.model_fields.items()} - {"_config_"})

Flow.model_rebuild()
