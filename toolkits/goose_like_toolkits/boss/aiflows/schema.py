"""The configuration format of aiflows 0.1.x: flows inside flows, and the key interfaces between them."""

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any

from pydantic import AliasChoices, Field, JsonValue, field_validator, model_validator

from goose_like.core.message import FrozenModel, Utf8Text
from goose_like.core.spelling import did_you_mean
from goose_like.core.tool import ToolError
from goose_like_toolkits.boss.python_flow import Flow, Payload, call_flow, get_flow_name, read_output
from goose_like_toolkits.boss.spec import ToolkitList

from .target import MISSING, is_from_aiflows

_IGNORED = """
query_message_prompt_template input_interface_initialized input_interface_non_initialized previous_messages
enable_cache user_id flow_endpoint flow_class_name flow_type private_keys keys_to_ignore_for_hash
keys_to_ignore_for_hash_flow_config keys_to_ignore_for_hash_flow_state keys_to_ignore_for_hash_input_data
clear_flow_namespace_on_run_end singleton request_multi_line_input_flag end_of_input_string n_api_retries
wait_time_between_retries persist_directory
"""
_IGNORED_KEYS = frozenset(_IGNORED.split())
"""Keys of aiflows that would change nothing here."""

_OUTPUT_KEY = "branch_output_data"
"""Key under which the interface of an Executor finds the output of a branch."""


class KeyInterface(FrozenModel):
    """Changes in the order of these fields. A key `a.b` is read inside `a`. `keys` is a bare list of names."""

    target: Any = Field(default=None, alias="_target_")
    keys: tuple[Utf8Text, ...] = ()
    keys_to_rename: dict[str, str] = {}
    keys_to_copy: dict[str, str] = {}
    keys_to_set: dict[str, JsonValue] = {}
    keys_to_select: tuple[str, ...] = ()
    keys_to_delete: tuple[str, ...] = ()
    additional_transformations: Any = None  # not applied

    @model_validator(mode="before")
    @classmethod
    def _expand(cls, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return {"keys": value}
        return value if isinstance(value, Mapping) else {}  # the name of a method

    @property
    def has_changes(self) -> bool:
        """True if a payload may change."""
        others = {"target", "keys", "additional_transformations"}
        return bool(self.model_dump(exclude=others, exclude_defaults=True))

    def apply(self, payload: Payload) -> Payload:
        """Return a changed copy of a payload. Missing keys are skipped; for select, raise ToolError."""
        for old, new in self.keys_to_rename.items():
            value = _find(payload, old)
            if value is not ...:
                others = {key: entry for key, entry in payload.items() if key != old}
                payload = {**others, new: value}
        for old, new in self.keys_to_copy.items():
            value = _find(payload, old)
            if value is not ...:
                payload = {**payload, new: value}
        payload = {**payload, **self.keys_to_set}
        for key in self.keys_to_select:
            if key not in payload:
                raise ToolError(f"no key {key!r} to select; {did_you_mean(key, payload)}")
        kept = set(self.keys_to_select or payload).difference(self.keys_to_delete)
        return {key: entry for key, entry in payload.items() if key in kept}


@dataclass(frozen=True, slots=True)
class AdaptedFlow:
    """A flow with changes to the keys of its input, and then to those of its output."""

    flow: Flow
    inputs: KeyInterface
    outputs: tuple[KeyInterface, ...]

    @property
    def name(self) -> str:
        """Name of the flow."""
        return get_flow_name(self.flow)

    async def run(self, input_data: Payload, /) -> Payload:
        """Return the changed output of the flow. Raise ToolError like `call_flow` and `KeyInterface.apply`."""
        given = await call_flow(self.flow, self.inputs.apply(input_data))
        output = read_output(given)
        output[_OUTPUT_KEY] = dict(output)
        for interface in self.outputs:
            output = interface.apply(output)
        return {key: value for key, value in output.items() if key != _OUTPUT_KEY}


class CommandConfig(FrozenModel):
    """Description and argument names of a branch, for the controller."""

    description: Utf8Text = ""
    input_args: tuple[Utf8Text, ...] = ()


class TopologyNode(FrozenModel):
    """One entry of a topology."""

    flow: Utf8Text
    goal: Utf8Text = ""
    input_interface: KeyInterface = KeyInterface()
    output_interface: KeyInterface = KeyInterface()
    reset: bool = False


class FlowConfig(FrozenModel):
    """A flow of any kind. `config` is the mapping as written, for the user's own class."""

    target: Any = Field(default=None, alias="_target_")
    config: dict[str, Any] = Field(default={}, alias="_config_")
    name: Utf8Text = ""
    description: Utf8Text = ""
    memory_files: dict[str, Utf8Text] = {}
    subflows_config: dict[str, "FlowConfig"] = {}
    topology: tuple[TopologyNode, ...] = ()
    max_round: int | None = Field(default=None, ge=1, validation_alias=AliasChoices("max_round", "max_rounds"))
    early_exit_key: Utf8Text | None = None
    commands: dict[str, CommandConfig] = {}
    input_interface: KeyInterface = KeyInterface()
    output_interface: KeyInterface = KeyInterface()
    toolkits: ToolkitList = ()

    # Not used here. The importer says so.
    backend: Any = None
    system_message_prompt_template: Any = None
    human_message_prompt_template: Any = None
    init_human_message_prompt_template: Any = None

    @model_validator(mode="before")
    @classmethod
    def _normalize(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            if value is None:
                return {}
            if callable(value) or hasattr(value, "run"):
                return {"_target_": value}
            return value
        # A tool's class stands in its backend or, in later versions, under another key.
        backend = value.get("backend")
        in_backend = backend.get("_target_") if isinstance(backend, Mapping) else None
        target = value.get("_target_") or value.get("flow_class_name") or in_backend
        unknown: Set[str] = _IGNORED_KEYS
        if "subflows_config" not in value or not is_from_aiflows(target):
            unknown = value.keys() - FLOW_KEYS
        known = {key: entry for key, entry in value.items() if key not in unknown}
        return {**known, "_target_": target, "_config_": dict(value)}

    @field_validator("memory_files", mode="before")
    @classmethod
    def _drop_placeholder(cls, value: Any) -> Any:
        return {} if value in (None, MISSING) else value


def _find(payload: Any, key: str) -> Any:
    """Return the value of a key such as `a` or `a.b`, or `...` if there is none."""
    for part in key.split("."):
        payload = payload.get(part, ...) if isinstance(payload, dict) else ...
    return payload


_FIELD_KEYS = {field.alias or name for name, field in FlowConfig.model_fields.items()}
FLOW_KEYS = {"max_rounds", *_FIELD_KEYS} - {"_config_"}

FlowConfig.model_rebuild()
