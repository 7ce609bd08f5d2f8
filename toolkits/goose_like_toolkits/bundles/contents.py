"""The parts of a bundle's folder, in each of the three layouts, and sentences about what is not used."""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from typing import Any

from goose_like.config.agent_file import parse_agent_file
from goose_like.config.bundles import Bundle, Layout
from goose_like.config.foreign_text import parse_json
from goose_like.config.paths import describe_read_error, read_user_file
from goose_like.core.dataclass import dataclass
from goose_like.core.errors import GooseLikeError, UsageError
from goose_like.terminal.escape import to_one_line

from ..hooks.sources import parse_hooks
from ..mcp.config import SERVERS_KEY
from ..skills.places import FILE_NAME
from ..skills.skill_file import list_deviations, parse_skill_file, read_skill_text
from .portable import MANIFEST, SCHEMA_START, check_manifest, read_portable_servers

_MANIFESTS: dict[Layout, str] = {
    "agent-plugins": MANIFEST,
    "claude": ".claude-plugin/plugin.json",
    "codex": ".codex-plugin/plugin.json",
}
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9]|[-._](?=[a-z0-9])){0,63}", re.IGNORECASE)
_UNUSED = ("lspServers", "outputStyles", "apps", "monitors", "themes", "settings", "channels")
"""Parts that only their own agent has."""
_ASKED = "${user_config."
"""The place of a value that Claude Code asks the person for."""
_FOREIGN_KEY = re.compile(r"the key `.*` is not in the specification")


@dataclass(slots=True)
class Contents:
    """A bundle, its hooks by event, and its servers by name. `problems` are sentences about parts that are not used."""

    bundle: Bundle
    hooks: dict[str, list[Any]] = field(default_factory=dict)
    servers: dict[str, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def find_layout(root: Path) -> Layout | None:
    """Find the layout of a folder by its manifest. Of several, the portable one counts."""
    for layout, name in _MANIFESTS.items():
        file = root / name
        if not file.is_file():
            continue
        if layout == "agent-plugins":
            # Other programs have files of this name, too.
            schema = _read_object(file).get("$schema")
            if not isinstance(schema, str) or not schema.startswith(SCHEMA_START):
                continue
        return layout
    return None


def read_contents(root: Path, entry: Mapping[str, Any]) -> Contents:
    """Read the folder of a bundle. `entry` is that of its marketplace, which stands for a missing manifest.

    Raises:
        UsageError: it is no bundle, or one that must not be loaded.
    """
    layout = find_layout(root)
    manifest: dict[str, Any] = dict(entry)
    if layout:
        manifest |= _read_object(root / _MANIFESTS[layout])
    elif not entry:
        names = ", ".join(_MANIFESTS.values())
        raise UsageError(f"this is no bundle: it has none of {names}")
    name = manifest.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise UsageError(f"the bundle has no usable name: {name!r}; it needs letters, digits, and `-` or `.` between")
    bundle = Bundle(
        name=name,
        layout=layout or "claude",
        version=_read_line(manifest.get("version")),
        description=_read_line(manifest.get("description")),
    )
    contents = Contents(bundle)
    if layout == "agent-plugins":
        contents.problems += check_manifest(manifest)
        skill_files = list(_find_skills(root / "skills"))
        contents.servers, problems = read_portable_servers(root)
        contents.problems += problems
        skills = _check_skills(root, skill_files, contents, is_portable=True)
        contents.bundle = bundle.model_copy(update={"skills": skills})
        return contents
    _Reader(root, manifest, contents, is_listed=layout is None).read()
    return contents


def _read_object(file: Path) -> dict[str, Any]:
    try:
        value = parse_json(read_user_file(file))
    except (OSError, ValueError) as error:
        raise UsageError(f"{file.name} of the bundle can't be read: {describe_read_error(error)}") from error
    if not isinstance(value, dict):
        raise UsageError(f"{file.name} of the bundle is no JSON object")
    return value


def _read_line(value: object) -> str:
    return to_one_line(value, 300) if isinstance(value, str) else ""


def _find_skills(folder: Path) -> Iterator[Path]:
    """Yield the SKILL.md files in the immediate folders of a folder."""
    if not folder.is_dir():
        return
    for place in sorted(folder.iterdir()):
        if (place / FILE_NAME).is_file():
            yield place / FILE_NAME


def _check_skills(root: Path, files: Sequence[Path], contents: Contents, *, is_portable: bool) -> tuple[str, ...]:
    """Return the paths of the skills that follow the specification.

    In a portable bundle, other keys are deviations too.
    """
    accepted: list[str] = []
    for file in dict.fromkeys(files):
        path = str(file.relative_to(root))
        try:
            skill = parse_skill_file(file, read_skill_text(file))
        except GooseLikeError as error:
            reason = str(error).replace(str(file), path)
            contents.problems.append(f"skill {reason}")
            continue
        deviations = list(list_deviations(file, skill))
        if not is_portable:
            deviations = [each for each in deviations if not _FOREIGN_KEY.fullmatch(each)]
        if deviations:
            contents.problems.append(f"skill {path}: {deviations[0]}")
        else:
            accepted.append(path)
    return tuple(accepted)


class _Reader:
    """A reader of the layouts of Claude Code and Codex: usual places, and those that the manifest adds."""

    def __init__(self, root: Path, manifest: Mapping[str, Any], contents: Contents, *, is_listed: bool) -> None:
        """Read nothing yet. `is_listed`: the manifest is that of a marketplace, which lists each part whole."""
        self._root = root
        self._manifest = manifest
        self._contents = contents
        self._layout = contents.bundle.layout
        self._is_listed = is_listed

    def read(self) -> None:
        """Read all parts."""
        skills = _check_skills(self._root, self._list_skills(), self._contents, is_portable=False)
        parts = {"skills": skills, "agents": self._list_agents(), "commands": self._list_texts("commands")}
        self._contents.bundle = self._contents.bundle.model_copy(update=parts)
        for value in self._list_values("hooks", "hooks/hooks.json"):
            self._add_hooks(value)
        for value in self._list_values(SERVERS_KEY, ".mcp.json"):
            self._add_servers(value)
        for key in _UNUSED:
            if self._manifest.get(key):
                self._note(f"`{key}` has no counterpart here")

    def _note(self, text: str) -> None:
        self._contents.problems.append(text)

    def _find(self, value: object) -> Path | None:
        """Return the place that a manifest names, or None if it is not in the bundle."""
        if isinstance(value, str):
            with suppress(ValueError):  # no path, as one with a NUL byte
                place = Path(os.path.realpath(self._root / value))
                if place.exists() and place.is_relative_to(os.path.realpath(self._root)):
                    return place
        self._note(f"{str(value)[:80]!r} is not in the bundle")
        return None

    def _has_usual(self, key: str) -> bool:
        return not self._is_listed or key not in self._manifest

    def _list_places(self, key: str) -> list[Path]:
        """List the usual folder of a part, and the places that the manifest names."""
        usual = Path(os.path.realpath(self._root / key))
        places = []
        if usual.is_dir() and self._has_usual(key):
            places.append(usual)
        given = self._manifest.get(key) or []
        if isinstance(given, str):
            given = [given]
        if not isinstance(given, list):
            given = []
        for value in given:
            place = self._find(value)
            if place and place not in places:
                places.append(place)
        return places

    def _list_skills(self) -> list[Path]:
        files: list[Path] = []
        for place in self._list_places("skills"):
            if (place / FILE_NAME).is_file():
                files.append(place / FILE_NAME)
            else:
                files += _find_skills(place)
        return files

    def _list_texts(self, key: str) -> dict[str, str]:
        """List the paths of Markdown files by their names below the folder, as in `git:log`."""
        found: dict[str, str] = {}
        for place in self._list_places(key):
            files = [place]
            top = place.parent
            if place.is_dir():
                files = sorted(place.rglob("*.md"))
                top = place
            for file in files:
                below = file.relative_to(top)
                if file.suffix == ".md" and file.name != "README.md":
                    name = ":".join(below.with_suffix("").parts)
                    found[name] = str(file.relative_to(os.path.realpath(self._root)))
        return found

    def _list_agents(self) -> tuple[str, ...]:
        """List the paths of the agent files that can be used."""
        found: list[str] = []
        for path in self._list_texts("agents").values():
            file = self._root / path
            try:
                parse_agent_file(file, read_user_file(file))
            except (OSError, ValueError, GooseLikeError) as error:
                reason = str(error).replace(str(file), path)
                self._note(f"agent {reason}")
            else:
                found.append(path)
        return tuple(found)

    def _list_values(self, key: str, usual: str) -> Iterator[Any]:
        """Yield the content of the usual file, and what the manifest has or names."""
        given = self._manifest.get(key) or []
        values = given if isinstance(given, list) else [given]
        has_usual = (self._root / usual).is_file() and self._has_usual(key)
        if has_usual and not any(_is_same(value, usual) for value in values):
            values = [usual, *values]
        for value in values:
            if isinstance(value, Mapping):
                yield value
                continue
            file = self._find(value)
            if file is None:
                continue
            try:
                yield parse_json(read_user_file(file))
            except (OSError, ValueError) as error:
                self._note(f"{file.name} can't be read: {describe_read_error(error)}")

    def _add_hooks(self, value: Any) -> None:
        events = value
        if isinstance(value, Mapping) and "hooks" in value:
            try:
                events = parse_hooks("hooks.json", json.dumps(value))
            except ValueError as error:
                self._note(f"its hooks can't be read: {error}")
                return
        if not isinstance(events, Mapping):
            self._note("its hooks are no mapping of events")
            return
        if _ASKED in json.dumps(events):
            self._note("its hooks need values that only Claude Code asks for (userConfig)")
            return
        for event, groups in events.items():
            if isinstance(groups, list):
                self._contents.hooks.setdefault(event, []).extend(groups)

    def _add_servers(self, value: Any) -> None:
        entries = value
        if isinstance(value, Mapping):
            entries = value.get(SERVERS_KEY, value)
        if not isinstance(entries, Mapping):
            self._note("its servers are no mapping by name")
            return
        for name, entry in entries.items():
            if not isinstance(entry, Mapping):
                continue
            if _ASKED in json.dumps(entry):
                self._note(f"the server {name} needs values that only Claude Code asks for (userConfig)")
                continue
            self._contents.servers[name] = self._place_server(dict(entry))

    def _place_server(self, entry: dict[str, Any]) -> dict[str, Any]:
        """Let a server of Codex, and one with a relative folder, start in the folder of the bundle."""
        folder = str(entry.get("cwd") or "")
        starts_in_bundle = self._layout == "codex" or folder != ""
        is_relative = not os.path.isabs(folder) and not folder.startswith("${")
        if "command" in entry and starts_in_bundle and is_relative:
            entry["cwd"] = os.path.normpath(f"${{PLUGIN_ROOT}}/{folder}")
        return entry


def _is_same(value: object, usual: str) -> bool:
    return isinstance(value, str) and os.path.normpath(value) == usual
