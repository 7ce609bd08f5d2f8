"""Installed bundles: skills, commands, agents, hooks and MCP servers that a person added together.

`goose-like bundle add` copies the files of a bundle into the configuration folder, where no tool can write, and stores
its parts beside them. So the parts of a session are those that the person has seen.
"""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from goose_like.core.message import FrozenModel

from .paths import config_folder, read_user_file, shorten_home, state_folder

BUNDLES = "bundles"
"""The folder of installed bundles in the configuration folder, and that of their data in the state folder."""

RECORD = "bundle.json"
FILES = "files"
_PARTS = ("hooks.json", "servers.json")

Layout = Literal["agent-plugins", "claude", "codex"]
"""The format of a bundle: Agent Plugins 1.0.0, or the plugins of Claude Code or Codex."""


class Bundle(FrozenModel):
    """An installed bundle. Paths of parts begin at its root; `commands` are by the part of their name behind `:`.

    `source` is the folder, address or package that it came from. `member` is its name in a marketplace there.
    """

    name: str
    layout: Layout
    source: str = ""
    member: str = ""
    version: str = ""
    description: str = ""
    skills: tuple[str, ...] = ()
    commands: dict[str, str] = {}
    agents: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """The folder of the bundle, with its record."""
        return config_folder() / BUNDLES / self.name

    @property
    def root(self) -> Path:
        """The folder of its files. It has the name of the bundle: some import themselves by it."""
        return self.folder / FILES / self.name

    @property
    def prefix(self) -> str:
        """The part of the names of its commands before `:`."""
        return self.name.replace(".", "-")

    @property
    def data(self) -> Path:
        """The folder in which its hooks and servers keep data. It survives updates."""
        return state_folder() / BUNDLES / self.name

    @property
    def variables(self) -> dict[str, str]:
        """The variables of its processes."""
        root = os.path.realpath(self.root)
        data = os.path.realpath(self.data)
        values = {"PLUGIN_ROOT": root, "PLUGIN_DATA": data}
        if self.layout != "agent-plugins":
            values |= {"CLAUDE_PLUGIN_ROOT": root, "CLAUDE_PLUGIN_DATA": data}
        return values

    def fill(self, text: str) -> str:
        """Replace the places of its variables, such as `${PLUGIN_ROOT}`, once."""
        # A value has none of these places, unless somebody named a folder so.
        for name, value in self.variables.items():
            text = text.replace(f"${{{name}}}", value)
        return text

    def fill_all(self, value: Any) -> Any:
        """Replace the places of its variables in all texts of JSON."""
        if isinstance(value, str):
            return self.fill(value)
        if isinstance(value, Mapping):
            return {key: self.fill_all(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self.fill_all(each) for each in value]
        return value

    def read_part(self, name: str) -> dict[str, Any]:
        """Read a part that has a file of its own: `hooks` by event or `servers` by name.

        It is empty if the bundle has none, or if the file is damaged, see `list_broken_bundles`.
        """
        return _read_object(self.folder / f"{name}.json") or {}

    def read_texts(self, paths: tuple[str, ...]) -> Iterator[tuple[Path, str]]:
        """Yield files with their texts, filled in. One that is no text any more is left out."""
        for path in paths:
            file = self.root / path
            try:
                yield file, self.fill(read_user_file(file))
            except (OSError, ValueError):
                continue


def list_bundles() -> list[Bundle]:
    """List the installed bundles by name. One that cannot be read is left out, see `list_broken_bundles`."""
    bundles = []
    for name in list_names():
        bundle = read_bundle(name)
        if bundle:
            bundles.append(bundle)
    return bundles


def list_roots() -> list[Path]:
    """List the folders of the files of installed bundles, which hooks and servers must be able to read."""
    return [bundle.root for bundle in list_bundles()]


def list_broken_bundles() -> list[str]:
    """Return a sentence for each installed bundle with a file that cannot be read, as one of a later version."""
    problems = []
    for name in list_names():
        folder = config_folder() / BUNDLES / name
        if read_bundle(name) is None:
            file = shorten_home(str(folder / (_find_damaged_part(folder) or RECORD)))
            problems.append(f"the bundle {name!r} is not used: {file} can't be read; add it again")
    return problems


def read_bundle(name: str) -> Bundle | None:
    """Return an installed bundle, or None if its record is missing, or one of its files cannot be read."""
    file = config_folder() / BUNDLES / name / RECORD
    try:
        bundle = Bundle.model_validate_json(file.read_bytes())
    except (OSError, ValidationError):
        return None
    if bundle.name != name or _find_damaged_part(bundle.folder):
        return None
    return bundle


def _find_damaged_part(folder: Path) -> str | None:
    for name in _PARTS:
        if _read_object(folder / name) is None:
            return name
    return None


def _read_object(file: Path) -> dict[str, Any] | None:
    """Read the JSON object of a file. A missing one is empty; None if it is damaged."""
    try:
        content = json.loads(file.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def list_names() -> list[str]:
    """List the names of installed bundles, also of those that cannot be read."""
    try:
        names = os.listdir(config_folder() / BUNDLES)
    except OSError:  # there is none
        return []
    # Hidden ones are those that an interrupted command left.
    return sorted(name for name in names if not name.startswith("."))
