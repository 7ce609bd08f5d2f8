"""The desk: what the host sends comes here, and what a cell needs or leaves is seen to."""

from collections.abc import Callable
from typing import Any


class Desk:
    """Between the host and a namespace. `tell` sends the host a message."""

    def __init__(self, namespace: dict[str, Any], tell: Callable[[dict[str, Any]], None]) -> None:
        self._namespace = namespace
        self._tell = tell
        self._ours = frozenset(namespace)
        self._names: list[str] = []

    def take(self, message: dict[str, Any]) -> None:
        """Takes a message of the host."""

    def before_cell(self, code: str) -> None:
        """Called ahead of each cell; what it raises is the cell's own error, and nothing of the cell is run."""

    def after_cell(self) -> None:
        """Called after each cell, however it ended: tells which names there are, when they changed."""
        names = sorted(name for name in self._namespace if not name.startswith("_") and name not in self._ours)
        if names != self._names:
            self._names = names
            self._tell({"type": "names", "names": names})
