"""The components of a session: which there are, how they are configured, and which resources they need."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
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
from .repository import Repositories, list_file_names
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
            with _locate_errors(at):
                self._add_used(named)
        for at, member in enumerate(list(self.members.values())):
            with _locate_errors(at):
                self.members[member.key] = self._add_needs(member)

    def _add_used(self, named: Mapping[str, Any]) -> None:
        try:
            member = self.read_member(named, "profile")
        except GooseLikeError as error:
            name = named.get("path") or ":".join(str(named.get(part)) for part in PARTS)
            raise GooseLikeError(f"{name}: {error}") from error
        if member.key in self.members:
            raise GooseLikeError(f"{member.key} is used twice; give one of the two another instance_id")
        self.members[member.key] = member

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
        names = [_sanitize(member.name).strip("_") or "component" for member in plugins]
        taken: dict[str, str] = {}
        for member, name in zip(plugins, names, strict=True):
            own = name
            if names.count(name) > 1:
                instance = member.key.partition("#")[2]
                own = f"{name}_{_sanitize(instance)}"
            for command in member.definition.commands:
                tool = f"{own}_{_sanitize(command.name)}"
                tool = tool[:_MAX_TOOL_CHARACTERS]
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
        definition = self._read_definition(file)
        effective = merge_config(definition.config, config)
        how: dict[str, Any] = {"file": str(file.absolute()), "config": config}
        if not named.get("path"):
            keys = (*PARTS, "instance_id", "config", "config_file", "config_folder")
            how = {key: named[key] for key in keys if named.get(key) is not None}
        instance = named.get("instance_id")
        if instance is None:
            instance = 0
        return Member(f"{definition.coordinates}#{instance}", definition, effective, file, how)

    def _read_definition(self, file: Path) -> Definition:
        result = self._results.get(file) or read_definitions([file])[file]
        self._results[file] = result
        if result.value is not None:
            return result.value
        lines = []
        for problem in result.diagnostics:
            if not problem.is_warning:
                shown = problem.model_copy(update={"file": self._shorten(problem.file)})
                lines.append(str(shown))
        lines.append(f"correct it; `goose-like component check {self._shorten(file)}` shows everything")
        raise GooseLikeError("\n".join(lines))

    def list_included(self, member: Member) -> list[Member]:
        """Return a component and all that its configuration includes, as far as they are here."""
        from ..definition.check import list_included

        found = {member.key: member}
        waiting = [member]
        while waiting:
            config = waiting.pop().config
            for _, named in list_included(dict(config)):
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
        path = named.get("path")
        if path:
            file = find_config_file(self.root / os.path.expanduser(str(path)))
            if file is None:
                raise GooseLikeError("there is no component at this path; give the folder with its .config/config.yaml")
            return file
        coordinates = Coordinates(*(named.get(part) for part in PARTS))  # type: ignore[arg-type]
        config_file = str(named.get("config_file") or "")
        folder = named.get("config_folder")
        if not folder:
            folder = RUNTIME / coordinates.instance_folder(named.get("instance_id"))
        for name in list_file_names(config_file):
            copy = self.root / str(folder) / name
            if self._is_own_file(copy):
                return copy
        return self.repositories.find(coordinates, config_file)

    def _is_own_file(self, path: Path) -> bool:
        """Check that a path, also one that is a link, leads to a file below the root."""
        real = Path(os.path.realpath(path))
        return real.is_file() and real.is_relative_to(os.path.realpath(self.root))

    def _add_needs(self, member: Member) -> Member:
        if member.is_resource:
            return member
        asked = _list_mappings(member.definition.data.get("resources"))
        asked += _list_mappings(member.config.get("resources"))
        needs = []
        for entry in asked:
            resource = self._find_resource(entry, member)
            needs.append(Need(resource.key, str(entry.get("type") or "")))
        return replace(member, needs=tuple(dict.fromkeys(needs)))

    def _find_resource(self, entry: Mapping[str, Any], member: Member) -> Member:
        """Return the resource that an entry means: the component's own, one of the profile, or a built-in one."""
        if entry.get("group_id"):
            return self._read_own_resource(entry, member)
        for each in self.members.values():
            if each.is_resource and _is_meant(each, entry):
                return each
        kind = str(entry.get("type") or "").lower()
        if kind not in _BUILT_IN:
            raise GooseLikeError(self._explain_missing(entry, member))
        return self._add_built_in(_BUILT_IN[kind], entry, member)

    def _read_own_resource(self, entry: Mapping[str, Any], member: Member) -> Member:
        own = self.read_member(entry, str(member.file))
        known = self.members.setdefault(own.key, own)
        if known.config != own.config:
            raise GooseLikeError(
                f"{member.name} and another component configure {own.key} differently; give one of the two an "
                "instance_id of its own"
            )
        return known

    def _add_built_in(self, coordinates: Coordinates, entry: Mapping[str, Any], member: Member) -> Member:
        """Add a built-in resource. Its configuration is its instance: equal ones are one resource."""
        config: dict[str, Any] = {}
        if coordinates is _LLM:
            config["model"] = self._llm
        for key, value in entry.items():
            if key in ("id", "name") and value is not None:
                config[key] = value
        config = {**config, **(entry.get("config") or {})}
        named = {part: getattr(coordinates, part) for part in PARTS}
        made = self.read_member({**named, "config": config}, str(member.file))
        instance = "/".join(map(str, config.values()))
        key = f"{made.definition.coordinates}#{instance}"
        return self.members.setdefault(key, replace(made, key=key))

    def _explain_missing(self, entry: Mapping[str, Any], member: Member) -> str:
        words = []
        for key in ("type", "id", "name"):
            if entry.get(key):
                words.append(f"{key} {entry[key]!r}")
        kinds = list(_BUILT_IN)
        for each in self.members.values():
            if each.is_resource:
                kinds.append(each.definition.resource_type.lower())
        near = did_you_mean(str(entry.get("type") or ""), kinds)
        return f"{member.name} needs a resource with {', '.join(words)}, and none is used; add one to `use` ({near})"

    def _shorten(self, file: Path) -> Path:
        return file.relative_to(self.root) if file.is_relative_to(self.root) else file


def _is_meant(resource: Member, entry: Mapping[str, Any]) -> bool:
    """Check whether an entry of `resources` means a resource: by id, else name, else type; the rest must fit too."""
    kind = str(entry.get("type") or "").lower()
    own_kind = resource.definition.resource_type.lower()
    if kind and _SAME_TYPE.get(kind, kind) != _SAME_TYPE.get(own_kind, own_kind):
        return False
    name = entry.get("name")
    if name not in (None, resource.name):
        return False
    wanted = entry.get("id")
    if wanted is not None and str(wanted).lower() != "default":
        return str(resource.config.get("id")) == str(wanted)
    return bool(kind or name)


@contextmanager
def _locate_errors(index: int) -> Iterator[None]:
    """Convert an error about a component in `use` to a ProfileError with its place."""
    try:
        yield
    except GooseLikeError as error:
        raise ProfileError(str(error), ("config", "use", index)) from error


def _sanitize(name: str) -> str:
    return _NO_NAME.sub("_", name)


def _list_mappings(value: object) -> list[Mapping[str, Any]]:
    if not isinstance(value, list):
        return []
    return [entry for entry in value if isinstance(entry, Mapping)]


def _explain_same_name(tool: str, one: str, other: str) -> str:
    if one == other:
        return f"{one} has two commands that would both be the tool {tool!r}; rename one of them"
    return f"{one} and {other} both have the tool {tool!r}; give one of them a name: `config: {{name: ...}}` beside it"
