"""Imports of components: fixed folders for the framework and for code that does not come from pip."""

import sys
from collections.abc import Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType


class FixedFolders(MetaPathFinder):
    """Finds top-level packages in fixed folders first, so that no copy that pip installs can replace them."""

    def __init__(self, folders: Mapping[str, Sequence[str]]) -> None:
        self._folders = folders

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a top-level package; a namespace package also has its parts on `sys.path`."""
        if path is not None or fullname not in self._folders:
            return None
        folders = list(self._folders[fullname])
        spec = PathFinder.find_spec(fullname, folders)
        if spec is not None and spec.origin is None:
            return PathFinder.find_spec(fullname, [*folders, *sys.path])
        return spec


def use_folders(folders: Mapping[str, Sequence[str]], site_folders: Sequence[str], more: Sequence[str]) -> None:
    """Set up imports.

    Args:
        folders: folders by the name of the top-level package in them.
        site_folders: the site-packages of the components' environment, which win over goose_like's own.
        more: folders that come last.
    """
    sys.meta_path.insert(0, FixedFolders(folders))
    place = 0
    while place < len(sys.path) and not sys.path[place].endswith("-packages"):
        place += 1
    sys.path[place:place] = site_folders
    sys.path += more
