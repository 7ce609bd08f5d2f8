"""Roster: the components of a session: which there are, how each is configured, and what each needs of the others."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from goose_like.core.errors import GooseLikeError, ProfileError
from goose_like.core.notifier import Notifier
from goose_like.core.spelling import did_you_mean
from goose_like.workspace.workspace import Workspace
from goose_like_toolkits.components.described.coordinates import PARTS, Coordinates
from goose_like_toolkits.components.described.entry import Offer
from goose_like_toolkits.components.repositories.repository import LocalRepository, Repositories
from goose_like_toolkits.components.repositories.settings import PUBLIC, RemoteAddress, read_settings

from .config import Config, Used
from .finder import Finder
from .member import Member, Need

_TOOL_CHARACTERS = 64
_NO_NAME = re.compile(r"[^A-Za-z0-9_-]+")

# What is there without being asked for, by the type of the resource.
_LLM = Coordinates("goose_like", "llm", "1.0")
_BUILT_IN = {"llm": _LLM, "model": _LLM, "disk": Coordinates("org.concopilot.basic.resource.category", "disk", "0.0.0")}
_SAME = {"llm": "model"}


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
            {**{part: getattr(_BUILT_IN[kind], part) for part in PARTS}, "config": given}, str(member.file)
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
    roster = Roster(config, Finder(workspace, repositories, config.dot_folders))
    for member in roster.members.values():
        if not member.entry.as_plugin and not member.is_resource:
            notifier.log(
                f"components: {member.name} is of type {member.entry.type}, and a session has use for plugins and "
                "resources only; take it out of `use`, or run it if it is a copilot: goose-like component run"
            )
    return roster
