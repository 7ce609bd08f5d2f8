"""Config: what a profile says below `config:` of the toolkit `components`."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationError, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticCustomError

from goose_like.core.errors import ProfileError, UsageError
from goose_like.core.message import FrozenModel
from goose_like.core.spelling import did_you_mean
from goose_like_toolkits.components.described.coordinates import require
from goose_like_toolkits.components.repositories.settings import checked_address

MAX_TIMEOUT_S = 3600.0
_MIN_ASSET_CHARACTERS = 200

_Text = Annotated[str, Field(pattern=r"\S")]
_Switch = Annotated[bool, Field(strict=True)]


class Used(FrozenModel):
    """A component: by its coordinates, or by the `path` of its folder. `config` overrides that of its config.yaml."""

    group_id: str | None = None
    artifact_id: str | None = None
    version: str | None = None
    path: _Text | None = None
    instance_id: int | str | None = None
    config: dict[str, Any] = {}
    config_file: _Text | None = None
    config_folder: _Text | None = None

    @field_validator("group_id", "artifact_id", "version", "instance_id", mode="before")
    @classmethod
    def _is_name(cls, value: Any, of: ValidationInfo) -> Any:
        if value is not None:
            try:
                require(str(of.field_name), value)
            except UsageError as error:
                raise PydanticCustomError("user_message", "{text}", {"text": str(error)}) from error
        return value

    @model_validator(mode="after")
    def _named_once(self) -> "Used":
        named = {part: getattr(self, part) for part in ("group_id", "artifact_id", "version")}
        missing = [part for part, value in named.items() if value is None]
        if self.path is not None and len(missing) < len(named):
            raise PydanticCustomError(
                "user_message", "a component by its path and its coordinates at once; leave one of the two out"
            )
        if self.path is None and missing:
            text = f"a component without {' and '.join(missing)}; give all three, or the `path` of its folder"
            raise PydanticCustomError("user_message", "{text}", {"text": text})
        return self


class Config(FrozenModel):
    """The keys; `tools` is the base class's. Relative folders are from the workspace on.

    `repositories` are folders or addresses beside the local one, `path` folders with components' packages,
    `dot_folders` those with a leading dot that components may use, `pip_params` words for pip, `real` whether the
    package `concopilot` itself is to be installed for them, `setup` whether anything is.
    """

    tools: list[str] | None = None
    use: tuple[Used, ...] = ()
    repositories: tuple[Annotated[_Text, AfterValidator(checked_address)], ...] = ()
    path: tuple[_Text, ...] = ()
    dot_folders: tuple[_Text, ...] = ()
    network: _Switch = False
    llm: Literal["processor", "accelerator"] = "processor"
    timeout_s: Annotated[float, Field(strict=True, gt=0, le=MAX_TIMEOUT_S)] = 120.0
    asset_characters: Annotated[int, Field(strict=True, ge=_MIN_ASSET_CHARACTERS)] = 8_000
    pip_params: tuple[_Text, ...] = ()
    real: _Switch = False
    setup: _Switch = True

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> "Config":
        """
        Raises:
            ProfileError: a key or a value that makes no sense; its path is the key's.
        """
        try:
            return cls.model_validate(dict(data))
        except ValidationError as error:
            fault = error.errors()[0]
            place = [step for step in fault["loc"] if step != _KEY]
            raise ProfileError(_in_words(fault), ("config", *place)) from error


_SWITCHED = "true or false"
_TAKEN = {
    "tools": "a list of names of tools, e.g. [list_assets]",
    "use": "a list of components, e.g. [{path: word_count}]",
    "use.path": "the path of a component's folder, e.g. word_count",
    "use.config": "a mapping, which is laid over the component's own",
    "use.config_file": "the name of a file beside its config.yaml",
    "use.config_folder": "the path of a folder in your working directory",
    "repositories": "a list of folders and addresses, e.g. [~/shared]",
    "path": "a list of folders, e.g. [src]",
    "dot_folders": "a list of names of folders, e.g. [.data]",
    "network": _SWITCHED,
    "real": _SWITCHED,
    "setup": _SWITCHED,
    "llm": "processor or accelerator",
    "timeout_s": f"a number of seconds above 0 and up to {MAX_TIMEOUT_S:g}",
    "asset_characters": f"a whole number from {_MIN_ASSET_CHARACTERS} on",
    "pip_params": "a list of words for pip, e.g. [--no-index]",
}
"""What each key takes; those of coordinates are told by these."""

_UNSHOWN = {"repositories", "pip_params", "config"}
_CLIPPED = 80
_KEY = "[key]"
"""Behind a key that is the fault itself, in pydantic's words."""


def _in_words(fault: Mapping[str, Any]) -> str:
    """What is wrong with a key, and what to write there: one sentence that begins with the key."""
    path = fault["loc"]
    if path[-1] == _KEY:
        return f"config: its keys are text; write '{path[-2]}' in quotes, not {path[-2]}"
    keys = [str(step) for step in path if isinstance(step, str)]
    if fault["type"] in ("extra_forbidden", "invalid_key"):
        keys = [str(step) for step in path[::2]]  # between them are the places in lists
        near = did_you_mean(keys[-1], (Config if len(keys) == 1 else Used).model_fields)
        return f"{'toolkit components' if len(keys) == 1 else 'a component'} has no {keys[-1]!r}; {near}"
    if fault["type"] == "user_message":
        is_key_said = keys[0] == "use"  # by the parts of coordinates, or it is about several
        return str(fault["msg"]) if is_key_said else f"{keys[-1]}: {fault['msg']}"
    given = _given(keys, fault["input"])
    if keys == ["use"] and len(path) > 1:
        return f"use: expected a mapping with group_id, artifact_id and version, or path, not {given}"
    if isinstance(path[-1], int):
        return f"{keys[-1]}: {given} can't stand in it; write {_TAKEN[keys[-1]]}"
    return f"{keys[-1]}: expected {_TAKEN['.'.join(keys[:2])]}, not {given}"


def _given(keys: list[str], value: Any) -> str:
    """What stands there, as YAML calls it; of what may hold a password only its kind."""
    if value is None:
        return "nothing"
    if isinstance(value, str) and not value.strip():
        return "empty text"
    if isinstance(value, bool):
        return str(value).lower()
    kind = "a mapping" if isinstance(value, dict) else "a list" if isinstance(value, list) else "text"
    if kind != "text" or (isinstance(value, str) and {*keys} & _UNSHOWN):
        return kind
    said = repr(value)
    return said if len(said) <= _CLIPPED else said[: _CLIPPED - 3] + "..."
