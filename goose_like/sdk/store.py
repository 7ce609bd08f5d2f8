"""Store: texts by their names, kept in one file from session to session; what does not work is as if it were empty."""

import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

_LIMIT_BYTES = 64 << 20
_AT_ONCE = 5_000  # names in one question; SQLite takes some 32,000
_PATIENCE_S = 1.0  # with another process that writes
_TABLE = "CREATE TABLE IF NOT EXISTS kept (number INTEGER PRIMARY KEY, name TEXT UNIQUE, text TEXT)"


class ParseCache:
    """For what can be made again: a damaged file is begun anew, and one that can't be written is done without.

    Past 64 MB the older half goes. For the thread in which it is made.
    """

    def __init__(self, file: Path, limit_bytes: int = _LIMIT_BYTES) -> None:
        self._file = file
        self._limit_bytes = limit_bytes
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            self._database = _opened(str(file))
        except (OSError, sqlite3.OperationalError):
            self._database = _opened(":memory:")
        except sqlite3.DatabaseError:
            self._begin_anew()

    def get(self, names: Iterable[str]) -> dict[str, str]:
        """The texts of those names that are kept."""
        wanted = list(names)
        found: dict[str, str] = {}
        for start in range(0, len(wanted), _AT_ONCE):
            some = wanted[start : start + _AT_ONCE]
            try:
                asked = f"SELECT name, text FROM kept WHERE name IN ({','.join('?' * len(some))})"
                found.update(self._database.execute(asked, some).fetchall())
            except sqlite3.OperationalError:
                break
            except sqlite3.DatabaseError:
                self._begin_anew()
                break
        return found

    def put(self, texts: Mapping[str, str]) -> None:
        """Keeps them in the place of former ones."""
        if not texts:
            return
        try:
            with self._database as database:
                database.executemany("INSERT OR REPLACE INTO kept (name, text) VALUES (?, ?)", texts.items())
                if self._size_bytes > self._limit_bytes:
                    middle = "(SELECT avg(number) FROM kept)"
                    database.execute(f"DELETE FROM kept WHERE number <= {middle}")
        except sqlite3.OperationalError:
            pass  # locked for long, or the disk is full
        except sqlite3.DatabaseError:
            self._begin_anew()

    def close(self) -> None:
        self._database.close()

    @property
    def _size_bytes(self) -> int:
        pages, free, page_bytes = (
            int(self._database.execute(f"PRAGMA {name}").fetchone()[0])
            for name in ("page_count", "freelist_count", "page_size")
        )
        return (pages - free) * page_bytes

    def _begin_anew(self) -> None:
        with suppress(AttributeError):  # it never opened
            self._database.close()
        try:
            self._file.unlink(missing_ok=True)
            self._database = _opened(str(self._file))
        except (OSError, sqlite3.DatabaseError):
            self._database = _opened(":memory:")


def _opened(name: str) -> sqlite3.Connection:
    database = sqlite3.connect(name, timeout=_PATIENCE_S)
    try:
        database.execute("PRAGMA synchronous = OFF")  # a crash of the machine costs a cache and no more
        database.execute(_TABLE)
    except BaseException:
        database.close()
        raise
    return database
