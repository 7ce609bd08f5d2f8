"""Facts that change during a session: the date, the git branch, and the files that the model has read."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from goose_like.core.errors import GooseLikeError
from goose_like.toolkit import Workspace

from .seen_files import SeenFiles, compute_digest, show_name

MAX_FILE_BYTES = 5_000_000
MAX_NAMES = 20

FileMarks = tuple[int, int] | None
"""Change time in nanoseconds and size of a file; None if it is missing."""

_UNKNOWN_MARKS = (-1, -1)
"""The marks of a file that an earlier process of the session read."""


class StateChanges:
    """Collects the facts before each step. An unchanged file costs one `stat`."""

    def __init__(self, workspace: Workspace, seen: SeenFiles) -> None:
        """Create the collector. `seen` has the files as the model saw them."""
        self._workspace = workspace
        self._seen = seen
        self._marks: dict[Path, tuple[str, FileMarks]] = {}
        for path, file in seen:
            self._marks[path] = (file.digest, _UNKNOWN_MARKS)
        self._reported: dict[Path, str] = {}
        self._by_command: dict[Path, FileMarks] = {}

    def collect(self) -> dict[str, str]:
        """Collect the facts by subject."""
        now = datetime.now(UTC).astimezone()
        return {
            "date": f"{now:%A, %Y-%m-%d}",
            "git branch": self._workspace.branch,
            "no longer as you saw it": self._list_changed_files(),
        }

    @contextmanager
    def follow_command(self) -> Iterator[None]:
        """Note which files a command of the model changes within the block."""
        before = {path: _read_marks(path) for path, _ in self._seen}
        try:
            yield
        finally:
            for path, marks in before.items():
                new_marks = _read_marks(path)
                if new_marks != marks:
                    self._by_command[path] = new_marks

    def _list_changed_files(self) -> str:
        """List the files with new content since the last call, and who or when."""
        changed = []
        for path, file in self._seen:
            marks = _read_marks(path)
            before = self._marks.get(path)
            if before == (file.digest, marks):
                continue
            self._marks[path] = (file.digest, marks)
            is_same_read = before is not None and before[0] == file.digest
            is_reported = self._reported.get(path) == file.digest  # a growing file is reported once after each read
            if not is_same_read or is_reported:
                continue
            if self._read_digest(path) != file.digest:
                self._reported[path] = file.digest
                change = self._describe_change(path, marks)
                changed.append(f"{self._format_path(path)} ({change})")
        shown = changed[:MAX_NAMES]
        if len(changed) > MAX_NAMES:
            shown.append("...")
        return ", ".join(shown)

    def _describe_change(self, path: Path, marks: FileMarks) -> str:
        if path in self._by_command and self._by_command[path] == marks:
            return "removed by your command" if marks is None else "changed by your command"
        if marks is None:
            return "gone"
        changed_at = datetime.fromtimestamp(marks[0] / 1e9, UTC).astimezone()
        return f"{changed_at:%H:%M:%S}"

    def _read_digest(self, path: Path) -> str:
        with suppress(GooseLikeError, OSError):
            return compute_digest(self._workspace.read_bytes(path, MAX_FILE_BYTES))
        return ""

    def _format_path(self, path: Path) -> str:
        root = self._workspace.root
        if path.is_relative_to(root):
            path = path.relative_to(root)
        return show_name(str(path))


def _read_marks(path: Path) -> FileMarks:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
