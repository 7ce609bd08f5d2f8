"""The undo log: the state of files before each turn, and the changes that the turn made."""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path
from typing import Any

from .blobs import BlobStore
from .snapshot import ABSENT, FileState


@dataclass(frozen=True, slots=True)
class PathChange:
    """The change of one path in one turn. `after` is None if anyone may have changed the path since."""

    turn: int
    before: FileState
    after: FileState | None


@dataclass(slots=True)
class OpenTurn:
    """A turn without recorded changes: original states of single files, and the root of a snapshot if there is one."""

    turn: int
    originals: dict[str, FileState] = field(default_factory=dict)
    root: str = ""
    ignored: frozenset[str] = frozenset()


class UndoLog:
    """A fold over the lines of a file, with the file contents in `blobs`. `snapshot` is the newest. Paths are absolute.

    Lines are plain JSON without a model, because file names may hold bytes that are not valid text. All methods raise
    OSError if the disk is full or the file cannot be read or written.
    """

    def __init__(self, folder: Path, limit_bytes: int) -> None:
        """Open the two files of a session's undo, or create them. `limit_bytes` limits the blobs."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = folder / "log.jsonl"
        self.blobs = BlobStore(folder / "blobs", limit_bytes)
        self.changes: dict[str, list[PathChange]] = {}
        self.snapshot: dict[str, FileState] = {}
        self.open_turn: OpenTurn | None = None
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        self._file = FileIO(descriptor, "r+")
        data = self._file.readall()
        self._file.truncate(data.rfind(b"\n") + 1)
        for number, line in enumerate(data[: data.rfind(b"\n") + 1].splitlines(), 1):
            try:
                self._apply(json.loads(line))
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                raise OSError(f"{file}, line {number}: it can't be read") from error

    def get_open_turn(self, turn: int) -> OpenTurn:
        """Return the open turn of this number, and open it if needed."""
        if self.open_turn is None or self.open_turn.turn != turn:
            self.open_turn = OpenTurn(turn)
        return self.open_turn

    def record_originals(self, turn: int, states: Mapping[str, FileState]) -> None:
        """Record the state of single files before they change."""
        self._append({"turn": turn, "originals": dict(states)})

    def record_snapshot(self, turn: int, root: str, ignored: frozenset[str], snapshot: Mapping[str, FileState]) -> None:
        """Record the state of the whole tree before a command. Only differences to the last snapshot are written."""
        changed = {path: state for path, state in snapshot.items() if self.snapshot.get(path) != state}
        changed |= dict.fromkeys(self.snapshot.keys() - snapshot.keys(), ABSENT)
        self._append({"turn": turn, "snapshot": changed, "root": root, "ignored": sorted(ignored)})

    def record_changes(
        self, turn: int, changes: Mapping[str, tuple[FileState, FileState]], *, is_ours: bool = True
    ) -> None:
        """Record the changes of a turn. Without `is_ours`, anyone may have made them."""
        self._append({"turn": turn, "changes": dict(changes), "is_ours": is_ours})

    def close(self) -> None:
        """Close both files. A full disk is no error here."""
        for file in (self.blobs, self._file):
            with suppress(OSError):
                file.close()

    def _append(self, record: dict[str, Any]) -> None:
        self._apply(record)  # the state in memory counts even if the record cannot be written
        line = json.dumps(record, separators=(",", ":")).encode() + b"\n"
        if self._file.write(line) != len(line):
            raise OSError("no space left on the device")

    def _apply(self, record: dict[str, Any]) -> None:
        turn = record["turn"]
        match record:
            case {"originals": originals}:
                for path, state in originals.items():
                    self.get_open_turn(turn).originals.setdefault(path, FileState(*state))
            case {"snapshot": snapshot, "root": root, "ignored": ignored}:
                for path, state in snapshot.items():
                    self.snapshot[path] = FileState(*state)
                    if self.snapshot[path] == ABSENT:
                        del self.snapshot[path]
                open_turn = self.get_open_turn(turn)
                open_turn.root, open_turn.ignored = root, frozenset(ignored)
            case {"changes": changes, "is_ours": is_ours}:
                for path, (before, after) in changes.items():
                    change = PathChange(turn, FileState(*before), FileState(*after) if is_ours else None)
                    self.changes.setdefault(path, []).append(change)
                self.open_turn = None
