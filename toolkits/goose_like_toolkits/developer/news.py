"""News: what is true now and changes while the model does not look: the day, the branch, files that it has read."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from goose_like.core.errors import GooseLikeError
from goose_like.toolkit import Workspace

MAX_FILE_BYTES = 5_000_000
MAX_NAMES = 20

Marks = tuple[int, int] | None


class News:
    """Looks before each step; what did not change costs a `stat` for each file that the model knows."""

    def __init__(self, workspace: Workspace, known: Mapping[Path, bytes]) -> None:
        """`known` has the digest of what each file held when the model saw it."""
        self._workspace = workspace
        self._known = known
        self._seen: dict[Path, tuple[bytes, Marks]] = {}
        self._told: dict[Path, bytes] = {}

    def facts(self) -> dict[str, str]:
        """What to tell, by what it is about."""
        return {
            "date": f"{datetime.now(UTC).astimezone():%A, %Y-%m-%d}",
            "git branch": self._workspace.branch,
            "no longer as you saw it": self._changed(),
        }

    def _changed(self) -> str:
        """The files whose content became another one since the last look, with when."""
        told = []
        for path, digest in self._known.items():
            marks = _marks(path)
            seen = self._seen.get(path)
            if seen != (digest, marks):
                self._seen[path] = digest, marks
                is_new = self._told.get(path) != digest  # what grows all the time is told once, until it is read again
                if is_new and seen and seen[0] == digest and self._digest(path) != digest:
                    self._told[path] = digest
                    at = f"{datetime.fromtimestamp(marks[0] / 1e9, UTC).astimezone():%H:%M:%S}" if marks else "gone"
                    told.append(f"{self._name(path)} ({at})")
        return ", ".join(told[:MAX_NAMES] + ["..."] * (len(told) > MAX_NAMES))

    def _digest(self, path: Path) -> bytes:
        with suppress(GooseLikeError, OSError):
            return sha256(self._workspace.read_bytes(path, MAX_FILE_BYTES)).digest()
        return b""

    def _name(self, path: Path) -> str:
        root = self._workspace.root
        return str(path.relative_to(root) if path.is_relative_to(root) else path)


def _marks(path: Path) -> Marks:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
