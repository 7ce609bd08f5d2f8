"""The settings of the toolkit `components` in a profile."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticCustomError

from goose_like.core.errors import ProfileError, UsageError
from goose_like.core.message import FrozenModel
from goose_like.core.spelling import did_you_mean

from .definition.coordinates import PARTS, require

MAX_TIMEOUT_S = 3600.0

_Text = Annotated[str, Field(pattern=r"\S")]
_Switch = Annotated[bool, Field(strict=True)]


class Used(FrozenModel):
    """A component, by its coordinates or the `path` of its folder. `config` overrides that of its config.yaml."""

    group_id: str | None = None
    artifact_id: str | None = None
    version: str | None = None
    path: _Text | None = None
    instance_id: int | str | None = None
    config: dict[str, Any] = {}
    config_file: _Text | None = None
    config_folder: _Text | None = None

    @field_validator(*PARTS, "instance_id", mode="before")
    @classmethod
    def _check_name(cls, value: Any, info: ValidationInfo) -> Any:
        if value is not None:
            try:
                require(str(info.field_name), value)
            except UsageError as error:
                raise _fail(str(error)) from error
        return value

    @model_validator(mode="after")
    def _check_way(self) -> "Used":
        missing = [part for part in PARTS if getattr(self, part) is None]
        if self.path is not None and len(missing) < len(PARTS):
            raise _fail("a component by its path and its coordinates at once; leave one of the two out")
        if self.path is None and missing:
            raise _fail(f"a component without {' and '.join(missing)}; give all three, or the `path` of its folder")
        return self


class Config(FrozenModel):
    """The settings; docs/components.md describes each."""

    tools: list[str] | None = None
    use: tuple[Used, ...] = ()
    repositories: tuple[_Text, ...] = ()
    path: tuple[_Text, ...] = ()
    dot_folders: tuple[_Text, ...] = ()
    network: _Switch = False
    llm: Literal["processor", "accelerator"] = "processor"
    timeout_s: Annotated[float, Field(strict=True, gt=0, le=MAX_TIMEOUT_S)] = 120.0
    asset_characters: Annotated[int, Field(strict=True, ge=200)] = 8_000
    pip_params: tuple[_Text, ...] = ()
    setup: _Switch = True

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> "Config":
        """Read the settings. Raise ProfileError with the place of what is wrong."""
        try:
            return cls.model_validate(dict(data))
        except ValidationError as error:
            problem = error.errors()[0]
            place = [step for step in problem["loc"] if step != "[key]"]
            raise ProfileError(_describe(problem), ("config", *place)) from error


_SECRET = {"pip_params", "config"}  # may hold a password
_EXAMPLES = {
    "tools": "a list of names of tools, e.g. [list_assets]",
    "use": "a list of components, e.g. [{path: word_count}]",
    "repositories": "a list of folders, e.g. [~/shared]",
    "path": "a list of folders, e.g. [src]",
    "dot_folders": "a list of names of folders, e.g. [.data]",
    "llm": "processor or accelerator",
    "timeout_s": f"a number of seconds above 0 and up to {MAX_TIMEOUT_S:g}",
    "asset_characters": "a whole number from 200 on",
    "pip_params": "a list of words for pip, e.g. [--no-index]",
}


def _fail(text: str) -> PydanticCustomError:
    return PydanticCustomError("user_message", "{text}", {"text": text})


def _describe(problem: Mapping[str, Any]) -> str:
    """Describe a problem in one sentence that begins with the key."""
    place = [step for step in problem["loc"] if step != "[key]"]
    keys = [str(step) for step in place if isinstance(step, str)]
    if problem["type"] in ("extra_forbidden", "invalid_key"):
        near = did_you_mean(str(place[-1]), (Config if len(place) == 1 else Used).model_fields)
        return f"{'toolkit components' if len(place) == 1 else 'a component'} has no {str(place[-1])!r}; {near}"
    if problem["type"] == "user_message":
        return str(problem["msg"]) if keys[0] == "use" else f"{keys[-1]}: {problem['msg']}"
    value = problem["input"]
    given = "nothing" if value is None else type(value).__name__ if {*keys} & _SECRET else repr(value)[:80]
    example = _EXAMPLES.get(".".join(keys), "") or f"{problem['msg'][0].lower()}{problem['msg'][1:]}"
    return f"{keys[-1]}: expected {example}, not {given}"
