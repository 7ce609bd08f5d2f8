"""The audit's record on disk: what was accepted, so that the next session knows it if this one is killed."""

import base64
import fcntl
import hashlib
import json
import os
import secrets
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from goose_like.config.paths import state_folder

from .file_copy import FileCopies, FileCopy

Marks = dict[Path, tuple[int, ...]]
"""The inode and change time of each file that decides what git runs in a repository, and those of a link's target."""


@dataclass
class AcceptedState:
    """The state of a workspace that the person accepted."""

    repositories: dict[Path, Marks]
    start_files: dict[Path, FileCopies]
    covered: list[Path] = field(default_factory=list)
    """Paths that commands could not change."""
    closed: list[str] = field(default_factory=list)
    """Folders that could not be listed."""


class AuditRecord:
    """A file in goose_like's state that is locked while its session lives, and removed when the session ends."""

    def __init__(self, root: Path) -> None:
        """Create the file, and take over what a killed session recorded for the same workspace as `former`."""
        self._folder = state_folder() / "audits" / hashlib.sha256(os.fsencode(root)).hexdigest()[:20]
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.former: AcceptedState | None = None
        self._former_files: list[Path] = []
        for path in sorted(self._folder.iterdir(), key=lambda path: path.stat().st_mtime):
            with suppress(FileNotFoundError), path.open("rb") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError:
                    continue  # its session is alive
                self._former_files.append(path)
                if data := file.read():  # empty: nothing had run
                    self.former = self.former or _decode(data)
        self._path = self._folder / secrets.token_hex(8)
        self._file = self._path.open("xb", buffering=0)
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def write(self, state: AcceptedState) -> None:
        """Replace the content of the file."""
        data = _encode(state)
        os.pwrite(self._file.fileno(), data, 0)
        self._file.truncate(len(data))
        self._forget_former()

    def close(self, *, is_kept: bool = False) -> None:
        """Remove the file, or leave it to the next session as after a kill."""
        if not is_kept:
            self._path.unlink(missing_ok=True)
        self._file.close()

    def _forget_former(self) -> None:
        while self._former_files:
            self._former_files.pop().unlink(missing_ok=True)


def _encode(state: AcceptedState) -> bytes:
    content = {
        "repositories": {
            str(path): {str(file): mark for file, mark in marks.items()} for path, marks in state.repositories.items()
        },
        "start_files": {
            str(path): {
                str(file): (copy.mode, None if copy.data is None else base64.b64encode(copy.data).decode())
                for file, copy in copies.items()
            }
            for path, copies in state.start_files.items()
        },
        "covered": list(map(str, state.covered)),
        "closed": state.closed,
    }
    return json.dumps(content).encode()


def _decode(data: bytes) -> AcceptedState:
    """Read a record. Nothing was accepted according to one that is damaged."""
    try:
        content = json.loads(data)
        return AcceptedState(
            {
                Path(path): {Path(file): tuple(mark) for file, mark in marks.items()}
                for path, marks in content["repositories"].items()
            },
            {
                Path(path): {
                    Path(file): FileCopy(mode, None if text is None else base64.b64decode(text))
                    for file, (mode, text) in copies.items()
                }
                for path, copies in content["start_files"].items()
            },
            list(map(Path, content["covered"])),
            content["closed"],
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return AcceptedState({}, {})
