"""The audit's record on disk: what was accepted, so that the next session knows it if this one is killed."""

import base64
import fcntl
import hashlib
import json
import os
import secrets
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import field
from io import FileIO
from pathlib import Path

from goose_like.config.paths import (
    create_private_folder,
    describe_file_error,
    is_closed_error,
    lock_folder,
    state_folder,
)
from goose_like.core.dataclass import dataclass

from .file_copy import FileCopies, FileCopy


@dataclass
class AcceptedState:
    """The state of a workspace that the person accepted."""

    places: dict[Path, FileCopies] = field(default_factory=dict)
    """The accepted files of each repository and start file."""
    covered: list[Path] = field(default_factory=list)
    """Paths that commands could not change."""
    closed: list[str] = field(default_factory=list)
    """Folders that could not be listed."""

    def add(self, other: "AcceptedState") -> None:
        """Add the places of another state that this one does not have."""
        self.places = {**other.places, **self.places}
        self.covered += other.covered
        self.closed += other.closed


class AuditRecord:
    """A file in goose_like's state that is locked while its session lives, and removed when the session ends."""

    def __init__(self, root: Path) -> None:
        """Create the file, and take over what killed sessions recorded for the same workspace as `former`.

        Raise OSError if there may be records that cannot be read, or if the disk is full.
        """
        name = hashlib.sha256(os.fsencode(root)).hexdigest()[:20]
        self._folder = state_folder() / "audits" / name
        self._former_files: list[Path] = []
        self._file: FileIO | None = None
        self.former: AcceptedState | None = None
        self.problem = ""
        """The reason why there is no file, as in a home folder that is read-only."""
        try:
            create_private_folder(self._folder)
        except OSError as error:
            if not is_closed_error(error) or os.path.lexists(self._folder):
                raise
            self.problem = describe_file_error(error)
            return
        with lock_folder(self._folder):  # otherwise another session takes a new file for that of a killed one
            self._read_former()
            self._create_file()

    def _read_former(self) -> None:
        records = []
        for path in self._folder.iterdir():
            with suppress(FileNotFoundError), path.open("rb") as file:  # its session may end right now
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError:
                    continue  # its session is alive
                if os.fstat(file.fileno()).st_nlink == 0:
                    continue  # its session has just removed it
                self._former_files.append(path)
                data = file.read()
                if data:  # else nothing had run
                    changed_ns = os.fstat(file.fileno()).st_mtime_ns
                    records.append((changed_ns, data))
        if records:
            _, oldest = min(records)
            self.former = _decode(oldest)

    def _create_file(self) -> None:
        self._path = self._folder / secrets.token_hex(8)
        try:
            self._path.touch(0o600, exist_ok=False)
        except OSError as error:
            if not is_closed_error(error):
                raise
            self.problem = describe_file_error(error)
            return
        self._file = self._path.open("r+b", buffering=0)
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def write(self, state: AcceptedState) -> None:
        """Replace the content of the file. A kill in between leaves no half of it, so the file never gets shorter."""
        if self._file is None:
            return
        size_bytes = os.fstat(self._file.fileno()).st_size
        data = _encode(state).ljust(size_bytes)
        os.pwrite(self._file.fileno(), data, 0)
        while self._former_files:
            self._former_files.pop().unlink(missing_ok=True)

    def close(self, *, is_kept: bool = False) -> None:
        """Remove the file, or leave it to the next session as after a kill."""
        if self._file is None:
            return
        if not is_kept:
            self._path.unlink(missing_ok=True)
        self._file.close()


class AuditRecords:
    """The records of all folders that a session works in: the next one in any of them knows what was accepted."""

    def __init__(self, roots: Iterable[Path]) -> None:
        """Create a record for each folder, and merge what killed sessions recorded. Raise like `AuditRecord`."""
        self._records = [AuditRecord(root) for root in roots]
        self.problem = next(filter(None, (record.problem for record in self._records)), "")
        self.former: AcceptedState | None = None
        for record in self._records:
            if record.former and self.former:
                self.former.add(record.former)
            elif record.former:
                self.former = record.former

    def write(self, state: AcceptedState) -> None:
        """Replace the content of the files."""
        for record in self._records:
            record.write(state)

    def close(self, *, is_kept: bool = False) -> None:
        """Remove the files, or leave them to the next session as after a kill."""
        for record in self._records:
            record.close(is_kept=is_kept)


def _encode(state: AcceptedState) -> bytes:
    files = []
    for place, copies in state.places.items():
        for path, copy in copies.items():
            text = base64.b64encode(copy.data or b"").decode()
            is_unknown = copy.data is None
            files.append((str(place), str(path), copy.mode, text, is_unknown, copy.changed_ns))
    covered = list(map(str, state.covered))
    record = {"files": files, "covered": covered, "closed": state.closed}
    return json.dumps(record).encode()


def _decode(data: bytes) -> AcceptedState:
    """Read a record. Nothing was accepted according to one that is damaged."""
    try:
        content = json.loads(data)
        covered = list(map(Path, content["covered"]))
        state = AcceptedState(covered=covered, closed=content["closed"])
        for place, path, mode, text, is_unknown, changed_ns in content["files"]:
            content_bytes = None if is_unknown else base64.b64decode(text)
            files = state.places.setdefault(Path(place), {})
            files[Path(path)] = FileCopy(mode, content_bytes, changed_ns)
        return state
    except (ValueError, KeyError, TypeError, AttributeError):
        return AcceptedState()
