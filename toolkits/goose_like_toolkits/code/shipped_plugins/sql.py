"""Plugin `sql`: run one query over a SQLite or DuckDB file, data frames, or data files."""

import re
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

from taskweaver.plugin import Plugin, register_plugin, test_plugin

from ._data_files import (
    EXCEL_SUFFIXES,
    copy_as_utf8,
    describe_encoding,
    find_encoding,
    is_guess,
    quote,
    quote_name,
    read_sheet,
)
from ._errors import check_file, import_library

READING_STATEMENTS = {"SELECT", "EXPLAIN"}
"""DuckDB's kinds of statements that change nothing; `show`, `describe` and `summarize` count as SELECT."""
MAX_EXACT = 2**53
"""The largest whole number up to which a float has each one."""
WIDE_TYPE = re.compile(r"U?HUGEINT|DECIMAL\((?:1[6-9]|[23]\d),0\)")
"""DuckDB's types of whole numbers that become floats in a data frame."""
FILE = re.compile(r"'((?:[^']|'')+\.(?:csv|tsv|tab|txt))'", re.IGNORECASE)
"""A quoted path of a text file in a query."""


@register_plugin
class Sql(Plugin):
    """A client that keeps one open connection per database."""

    connections: dict[str, tuple[int, Any]]  # by path, with the inode of the file

    def __call__(
        self, query: str, database: str = "", tables: dict[str, Any] | None = None, limit: int | None = None
    ) -> Any:
        """Return the rows of a query as a data frame; print a note if there are more rows than `limit`.

        Raises:
            ValueError: The query or a table name is wrong, or the query would change something.
            FileNotFoundError: There is no such file.
        """
        if limit is None:
            limit = self.config.get("limit", 10_000)
        limit = int(limit)
        connection = self._connect(str(database or self.config.get("database") or ""))
        for name, data in (tables or {}).items():
            if isinstance(data, (str, Path)):
                data = self._read_file(data)
            _add_table(connection, name, data)
        try:
            if isinstance(connection, sqlite3.Connection):
                frame = _query_sqlite(connection, query, limit)
            else:
                run = partial(_query_duckdb, connection, limit, self._is_read_only())
                frame = self._query_files(run, query)
        except _list_error_types() as error:
            reason = _explain_error(error)
            known_tables = "; ".join(_list_tables(connection)) or "none"
            raise ValueError(f"{reason}\nthe tables are: {known_tables}") from None
        if len(frame) > limit:
            frame = frame.head(limit)
            print(f"only the first {limit:,} rows: aggregate in the query, or call sql with a larger limit")
        return frame

    def _read_file(self, path: str | Path) -> Any:
        file = check_file(str(path))
        if file.suffix.lower() in EXCEL_SUFFIXES:
            frame, _ = read_sheet(file, "", "sql")
            return frame
        with import_library("duckdb", "sql").connect() as connection:
            return self._query_files(partial(_read_frame, connection), f"from {quote(file)}")

    def _query_files(self, run: Callable[[str], Any], query: str) -> Any:
        """Run a query. If it fails, run it again with copies in UTF-8 of text files that it names, if that may help."""
        try:
            return run(query)
        except import_library("duckdb", "sql").Error:
            with TemporaryDirectory() as folder:
                recoded = FILE.sub(partial(_replace_file, folder), query)
                if recoded == query:
                    raise
                return run(recoded)

    def _is_read_only(self) -> bool:
        return bool(self.config.get("read_only", True))

    def _connect(self, database: str) -> Any:
        if "connections" not in vars(self):
            self.connections = {}
        path = ""
        if database:
            path = str(Path(database).resolve())
        inode = _get_inode(path)
        known, connection = self.connections.pop(path, (0, None))
        if connection is not None and known != inode:  # another file has this path now
            connection.close()
            connection = None
        if connection is None:
            connection = _open_database(path, self._is_read_only())
            inode = _get_inode(path)
            self.log("info", f"connected to {path or 'a database in memory'}")
        self.connections[path] = (inode, connection)
        return connection


def _explain_error(error: Exception) -> str:
    """Return the text of an error of an engine, or of the setting that caused it."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the other bits are details
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_AUTH):
        return f"sql only reads, and this would write ({error}); `read_only: false` allows it"
    if re.search(r"""extension ['"]excel""", str(error)):  # the quotes depend on the reason
        return "DuckDB reads no Excel files here; give it as a table: tables={'t': 'file.xlsx'}"
    return str(error)


def _replace_file(folder: str, match: re.Match[str]) -> str:
    """Return a quoted path, of a copy in UTF-8 if the file has another encoding."""
    file = Path(match[1].replace("''", "'"))
    if not file.is_file():
        return match[0]
    encoding = find_encoding(file)
    if encoding == "utf-8":
        return match[0]
    note = f"{file.name}: {describe_encoding(encoding)}"
    if is_guess(encoding):
        note += "; for another one pass a frame of pandas.read_csv(..., encoding=...) in `tables`"
    print(note)
    copy = copy_as_utf8(file, encoding, Path(mkdtemp(dir=folder)))
    return quote(copy)


def _get_inode(path: str) -> int:
    if not path or not Path(path).exists():
        return 0
    return Path(path).stat().st_ino


def _open_database(path: str, is_read_only: bool) -> Any:
    """Open a SQLite or DuckDB file, or DuckDB in memory without a path."""
    if path and _is_sqlite(path, is_read_only):
        return _open_sqlite(path, is_read_only)
    duckdb = import_library("duckdb", "sql")
    database = duckdb.connect(path or ":memory:", read_only=is_read_only and path != "")
    database.execute("set python_scan_all_frames = true")  # so that variables are tables: `from df`
    return database


def _is_sqlite(path: str, is_read_only: bool) -> bool:
    """Check whether a database is of SQLite rather than DuckDB. The name of a new file decides.

    Raises:
        ValueError: The file is no database.
        FileNotFoundError: There is no such file, and none may be written.
    """
    file = Path(path)
    if file.is_file():
        with file.open("rb") as source:
            head = source.read(16)
        if head.startswith(b"SQLite format 3") or not head:
            return True
        if head[8:12] != b"DUCK":
            raise ValueError(f"{path!r} is not a database; give it as a table: tables={{'data': {path!r}}}")
        return False
    if is_read_only:
        check_file(path)
        return False
    return file.suffix not in (".duckdb", ".ddb")


def _open_sqlite(path: str, is_read_only: bool) -> sqlite3.Connection:
    mode = "ro" if is_read_only else "rwc"
    address = f"{Path(path).as_uri()}?mode={mode}"
    connection = sqlite3.connect(address, uri=True, check_same_thread=False)
    if is_read_only:
        connection.set_authorizer(_deny_attaching)
    return connection


def _deny_attaching(action: int, *_: Any) -> int:
    """Refuse to attach a database, which could be written in any mode."""
    return sqlite3.SQLITE_DENY if action == sqlite3.SQLITE_ATTACH else sqlite3.SQLITE_OK


def _query_sqlite(connection: sqlite3.Connection, query: str, limit: int) -> Any:
    pandas = import_library("pandas", "sql")
    with connection:  # commits changes
        cursor = connection.execute(query)
        if cursor.rowcount >= 0:
            print(f"rows changed: {cursor.rowcount}")
        rows = cursor.fetchmany(limit + 1)
    names = [column[0] for column in cursor.description or ()]
    frame = pandas.DataFrame(rows, columns=names)
    for at, kind in enumerate(frame.dtypes):
        if kind.kind != "f":
            continue
        # A missing value makes whole numbers floats.
        values = [row[at] for row in rows]
        if any(map(_is_long, values)):
            frame.isetitem(at, pandas.Series(values, dtype=object))
    return frame


def _is_long(value: object) -> bool:
    """Check whether a value is a whole number that a float may not hold."""
    return isinstance(value, int) and abs(value) > MAX_EXACT


def _query_duckdb(connection: Any, limit: int, is_read_only: bool, query: str) -> Any:
    statements = import_library("duckdb", "sql").extract_statements(query)
    if not statements:
        raise ValueError("the query is empty")
    kinds = {statement.type.name for statement in statements}
    if is_read_only and not kinds <= READING_STATEMENTS:
        kind = min(kinds - READING_STATEMENTS).lower()
        raise ValueError(f"sql only reads, and this would {kind}; `read_only: false` allows it")
    if kinds != {"SELECT"} or len(statements) > 1:
        return _fetch(connection, query, limit)
    return _read_frame(connection, query, limit)


def _read_frame(connection: Any, query: str, limit: int | None = None) -> Any:
    """Read the rows of one query. Whole numbers that a float can't hold, such as long ids, stay exact."""
    relation = connection.sql(query)  # reads no rows yet
    names = list(relation.columns)
    wide = []
    for name, kind in zip(names, relation.types, strict=True):
        if WIDE_TYPE.fullmatch(str(kind)):
            wide.append(name)
    has_repeated_names = len(set(map(str.casefold, names))) < len(names)
    if not wide or has_repeated_names:
        return _fetch(connection, query, limit)
    quoted = map(quote_name, wide)
    as_text = ", ".join(f"{name}::varchar as {name}" for name in quoted)
    inner = query.rstrip().rstrip(";")
    frame = _fetch(connection, f"select * replace ({as_text}) from (\n{inner}\n)", limit)
    for name in wide:
        frame[name] = _read_whole_numbers(frame[name])
    return frame


def _fetch(connection: Any, query: str, limit: int | None) -> Any:
    if limit is None:
        return connection.execute(query).df()
    # Fetch no more vectors of 2,048 rows than needed.
    frame = connection.execute(query).fetch_df_chunk(limit // 2048 + 1)
    connection.abort()  # drops the other rows
    return frame


def _read_whole_numbers(texts: Any) -> Any:
    """Return floats if these are exact, else Python's whole numbers."""
    numbers = [int(text) if isinstance(text, str) else None for text in texts]
    kind = object if any(map(_is_long, numbers)) else float
    return type(texts)(numbers, index=texts.index, dtype=kind)


def _add_table(connection: Any, name: str, data: Any) -> None:
    """Add a data frame to the connection as a table."""
    if not name.isidentifier():
        raise ValueError(f"{name!r} can't be the name of a table; use letters, digits and underscores")
    if not hasattr(data, "columns"):
        raise ValueError(f"the table {name!r} is a {type(data).__name__}; give a data frame, or the path of a file")
    if not isinstance(connection, sqlite3.Connection):
        connection.register(name, data)
        return
    values = data.copy()
    for column in values.select_dtypes(["datetime", "datetimetz", "timedelta", "category"]):
        texts = values[column].astype(str)
        values[column] = texts.where(values[column].notna())
    values = values.astype(object).where(values.notna(), None)
    columns = ", ".join(map(quote_name, values.columns))
    connection.execute(f'drop table if exists temp."{name}"')
    connection.execute(f'create temp table "{name}" ({columns})')
    marks = ", ".join("?" * len(values.columns))
    rows = values.itertuples(index=False, name=None)
    connection.executemany(f'insert into temp."{name}" values ({marks})', rows)


def _list_tables(connection: Any) -> list[str]:
    """Return the first 20 tables with their columns."""
    if isinstance(connection, sqlite3.Connection):
        query = """select m.name, group_concat(c.name, ', ') from (select name from sqlite_master
            union all select name from sqlite_temp_master) m, pragma_table_info(m.name) c group by 1 limit 20"""
    else:
        query = """select table_name, string_agg(column_name, ', ') from duckdb_columns()
            where not internal group by 1 order by 1 limit 20"""
    tables = connection.execute(query).fetchall()
    return [f"{name} ({columns})" for name, columns in tables]


def _list_error_types() -> tuple[type[Exception], ...]:
    """Return the errors of both engines; SQLite works without DuckDB."""
    try:
        duckdb = import_library("duckdb", "sql")
    except RuntimeError:
        return (sqlite3.Error, sqlite3.Warning)
    return (sqlite3.Error, sqlite3.Warning, duckdb.Error)


@test_plugin(name="frames")
def test_frames(call: Any) -> None:
    """Data frames are tables."""
    import pandas

    frame = pandas.DataFrame({"town": ["Bonn", "Kiel", "Bonn"], "sold": [1, 2, 3]})
    total = call("select town, sum(sold) as sold from t group by town order by town", tables={"t": frame})
    assert total.to_dict("list") == {"town": ["Bonn", "Kiel"], "sold": [4, 2]}
    assert len(call("from t", limit=2)) == 2  # the connection still knows the table
