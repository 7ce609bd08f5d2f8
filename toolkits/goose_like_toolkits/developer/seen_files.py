"""The files that the model has seen, with a digest of the content that it saw. The session keeps them."""

import os
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path

from pydantic import JsonValue

from goose_like.core.dataclass import dataclass
from goose_like.core.events import StateSaved
from goose_like.toolkit import Notifier

_KEY = "developer.file "
"""The start of the key of a file in the state of a session. Its path follows."""
_DIGEST_CHARS = 32
_MAX_KEPT_BYTES = 200_000
_MAX_KEPT_FILES = 50


@dataclass(frozen=True, slots=True)
class SeenFile:
    """A file as the model saw it: a digest of its bytes, and the encoding that the model named for it."""

    digest: str
    encoding: str = ""


class SeenFiles:
    """The files by real path, so that all names of a file are one.

    Each change is one small event. Paths in the workspace are saved relative to it, because a project can move.
    """

    def __init__(self, root: Path, notifier: Notifier, state: Mapping[str, JsonValue]) -> None:
        """Restore the files from the state of a session."""
        self._root = root
        self._notifier = notifier
        self._files: dict[Path, SeenFile] = {}
        self._contents: dict[Path, bytes] = {}  # of the files that were seen last, in this process
        for key, value in state.items():
            if key.startswith(_KEY) and isinstance(value, dict):
                digest = str(value.get("digest"))
                encoding = str(value.get("encoding", ""))
                self._files[root / key.removeprefix(_KEY)] = SeenFile(digest, encoding)

    def __iter__(self) -> Iterator[tuple[Path, SeenFile]]:
        """Iterate over the files as they are now: another thread may read one."""
        return iter(list(self._files.items()))

    def find(self, real: Path) -> SeenFile | None:
        """Return a file as the model saw it last."""
        return self._files.get(real)

    def has_seen(self, real: Path, data: bytes) -> bool:
        """Check whether the model saw this content of a file last."""
        seen = self._files.get(real)
        return seen is not None and seen.digest == compute_digest(data)

    def get_encoding(self, real: Path) -> str:
        """Return the encoding that the model named for a file; "" for none."""
        seen = self._files.get(real)
        return seen.encoding if seen else ""

    def add(self, real: Path, data: bytes, encoding: str = "") -> None:
        """Note that the model has seen this content of a file. Without an encoding, the one that it named stays."""
        self._keep_content(real, data)
        seen = SeenFile(compute_digest(data), encoding or self.get_encoding(real))
        if seen == self._files.get(real):
            return
        self._files[real] = seen
        value: JsonValue = {"digest": seen.digest}
        if seen.encoding:
            value = {"digest": seen.digest, "encoding": seen.encoding}
        self._save(real, value)

    def get_content(self, real: Path) -> bytes:
        """Return the content of a file as the model saw it last; b"" if it is not kept."""
        return self._contents.get(real, b"")

    def _keep_content(self, real: Path, data: bytes) -> None:
        self._contents.pop(real, None)
        if len(data) <= _MAX_KEPT_BYTES:
            self._contents[real] = data
        if len(self._contents) > _MAX_KEPT_FILES:
            oldest = next(iter(self._contents))
            del self._contents[oldest]

    def forget(self, real: Path) -> None:
        """Note that the model does not know the content of a file any more."""
        self._contents.pop(real, None)
        if self._files.pop(real, None):
            self._save(real, None)

    def _save(self, real: Path, value: JsonValue) -> None:
        if real.is_relative_to(self._root):
            real = real.relative_to(self._root)
        path = str(real)
        if path == show_name(path):  # events are JSON, which has no form for a name that is not UTF-8
            self._notifier.notify(StateSaved(toolkit=_KEY + path, value=value))


def compute_digest(data: bytes) -> str:
    """Return a short digest of a content."""
    return sha256(data).hexdigest()[:_DIGEST_CHARS]


def show_name(name: str) -> str:
    """Return a name or path as commands show it: bytes that are not UTF-8 become the letter U+FFFD."""
    return os.fsencode(name).decode(errors="replace")
