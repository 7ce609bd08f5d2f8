"""Pydantic's search for its plugins, which reads the metadata of all installed packages: a twentieth of a start."""

import sys
from types import ModuleType

from goose_like.config.entry_points import has_pydantic_plugins

_LOADER = "pydantic.plugin._loader"


class _NoPlugins(ModuleType):
    """Stands for the module of pydantic that searches, and that imports `importlib.metadata` for it."""

    @staticmethod
    def get_plugins() -> tuple[()]:
        """Return no plugins, as the search would."""
        return ()


def skip_plugin_search() -> None:
    """Spare pydantic its search if no installed package has a plugin. Call this before pydantic is imported.

    This is for processes of the command: a program that imports goose_like keeps its pydantic as it is.
    """
    if not has_pydantic_plugins():
        sys.modules.setdefault(_LOADER, _NoPlugins(_LOADER))
