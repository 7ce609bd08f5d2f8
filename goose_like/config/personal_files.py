"""Personal files of other agents: instructions, commands and agents in the home folder, read if the person says so."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from goose_like.core.dataclass import dataclass

from .paths import TRUST_FILE, config_folder, home_folder

Kind = Literal["instructions", "commands", "agents"]

_PLACES: tuple[tuple[str, Kind], ...] = (
    (".codex/AGENTS.md", "instructions"),
    (".agents/AGENTS.md", "instructions"),
    (".claude/CLAUDE.md", "instructions"),
    (".claude/commands", "commands"),
    (".agents/commands", "commands"),
    (".claude/agents", "agents"),
    (".agents/agents", "agents"),
)
"""Files and folders below the home folder. Of instructions, the last ones have the most weight with a model."""


@dataclass(frozen=True, slots=True)
class PersonalPlace:
    """A file with instructions, or a folder with Markdown files, that belongs to another agent of the person."""

    path: Path
    kind: Kind

    def list_files(self) -> list[Path]:
        """List the files of this place. Links are followed: nobody else can write in the home folder."""
        if self.kind == "instructions":
            return [self.path] if os.path.isfile(self.path) else []
        # The methods of Path raise where a folder is closed to this user.
        if not os.path.isdir(self.path):
            return []
        found = [file for file in self.path.rglob("*.md") if os.path.isfile(file)]
        return sorted(found)


def find_personal_places() -> list[PersonalPlace]:
    """Find the places that have files."""
    home = home_folder()
    places = (PersonalPlace(home / name, kind) for name, kind in _PLACES)
    return [place for place in places if place.list_files()]


def may_ask_about_places() -> bool:
    """Check whether there are places about which the trust file has nothing. This is quick, and imports nothing."""
    home = home_folder()
    existing = [home / name for name, _ in _PLACES if os.path.lexists(home / name)]
    if not existing:
        return False
    try:
        stored = (config_folder() / TRUST_FILE).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return True
    return any(f'"{path}":' not in stored for path in existing)


def list_personal_files(places: Sequence[PersonalPlace], kind: Kind) -> Iterator[tuple[Path, Path]]:
    """Yield the files of one kind, each after its place."""
    for place in places:
        if place.kind != kind:
            continue
        for file in place.list_files():
            yield place.path, file
