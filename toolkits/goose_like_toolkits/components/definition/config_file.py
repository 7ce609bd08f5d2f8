"""The values that a session needs of a config.yaml, validated."""

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field

from goose_like.core.message import FrozenModel

from .coordinates import Coordinates, build_error, check_part
from .prompt import Prompt

GroupId = Annotated[str, BeforeValidator(partial(check_part, "group_id"))]
ArtifactId = Annotated[str, BeforeValidator(partial(check_part, "artifact_id"))]
Version = Annotated[str, BeforeValidator(partial(check_part, "version"))]


def _to_text(value: Any) -> str:
    if isinstance(value, list | dict):
        raise build_error("expected text, not a list or mapping; put it in quotes")
    return "" if value is None else str(value).strip()


def _to_words(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


def _to_list(value: Any) -> Any:
    return () if value is None else value


def _to_mapping(value: Any) -> Any:
    return {} if value is None else value


_Text = Annotated[str, BeforeValidator(_to_text)]
_Word = Annotated[str, Field(pattern=r"\S")]
_Words = Annotated[tuple[_Word, ...], BeforeValidator(_to_words), Field(min_length=1)]
_Values = Annotated[dict[str, Any], BeforeValidator(_to_mapping)]


class Command(FrozenModel):
    """A command. `parameter` and `response` are schemas of `grammar`; `arguments` is what a model sees."""

    name: str
    description: str
    parameter: dict[str, Any] | None = None
    is_required: bool = False
    response: dict[str, Any] | None = None
    arguments: dict[str, Any]


class Info(FrozenModel):
    """The part `info` of a config.yaml."""

    model_config = ConfigDict(extra="ignore")

    title: _Text = ""
    description: _Text = ""
    description_for_model: _Text = ""
    prompt: _Text = ""
    prompt_file_name: _Text = ""
    prompt_file_path: _Text = ""


class Setup(FrozenModel):
    """The part `setup` of a config.yaml; each entry of `pip` has the words of one installation."""

    model_config = ConfigDict(extra="ignore")

    package: Annotated[str, Field(pattern=r"^[^\W\d]\w*(\.[^\W\d]\w*)*$")]
    pip: Annotated[tuple[_Words, ...], BeforeValidator(_to_list)] = ()


class Definition(FrozenModel):
    """A component as its config.yaml describes it; `data` is the whole file."""

    model_config = ConfigDict(extra="ignore")

    group_id: GroupId
    artifact_id: ArtifactId
    version: Version
    type: Annotated[str, Field(pattern=r"\S")]
    as_plugin: Annotated[bool, Field(strict=True)]
    info: Annotated[Info, BeforeValidator(_to_mapping)] = Info()
    setup: Setup
    resource_type: _Text = ""
    config: _Values = {}
    commands: tuple[Command, ...] = ()
    data: dict[str, Any]

    @property
    def coordinates(self) -> Coordinates:
        """The coordinates of the component."""
        return Coordinates(self.group_id, self.artifact_id, self.version)

    @property
    def kind(self) -> str:
        """The `type` in lower case."""
        return self.type.strip().lower()

    @property
    def description(self) -> str:
        """The description; the one for models counts more."""
        return self.info.description_for_model or self.info.description

    @property
    def prompt(self) -> Prompt:
        """The source of the prompt."""
        info = self.info
        return Prompt(info.prompt, info.prompt_file_name, info.prompt_file_path)

    def get_name(self, config: Mapping[str, Any] | None = None) -> str:
        """Return the name: `name` of the effective configuration, `name` beside it, or the title."""
        effective = self.config if config is None else config
        name = effective.get("name") or self.data.get("name")
        return str(name) if name else self.info.title


def merge_config(own: Mapping[str, Any], outer: Mapping[str, Any]) -> dict[str, Any]:
    """Return a `config` with an outer one over it, as ConCopilot merges: mappings merge, lists and values replace."""
    merged = dict(own)
    for key, value in outer.items():
        former = merged.get(key)
        if isinstance(value, Mapping) and isinstance(former, Mapping):
            merged[key] = merge_config(former, value)
        else:
            merged[key] = value
    return merged
