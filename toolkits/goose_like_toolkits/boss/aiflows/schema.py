"""The configuration format of aiflows 0.1.x: flows inside flows, and the interfaces between them."""

from collections.abc import Mapping
from typing import Any

from pydantic import Field, JsonValue, field_validator, model_validator
from pydantic_core import PydanticCustomError

from goose_like.core.message import FrozenModel, Utf8Text
from goose_like_toolkits.boss.spec import KeyInterface, ToolkitList

from .catalog import MISSING, is_from_aiflows, is_unsupported

_IGNORED = """
query_message_prompt_template input_interface_initialized input_interface_non_initialized previous_messages
enable_cache user_id flow_endpoint flow_class_name flow_type private_keys keys_to_ignore_for_hash
keys_to_ignore_for_hash_flow_config keys_to_ignore_for_hash_flow_state keys_to_ignore_for_hash_input_data
clear_flow_namespace_on_run_end singleton request_multi_line_input_flag end_of_input_string n_api_retries
wait_time_between_retries persist_directory
"""
IGNORED_KEYS = frozenset(_IGNORED.split())
"""Keys of aiflows that would change nothing here."""


class CommandConfig(FrozenModel):
    """Description and argument names of a branch, for the controller."""

    description: Utf8Text = ""
    input_args: tuple[Utf8Text, ...] = ()


class InterfaceConfig(FrozenModel):
    """An interface as written: key changes, a method, or a bare list of the keys that a flow takes."""

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
    def _expand_forms(cls, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return {"keys": value}
        return value if isinstance(value, Mapping) or value is None else {"_target_": value}

    @property
    def method(self) -> str:
        """Name of the method to call, or an empty string for an interface of keys."""
        path = getattr(self.target, "__name__", "") or str(self.target or "")
        return "" if path.endswith("KeyInterface") or path == MISSING else path.rpartition(".")[2]

    def convert(self) -> tuple[KeyInterface, list[str]]:
        """Return the key changes, and the names of unknown transformations."""
        unknown: list[str] = []
        transformations: list[KeyInterface] = []
        for entry in self.additional_transformations:
            name = str(entry.get("_target_", "")).rpartition(".")[2]
            try:
                transformations += _convert_transformation(name, entry)
            except (KeyError, TypeError, ValueError):  # an unknown name, or wrong arguments
                unknown.append(name or "one without a `_target_`")
        keys = self.model_dump(exclude={"target", "keys", "additional_transformations"})
        return KeyInterface(**keys, additional_transformations=tuple(transformations)), unknown


def _convert_transformation(name: str, entry: Mapping[str, Any]) -> list[KeyInterface]:
    match name:
        case "KeyRename":
            return [KeyInterface(keys_to_rename=entry["old_key2new_key"])]
        case "KeyCopy":
            return [KeyInterface(keys_to_copy=entry["old_key2new_key"])]
        case "KeySet":
            return [KeyInterface(keys_to_set=entry["key2value"])]
        case "KeySelect":
            return [KeyInterface(keys_to_select=tuple(entry["keys_to_select"]))]
        case "KeyDelete":
            return [KeyInterface(keys_to_delete=tuple(entry["keys_to_delete"]))]
        case "UnNesting":
            return [KeyInterface(keys_to_unpack=(entry["input_key"],))]
        case "KeyMatchInput":  # flows get no other keys here
            return []
    raise ValueError(name)


class TopologyNode(FrozenModel):
    """One entry of a topology."""

    flow: Utf8Text
    goal: Utf8Text = ""
    input_interface: InterfaceConfig = InterfaceConfig()
    output_interface: InterfaceConfig = InterfaceConfig()
    reset: bool = False


class FlowConfig(FrozenModel):
    """A flow of any kind. `config` is the whole mapping if the `_target_` is the user's own class."""

    target: Any = Field(default=None, alias="_target_")
    name: Utf8Text = ""
    description: Utf8Text = ""
    memory_files: dict[str, Utf8Text] = {}
    subflows_config: dict[str, "FlowConfig"] = {}
    topology: tuple[TopologyNode, ...] = ()
    max_round: int | None = Field(default=None, ge=1)
    max_rounds: int | None = Field(default=None, ge=1)
    early_exit_key: Utf8Text | None = None
    commands: dict[str, CommandConfig] = {}
    input_interface: InterfaceConfig = InterfaceConfig()
    output_interface: InterfaceConfig = InterfaceConfig()
    toolkits: ToolkitList = ()
    config: dict[str, Any] = Field(default={}, alias="_config_")

    # Not used here. The importer says so.
    backend: Any = None
    system_message_prompt_template: Any = None
    human_message_prompt_template: Any = None
    init_human_message_prompt_template: Any = None

    @model_validator(mode="before")
    @classmethod
    def _normalize(cls, value: Any) -> Any:
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            return {"_target_": value} if callable(value) or hasattr(value, "run") else value
        target = value.get("_target_")
        if not is_from_aiflows(target):
            known = BOSS_KEYS if "subflows_config" in value else FLOW_KEYS
            known -= IGNORED_KEYS
            return {key: entry for key, entry in value.items() if key in known} | {"_config_": dict(value)}
        target = _find_target(value)
        # A flow that is not used may have keys of its own.
        ignored = value.keys() - FLOW_KEYS if is_unsupported(target) else IGNORED_KEYS
        kept = {key: entry for key, entry in value.items() if key not in ignored}
        return kept if target is None else kept | {"_target_": target}

    @field_validator("memory_files", mode="before")
    @classmethod
    def _drop_placeholder(cls, value: Any) -> Any:
        return {} if value in (None, MISSING) else value

    @model_validator(mode="after")
    def _check_round_limit(self) -> "FlowConfig":
        if None not in (self.max_round, self.max_rounds) and self.max_round != self.max_rounds:
            raise PydanticCustomError(
                "user_message",
                f"`max_round` is {self.max_round} and `max_rounds` is {self.max_rounds}; give one of them",
            )
        return self


def _find_target(value: Mapping[str, Any]) -> Any:
    # A tool's class stands in its backend or, in later versions, under another key.
    backend = value.get("backend")
    in_backend = backend.get("_target_") if isinstance(backend, Mapping) else None
    return value.get("_target_") or value.get("flow_class_name") or in_backend


FLOW_KEYS = frozenset({"_target_", "name", "description", "input_interface", "output_interface"})
BOSS_KEYS = IGNORED_KEYS | {field.alias or name for name, field in FlowConfig.model_fields.items()} - {"_config_"}

FlowConfig.model_rebuild()
