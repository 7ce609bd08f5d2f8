"""sql: one query over a SQLite or DuckDB file, over data frames, or over files of data."""

import sqlite3
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any

from taskweaver.plugin import Plugin, register_plugin, test_plugin

QUERIES = {"SELECT", "EXPLAIN"}
"""DuckDB's kinds of statements that change nothing; `show`, `describe` and `summarize` are selects to it."""


@register_plugin
class Sql(Plugin):
    """Keeps a connection for each database, so that it is opened once."""

    connections: dict[str, tuple[int, Any]]  # by path, with the number of the file

    def __call__(
        self, query: str, database: str = "", tables: dict[str, Any] | None = None, limit: int | None = None
    ) -> Any:
        """The rows of one query as a data frame, at most `limit`; that there were more is printed.

        Raises:
            ValueError: the query or a table's name is wrong, or the query would change something.
            FileNotFoundError: there is no such file.
        """
        limit = int(self.config.get("limit", 10_000) if limit is None else limit)
        connection = self._connection(str(database or self.config.get("database") or ""))
        for name, data in (tables or {}).items():
            _bring(connection, name, data)
        try:
            if isinstance(connection, sqlite3.Connection):
                frame = _asked_of_sqlite(connection, query, limit)
            else:
                frame = _asked_of_duckdb(connection, query, limit, self._reads_only())
        except _errors() as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_AUTH):
                error = ValueError(f"sql only reads, and this would write ({error}); `read_only: false` allows it")
            raise ValueError(f"{error}\nthe tables are: {'; '.join(_known(connection)) or 'none'}") from None
        if len(frame) > limit:
            frame = frame.head(limit)
            print(f"only the first {limit:,} rows: aggregate in the query, or call sql with a larger limit")
        return frame

    def _reads_only(self) -> bool:
        return bool(self.config.get("read_only", True))

    def _connection(self, database: str) -> Any:
        if "connections" not in vars(self):
            self.connections = {}
        path = str(Path(database).resolve()) if database else ""
        number = _number(path)
        known, connection = self.connections.pop(path, (0, None))
        if connection is not None and known != number:  # another file took its place
            connection.close()
            connection = None
        if connection is None:
            connection = _opened(path, self._reads_only())
            number = _number(path)
            self.log("info", f"connected to {path or 'a database in memory'}")
        self.connections[path] = number, connection
        return connection


def _number(path: str) -> int:
    """Which file it is that has this path now."""
    return Path(path).stat().st_ino if path and Path(path).exists() else 0


def _opened(path: str, reads_only: bool) -> Any:
    """A connection to the file, whichever of the two it is; to DuckDB's memory without a path."""
    kind = "duckdb"
    if path:
        file = Path(path)
        if file.is_file():
            with file.open("rb") as source:
                head = source.read(16)
            kind = "sqlite" if head.startswith(b"SQLite format 3") or not head else "duckdb"
            if kind == "duckdb" and head[8:12] != b"DUCK":
                raise ValueError(f"{path!r} is no database; give it as a table: tables={{'data': {path!r}}}")
        elif reads_only:
            raise _missing(path)
        else:
            kind = "duckdb" if file.suffix in (".duckdb", ".ddb") else "sqlite"
    if kind == "sqlite":
        mode = "ro" if reads_only else "rwc"
        connection = sqlite3.connect(f"{Path(path).as_uri()}?mode={mode}", uri=True, check_same_thread=False)
        if reads_only:  # what is attached could be written, whatever the mode
            deny = {sqlite3.SQLITE_ATTACH: sqlite3.SQLITE_DENY}
            connection.set_authorizer(lambda action, *_: deny.get(action, sqlite3.SQLITE_OK))
        return connection
    memory_or_file = _imported("duckdb").connect(path or ":memory:", read_only=reads_only and bool(path))
    memory_or_file.execute("set python_scan_all_frames = true")  # a table's name may be a variable's: `from df`
    return memory_or_file


def _asked_of_sqlite(connection: sqlite3.Connection, query: str, limit: int) -> Any:
    pandas = _imported("pandas")
    with connection:  # commits what it may change
        cursor = connection.execute(query)
        if cursor.rowcount >= 0:
            print(f"rows changed: {cursor.rowcount}")
        rows = cursor.fetchmany(limit + 1)
    return pandas.DataFrame(rows, columns=[column[0] for column in cursor.description or ()])


def _asked_of_duckdb(connection: Any, query: str, limit: int, reads_only: bool) -> Any:
    duckdb = _imported("duckdb")
    statements = duckdb.extract_statements(query)
    if not statements:
        raise ValueError("the query is empty")
    kinds = {statement.type.name for statement in statements}
    if reads_only and not kinds <= QUERIES:
        raise ValueError(f"sql only reads, and this would {min(kinds - QUERIES).lower()}; `read_only: false` allows it")
    # In vectors, of 2,048 rows each: no more of a large result than is asked for.
    frame = connection.execute(query).fetch_df_chunk(limit // 2048 + 1)
    connection.abort()  # the rest of the rows
    return frame


def _bring(connection: Any, name: str, data: Any) -> None:
    """Makes a data frame or a file of data a table of the connection."""
    if not name.isidentifier():
        raise ValueError(f"{name!r} can't be a table's name; take letters, digits and underscores")
    if isinstance(data, (str, Path)):
        if not Path(data).is_file():
            raise _missing(str(data))
        path = str(data).replace("'", "''")
        data = _imported("duckdb").sql(f"from '{path}'").df()
    if not hasattr(data, "columns"):
        raise ValueError(f"the table {name!r} is a {type(data).__name__}; give a data frame, or a file's path")
    if not isinstance(connection, sqlite3.Connection):
        connection.register(name, data)
        return
    values = data.copy()
    for column in values.select_dtypes(["datetime", "datetimetz", "timedelta", "category"]):
        values[column] = values[column].astype(str).where(values[column].notna())
    values = values.astype(object).where(values.notna(), None)
    columns = ", ".join('"{}"'.format(str(column).replace('"', '""')) for column in values.columns)
    connection.execute(f'drop table if exists temp."{name}"')
    connection.execute(f'create temp table "{name}" ({columns})')
    marks = ", ".join("?" * len(values.columns))
    connection.executemany(f'insert into temp."{name}" values ({marks})', values.itertuples(index=False, name=None))


def _known(connection: Any) -> list[str]:
    """The first 20 tables with their columns, for an error's text."""
    if isinstance(connection, sqlite3.Connection):
        query = """select m.name, group_concat(c.name, ', ') from (select name from sqlite_master
            union all select name from sqlite_temp_master) m, pragma_table_info(m.name) c group by 1 limit 20"""
    else:
        query = """select table_name, string_agg(column_name, ', ') from duckdb_columns()
            where not internal group by 1 order by 1 limit 20"""
    return [f"{name} ({columns})" for name, columns in connection.execute(query).fetchall()]


def _missing(path: str) -> FileNotFoundError:
    folder = Path(path).parent
    near = get_close_matches(Path(path).name, [each.name for each in folder.iterdir()] if folder.is_dir() else [], 3)
    return FileNotFoundError(f"no file {path!r}{'; near it: ' + ', '.join(near) if near else ''}")


def _imported(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise RuntimeError(f"sql needs {name}, which this Python has not: pip install {name}") from None


def _errors() -> tuple[type[Exception], ...]:
    """What the engines raise; SQLite needs no DuckDB."""
    try:
        return sqlite3.Error, sqlite3.Warning, _imported("duckdb").Error
    except RuntimeError:
        return sqlite3.Error, sqlite3.Warning


@test_plugin(name="frames")
def test_frames(call: Any) -> None:
    """Data frames are tables."""
    import pandas

    frame = pandas.DataFrame({"town": ["Bonn", "Kiel", "Bonn"], "sold": [1, 2, 3]})
    total = call("select town, sum(sold) as sold from t group by town order by town", tables={"t": frame})
    assert total.to_dict("list") == {"town": ["Bonn", "Kiel"], "sold": [4, 2]}
    assert len(call("from t", limit=2)) == 2  # the connection is kept, and what it knows
