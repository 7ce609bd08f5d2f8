"""The files that a project may bring for goose_like and for toolkits.

Packages declare the files of their toolkits in the entry-point group `goose_like.toolkit_files`, where each name is a
pattern. A pattern below the root of a project finds files that need the person's trust. A pattern that begins with
`~/` or `{config}/` finds the person's own files.
"""

import os
from collections.abc import Collection
from fnmatch import fnmatchcase
from pathlib import Path

from .entry_points import list_entry_points
from .paths import (
    PROFILES,
    PROJECT_FOLDER,
    config_folder,
    find_repository_root,
    home_folder,
    list_project_folders,
)

_PERSONAL = ("~/", "{config}/")


def has_project_files(folder: Path) -> bool:
    """Return whether the repository around a folder may bring files for goose_like, which need trust."""
    root = find_repository_root(Path(os.path.realpath(folder)))
    names = (f"{PROJECT_FOLDER}/{PROFILES}", *list_project_folders(root))
    if any(os.path.lexists(root / name) for name in names):
        return True
    return bool(list_toolkit_files(root))


def list_toolkit_files(root: Path) -> list[Path]:
    """List the files of a project that belong to a toolkit, sorted. In the home folder, only those in our folder."""
    is_home = root == home_folder()
    found: set[Path] = set()
    for pattern in _list_project_patterns():
        if not is_home or pattern.startswith(f"{PROJECT_FOLDER}/"):
            found.update(root.glob(pattern))
    return sorted(found)


def is_below_root(name: str) -> bool:
    """Check whether a name of `ProjectConfig.files` is that of a toolkit's file outside of `.goose-like`."""
    for pattern in _list_project_patterns():
        is_below_ours = pattern.startswith(f"{PROJECT_FOLDER}/")
        if not is_below_ours and _matches(name, pattern):
            return True
    return False


def find_toolkits_with_files(trusted: Collection[str]) -> list[str]:
    """Return the toolkits that have a file, among the names of trusted files or with the person's own. Import none."""
    classes = set()
    for pattern, point in list_entry_points("goose_like.toolkit_files").items():
        if _has_file(pattern, trusted):
            classes.add(point.value)
    if not classes:
        return []
    toolkits = list_entry_points("goose_like.toolkit")
    return [name for name, point in toolkits.items() if point.value in classes]


def _has_file(pattern: str, trusted: Collection[str]) -> bool:
    folder, _, rest = pattern.partition("/")
    if folder == "~":
        return any(home_folder().glob(rest))
    if folder == "{config}":
        return any(config_folder().glob(rest))
    own_pattern = pattern.removeprefix(f"{PROJECT_FOLDER}/")
    return any(_matches(name, own_pattern) for name in trusted)


def _list_project_patterns() -> list[str]:
    patterns = list_entry_points("goose_like.toolkit_files")
    return [pattern for pattern in patterns if not pattern.startswith(_PERSONAL)]


def _matches(name: str, pattern: str) -> bool:
    """Compare a path with a pattern, folder by folder."""
    parts = name.split("/")
    wanted = pattern.split("/")
    return len(parts) == len(wanted) and all(map(fnmatchcase, parts, wanted))
