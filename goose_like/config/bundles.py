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
        """Read a part that has a file of its own: `hooks` by event or `servers` by name. It may be empty."""
        file = self.folder / f"{name}.json"
        if not file.exists():
            return {}
        content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return content

    def read_texts(self, paths: tuple[str, ...]) -> Iterator[tuple[Path, str]]:
        """Yield files with their texts, filled in. One that is no text any more is left out."""
        for path in paths:
            file = self.root / path
            try:
                yield file, self.fill(read_user_file(file))
            except (OSError, ValueError):
                continue


def list_bundles() -> list[Bundle]:
    """List the installed bundles by name. One whose record cannot be read is left out, see `list_broken_bundles`."""
    bundles = []
    for name in _list_names():
        bundle = read_bundle(name)
        if bundle:
            bundles.append(bundle)
    return bundles


def list_broken_bundles() -> list[str]:
    """Return a sentence for each installed bundle whose record cannot be read, as one of a later version."""
    problems = []
    for name in _list_names():
        if read_bundle(name) is None:
            folder = shorten_home(str(config_folder() / BUNDLES / name))
            problems.append(f"the bundle {name!r} is not used: {folder}/{RECORD} can't be read; add it again")
    return problems


def read_bundle(name: str) -> Bundle | None:
    """Return an installed bundle, or None if its record is missing or cannot be read."""
    file = config_folder() / BUNDLES / name / RECORD
    try:
        bundle = Bundle.model_validate_json(file.read_bytes())
    except (OSError, ValidationError):
        return None
    return bundle if bundle.name == name else None


def _list_names() -> list[str]:
    try:
        names = os.listdir(config_folder() / BUNDLES)
    except OSError:  # there is none
        return []
    # Hidden ones are those that an interrupted command left.
    return sorted(name for name in names if not name.startswith("."))
