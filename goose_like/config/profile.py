"""Profiles: their schema, where they are found, and how they extend each other."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic_core import PydanticCustomError

from goose_like.core.entry_points import did_you_mean, list_entry_points, load_entry_point
from goose_like.core.errors import ProfileError
from goose_like.core.message import FrozenModel

from .paths import config_folder
from .trust import PROFILES, ProjectConfig, load_trusted_project
from .yaml_source import NO_DRAFTS, Drafts, YamlSource, describe_validation_error, parse_yaml, read_yaml

SandboxMode = Literal["read-only", "workspace", "workspace+network", "full"]
ApprovalMode = Literal["auto", "ask", "plan", "yolo"]


class ModelChoice(FrozenModel):
    """A model and how to speak to it. In YAML either `provider:model` or a mapping with these keys."""

    model: str = Field(description="provider:model, e.g. openai:gpt-5-mini or local")
    tools: Literal["native", "constrained"] = "native"
    base_url: str | None = None
    window: int | None = Field(default=None, gt=0, description="context length in tokens")
    max_output_tokens: int | None = Field(default=None, gt=0)
    temperature: float | None = Field(default=None, ge=0)
    images: bool = Field(default=True, description="whether it takes images, where its provider does")
    stall_s: float = Field(default=120.0, gt=0, description="longest silence within a stream")

    @property
    def provider(self) -> str:
        return self.model.partition(":")[0]

    @property
    def name(self) -> str:
        """The model's name at its provider; empty where the provider has but one (`local`)."""
        return self.model.partition(":")[2]


class ModeratorChoice(FrozenModel):
    name: str = "summarize"
    config: dict[str, Any] = {}


class ToolkitChoice(FrozenModel):
    """A toolkit, the toolkits it `requires` (its own name for each -> the name in this profile), its `config`."""

    name: str
    requires: dict[str, str] = {}
    config: dict[str, Any] = {}

    @field_validator("requires", mode="before")
    @classmethod
    def _is_mapping(cls, value: Any) -> Any:
        if isinstance(value, Mapping):
            return value
        name = value if isinstance(value, str) else "calendar"
        raise PydanticCustomError(
            "told",
            "expected a mapping of its own name for what it needs to a toolkit of this profile, e.g. "
            f"`requires: {{{name}: {name}}}`",
        )


class Limits(FrozenModel):
    """Where a turn ends by itself. None means no limit."""

    steps: int = Field(default=128, gt=0, description="model requests in one turn")
    cost_usd: float | None = Field(default=None, gt=0)
    tokens: int | None = Field(default=None, gt=0, description="input and output tokens of one turn")
    time_s: float | None = Field(default=None, gt=0)
    output_bytes: int = Field(default=16_000, ge=400, description="a longer tool output goes to a file")


_SHORT = {"processor": "model", "accelerator": "model", "moderator": "name"}
"""The key that is meant where a bare string stands for a mapping."""


_PROJECT_MAY = re.compile(
    r"extends|provider|(processor|accelerator)(\.(model|tools|window|max_output_tokens|temperature|stall_s))?"
    r"|moderator(\.name)?|toolkits(\.\d+\.(name|requires(\.[^.]+)?|1\.[^.]+|config(\.tools)?))?|limits(\.[a-z_]+)?"
)
"""The keys that a profile of a project may have: names and sizes, but nothing that says where words go or what may be
done without asking."""


def _with_provider(data: Mapping[str, Any]) -> dict[str, Any]:
    """The profile without `provider: x`, which Goose 0.9 wrote beside bare model names."""
    data = dict(data)
    provider = data.pop("provider", None)
    if provider is not None:
        data.setdefault("processor", None)
        for role in ("processor", "accelerator"):
            if isinstance(name := data.get(role), str):
                data[role] = f"{provider}:{name}"
        data["processor"] = data["processor"] or str(provider)
    return data


class SessionChoice(FrozenModel):
    """How a session feels to the person at the terminal."""

    keys: Literal["emacs", "vi"] = Field(default="emacs", description="the keys of the input line")
    notify: Literal["bell", "osc9", "off"] = Field(default="bell", description="how a long turn's end is told")


class Profile(FrozenModel):
    """Which models, which toolkits, and what they may do."""

    name: str = "default"
    processor: ModelChoice | None = Field(default=None, description="the strong model")
    accelerator: ModelChoice | None = Field(default=None, description="the fast model, for side questions")
    moderator: ModeratorChoice = Field(default=ModeratorChoice(), description="what is sent when the window fills up")
    toolkits: tuple[ToolkitChoice, ...] = Field(
        default=(ToolkitChoice(name="developer"),), description="what the agent can do"
    )
    sandbox: SandboxMode = Field(default="workspace", description="what commands can reach")
    approval: ApprovalMode = Field(default="auto", description="what a person is asked")
    limits: Limits = Field(default=Limits(), description="where a turn ends by itself")
    session: SessionChoice = Field(default=SessionChoice(), description="the prompt and the screen of a session")

    @model_validator(mode="before")
    @classmethod
    def _older_forms(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        data = _with_provider(data)
        return {key: {_SHORT[key]: v} if isinstance(v, str) and key in _SHORT else v for key, v in data.items()}

    @field_validator("toolkits", mode="before")
    @classmethod
    def _toolkit_forms(cls, value: Any) -> Any:
        """`name`, `{name, requires, config}`, or the older `[name, requires]`."""
        if not isinstance(value, list | tuple):
            return value
        forms: list[Any] = []
        for entry in value:
            if isinstance(entry, str):
                entry = {"name": entry}
            elif isinstance(entry, list) and len(entry) == 2 and isinstance(entry[1], Mapping):
                entry = {"name": entry[0], "requires": entry[1]}
            forms.append(entry)
        return forms


def find_origin(source: YamlSource, *path: str | int) -> str | None:
    """`file, line N` where the value at `path` comes from, in whichever form it is written; None: a default."""
    for each in (source, *source.bases):
        is_older = path[0] == "processor" and "processor" not in each.data and "provider" in each.data
        within = ("provider",) if is_older else path
        if (is_written := _is_written(each.data, within)) is not None:
            return replace(each, bases=()).locate(*within) if is_written else None
    return None


def _is_written(node: Any, path: tuple[str | int, ...]) -> bool | None:
    """Whether there is a value at `path`; False where what stands there replaces what is extended, and lacks it."""
    if not path:
        return True
    key, rest = path[0], path[1:]
    if isinstance(node, Mapping):
        return _is_written(node[key], rest) if key in node else None
    if isinstance(node, list):  # of toolkits, or the older form of one
        index = key if isinstance(key, int) else {"name": 0, "requires": 1}.get(key, len(node))
        return index < len(node) and _is_written(node[index], rest) is True
    return key in _SHORT.values()


def get_profiles_file() -> Path:
    """The user's own profiles by name, and at `use` the name of the one that is taken when none is named."""
    return config_folder() / "profiles.yaml"


def list_profile_sources(project: ProjectConfig | None = None, drafts: Drafts = NO_DRAFTS) -> list[YamlSource]:
    """Every profile that is written somewhere: the user's own first, then the project's, then those of packages.

    Args:
        project: what is trusted for this run; without it that of the current folder, if it was trusted for good.
        drafts: texts to be read in the place of what is in these files.
    """
    return list(_all_sources(project or load_trusted_project(Path.cwd()), drafts))


def _all_sources(project: ProjectConfig | None, drafts: Drafts) -> Iterator[YamlSource]:
    for source in _named(get_profiles_file(), _own(drafts)):
        if source.name != "use" or not isinstance(source.data, str):
            yield source
    yield from _each_in(config_folder() / "profiles", drafts)
    if project and (text := project.files.get(PROFILES)):
        for source in _named(file := project.get_path(PROFILES), parse_yaml(file, text)):
            yield replace(source, error=_presumption(source), is_project=True)
    for name in list_entry_points("goose_like.profile"):
        for folder in getattr(load_entry_point("goose_like.profile", name), "__path__", ()):
            yield from _each_in(Path(folder), drafts)


def _own(drafts: Drafts) -> Any:
    file = get_profiles_file()
    return read_yaml(file, drafts) if file in drafts or file.is_file() else {}


def _each_in(folder: Path, drafts: Drafts) -> Iterator[YamlSource]:
    for file in sorted(folder.glob("*.yaml")):
        try:
            yield YamlSource(file.stem, file, read_yaml(file, drafts))
        except ProfileError as error:  # it concerns those who ask for this one
            yield YamlSource(file.stem, file, None, error=error)


def _named(file: Path, data: Any) -> Iterator[YamlSource]:
    if not isinstance(data, Mapping):
        raise ProfileError(f"{file}: this file maps names to profiles, e.g. `default: {{processor: local}}`")
    for name, value in data.items():
        yield YamlSource(str(name), file, value)


def _presumption(source: YamlSource) -> ProfileError | None:
    """What a project's profile says that is not a project's to say."""
    for path in _keys(source.data):
        if not _PROJECT_MAY.fullmatch(what := ".".join(map(str, path))):
            place, mine = source.locate(*path), config_folder() / PROFILES
            return ProfileError(f"{place}: a project may not set {what!r}; set it in {mine}, or by an option")
    return None


def _keys(node: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The path of every key in a profile."""
    for key, value in node.items() if isinstance(node, Mapping) else ():
        yield (*path, key)
        yield from _keys(value, (*path, key))
    for index, value in enumerate(node) if isinstance(node, list) else ():
        yield from _keys(value, (*path, index))


def find_selected_profile(project: ProjectConfig | None = None, drafts: Drafts = NO_DRAFTS) -> str | None:
    """The profile that the user's `use: NAME` names; None when that line is not there.

    Raises:
        ProfileError: when there is no such profile; the text names the line.
    """
    own = _own(drafts)
    name = own.get("use") if isinstance(own, Mapping) else None
    if not isinstance(name, str):
        return None
    if name not in (names := [source.name for source in list_profile_sources(project, drafts)]):
        line = YamlSource("use", get_profiles_file(), own).locate("use")
        raise ProfileError(f"{line}: use: {describe_unknown_profile(name, names)}")
    return name


def load_profile(
    name: str | None, project: ProjectConfig | None = None, drafts: Drafts = NO_DRAFTS
) -> tuple[Profile, YamlSource]:
    """The profile of that name with what it extends merged in, and where it is written.

    Without a name the one that `use` names, else `default`. A user's profile may extend a project's or a shipped one of
    its own name. Whatever a project's extends, sandbox and approval are those that the user would have without it.
    `project` and `drafts` are as for `sources`.

    Raises:
        ProfileError: unknown name, circle of `extends`, invalid YAML or a value that is not allowed; the text
            names the file, the line and the nearest valid name.
    """
    return _found_in(
        list_profile_sources(project, drafts),
        (find_selected_profile(project, drafts) or "default") if name is None else name,
    )


def describe_unknown_profile(name: str, known: Iterable[str]) -> str:
    """What a person is told who asks for a profile that there is not."""
    places, near = f"{config_folder()}, trusted projects and installed packages", did_you_mean(name, known)
    return f"unknown profile {name!r}; {near}; looked in {places}; make it: goose-like profile new {name}"


def _found_in(every: list[YamlSource], name: str) -> tuple[Profile, YamlSource]:
    chain: list[YamlSource] = []
    wanted: object = name
    while wanted is not None:
        place = chain[-1].locate("extends") + ": " if chain else ""
        if not isinstance(wanted, str):
            raise ProfileError(f"{place}`extends` takes one profile's name")
        source = next((s for s in every if s.name == wanted and s not in chain), None)
        if source is None:
            names = [s.name for s in every]
            if wanted in names:
                circle = " -> ".join([*(s.name for s in chain), wanted])
                raise ProfileError(f"{place}profiles extend each other in a circle: {circle}; remove one `extends`")
            raise ProfileError(f"{place}{describe_unknown_profile(wanted, names)}")
        if source.error:
            raise source.error
        if not isinstance(source.data, Mapping):
            raise ProfileError(f"{source.locate()}: profile {wanted!r} is no mapping; write e.g. `processor: local`")
        chain.append(source)
        wanted = source.data.get("extends")
    merged: dict[str, Any] = {}
    for source in reversed(chain):
        merged = _merge(merged, _with_provider({key: v for key, v in source.data.items() if key != "extends"}))
    merged |= _own_confinement(chain, every)
    source = replace(chain[0], bases=tuple(chain[1:]))
    try:
        return Profile.model_validate({**merged, "name": name}), source
    except ValidationError as error:
        raise ProfileError(describe_validation_error(error, source, _near, "the profile")) from error


def _own_confinement(chain: list[YamlSource], every: list[YamlSource]) -> dict[str, Any]:
    """Sandbox and approval where a project has a part in a profile: what it extends has no say, as it chose that.

    What lies above it has; then what would stand in its place without it.
    """
    at = next((index for index, source in enumerate(chain) if source.is_project), None)
    if at is None:
        return {}
    own = [source for source in every if not source.is_project and source not in chain[:at]]
    place = chain[at].name if any(source.name == chain[at].name for source in own) else "default"
    profile, _ = _found_in(own, place)
    found: dict[str, Any] = {"sandbox": profile.sandbox, "approval": profile.approval}
    for source in reversed(chain[:at]):
        found |= {key: source.data[key] for key in found if key in source.data}
    return found


def _merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Mappings merge key by key, everything else is replaced; so is a moderator by another, whose config it is not."""
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        if isinstance(old, str) and key in _SHORT:
            old = {_SHORT[key]: old}
        if (
            isinstance(old, Mapping)
            and isinstance(value, Mapping)
            and not (key == "moderator" and _is_other(old, value))
        ):
            value = _merge(old, value)
        merged[key] = value
    return merged


def _is_other(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    return bool(new.get("name", old.get("name")) != old.get("name"))


def _near(path: tuple[str | int, ...]) -> str:
    return did_you_mean(str(path[-1]), _keys_at(path[:-1]))


def _keys_at(path: tuple[str | int, ...]) -> set[str]:
    keys = set(_model_at(path).model_fields)
    return keys if path else keys - {"name"} | {"extends", "provider"}


def _model_at(path: tuple[str | int, ...]) -> type[FrozenModel]:
    """The schema that is in force at a place of a profile."""
    within: dict[str, type[FrozenModel]] = {
        "processor": ModelChoice,
        "accelerator": ModelChoice,
        "moderator": ModeratorChoice,
        "toolkits": ToolkitChoice,
        "limits": Limits,
    }
    return within.get(str(path[0]), Profile) if path else Profile
