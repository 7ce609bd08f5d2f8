"""Local repositories of components in ConCopilot's layout, and the settings that name them."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from goose_like.config.paths import expand_home, home_folder
from goose_like.config.yaml_source import read_yaml, validate
from goose_like.core.errors import GooseLikeError, UsageError
from goose_like.core.message import FrozenModel, Utf8Text
from goose_like.core.spelling import find_nearest_name

from ..definition.coordinates import Coordinates

CONFIG_FILES = ("config.yaml", "config.yml")
COMPLETED = "__COMPLETED"
SHIPPED = Path(__file__).parents[1] / "shipped"
"""The repository with the components of goose_like, and those of ConCopilot whose config.yaml its wheel lacks."""


class _File(FrozenModel):
    local_repo_path: Utf8Text | None = None
    repos: tuple[dict[str, Any] | None, ...] | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """ConCopilot's settings; `file` is None if there is none. Its own code reads the remote repositories."""

    local: Path
    file: Path | None = None


def read_settings(file: Path | None = None) -> Settings:
    """Read a settings file, by default `~/.concopilot/settings.yaml` if there is one. Raise UsageError for errors."""
    home = home_folder() / ".concopilot"
    chosen = file or home / "settings.yaml"
    if not chosen.is_file():
        if file or chosen.exists():
            raise UsageError(f"there is no file {chosen}; name another with --settings, or leave it out")
        return Settings(home / "repository")
    source = read_yaml(chosen)
    read = validate(_File, source.data, source, "the settings")
    local = Path(read.local_repo_path or home / "repository")
    return Settings(expand_home(local), chosen)


def list_file_names(config_file: str = "") -> tuple[str, ...]:
    """List the names that a config file may have; a given one comes first."""
    return (config_file, *CONFIG_FILES) if config_file else CONFIG_FILES


@dataclass(frozen=True, slots=True)
class Repositories:
    """Local repositories in the order in which components are looked for; the first one is written to."""

    folders: tuple[Path, ...]

    @classmethod
    def of(cls, settings: Settings, more: Sequence[Path] = ()) -> "Repositories":
        """Return the repository of the settings, `more`, and that of goose_like."""
        return cls((settings.local, *more, SHIPPED))

    @property
    def local(self) -> Path:
        """The repository that is written to."""
        return self.folders[0]

    def find(self, coordinates: Coordinates, config_file: str = "") -> Path:
        """Return the config file of a component. Raise GooseLikeError if there is none."""
        for repository in self.folders:
            folder = repository / coordinates.folder
            if not (folder / COMPLETED).exists():
                continue
            for name in list_file_names(config_file):
                file = folder / f"{coordinates.prefix}{name}"
                if file.is_file():
                    return file
        raise GooseLikeError(self._explain_missing(coordinates))

    def _explain_missing(self, coordinates: Coordinates) -> str:
        known = [str(each) for each, _ in self.list_all()]
        near = find_nearest_name(str(coordinates), known)
        check = "check its coordinates, or"
        if near:
            check = f"did you mean {near}? If not,"
        folders = ", ".join(map(str, self.folders[:-1]))
        return (
            f"there is no component {coordinates} in {folders}; {check} run: "
            f"goose-like component install {coordinates}, or with the folder of its source"
        )

    def list_all(self) -> list[tuple[Coordinates, Path]]:
        """Return all components in order, each with its repository. Raise UsageError if a repository is no folder."""
        found: dict[Coordinates, Path] = {}
        for repository in self.folders:
            if os.path.lexists(repository) and not repository.is_dir():
                raise UsageError(f"{repository} is no folder; name another in settings.yaml: local_repo_path")
            for folder, names, files in os.walk(repository):
                names[:] = [name for name in names if not name.startswith(".")]
                if COMPLETED not in files:
                    continue
                coordinates = _parse(Path(folder).relative_to(repository).parts)
                if coordinates:
                    found.setdefault(coordinates, repository)
        return sorted(found.items(), key=lambda item: str(item[0]))


def _parse(parts: tuple[str, ...]) -> Coordinates | None:
    if len(parts) < 3:
        return None
    *group, artifact, version = parts
    try:
        return Coordinates(".".join(group), artifact, version)
    except UsageError:
        return None
