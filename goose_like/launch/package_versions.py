"""Versions of installed packages without `importlib.metadata`, whose import takes a fiftieth of a start.

httpx2 and httpcore2 ask for their own versions when they are imported.
"""

import importlib
import sys
from types import ModuleType
from typing import Any

from goose_like.config.entry_points import find_package_version

_NAME = "importlib.metadata"


class _VersionsOnly(ModuleType):
    """A placeholder for `importlib.metadata`, which is imported as soon as somebody needs another part of it."""

    def version(self, name: str) -> str:
        """Return the version of a package."""
        known = find_package_version(name)
        if known:
            return known
        found: str = _import_metadata().version(name)
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(_import_metadata(), name)


def _import_metadata() -> Any:
    if isinstance(sys.modules[_NAME], _VersionsOnly):
        del sys.modules[_NAME]
    return importlib.import_module(_NAME)


def spare_metadata() -> None:
    """Let `importlib.metadata` wait for its first use. Call this before other packages are imported.

    This is for processes of the command: a program that imports goose_like keeps the module as it is.
    """
    if _NAME in sys.modules:
        return
    module = _VersionsOnly(_NAME)
    module.__path__ = [f"{path}/metadata" for path in importlib.__path__]
    sys.modules[_NAME] = module
    importlib.metadata = module
