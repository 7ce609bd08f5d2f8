"""Plugin `sql`: run one query over a SQLite or DuckDB file, data frames, or data files."""

import re
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

from taskweaver.plugin import Plugin, register_plugin, test_plugin

from ._data_files import EXCEL_SUFFIXES, copy_as_utf8, describe_encoding, find_encoding, is_guess, quote, read_sheet
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
        limit = int(self.config.get("limit", 10_000) if limit is None else limit)
        connection = self._connect(str(database or self.config.get("database") or ""))
        for name, data in (tables or {}).items():
            _add_table(connection, name, self._read_file(data) if isinstance(data, (str, Path)) else data)
        try:
            if isinstance(connection, sqlite3.Connection):
                frame = _query_sqlite(connection, query, limit)
            else:
                frame = self._query_files(partial(_query_duckdb, connection, limit, self._is_read_only()), query)
        except _list_error_types() as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_AUTH):
                error = ValueError(f"sql only reads, and this would write ({error}); `read_only: false` allows it")
            if re.search(r"""extension ['"]excel""", str(error)):  # the quotes depend on the reason
                error = ValueError("DuckDB reads no Excel files here; give it as a table: tables={'t': 'file.xlsx'}")
            raise ValueError(f"{error}\nthe tables are: {'; '.join(_list_tables(connection)) or 'none'}") from None
        if len(frame) > limit:
            frame = frame.head(limit)
            print(f"only the first {limit:,} rows: aggregate in the query, or call sql with a larger limit")
        return frame

    def _read_file(self, path: str | Path) -> Any:
        file = check_file(str(path))
        if file.suffix.lower() in EXCEL_SUFFIXES:
            return read_sheet(file, "", "sql")[0]
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
        path = str(Path(database).resolve()) if database else ""
        inode = _get_inode(path)
        known, connection = self.connections.pop(path, (0, None))
        if connection is not None and known != inode:  # another file has this path now
            connection.close()
            connection = None
        if connection is None:
            connection = _open_database(path, self._is_read_only())
            inode = _get_inode(path)
            self.log("info", f"connected to {path or 'a database in memory'}")
        self.connections[path] = inode, connection
        return connection


def _replace_file(folder: str, match: re.Match[str]) -> str:
    """Return a quoted path, of a copy in UTF-8 if the file has another encoding."""
    file = Path(match[1].replace("''", "'"))
    if not file.is_file() or (encoding := find_encoding(file)) == "utf-8":
        return match[0]
    other = "; for another one pass a frame of pandas.read_csv(..., encoding=...) in `tables`"
    print(f"{file.name}: {describe_encoding(encoding)}{other if is_guess(encoding) else ''}")
    return quote(copy_as_utf8(file, encoding, Path(mkdtemp(dir=folder))))


def _get_inode(path: str) -> int:
    return Path(path).stat().st_ino if path and Path(path).exists() else 0


def _open_database(path: str, is_read_only: bool) -> Any:
    """Open a SQLite or DuckDB file, or DuckDB in memory without a path."""
    is_sqlite = False
    if path:
        file = Path(path)
        if file.is_file():
            with file.open("rb") as source:
                head = source.read(16)
            is_sqlite = head.startswith(b"SQLite format 3") or not head
            if not is_sqlite and head[8:12] != b"DUCK":
                raise ValueError(f"{path!r} is not a database; give it as a table: tables={{'data': {path!r}}}")
        elif is_read_only:
            check_file(path)
        else:
            is_sqlite = file.suffix not in (".duckdb", ".ddb")
    if is_sqlite:
        mode = "ro" if is_read_only else "rwc"
        connection = sqlite3.connect(f"{Path(path).as_uri()}?mode={mode}", uri=True, check_same_thread=False)
        if is_read_only:  # an attached database could be written in any mode
            deny = {sqlite3.SQLITE_ATTACH: sqlite3.SQLITE_DENY}
            connection.set_authorizer(lambda action, *_: deny.get(action, sqlite3.SQLITE_OK))
        return connection
    database = import_library("duckdb", "sql").connect(path or ":memory:", read_only=is_read_only and bool(path))
    database.execute("set python_scan_all_frames = true")  # so that variables are tables: `from df`
    return database


def _query_sqlite(connection: sqlite3.Connection, query: str, limit: int) -> Any:
    pandas = import_library("pandas", "sql")
    with connection:  # commits changes
        cursor = connection.execute(query)
        if cursor.rowcount >= 0:
            print(f"rows changed: {cursor.rowcount}")
        rows = cursor.fetchmany(limit + 1)
    frame = pandas.DataFrame(rows, columns=[column[0] for column in cursor.description or ()])
    for at, kind in enumerate(frame.dtypes):
        if kind.kind != "f":
            continue
        # A missing value makes whole numbers floats.
        values = [row[at] for row in rows]
        if any(isinstance(value, int) and abs(value) > MAX_EXACT for value in values):
            frame.isetitem(at, pandas.Series(values, dtype=object))
    return frame


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
    wide = [name for name, kind in zip(names, relation.types, strict=True) if WIDE_TYPE.fullmatch(str(kind))]
    if not wide or len({name.casefold() for name in names}) < len(names):
        return _fetch(connection, query, limit)
    quoted = ['"{}"'.format(name.replace('"', '""')) for name in wide]
    as_text = ", ".join(f"{name}::varchar as {name}" for name in quoted)
    frame = _fetch(connection, f"select * replace ({as_text}) from (\n{query.rstrip().rstrip(';')}\n)", limit)
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
    is_exact = all(abs(number) <= MAX_EXACT for number in numbers if number is not None)
    return type(texts)(numbers, index=texts.index, dtype=float if is_exact else object)


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
        values[column] = values[column].astype(str).where(values[column].notna())
    values = values.astype(object).where(values.notna(), None)
    columns = ", ".join('"{}"'.format(str(column).replace('"', '""')) for column in values.columns)
    connection.execute(f'drop table if exists temp."{name}"')
    connection.execute(f'create temp table "{name}" ({columns})')
    marks = ", ".join("?" * len(values.columns))
    connection.executemany(f'insert into temp."{name}" values ({marks})', values.itertuples(index=False, name=None))


def _list_tables(connection: Any) -> list[str]:
    """Return the first 20 tables with their columns."""
    if isinstance(connection, sqlite3.Connection):
        query = """select m.name, group_concat(c.name, ', ') from (select name from sqlite_master
            union all select name from sqlite_temp_master) m, pragma_table_info(m.name) c group by 1 limit 20"""
    else:
        query = """select table_name, string_agg(column_name, ', ') from duckdb_columns()
            where not internal group by 1 order by 1 limit 20"""
    return [f"{name} ({columns})" for name, columns in connection.execute(query).fetchall()]


def _list_error_types() -> tuple[type[Exception], ...]:
    """Return the errors of both engines; SQLite works without DuckDB."""
    try:
        return sqlite3.Error, sqlite3.Warning, import_library("duckdb", "sql").Error
    except RuntimeError:
        return sqlite3.Error, sqlite3.Warning


@test_plugin(name="frames")
def test_frames(call: Any) -> None:
    """Data frames are tables."""
    import pandas

    frame = pandas.DataFrame({"town": ["Bonn", "Kiel", "Bonn"], "sold": [1, 2, 3]})
    total = call("select town, sum(sold) as sold from t group by town order by town", tables={"t": frame})
    assert total.to_dict("list") == {"town": ["Bonn", "Kiel"], "sold": [4, 2]}
    assert len(call("from t", limit=2)) == 2  # the connection still knows the table
