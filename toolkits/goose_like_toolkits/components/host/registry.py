"""The components of a session: which there are, how they are configured, and which resources they need."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from goose_like.core.errors import GooseLikeError, ProfileError
from goose_like.core.spelling import did_you_mean
from goose_like.sdk.diagnostics import ParseResult

from ..config import Config
from ..definition.config_file import Command, Definition, merge_config
from ..definition.coordinates import PARTS, Coordinates
from ..definition.reader import read_definitions
from .repository import CONFIG_FILES, Repositories
from .sources import find_config_file

RUNTIME = ".runtime"

_MAX_TOOL_CHARACTERS = 64
_NO_NAME = re.compile(r"[^A-Za-z0-9_-]+")
_LLM = Coordinates("goose_like", "llm", "1.0")
_BUILT_IN = {"llm": _LLM, "model": _LLM, "disk": Coordinates("org.concopilot.basic.resource.category", "disk", "0.0.0")}
_SAME_TYPE = {"llm": "model"}


@dataclass(frozen=True, slots=True)
class Need:
    """A resource that a component uses: its key, and the type under which the component asks for it."""

    key: str
    asked: str


@dataclass(frozen=True, slots=True)
class Member:
    """A component of a session. `named` is how the worker finds it, `file` the config.yaml that was read."""

    key: str
    definition: Definition
    config: Mapping[str, Any]
    file: Path
    named: Mapping[str, Any]
    needs: tuple[Need, ...] = ()

    @property
    def name(self) -> str:
        """The name for people and models."""
        return self.definition.get_name(self.config) or self.definition.artifact_id

    @property
    def is_resource(self) -> bool:
        """True for a resource."""
        return self.definition.kind == "resource"

    def read_prompt(self, roots: Sequence[Path]) -> str:
        """Read its prompt; see `Prompt.read`."""
        return self.definition.prompt.read(self.file.parent, roots, self.definition.coordinates.prefix)


class Registry:
    """The components that a profile uses, and the resources that they need. Reading them runs no code."""

    def __init__(self, config: Config, root: Path, repositories: Repositories) -> None:
        """Read the components.

        Raises:
            ProfileError: one cannot be used; the path is its place in the profile.
        """
        self.root = root
        self.repositories = repositories
        self.members: dict[str, Member] = {}
        self._llm = config.llm
        self._results: dict[Path, ParseResult[Definition]] = {}
        used = [each.model_dump(exclude_none=True) for each in config.use]
        self._results |= read_definitions(self._find_files(used))
        for at, named in enumerate(used):
            try:
                member = self.read_member(named, "profile")
                if member.key in self.members:
                    raise ProfileError(f"{member.key} is used twice; give one of the two another instance_id")
            except GooseLikeError as error:
                name = named.get("path") or ":".join(str(named.get(part)) for part in PARTS)
                text = str(error) if isinstance(error, ProfileError) else f"{name}: {error}"
                raise ProfileError(text, ("config", "use", at)) from error
            self.members[member.key] = member
        for at, member in enumerate(list(self.members.values())):
            try:
                self.members[member.key] = self._add_needs(member)
            except GooseLikeError as error:
                raise ProfileError(str(error), ("config", "use", at)) from error

    @property
    def plugins(self) -> list[Member]:
        """The components whose commands are tools."""
        return [member for member in self.members.values() if member.definition.as_plugin]

    def list_tools(self) -> Iterator[tuple[str, Member, Command]]:
        """Yield each command with its name as a tool; components of one name differ by their instance.

        Raises:
            ProfileError: two tools would have the same name.
        """
        plugins = self.plugins
        names = [_NO_NAME.sub("_", member.name).strip("_") or "component" for member in plugins]
        taken: dict[str, str] = {}
        for member, name in zip(plugins, names, strict=True):
            instance = _NO_NAME.sub("_", member.key.partition("#")[2])
            own = name if names.count(name) == 1 else f"{name}_{instance}"
            for command in member.definition.commands:
                tool = f"{own}_{_NO_NAME.sub('_', command.name)}"[:_MAX_TOOL_CHARACTERS]
                if tool in taken:
                    raise ProfileError(_explain_same_name(tool, taken[tool], member.key), ("config", "use"))
                taken[tool] = member.key
                yield tool, member, command

    def add(self, component: Coordinates | Path) -> Member:
        """Add a component that a person names, without its resources. Raise GooseLikeError if it cannot be used."""
        if isinstance(component, Path):
            named: dict[str, Any] = {"path": str(component.absolute())}
        else:
            named = {part: getattr(component, part) for part in PARTS}
        member = self.read_member(named, "the command line")
        self.members[member.key] = member
        return member

    def read_member(self, named: Mapping[str, Any], source: str) -> Member:
        """Read a component. Raise GooseLikeError if it cannot be used.

        Args:
            named: the component as a profile or a config.yaml names it.
            source: who names it, for errors.
        """
        file = self._find_file(named)
        config = named.get("config") or {}
        if not isinstance(config, Mapping):
            raise GooseLikeError(f"config: expected a mapping, not {str(config)[:80]!r}; it is in {source}")
        result = self._results.get(file) or read_definitions([file])[file]
        self._results[file] = result
        if result.value is None:
            problems = [each for each in result.diagnostics if not each.is_warning]
            text = "\n".join(str(each.model_copy(update={"file": self._shorten(each.file)})) for each in problems)
            raise GooseLikeError(
                f"{text}\ncorrect it; `goose-like component check {self._shorten(file)}` shows everything"
            )
        definition = result.value
        effective = merge_config(definition.config, config)
        if named.get("path"):
            instance, how = named.get("instance_id"), {"file": str(file.absolute()), "config": config}
        else:
            instance = named.get("instance_id")
            keys = (*PARTS, "instance_id", "config", "config_file", "config_folder")
            how = {key: named[key] for key in keys if named.get(key) is not None}
        return Member(
            f"{definition.coordinates}#{0 if instance is None else instance}", definition, effective, file, how
        )

    def list_included(self, member: Member) -> list[Member]:
        """Return a component and all that its configuration includes, as far as they are here."""
        from ..definition.check import list_included

        found, waiting = {member.key: member}, [member]
        while waiting:
            for _, named in list_included(dict(waiting.pop().config)):
                try:
                    inner = self.read_member(named, str(member.file))
                except GooseLikeError:
                    continue  # the worker reports it, if it is constructed at all
                if inner.key not in found:
                    found[inner.key] = inner
                    waiting.append(inner)
        return list(found.values())

    def _find_files(self, used: Iterable[Mapping[str, Any]]) -> Iterator[Path]:
        for named in used:
            try:
                yield self._find_file(named)
            except GooseLikeError:
                return  # reported with its place

    def _find_file(self, named: Mapping[str, Any]) -> Path:
        if path := named.get("path"):
            if file := find_config_file(self.root / os.path.expanduser(str(path))):
                return file
            raise GooseLikeError("there is no component at this path; give the folder with its .config/config.yaml")
        coordinates = Coordinates(*(named.get(part) for part in PARTS))  # type: ignore[arg-type]
        config_file, folder = named.get("config_file"), named.get("config_folder")
        place = Path(str(folder)) if folder else RUNTIME / coordinates.instance_folder(named.get("instance_id"))
        for name in (*([str(config_file)] if config_file else ()), *CONFIG_FILES):
            copy: Path = self.root / place / name
            real = Path(os.path.realpath(copy))
            if real.is_file() and real.is_relative_to(os.path.realpath(self.root)):
                return copy
        return self.repositories.find(coordinates, str(config_file or ""))

    def _add_needs(self, member: Member) -> Member:
        if member.is_resource:
            return member
        data = member.definition.data
        asked = [*_list_mappings(data.get("resources")), *_list_mappings(member.config.get("resources"))]
        needs = [Need(self._find_resource(entry, member).key, str(entry.get("type") or "")) for entry in asked]
        return replace(member, needs=tuple(dict.fromkeys(needs)))

    def _find_resource(self, entry: Mapping[str, Any], member: Member) -> Member:
        """Return the resource that an entry means: the component's own, one of the profile, or a built-in one."""
        if entry.get("group_id"):
            own = self.read_member(entry, str(member.file))
            known = self.members.setdefault(own.key, own)
            if known.config != own.config:
                raise GooseLikeError(
                    f"{member.name} and another component configure {own.key} differently; give one of the two an "
                    "instance_id of its own"
                )
            return known
        for each in self.members.values():
            if each.is_resource and _is_meant(each, entry):
                return each
        kind = str(entry.get("type") or "").lower()
        if kind not in _BUILT_IN:
            raise GooseLikeError(self._explain_missing(entry, member))
        config = {key: value for key, value in entry.items() if key in ("id", "name") and value is not None}
        llm = {"model": self._llm} if _BUILT_IN[kind] is _LLM else {}
        given = {**llm, **config, **(entry.get("config") or {})}
        named = {part: getattr(_BUILT_IN[kind], part) for part in PARTS} | {"config": given}
        made = self.read_member(named, str(member.file))
        key = f"{made.key.partition('#')[0]}#{'/'.join(str(value) for value in given.values())}"
        return self.members.setdefault(key, replace(made, key=key))

    def _explain_missing(self, entry: Mapping[str, Any], member: Member) -> str:
        words = ", ".join(f"{key} {entry[key]!r}" for key in ("type", "id", "name") if entry.get(key))
        used = [each.definition.resource_type.lower() for each in self.members.values() if each.is_resource]
        near = did_you_mean(str(entry.get("type") or ""), [*_BUILT_IN, *used])
        return f"{member.name} needs a resource with {words}, and none is used; add one to `use` ({near})"

    def _shorten(self, file: Path) -> Path:
        return file.relative_to(self.root) if file.is_relative_to(self.root) else file


def _is_meant(resource: Member, entry: Mapping[str, Any]) -> bool:
    """Check whether an entry of `resources` means a resource: by id, else name, else type; the rest must fit too."""
    kind, own = str(entry.get("type") or "").lower(), resource.definition.resource_type.lower()
    if kind and _SAME_TYPE.get(kind, kind) != _SAME_TYPE.get(own, own):
        return False
    wanted = entry.get("id")
    if wanted is not None and str(wanted).lower() != "default":
        return str(resource.config.get("id")) == str(wanted) and entry.get("name") in (None, resource.name)
    return entry.get("name") in (None, resource.name) and bool(kind or entry.get("name"))


def _list_mappings(value: object) -> list[Mapping[str, Any]]:
    return [entry for entry in value if isinstance(entry, Mapping)] if isinstance(value, list) else []


def _explain_same_name(tool: str, one: str, other: str) -> str:
    if one == other:
        return f"{one} has two commands that would both be the tool {tool!r}; rename one of them"
    return f"{one} and {other} both have the tool {tool!r}; give one of them a name: `config: {{name: ...}}` beside it"
