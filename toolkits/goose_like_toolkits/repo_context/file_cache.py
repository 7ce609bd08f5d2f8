"""A cache of values computed from files, so that unchanged files are not read again."""

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import PurePath
from typing import TypeVar

from pydantic import ValidationError

from goose_like.core.errors import GooseLikeError
from goose_like.core.message import FrozenModel
from goose_like.sdk.parse_cache import ParseCache
from goose_like.toolkit import Workspace

V = TypeVar("V", bound=FrozenModel)

_MAX_FILE_BYTES = 300_000
_CLOCK_TICK_NS = 50_000_000
"""A second change within this time might leave the same time stamp."""


class FileCache:
    """Values computed from the files of a workspace, by paths relative to its root."""

    def __init__(self, workspace: Workspace, cache: ParseCache) -> None:
        self._workspace = workspace
        self.cache = cache

    def load(
        self,
        kind: type[V],
        paths: Sequence[str],
        compute: Callable[[str, bytes], V],
    ) -> dict[str, V]:
        """Return the value of each file that is readable text, by path.

        `compute` gets a path and the file's bytes. Values are stored by content and by the path's suffix, which may
        influence them.
        """
        values: dict[str, V] = {}
        new_entries: dict[str, str] = {}
        fingerprints = {path: self.fingerprint(path) for path in paths}
        keys = self._find_keys(kind, fingerprints)
        stored = self.cache.get(set(keys.values()))
        for path, mark in fingerprints.items():
            text = stored.get(keys.get(path, ""), "")
            value = _parse(kind, text)
            if value is not None:
                values[path] = value
                continue
            data = self._read_text(path)
            if data is None:
                continue
            value = compute(path, data)
            values[path] = value
            content = sha256(data).hexdigest()
            new_entries[_build_key(kind, path, content)] = value.model_dump_json()
            if mark and mark == self.fingerprint(path):
                new_entries[mark] = content
        self.cache.put(new_entries)
        return values

    def _find_keys(self, kind: type[V], fingerprints: Mapping[str, str]) -> dict[str, str]:
        """Return the keys of the values by path, for files whose content is known by their fingerprint."""
        marks = filter(None, fingerprints.values())
        contents = self.cache.get(marks)
        keys = {}
        for path, mark in fingerprints.items():
            if mark in contents:
                keys[path] = _build_key(kind, path, contents[mark])
        return keys

    def fingerprint(self, path: str) -> str:
        """Return a text that changes with the file; empty if the file is missing or changed just now.

        The text includes the sandbox mode: a session must not see what it could not read itself.
        """
        file = os.path.join(self._workspace.root, path)
        try:
            status = os.lstat(file)
        except OSError:
            return ""
        age_ns = time.time_ns() - max(status.st_ctime_ns, status.st_mtime_ns)
        if age_ns < _CLOCK_TICK_NS:
            return ""
        facts = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
        return f"{file!a} {self._workspace.mode} {facts}"

    def _read_text(self, path: str) -> bytes | None:
        try:
            data = self._workspace.read_bytes(path, _MAX_FILE_BYTES)
        except (GooseLikeError, OSError):
            return None
        return None if b"\0" in data else data


def _build_key(kind: type[FrozenModel], path: str, content: str) -> str:
    return f"{kind.__name__}{PurePath(path).suffix} {content}"


def _parse(kind: type[V], text: str) -> V | None:
    if not text:
        return None
    try:
        return kind.model_validate_json(text)
    except ValidationError:
        return None  # damaged, or written by another version


def digest(parts: Iterable[object]) -> str:
    """Compute a key from some values."""
    text = repr(list(parts))
    return sha256(text.encode(errors="surrogateescape")).hexdigest()
