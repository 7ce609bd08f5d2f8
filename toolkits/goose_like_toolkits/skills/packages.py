"""Bundles in installed Python packages, by the convention of the PyPI package `agent-plugins`.

A package names its plugin in `agent_plugins.json`, beside its metadata: the root folder, and the files in it. Nothing
is imported. The files are read strictly: a package is a release, which somebody can correct.
"""

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from goose_like.config.entry_points import list_package_files
from goose_like.config.foreign_text import parse_json
from goose_like.config.paths import read_user_file
from goose_like.core.dataclass import dataclass
from goose_like.core.errors import GooseLikeError

from .places import FILE_NAME, PACKAGE_FILE

_MANIFEST = "plugin.json"
_SCHEMA = "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json"


@dataclass(frozen=True, slots=True)
class PackagePlugin:
    """The plugin of a package: its root, and the SKILL.md files of its skills."""

    package: str
    root: Path
    skill_files: tuple[Path, ...]


def find_package_plugins() -> tuple[list[PackagePlugin], list[str]]:
    """Find the plugins of installed packages, and a sentence for each one that cannot be used."""
    plugins: list[PackagePlugin] = []
    problems: list[str] = []
    for marker in list_package_files(PACKAGE_FILE):
        package, _, _ = marker.parent.name.partition("-")
        try:
            plugins.append(_read_plugin(package, marker))
        except (OSError, ValueError, GooseLikeError) as error:
            problems.append(f"the plugin of the package {package!r} is not used: {error}; reinstall the package")
    return plugins, problems


def _read_plugin(package: str, marker: Path) -> PackagePlugin:
    value = parse_json(read_user_file(marker))
    if not isinstance(value, dict) or not isinstance(value.get("root"), str):
        raise GooseLikeError(f"{marker} names no root")
    names = value.get("files")
    if not isinstance(names, list):
        raise GooseLikeError(f"{marker} lists no files")
    root = marker.parents[1] / value["root"]
    _check_manifest(root / _MANIFEST)
    files: list[Path] = []
    for name in _list_skill_names(names):
        file = root / "skills" / name / FILE_NAME
        if os.path.realpath(file) != os.path.join(os.path.realpath(root), "skills", name, FILE_NAME):
            raise GooseLikeError(f"{file} is a link")
        files.append(file)
    return PackagePlugin(package, root, tuple(files))


def _check_manifest(file: Path) -> None:
    manifest: Any = parse_json(read_user_file(file))
    if not isinstance(manifest, dict) or manifest.get("$schema") != _SCHEMA:
        raise GooseLikeError(f'{file} has another "$schema" than {_SCHEMA}')


def _list_skill_names(names: list[Any]) -> Iterator[str]:
    """Yield the names of the skills: the immediate folders in `skills` that have a SKILL.md file."""
    for name in sorted(map(str, names)):
        parts = PurePosixPath(name).parts
        is_skill = len(parts) == 3 and parts[0] == "skills" and parts[2] == FILE_NAME
        if is_skill and parts[1] not in (".", ".."):
            yield parts[1]
