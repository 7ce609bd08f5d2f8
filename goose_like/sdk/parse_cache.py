"""A cache of texts in one SQLite file, above all of parsed files by their content."""

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from stat import S_ISREG
from typing import Any, TypeVar

from pydantic import ValidationError

from goose_like import __version__

from .diagnostics import MAX_FILE_BYTES, ParseResult

R = TypeVar("R", bound=ParseResult[Any])

_MAX_BYTES = 64 << 20
_MAX_NAMES_PER_QUERY = 5_000  # SQLite accepts some 32,000 parameters
_LOCK_TIMEOUT_S = 1.0
_CREATE_TABLE = "CREATE TABLE IF NOT EXISTS kept (number INTEGER PRIMARY KEY, name TEXT UNIQUE, text TEXT)"
_COMPUTE_SIZE = (
    "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, pragma_freelist_count, pragma_page_size"
)


class ParseCache:
    """A cache for data that can be created again. Use it only in the thread that created it.

    A damaged file is replaced. Without write access the cache lives in memory. Above 64 MB the older half is deleted.
    """

    def __init__(self, file: Path, limit_bytes: int = _MAX_BYTES) -> None:
        self._file = file
        self._limit_bytes = limit_bytes
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            self._database = _connect(str(file))
        except (OSError, sqlite3.OperationalError):
            self._database = _connect(":memory:")
        except sqlite3.DatabaseError:
            self._replace_file()

    def get(self, names: Iterable[str]) -> dict[str, str]:
        """Return the texts of those names that are in the cache."""
        wanted = list(names)
        texts: dict[str, str] = {}
        for start in range(0, len(wanted), _MAX_NAMES_PER_QUERY):
            some = wanted[start : start + _MAX_NAMES_PER_QUERY]
            with self._repair():
                places = ",".join("?" * len(some))
                query = f"SELECT name, text FROM kept WHERE name IN ({places})"
                texts.update(self._database.execute(query, some).fetchall())
        return texts

    def put(self, texts: Mapping[str, str]) -> None:
        """Store texts by name. They replace older ones of the same name."""
        if not texts:
            return
        with self._repair(), self._database as database:
            database.executemany("INSERT OR REPLACE INTO kept (name, text) VALUES (?, ?)", texts.items())
            ((size_bytes,),) = database.execute(_COMPUTE_SIZE)
            if size_bytes > self._limit_bytes:
                database.execute("DELETE FROM kept WHERE number <= (SELECT avg(number) FROM kept)")

    def parse_files(
        self,
        kind: type[R],
        files: Iterable[Path],
        parse: Callable[[Path], R],
    ) -> Iterator[tuple[Path, R]]:
        """Yield each file and its result: from the cache if this content was parsed before at this path."""
        keys = {file: _build_key(kind, file) for file in files}
        texts = self.get(key.name for key in keys.values() if key)
        new: dict[str, str] = {}
        for file, key in keys.items():
            result: R | None = None
            if key and key.name in texts:
                with suppress(ValidationError):  # another version wrote it
                    result = kind.model_validate_json(texts[key.name])
            if result is None:
                result = parse(file)
                if key and key.mark == _mark_file(file):  # else the file changed meanwhile
                    new[key.name] = result.model_dump_json(exclude_unset=True)
            yield file, result
        self.put(new)

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    @contextmanager
    def _repair(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError:
            pass  # another process holds the lock for long, or the disk is full: go on without these texts
        except sqlite3.DatabaseError:
            self._replace_file()

    def _replace_file(self) -> None:
        with suppress(AttributeError):  # the database was never opened
            self._database.close()
        try:
            self._file.unlink(missing_ok=True)
            self._database = _connect(str(self._file))
        except (OSError, sqlite3.DatabaseError):
            self._database = _connect(":memory:")


def _connect(name: str) -> sqlite3.Connection:
    database = sqlite3.connect(name, timeout=_LOCK_TIMEOUT_S)
    database.execute("PRAGMA synchronous = OFF")  # a system crash may lose the cache, which costs only time
    database.execute(_CREATE_TABLE)
    return database


_Mark = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class _Key:
    """The name of a result in the cache, and values that change with its file."""

    name: str
    mark: _Mark


def _build_key(kind: type[R], file: Path) -> _Key | None:
    """Build a key from version, kind, path and content. Return None for files that must not be cached."""
    try:
        str(file).encode()
        mark = _mark_file(file)
        if mark is None:
            return None
        with open(file, "rb") as source:
            content = sha256(source.read()).hexdigest()
    except (OSError, ValueError):
        return None
    name = "\0".join((__version__, kind.__name__, str(file), content))
    return _Key(name, mark)


def _mark_file(file: Path) -> _Mark | None:
    """Return values that change with a file, or None for a large file, a folder and the like."""
    try:
        status = os.stat(file)
    except (OSError, ValueError):
        return None
    if not S_ISREG(status.st_mode) or status.st_size > MAX_FILE_BYTES:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
