"""What undo remembers, one JSON object a line: how things were before a turn, and what the turn left."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path
from typing import Any

from .snapshot import ABSENT, Node


@dataclass(frozen=True, slots=True)
class Step:
    """What a turn did to one path. `after` is None when nobody looked at its end: it may be anyone's."""

    turn: int
    before: Node
    after: Node | None


@dataclass(slots=True)
class Open:
    """A turn whose end was not looked at yet: what was kept of single files, and whether stock was taken."""

    turn: int
    kept: dict[str, Node] = field(default_factory=dict)
    root: str = ""
    ignored: frozenset[str] = frozenset()


class Records:
    """A fold over the lines of a file, by absolute path. `tree` is the newest stock.

    Plain JSON and no model: file names may hold bytes that no text can, which come through here.
    """

    def __init__(self, file: Path) -> None:
        """Reads the file, and makes it with mode 0600. Raises: OSError: it can't be read or written."""
        self.steps: dict[str, list[Step]] = {}
        self.tree: dict[str, Node] = {}
        self.open: Open | None = None
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        self._file = FileIO(descriptor, "r+")
        data = self._file.readall()
        self._file.truncate(data.rfind(b"\n") + 1)
        for number, line in enumerate(data[: data.rfind(b"\n") + 1].splitlines(), 1):
            try:
                self._apply(json.loads(line))
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                raise OSError(f"{file}, line {number}: it can't be read") from error

    def begin(self, turn: int) -> Open:
        """The open turn, which is this one."""
        if self.open is None or self.open.turn != turn:
            self.open = Open(turn)
        return self.open

    def keep(self, turn: int, nodes: Mapping[str, Node]) -> None:
        """Before single files change: how they are. Raises: OSError: the disk is full."""
        self._append({"turn": turn, "kept": _plain(nodes)})

    def stock(self, turn: int, root: str, ignored: frozenset[str], tree: Mapping[str, Node]) -> None:
        """Before a command: how everything is. Only what is new since the last stock is written.

        Raises:
            OSError: the disk is full.
        """
        news = {path: node for path, node in tree.items() if self.tree.get(path) != node}
        news |= dict.fromkeys(self.tree.keys() - tree.keys(), ABSENT)
        self._append({"turn": turn, "stock": _plain(news), "root": root, "ignored": sorted(ignored)})

    def leave(self, turn: int, changes: Mapping[str, tuple[Node, Node]], *, is_ours: bool = True) -> None:
        """What a turn left. What of it may be anyone's is not `is_ours`. Raises: OSError: the disk is full."""
        left = {
            path: [*_plain({"before": before, "after": after}).values()] for path, (before, after) in changes.items()
        }
        self._append({"turn": turn, "left": left, "is_ours": is_ours})

    def close(self) -> None:
        self._file.close()

    def _append(self, record: dict[str, Any]) -> None:
        """What is folded counts, even where it can't be written."""
        self._apply(record)
        line = json.dumps(record, separators=(",", ":")).encode() + b"\n"
        if self._file.write(line) != len(line):
            raise OSError("no space left on the device")

    def _apply(self, record: dict[str, Any]) -> None:
        turn = record["turn"]
        match record:
            case {"kept": kept}:
                for path, node in kept.items():
                    self.begin(turn).kept.setdefault(path, Node(*node))
            case {"stock": stock, "root": root, "ignored": ignored}:
                for path, node in stock.items():
                    self.tree[path] = Node(*node)
                    if self.tree[path] == ABSENT:
                        del self.tree[path]
                open_ = self.begin(turn)
                open_.root, open_.ignored = root, frozenset(ignored)
            case {"left": left, "is_ours": is_ours}:
                for path, (before, after) in left.items():
                    step = Step(turn, Node(*before), Node(*after) if is_ours else None)
                    self.steps.setdefault(path, []).append(step)
                self.open = None


def _plain(nodes: Mapping[str, Node]) -> dict[str, list[int | str]]:
    return {path: [node.mode, node.content] for path, node in nodes.items()}
