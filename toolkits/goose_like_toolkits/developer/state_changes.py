"""Facts that change during a session: the date, the git branch, and the files that the model has read."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from goose_like.core.errors import GooseLikeError
from goose_like.toolkit import Workspace

MAX_FILE_BYTES = 5_000_000
MAX_NAMES = 20

FileMarks = tuple[int, int] | None
"""Change time in nanoseconds and size of a file; None if it is missing."""


class StateChanges:
    """Collects the facts before each step. An unchanged file costs one `stat`."""

    def __init__(self, workspace: Workspace, known: Mapping[Path, bytes]) -> None:
        """Create the collector. `known` has the digest of each file as the model saw it."""
        self._workspace = workspace
        self._known = known
        self._seen: dict[Path, tuple[bytes, FileMarks]] = {}
        self._reported: dict[Path, bytes] = {}

    def collect(self) -> dict[str, str]:
        """Collect the facts by subject."""
        return {
            "date": f"{datetime.now(UTC).astimezone():%A, %Y-%m-%d}",
            "git branch": self._workspace.branch,
            "no longer as you saw it": self._list_changed_files(),
        }

    def _list_changed_files(self) -> str:
        """List the files with new content since the last call, and the times of their changes."""
        changed = []
        for path, digest in self._known.items():
            marks = _read_marks(path)
            seen = self._seen.get(path)
            if seen != (digest, marks):
                self._seen[path] = digest, marks
                is_new = self._reported.get(path) != digest  # a growing file is reported once, until it is read again
                if is_new and seen and seen[0] == digest and self._read_digest(path) != digest:
                    self._reported[path] = digest
                    at = f"{datetime.fromtimestamp(marks[0] / 1e9, UTC).astimezone():%H:%M:%S}" if marks else "gone"
                    changed.append(f"{self._format_path(path)} ({at})")
        return ", ".join(changed[:MAX_NAMES] + ["..."] * (len(changed) > MAX_NAMES))

    def _read_digest(self, path: Path) -> bytes:
        with suppress(GooseLikeError, OSError):
            return sha256(self._workspace.read_bytes(path, MAX_FILE_BYTES)).digest()
        return b""

    def _format_path(self, path: Path) -> str:
        root = self._workspace.root
        return str(path.relative_to(root) if path.is_relative_to(root) else path)


def _read_marks(path: Path) -> FileMarks:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
