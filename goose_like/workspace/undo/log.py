"""The undo log: the state of files before each turn, their former contents, and the changes that the turn made."""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import field
from io import FileIO
from pathlib import Path
from typing import Any

from goose_like.config.paths import create_private_folder
from goose_like.core.dataclass import dataclass

from .state import ABSENT, FileState

SavedClean = dict[str, tuple[str, str]]
"""The clean files below each root: the folder of the repository, and the name of the file with the list."""


@dataclass(frozen=True, slots=True)
class PathChange:
    """The change of one path in one turn. `after` is None if anyone may have changed the path since."""

    turn: int
    before: FileState
    after: FileState | None


@dataclass(slots=True)
class OpenTurn:
    """A turn without recorded changes: states from before them, and the roots of a snapshot if there is one.

    The states of `clean` files are not among them. `is_partial`: the snapshot holds only files that git tracks.
    """

    turn: int
    before: dict[str, FileState] = field(default_factory=dict)
    roots: tuple[str, ...] = ()
    ignored: frozenset[str] = frozenset()
    clean: SavedClean = field(default_factory=dict)
    is_partial: bool = False

    def covers(self, path: Path) -> bool:
        """Check whether the snapshot would contain this path, which is neither in `.git` nor ignored."""
        if self.is_partial or not any(map(path.is_relative_to, self.roots)):
            return False
        for one in (path, *path.parents):
            if one.name == ".git" or str(one) in self.ignored:
                return False
        return True


class UndoLog:
    """A file of records, and the state that they add up to. `snapshot` is the newest. Paths are absolute.

    A record is a line of JSON. There is no model, because file names may hold bytes that are not valid text. The line
    of a blob is followed by a former file content. Contents share one file, because twenty thousand small files would
    take seconds. A record that a dying process left unfinished is cut off. All methods raise OSError if the disk is
    full or the file cannot be read or written.
    """

    def __init__(self, folder: Path, limit_bytes: int) -> None:
        """Open the log of a session, or create it. `limit_bytes` limits its size."""
        create_private_folder(folder)
        path = folder / "log"
        self.changes: dict[str, list[PathChange]] = {}
        self.snapshot: dict[str, FileState] = {}
        self.open_turn: OpenTurn | None = None
        self._limit_bytes = limit_bytes
        self._blobs: dict[str, tuple[int, int]] = {}  # SHA-256 -> offset and size
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        self._file = FileIO(descriptor, "r+")
        self._end = 0
        self._read_records(path)
        self._file.truncate(self._end)

    def _read_records(self, path: Path) -> None:
        """Apply the records up to the first that is not complete, and move the end behind them."""
        size_bytes = os.fstat(self._file.fileno()).st_size
        with open(self._file.fileno(), "rb", closefd=False) as lines:
            while (line := lines.readline()).endswith(b"\n"):
                try:
                    record = json.loads(line)
                    start = self._end + len(line)
                    end = start + record.get("size", 0)
                    if end > size_bytes:
                        return
                    if "blob" in record:
                        self._blobs[record["blob"]] = (start, end - start)
                    else:
                        self._apply(record)
                except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
                    raise OSError(f"{path}, byte {self._end}: it can't be read") from error
                self._end = lines.seek(end)

    def get_open_turn(self, turn: int) -> OpenTurn:
        """Return the open turn of this number, and open it if needed."""
        if self.open_turn is None or self.open_turn.turn != turn:
            self.open_turn = OpenTurn(turn)
        return self.open_turn

    def record_originals(self, turn: int, states: Mapping[str, FileState]) -> None:
        """Record the state of single files before they change. Stored states that the turn already has are kept."""
        self._record({"turn": turn, "originals": dict(states)})

    def record_unsaved(self, turn: int, path: str, state: FileState) -> None:
        """Record the state in which a file was before the turn, with text that nobody had saved."""
        self._record({"turn": turn, "unsaved": {path: state}})

    def record_snapshot(
        self,
        turn: int,
        roots: Sequence[str],
        ignored: frozenset[str],
        snapshot: Mapping[str, FileState],
        clean: SavedClean | None = None,
        *,
        is_partial: bool = False,
    ) -> None:
        """Record the state of the whole trees before a command. Only differences to the last snapshot are written."""
        changed = {path: state for path, state in snapshot.items() if self.snapshot.get(path) != state}
        removed = self.snapshot.keys() - snapshot.keys()
        changed |= dict.fromkeys(removed, ABSENT)
        record: dict[str, Any] = {"turn": turn, "snapshot": changed, "roots": list(roots), "ignored": sorted(ignored)}
        if clean:
            record["clean"] = clean
        if is_partial:
            record["is_partial"] = True
        self._record(record)

    def record_changes(
        self, turn: int, changes: Mapping[str, tuple[FileState, FileState]], *, is_ours: bool = True
    ) -> None:
        """Record the changes of a turn. Without `is_ours`, anyone may have made them."""
        self._record({"turn": turn, "changes": dict(changes), "is_ours": is_ours})

    def store_blob(self, data: bytes) -> str:
        """Store a blob once, and return its SHA-256. The limit raises OSError too."""
        name = hashlib.sha256(data).hexdigest()
        if name not in self._blobs:
            if self._end + len(data) > self._limit_bytes:
                raise OSError(f"more than {self._limit_bytes >> 20:,} MB of former contents")
            self._write({"blob": name, "size": len(data)}, data)
            start = self._end - len(data)
            self._blobs[name] = (start, len(data))
        return name

    def store_or_hash_blob(self, data: bytes) -> str:
        """Store a blob if it fits, and return its SHA-256 in any case: a full disk must not prevent a restore."""
        try:
            return self.store_blob(data)
        except OSError:
            return hashlib.sha256(data).hexdigest()

    def read_blob(self, name: str) -> bytes:
        """Read the blob with this SHA-256. A missing or damaged blob raises OSError too."""
        start, size_bytes = self._blobs.get(name, (0, 0))
        data = os.pread(self._file.fileno(), size_bytes, start)
        if hashlib.sha256(data).hexdigest() != name:
            raise OSError("its former content is damaged")
        return data

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _record(self, record: dict[str, Any]) -> None:
        self._apply(record)  # the state in memory counts even if the record cannot be written
        self._write(record)

    def _write(self, record: dict[str, Any], blob: bytes = b"") -> None:
        line = json.dumps(record, separators=(",", ":")).encode()
        data = line + b"\n" + blob
        if os.pwrite(self._file.fileno(), data, self._end) != len(data):
            self._file.truncate(self._end)
            raise OSError("no space left on the device")
        self._end += len(data)

    def _apply(self, record: dict[str, Any]) -> None:
        turn = record["turn"]
        match record:
            case {"originals": originals}:
                self._apply_originals(turn, originals)
            case {"unsaved": states}:
                for path, fields in states.items():
                    self.get_open_turn(turn).before[path] = FileState(*fields)
            case {"snapshot": states, "ignored": ignored}:
                self._apply_snapshot(states)
                open_turn = self.get_open_turn(turn)
                # Sessions of earlier versions had one root.
                open_turn.roots = tuple(record.get("roots") or [record["root"]])
                open_turn.ignored = frozenset(ignored)
                # A file that a tool has changed in this turn already keeps its state from before.
                open_turn.before = self.snapshot | open_turn.before
                open_turn.clean = record.get("clean", {})
                open_turn.is_partial = record.get("is_partial", False)
            case {"changes": changes, "is_ours": is_ours}:
                self._apply_changes(turn, changes, is_ours)
                self.open_turn = None

    def _apply_originals(self, turn: int, originals: Mapping[str, Sequence[Any]]) -> None:
        before = self.get_open_turn(turn).before
        for path, fields in originals.items():
            if path not in before or not before[path].is_stored:
                before[path] = FileState(*fields)

    def _apply_snapshot(self, states: Mapping[str, Sequence[Any]]) -> None:
        for path, fields in states.items():
            state = FileState(*fields)
            if state == ABSENT:
                self.snapshot.pop(path, None)
            else:
                self.snapshot[path] = state

    def _apply_changes(self, turn: int, changes: Mapping[str, Sequence[Sequence[Any]]], is_ours: bool) -> None:
        for path, (old, new) in changes.items():
            before = FileState(*old)
            after = FileState(*new) if is_ours else None
            self.changes.setdefault(path, []).append(PathChange(turn, before, after))
