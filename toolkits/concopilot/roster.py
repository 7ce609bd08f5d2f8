"""Roster: the components of a session: which there are, how each is configured, and what each needs of the others."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from goose_like.errors import GooseLikeError, ProfileError
from goose_like.fault import Reading
from goose_like.notifier import Notifier
from goose_like.plugins import did_you_mean
from goose_like.workspace import Workspace

from .config import Config, Used
from .described.coordinates import Coordinates
from .described.entry import Entry, Offer, read_entries
from .described.overriding import Effective, Layer, overlaid
from .repositories.repository import LocalRepository, Repositories
from .repositories.runtime import Repository, Runtime
from .repositories.settings import PUBLIC, RemoteAddress, read_settings

_PARTS = ("group_id", "artifact_id", "version")
_TOOL_CHARACTERS = 64
_NO_NAME = re.compile(r"[^A-Za-z0-9_-]+")

# What is there without being asked for, by the type of the resource.
_LLM = Coordinates("goose_like", "llm", "1.0")
_BUILT_IN = {"llm": _LLM, "model": _LLM, "disk": Coordinates("org.concopilot.basic.resource.category", "disk", "0.0.0")}
_SAME = {"llm": "model"}


@dataclass(frozen=True, slots=True)
class Need:
    """A resource that a component uses: the key of a member, and the type under which it asks for it."""

    key: str
    asked: str


@dataclass(frozen=True, slots=True)
class Member:
    """A component, configured. `key` is its own among all, `file` the config.yaml that was read.

    `instance` says by its arguments for `Runtime.place` where its own copy of a repository's files will be.
    """

    key: str
    entry: Entry
    effective: Effective
    file: Path
    instance: tuple[Any, ...] = ()
    needs: tuple[Need, ...] = ()

    @property
    def name(self) -> str:
        """What it is called: by its configuration, else by its title."""
        return self.entry.name(self.effective.value) or self.entry.artifact_id

    @property
    def is_resource(self) -> bool:
        return self.entry.type == "resource"

    def prompt(self, reach: Sequence[Path]) -> str:
        """Its words for a model; as `Prompt.read`."""
        return self.entry.prompts.read(self.file.parent, reach, self.entry.coordinates.prefix)


class Finder:
    """Finds components and reads their configuration, by what a profile or another component says of them."""

    def __init__(self, workspace: Workspace, repository: Repository, dot_folders: Iterable[str] = ()) -> None:
        """Relative paths begin in the working directory; components may use `dot_folders` there."""
        self.folder = workspace.root
        self._workspace = workspace
        self._repository = repository
        self._runtime = Runtime(self.folder, repository, dot_folders)
        self._readings: dict[Path, Reading[Entry]] = {}
        self._given: dict[str, Member] = {}

    def file(self, used: Mapping[str, Any]) -> Path:
        """The config.yaml that counts for what the person names: group_id, artifact_id, version, or path.

        Raises:
            GooseLikeError: there is none.
        """
        if path := used.get("path"):
            return _config_file(self.folder / Path(str(path)).expanduser())
        return self._runtime.source(*_instance(used))

    def chosen(self, used: Mapping[str, Any], file: Path | None = None) -> Member:
        """The component that the person's profile names, with its `instance_id` and `config`; `file` is its, if known.

        Raises:
            GooseLikeError: there is none, or its config.yaml can't be used.
        """
        instance = () if used.get("path") else _instance(used)
        return self._configured(file or self.file(used), used, "profile", instance)

    def member(self, named: Mapping[str, Any], source: str) -> Member:
        """The component that another one names. It is a stranger's word: no path of ours comes of it.

        Raises:
            GooseLikeError: there is none, or its config.yaml can't be used.
        """
        instance = _instance(named)
        return self._configured(self._runtime.source(*instance), named, source, instance)

    def own(self, file: str) -> Member:
        """The component of a file in the working directory that another one names.

        Raises:
            GooseLikeError: it lies elsewhere or in a folder with a leading dot, or can't be used.
        """
        root = Path(os.path.realpath(self.folder))
        place = Path(os.path.realpath(root / file.replace("\0", "?")))
        if not place.is_relative_to(root) or not self._runtime.is_open(place.relative_to(root)):
            raise GooseLikeError(f"{file!r} is not in the working directory {root}, or hidden there; put it there")
        return self.read(place, {})

    def _configured(self, file: Path, named: Mapping[str, Any], source: str, instance: tuple[Any, ...]) -> Member:
        config = named.get("config")
        if not isinstance(config, Mapping | None):
            raise GooseLikeError(f"config: expected a mapping, not {str(config)[:80]!r}; it is in {source}")
        return replace(self.read(file, config or {}, named.get("instance_id"), source), instance=instance)

    def look_at(self, files: Iterable[Path]) -> None:
        """Reads several at once; as they are now, they count for the session."""
        self._readings |= read_entries(files)

    def read(self, file: Path, config: Mapping[str, Any], instance: object = None, source: str = "") -> Member:
        """The component of a config.yaml, with `config` laid over its own.

        Raises:
            GooseLikeError: it can't be used.
        """
        reading = self._readings.get(file) or read_entries([file])[file]
        if reading.value is None:
            faults = [fault for fault in reading.faults if not fault.is_remark]
            told = "\n".join(str(fault.model_copy(update={"file": self._shown(fault.file)})) for fault in faults)
            raise GooseLikeError(f"{told}\nmend it; `goose-like component check {self._shown(file)}` tells all")
        entry = reading.value
        effective = overlaid(Layer(entry.config, str(file)), Layer(config, source))
        return Member(f"{entry.coordinates}#{0 if instance is None else instance}", entry, effective, file)

    def given(self, member: Member) -> dict[str, Any]:
        """All of its config.yaml with its effective `config`, as its constructor takes it.

        The file that this names is its own: where it is used for the first time, the repository's are copied there. In
        sandbox `read-only` that is a folder of the session's.

        Raises:
            GooseLikeError: they can't be.
        """
        file = self.own_file(member)
        self._given[str(file)] = member
        info = {"config_folder": str(file.parent), "config_file": file.name}
        return {**member.entry.data, "config": member.effective.value, "_config_info": info}

    def own_file(self, member: Member) -> Path:
        """The config file of a component, as it sees it: that of its copy, which is there by then.

        Raises:
            GooseLikeError: it can't be made.
        """
        if not member.instance:
            return member.file
        if self._workspace.mode != "read-only":
            return self._runtime.place(*member.instance)
        file = self._runtime.source(*member.instance)
        if file.is_relative_to(self.folder):
            return file
        aside = Runtime(self._workspace.tmp / "components", self._repository)
        return Path(self._workspace.inside(aside.place(*member.instance[:3])))

    def given_as(self, file: str) -> Member | None:
        """The component to which this config file was given."""
        return self._given.get(file)

    def _shown(self, file: Path) -> Path:
        """As a person who is in this folder would name it."""
        return file.relative_to(self.folder) if file.is_relative_to(self.folder) else file


class Roster:
    """The components that a profile uses, and the resources that these need. Reading them runs none."""

    def __init__(self, config: Config, finder: Finder) -> None:
        """
        Raises:
            ProfileError: one can't be used; the path is its place in the profile.
        """
        self.finder = finder
        self.members: dict[str, Member] = {}
        named = [used.model_dump(exclude_none=True) for used in config.use]
        files, fault = self._there(named)
        finder.look_at(files.values())
        for at, used in enumerate(config.use):
            try:
                if fault and at == len(files):
                    raise fault
                member = finder.chosen(named[at], files.get(at))
                if member.key in self.members:
                    raise ProfileError(f"{member.key} is used twice; give one of the two another instance_id")
            except ProfileError as error:
                raise ProfileError(str(error), ("config", "use", at)) from error
            except GooseLikeError as error:
                raise ProfileError(f"{_named(used)}: {error}", ("config", "use", at)) from error
            self.members[member.key] = member
        self._llm = config.llm
        for at, member in enumerate(list(self.members.values())):
            try:
                self.members[member.key] = self._with_needs(member)
            except GooseLikeError as error:
                raise ProfileError(str(error), ("config", "use", at)) from error

    def _there(self, named: Sequence[Mapping[str, Any]]) -> tuple[dict[int, Path], GooseLikeError | None]:
        """The files by their place up to the first that there is none of, and why: a repository is not asked twice."""
        files: dict[int, Path] = {}
        for at, used in enumerate(named):
            try:
                files[at] = self.finder.file(used)
            except GooseLikeError as error:
                return files, error
        return files, None

    @property
    def plugins(self) -> list[Member]:
        """Those whose commands can be called."""
        return [member for member in self.members.values() if member.entry.as_plugin]

    def tools(self) -> Iterator[tuple[str, Member, Offer]]:
        """Each command with its name as a tool: the plugin's and its own; of two of one name, with its instance.

        Raises:
            ProfileError: two would have the same.
        """
        plugins = self.plugins
        names = [_NO_NAME.sub("_", member.name).strip("_") or "component" for member in plugins]
        taken: dict[str, str] = {}
        for member, name in zip(plugins, names, strict=True):
            own = name if names.count(name) == 1 else f"{name}_{_NO_NAME.sub('_', member.key.partition('#')[2])}"
            for offer in member.entry.offers:
                tool = f"{own}_{_NO_NAME.sub('_', offer.name)}"[:_TOOL_CHARACTERS]
                if tool in taken:
                    raise ProfileError(_alike(tool, taken[tool], member.key), ("config", "use"))
                taken[tool] = member.key
                yield tool, member, offer

    def needed(self, member: Member) -> list[Member]:
        """The resources that must be there before it is."""
        return [self.members[need.key] for need in member.needs]

    def with_more(self, component: Coordinates | Path) -> Member:
        """One more component, by its coordinates or its config.yaml, with the resources that it uses.

        Raises:
            GooseLikeError: there is none, or it or one of its resources can't be used.
        """
        if isinstance(component, Path):
            member = self.finder.read(component, {})
        else:
            member = self.finder.member(asdict(component), "the command line")
        self.members[member.key] = made = self._with_needs(member)
        return made

    def _with_needs(self, member: Member) -> Member:
        if member.is_resource:
            return member
        asked = [*_entries(member.entry.data.get("resources")), *_entries(member.effective.value.get("resources"))]
        needs = tuple(Need(self._resource(entry, member).key, str(entry.get("type") or "")) for entry in asked)
        return replace(member, needs=tuple(dict.fromkeys(needs)))

    def _resource(self, entry: Mapping[str, Any], member: Member) -> Member:
        """The resource that an entry of `resources` means: one of its own, one that is used, or one that we bring."""
        if entry.get("group_id"):
            own = self.finder.member(entry, str(member.file))
            there_is = self.members.setdefault(own.key, own)
            if there_is.effective.value != own.effective.value:
                raise GooseLikeError(
                    f"{member.name} and another component configure {own.key} differently; give one of the two an "
                    "instance_id of its own"
                )
            return there_is
        there = [each for each in self.members.values() if each.is_resource and _fits(each, entry)]
        if there:
            return there[0]
        kind = str(entry.get("type") or "").lower()
        if kind not in _BUILT_IN:
            raise GooseLikeError(self._missing(entry, member))
        config = {key: value for key, value in entry.items() if key in ("id", "name") and value is not None}
        llm = {"model": self._llm} if _BUILT_IN[kind] is _LLM else {}
        given = {**llm, **config, **(entry.get("config") or {})}
        made = self.finder.member(
            {**{part: getattr(_BUILT_IN[kind], part) for part in _PARTS}, "config": given}, str(member.file)
        )
        key = f"{made.key.partition('#')[0]}#{'/'.join(str(value) for value in given.values())}"
        return self.members.setdefault(key, replace(made, key=key))

    def _missing(self, entry: Mapping[str, Any], member: Member) -> str:
        words = ", ".join(f"{key} {entry[key]!r}" for key in ("type", "id", "name") if entry.get(key))
        kinds = {each.entry.resource_type for each in self.members.values() if each.is_resource} | set(_BUILT_IN)
        near = did_you_mean(str(entry.get("type") or ""), kinds)
        return f"{member.name} needs a resource with {words}, and none is used; add one to `use` ({near})"


def _fits(resource: Member, entry: Mapping[str, Any]) -> bool:
    """Whether an entry means this one: by its id, else its name, else its type; what else it says must fit as well."""
    config, kind = resource.effective.value, str(entry.get("type") or "").lower()
    if kind and _SAME.get(kind, kind) != _SAME.get(resource.entry.resource_type, resource.entry.resource_type):
        return False
    wanted = entry.get("id")
    if wanted is not None and str(wanted).lower() != "default":
        return str(config.get("id")) == str(wanted) and entry.get("name") in (None, resource.name)
    return entry.get("name") in (None, resource.name) and bool(kind or entry.get("name"))


def _entries(value: object) -> Sequence[Mapping[str, Any]]:
    return [entry for entry in value if isinstance(entry, Mapping)] if isinstance(value, list) else ()


def _alike(tool: str, one: str, other: str) -> str:
    if one == other:
        return f"{one} has two commands that would both be the tool {tool!r}; rename one of them"
    return f"{one} and {other} both have the tool {tool!r}; give one of them a name: `config: {{name: ...}}` beside it"


def _named(used: Used) -> str:
    return used.path or f"{used.group_id}:{used.artifact_id}:{used.version}"


def _instance(named: Mapping[str, Any]) -> tuple[Any, ...]:
    """What `Runtime.place` and `Runtime.source` take, of what is said of a component."""
    coordinates = Coordinates(*(named.get(part) for part in _PARTS))  # type: ignore[arg-type]
    return coordinates, named.get("instance_id"), named.get("config_file"), named.get("config_folder")


def _config_file(folder: Path) -> Path:
    """The config.yaml of a component's folder, or of the `.config` in it; or that file itself."""
    if folder.is_file():
        return folder
    if not folder.exists():
        raise GooseLikeError("there is nothing at this path; give a component's folder")
    for place in (folder / ".config", folder):
        for name in ("config.yaml", "config.yml"):
            if (place / name).is_file():
                return place / name
    raise GooseLikeError("this is no component's folder: it has no .config/config.yaml")


def open_roster(
    config: Config,
    workspace: Workspace,
    notifier: Notifier,
    repositories: Repositories | None = None,
) -> Roster:
    """The roster of a profile's config in a working directory; the person hears of what is fetched, which blocks.

    Without `repositories` they are the local one and those that the profile and the settings name. The public one is
    asked by command alone: a session's start reaches for no site that nobody named.

    Raises:
        ProfileError: as of `Roster`.
    """
    if repositories is None:
        settings = read_settings(None)
        named = [RemoteAddress(url=url) for url in config.repositories]
        remotes = (*named, *(remote for remote in settings.remotes if remote.url != PUBLIC))
        repositories = Repositories(LocalRepository(settings.local), remotes, tell=notifier.log, follow=notifier.status)
    return Roster(config, Finder(workspace, repositories, config.dot_folders))
