"""Sources: what is made of files, kept by their content; a file that has not changed since is not read again."""

import os
import time
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from pathlib import PurePath
from typing import TypeVar

from pydantic import ValidationError

from goose_like.core.errors import GooseLikeError
from goose_like.core.message import Value
from goose_like.sdk.store import Store
from goose_like.toolkit import Workspace

V = TypeVar("V", bound=Value)

_LIMIT_BYTES = 300_000
_TICK_NS = 50_000_000


class Sources:
    """Files of a workspace, by paths relative to it."""

    def __init__(self, workspace: Workspace, store: Store) -> None:
        self._workspace = workspace
        self.store = store

    def made(self, kind: type[V], paths: Sequence[str], make: Callable[[str, bytes], V]) -> dict[str, V]:
        """By path what `make` gives of a file's path and bytes, for those that can be read and are text.

        It is kept by content and by the path's ending, on which it may depend.
        """
        found: dict[str, V] = {}
        new: dict[str, str] = {}
        marks = {path: self.marks(path) for path in paths}
        digests = self.store.get(filter(None, marks.values()))
        kept = self.store.get({_name(kind, path, digests[mark]) for path, mark in marks.items() if mark in digests})
        for path, mark in marks.items():
            if mark in digests and (value := _read(kind, kept.get(_name(kind, path, digests[mark])))):
                found[path] = value
            elif (data := self._text(path)) is not None:
                digest = sha256(data).hexdigest()
                found[path] = make(path, data)
                new[_name(kind, path, digest)] = found[path].model_dump_json()
                if mark and mark == self.marks(path):
                    new[mark] = digest
        self.store.put(new)
        return found

    def marks(self, path: str) -> str:
        """What tells that a file is the one that it was; empty where a change would leave none, or it is gone.

        With the sandbox's mode: what was read without one is not known to a session that may not read it.
        """
        place = os.path.join(self._workspace.root, path)
        try:
            status = os.lstat(place)
        except OSError:
            return ""
        if time.time_ns() - max(status.st_ctime_ns, status.st_mtime_ns) < _TICK_NS:
            return ""
        told = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
        return f"{place!a} {self._workspace.mode} {told}"

    def _text(self, path: str) -> bytes | None:
        try:
            data = self._workspace.read_bytes(path, _LIMIT_BYTES)
        except (GooseLikeError, OSError):
            return None
        return None if b"\0" in data else data


def _name(kind: type[Value], path: str, digest: str) -> str:
    return f"{kind.__name__}{PurePath(path).suffix} {digest}"


def _read(kind: type[V], text: str | None) -> V | None:
    try:
        return kind.model_validate_json(text) if text else None
    except ValidationError:
        return None  # of another version, or damaged


def digest_of(parts: Iterable[object]) -> str:
    """A name for what was made of these."""
    return sha256(repr(list(parts)).encode(errors="surrogateescape")).hexdigest()
