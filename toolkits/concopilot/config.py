"""Config: what a profile says below `config:` of the toolkit `components`."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from goose_like.errors import ProfileError
from goose_like.message import Value
from goose_like.plugins import did_you_mean
from goose_like.source import in_words

MAX_TIMEOUT_S = 3600.0

_Text = Annotated[str, Field(min_length=1)]
_Switch = Annotated[bool, Field(strict=True)]


class Used(Value):
    """A component: by its coordinates, or by the `path` of its folder. `config` overrides that of its config.yaml."""

    group_id: _Text | None = None
    artifact_id: _Text | None = None
    version: Annotated[str, Field(min_length=1, strict=True)] | None = None
    path: _Text | None = None
    instance_id: Annotated[int, Field(strict=True)] | _Text | None = None
    config: dict[str, Any] = {}
    config_file: _Text | None = None
    config_folder: _Text | None = None

    @model_validator(mode="after")
    def _named_once(self) -> "Used":
        named = [self.group_id, self.artifact_id, self.version]
        if (self.path is None) == (None in named) or (self.path is not None and any(named)):
            raise PydanticCustomError("told", "give group_id, artifact_id and version of a component, or its path")
        return self


class Config(Value):
    """The keys; `tools` is the base class's. Relative folders are from the workspace on.

    `repositories` are folders or addresses beside the local one, `path` folders with components' packages,
    `dot_folders` those with a leading dot that components may use, `pip_params` words for pip, `real` whether the
    package `concopilot` itself is to be installed for them, `setup` whether anything is.
    """

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
            path = fault["loc"]
            if fault["type"] == "extra_forbidden":
                known = cls if len(path) == 1 else Used
                near = did_you_mean(str(path[-1]), known.model_fields)
                text = f"{'toolkit components' if len(path) == 1 else 'a component'} has no {path[-1]!r}; {near}"
            elif path and path[-1] == "version":
                text = f"version: write it as text, e.g. '1.0', not {fault['input']!r}"
            elif path[0] == "use" and len(path) == 2:
                text = f"expected a mapping with group_id, artifact_id and version, or path; not {fault['input']!r}"
            else:
                text = in_words(fault, "the config of 'components'")
            raise ProfileError(text, ("config", *path)) from error
