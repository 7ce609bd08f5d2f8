"""Profiles: their schema, where they are found, how they extend each other, and errors that name the line."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from pydantic import Field, ValidationError, field_validator, model_validator
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from .errors import ProfileError
from .message import Value
from .places import config_folder
from .plugins import did_you_mean, found, load

SandboxMode = Literal["workspace", "full"]
ApprovalMode = Literal["auto", "yolo"]


Drafts = Mapping[Path, str]
_AS_WRITTEN: Drafts = MappingProxyType({})


class ModelChoice(Value):
    """A model and how to speak to it. In YAML either `provider:model` or a mapping with these keys."""

    model: str = Field(description="provider:model, e.g. openai:gpt-5-mini or local")
    tools: Literal["native", "constrained"] = "native"
    base_url: str | None = None
    window: int | None = Field(default=None, gt=0, description="context length in tokens")
    max_output_tokens: int | None = Field(default=None, gt=0)
    temperature: float | None = Field(default=None, ge=0)
    stall_s: float = Field(default=120.0, gt=0, description="longest silence within a stream")

    @property
    def provider(self) -> str:
        return self.model.partition(":")[0]

    @property
    def name(self) -> str:
        """The model's name at its provider; empty where the provider has but one (`local`)."""
        return self.model.partition(":")[2]


class ModeratorChoice(Value):
    name: str = "truncate"
    config: dict[str, Any] = {}


class ToolkitChoice(Value):
    """A toolkit, the toolkits it `requires` (its own name for each -> the name in this profile), its `config`."""

    name: str
    requires: dict[str, str] = {}
    config: dict[str, Any] = {}


class Limits(Value):
    """Where a turn ends by itself. None means no limit."""

    steps: int = Field(default=128, gt=0, description="model requests in one turn")
    cost_usd: float | None = Field(default=None, gt=0)
    tokens: int | None = Field(default=None, gt=0, description="input and output tokens of one turn")
    time_s: float | None = Field(default=None, gt=0)
    output_bytes: int = Field(default=16_000, ge=400, description="a longer tool output goes to a file")


_SHORT = {"processor": "model", "accelerator": "model", "moderator": "name"}
"""The key that is meant where a bare string stands for a mapping."""


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


class Profile(Value):
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


@dataclass(frozen=True, slots=True)
class Source:
    """Where a profile is written: `data` keeps its line numbers. `extended` are the sources that it builds on."""

    name: str
    file: Path
    data: Any
    extended: tuple["Source", ...] = ()
    fault: ProfileError | None = None

    def place(self, *path: str | int) -> str:
        """`file, line N` of the value at `path`, or of the nearest thing around it, here or in what it extends."""
        # Of equals the first: the profile itself overrides what it extends.
        deepest = max((self, *self.extended), key=lambda source: len(source._lines(path)))
        lines = deepest._lines(path)
        return f"{deepest.file}, line {lines[-1] + 1}" if lines else f"{deepest.file}"

    def origin(self, *path: str | int) -> str | None:
        """`file, line N` where the value at `path` comes from, in whichever form it is written; None: a default."""
        for source in (self, *self.extended):
            is_older = path[0] == "processor" and "processor" not in source.data and "provider" in source.data
            within = ("provider",) if is_older else path
            if (is_written := _is_written(source.data, within)) is not None:
                return replace(source, extended=()).place(*within) if is_written else None
        return None

    def _lines(self, path: tuple[str | int, ...]) -> list[int]:
        """The line of the whole, then those of each step of the path as far as it is written here."""
        node: Any = self.data
        lines = [node.lc.line] if hasattr(node, "lc") else []
        for key in path:
            try:
                marks = node.lc
                lines.append((marks.key(key) if isinstance(node, Mapping) else marks.item(key))[0])
                node = node[key]
            except (AttributeError, KeyError, IndexError, TypeError):
                break
        return lines

    def located(self, error: ProfileError) -> ProfileError:
        """The error with this file and the line of its path before it."""
        return ProfileError(f"{self.place(*error.path)}: {error}" if error.path else str(error))


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


def own_file() -> Path:
    """The user's own profiles by name, and at `use` the name of the one that is taken when none is named."""
    return config_folder() / "profiles.yaml"


def sources(drafts: Drafts = _AS_WRITTEN) -> list[Source]:
    """Every profile that is written somewhere: the user's own first, then those of installed packages, ours too.

    `drafts` are texts to be read in the place of what is in these files.
    """
    return list(_all_sources(drafts))


def _own(drafts: Drafts) -> Mapping[Any, Any]:
    mine = own_file()
    data = _read(mine, drafts) if mine in drafts or mine.is_file() else {}
    if not isinstance(data, Mapping):
        raise ProfileError(f"{mine}: this file maps names to profiles, e.g. `default: {{processor: local}}`")
    return data


def _all_sources(drafts: Drafts) -> Iterator[Source]:
    for name, value in _own(drafts).items():
        if name != "use" or not isinstance(value, str):
            yield Source(str(name), own_file(), value)
    folders = [config_folder() / "profiles"]
    for name in found("goose_like.profile"):
        package = load("goose_like.profile", name)
        folders += [Path(folder) for folder in getattr(package, "__path__", ())]
    for folder in folders:
        for file in sorted(folder.glob("*.yaml")):
            try:
                yield Source(file.stem, file, _read(file, drafts))
            except ProfileError as error:  # it concerns those who ask for this one
                yield Source(file.stem, file, None, fault=error)


def _read(file: Path, drafts: Drafts) -> Any:
    try:
        data = YAML().load(drafts[file] if file in drafts else file.read_text(encoding="utf-8"))
        return {} if data is None else data
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else "?"
        raise ProfileError(f"{file}, line {line}: this is no valid YAML: {error.problem or error}") from error
    except (OSError, YAMLError, ValueError) as error:  # ValueError: no UTF-8, or a date that there is not
        reason = " ".join(str(error).split())
        raise ProfileError(f"{file}: can't be read: {reason}") from error


def used_name(drafts: Drafts = _AS_WRITTEN) -> str | None:
    """The profile that the user's `use: NAME` names; None when that line is not there.

    Raises:
        ProfileError: when there is no such profile; the text names the line.
    """
    own = _own(drafts)
    name = own.get("use")
    if not isinstance(name, str):
        return None
    if name not in (names := [source.name for source in _all_sources(drafts)]):
        line = Source("use", own_file(), own).place("use")
        raise ProfileError(f"{line}: use: unknown profile {name!r}; {did_you_mean(name, names)}")
    return name


def find_profile(name: str | None, drafts: Drafts = _AS_WRITTEN) -> tuple[Profile, Source]:
    """The profile of that name with what it extends merged in, and where it is written.

    Without a name the one that `use` names, else `default`. A user's profile may extend a shipped one of its own name.

    Raises:
        ProfileError: unknown name, circle of `extends`, invalid YAML or a value that is not allowed; the text
            names the file, the line and the nearest valid name.
    """
    if name is None:
        name = used_name(drafts) or "default"
    every = sources(drafts)
    chain: list[Source] = []
    wanted: object = name
    while wanted is not None:
        place = chain[-1].place("extends") + ": " if chain else ""
        if not isinstance(wanted, str):
            raise ProfileError(f"{place}`extends` takes one profile's name")
        source = next((s for s in every if s.name == wanted and s not in chain), None)
        if source is None:
            names = [s.name for s in every]
            if wanted in names:
                circle = " -> ".join([*(s.name for s in chain), wanted])
                raise ProfileError(f"{place}profiles extend each other in a circle: {circle}; remove one `extends`")
            raise ProfileError(f"{place}unknown profile {wanted!r}; {did_you_mean(wanted, names)}")
        if source.fault:
            raise source.fault
        if not isinstance(source.data, Mapping):
            raise ProfileError(f"{source.place()}: profile {wanted!r} is no mapping; write e.g. `processor: local`")
        chain.append(source)
        wanted = source.data.get("extends")
    merged: dict[str, Any] = {}
    for source in reversed(chain):
        merged = _merge(merged, _with_provider({key: v for key, v in source.data.items() if key != "extends"}))
    source = replace(chain[0], extended=tuple(chain[1:]))
    try:
        return Profile.model_validate({**merged, "name": name}), source
    except ValidationError as error:
        faults = sorted(error.errors(), key=lambda fault: source._lines(fault["loc"]))
        raise ProfileError("\n".join(_explain(fault, source) for fault in faults)) from error


def _merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Mappings merge key by key, everything else is replaced."""
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        if isinstance(old, str) and key in _SHORT:
            old = {_SHORT[key]: old}
        merged[key] = _merge(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return merged


def _explain(fault: Mapping[str, Any], source: Source) -> str:
    """One of a validation's faults as a sentence: where, what, and the nearest valid key."""
    path = tuple(fault["loc"])
    what = ".".join(str(step) for step in path) or "the profile"
    if fault["type"] == "extra_forbidden":
        keys: set[str] = set(_model_at(path[:-1]).model_fields)
        if len(path) == 1:
            keys = keys - {"name"} | {"extends", "provider"}
        return f"{source.place(*path)}: unknown key {what!r}; {did_you_mean(str(path[-1]), keys)}"
    if fault["type"] == "missing":
        return f"{source.place(*path)}: {what}: this key is missing"
    kinds = {"model_type": "a mapping", "dict_type": "a mapping", "tuple_type": "a list", "string_type": "text"}
    expected = kinds.get(fault["type"]) or fault["msg"].removeprefix("Input should be ")
    given = repr(fault["input"])
    clipped = given if len(given) <= 80 else given[:77] + "..."
    return f"{source.place(*path)}: {what}: expected {expected}, not {clipped}"


def _model_at(path: tuple[str | int, ...]) -> type[Value]:
    """The schema that is in force at a place of a profile."""
    within: dict[str, type[Value]] = {
        "processor": ModelChoice,
        "accelerator": ModelChoice,
        "moderator": ModeratorChoice,
        "toolkits": ToolkitChoice,
        "limits": Limits,
    }
    return within.get(str(path[0]), Profile) if path else Profile
