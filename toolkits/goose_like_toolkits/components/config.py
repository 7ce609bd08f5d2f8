"""The settings of the toolkit `components` in a profile."""

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from goose_like.config.yaml_source import describe_field_error
from goose_like.core.errors import ProfileError
from goose_like.core.message import FrozenModel
from goose_like.core.spelling import did_you_mean

from .definition.config_file import ArtifactId, GroupId, Version
from .definition.coordinates import PARTS, build_error, check_part

_Text = Annotated[str, Field(pattern=r"\S")]
_Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
_Switch = Annotated[bool, Field(strict=True)]
_Instance = Annotated[int | str, BeforeValidator(partial(check_part, "instance_id"))]
_SECRET = {"pip_params", "config"}  # may hold a password


class Used(FrozenModel):
    """A component, by its coordinates or the `path` of its folder. `config` overrides that of its config.yaml."""

    group_id: GroupId | None = None
    artifact_id: ArtifactId | None = None
    version: Version | None = None
    path: _Text | None = None
    instance_id: _Instance | None = None
    config: dict[str, Any] = {}
    config_file: _Text | None = None
    config_folder: _Text | None = None

    @model_validator(mode="after")
    def _check_way(self) -> "Used":
        given = [part for part in PARTS if getattr(self, part) is not None]
        wanted_count = len(PARTS) if self.path is None else 0
        if len(given) != wanted_count:
            raise build_error("name a component by group_id, artifact_id and version, or by the `path` of its folder")
        return self


class Config(FrozenModel):
    """The settings; docs/components.md describes each."""

    tools: list[str] | None = None
    use: tuple[Used, ...] = ()
    repositories: tuple[_Text, ...] = ()
    path: tuple[_Text, ...] = ()
    dot_folders: tuple[_Text, ...] = ()
    network: _Switch = False
    variables: tuple[_Variable, ...] = ()
    llm: Literal["processor", "accelerator"] = "processor"
    timeout_s: Annotated[float, Field(strict=True, gt=0, le=3_600)] = 120.0
    asset_characters: Annotated[int, Field(strict=True, ge=200)] = 8_000
    pip_params: tuple[_Text, ...] = ()
    setup: _Switch = True

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> "Config":
        """Read the settings. Raise ProfileError with the place of what is wrong."""
        try:
            return cls.model_validate(dict(data))
        except ValidationError as error:
            problem: dict[str, Any] = dict(error.errors(include_url=False)[0])
            place = tuple(step for step in problem["loc"] if step != "[key]")
            problem["loc"] = place
            raise ProfileError(_describe_problem(problem), ("config", *place)) from error


def _describe_problem(problem: dict[str, Any]) -> str:
    place = problem["loc"]
    if problem["type"] in ("extra_forbidden", "invalid_key"):
        key = place[-1]
        model = Config if len(place) == 1 else Used
        hint = did_you_mean(str(key), model.model_fields)
        return f"unknown key {key!r}; {hint}"
    if not _SECRET.isdisjoint(place):
        problem = {**problem, "input": "(not shown)"}
    return describe_field_error(problem, "components")
