"""Data files as tables of text in DuckDB: CSV in any encoding, sheets of Excel and Parquet, below lines of titles."""

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from ._errors import import_library
from ._numbers import read_number

EXCEL_SUFFIXES = {".xlsx", ".xlsm", ".xls", ".xlsb", ".ods"}
_CHUNK_BYTES = 1 << 20
_HEAD_ROWS = 200
_KANA = re.compile("[\u3001\u3002\u3041-\u30fe]")
_TWO_KANA = re.compile(f"{_KANA.pattern}{{2}}")
_DELIMITERS = ",;\t|"
_BOMS = {  # the order matters: the mark of UTF-32 begins with that of UTF-16
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


@dataclass(frozen=True)
class TextTable:
    """The table `data` of a connection, with the columns `c0`, `c1`, ...; `form` describes the file."""

    names: list[str]
    form: str


@dataclass(frozen=True)
class Header:
    """The names of the columns, which the file has if `is_written`. `start` is the index of the first row of data."""

    names: list[str]
    start: int
    is_written: bool

    @property
    def first_row(self) -> int:
        """The index of the first row of the table: the names or the data."""
        return self.start - 1 if self.is_written else self.start


def find_encoding(file: Path) -> str:
    """Return the encoding of a text file, from its first bytes or the first one that decodes all of it.

    `is_guess` says whether the bytes tell it.
    """
    with file.open("rb") as source:
        head = source.read(4096)
    for mark, encoding in _BOMS.items():
        if head.startswith(mark):
            return encoding
    # Letters of Latin scripts have a zero in every second byte of UTF-16.
    first_zeros = _measure_zeros(head[0::2])
    second_zeros = _measure_zeros(head[1::2])
    if max(first_zeros, second_zeros) > 0.4 and min(first_zeros, second_zeros) < 0.1:
        return "utf-16-le" if second_zeros > first_zeros else "utf-16-be"
    if _can_decode(file, "utf-8"):
        return "utf-8"
    if _is_japanese(file):
        return "cp932"
    if _can_decode(file, "cp1252"):
        return "cp1252"
    return "latin-1"


def _measure_zeros(data: bytes) -> float:
    return data.count(0) / max(len(data), 1)


def is_guess(encoding: str) -> bool:
    """Check whether `find_encoding` returned an encoding in which almost any bytes are letters."""
    return encoding in ("cp1252", "latin-1")


def describe_encoding(encoding: str) -> str:
    """Describe an encoding that `find_encoding` returned. A guess is called so."""
    if is_guess(encoding):
        return f"unknown 8-bit encoding, read as {encoding}"
    return "Shift-JIS (cp932)" if encoding == "cp932" else encoding


def _can_decode(file: Path, encoding: str) -> bool:
    try:
        for _ in _decode(file, encoding):
            pass
    except UnicodeDecodeError:
        return False
    return True


def _is_japanese(file: Path) -> bool:
    """Check whether a text is Shift-JIS: kana are frequent in it, and some stand side by side."""
    if not _can_decode(file, "cp932"):
        return False
    text = next(_decode(file, "cp932"))
    wide_count = sum(not letter.isascii() for letter in text)
    kana_count = len(_KANA.findall(text))
    return kana_count >= wide_count / 3 and _TWO_KANA.search(text) is not None


def copy_as_utf8(file: Path, encoding: str, folder: Path, limit_bytes: int | None = None) -> Path:
    """Return a copy of a text file in UTF-8, of at most the complete lines in the first `limit_bytes`."""
    copy = folder / f"{file.stem}.csv"
    with copy.open("w", encoding="utf-8", newline="") as target:
        rest = ""
        for text in _decode(file, encoding, limit_bytes, "replace"):
            lines, end, rest = (rest + text).rpartition("\n")
            target.write(lines + end)
        if limit_bytes is None:
            target.write(rest)
    return copy


def _decode(file: Path, encoding: str, limit_bytes: int | None = None, errors: str = "strict") -> Iterator[str]:
    if encoding == "utf-8":
        encoding = "utf-8-sig"
    decoder = codecs.getincrementaldecoder(encoding)(errors)
    left = file.stat().st_size if limit_bytes is None else limit_bytes
    with file.open("rb") as source:
        while data := source.read(min(_CHUNK_BYTES, left)):
            left -= len(data)
            yield decoder.decode(data)
    if limit_bytes is None:
        yield decoder.decode(b"", True)


def load_text_table(
    connection: Any, file: Path, folder: Path, limit_bytes: int, sheet: str = "", encoding: str = ""
) -> TextTable:
    """Create the table `data` with all values of a file as text. `folder` is for temporary files.

    Raises:
        ValueError: The file is empty, or has another format.
    """
    with file.open("rb") as source:
        magic = source.read(4)
    if magic == b"PAR1":
        return _load_parquet(connection, file)
    if file.suffix.lower() in EXCEL_SUFFIXES:
        return _load_sheet(connection, file, sheet)
    if encoding:
        return _load_csv(connection, file, folder, limit_bytes, encoding, encoding)
    found = find_encoding(file)
    return _load_csv(connection, file, folder, limit_bytes, found, describe_encoding(found))


def make_short_names(count: int) -> list[str]:
    """Return the names of the columns in the table `data`: c0, c1, and so on."""
    return [f"c{at}" for at in range(count)]


def quote(path: Path) -> str:
    """Return a path as a string of SQL."""
    text = str(path).replace("'", "''")
    return f"'{text}'"


def quote_name(name: object) -> str:
    """Return the name of a column as an identifier of SQL."""
    text = str(name).replace('"', '""')
    return f'"{text}"'


def _load_parquet(connection: Any, file: Path) -> TextTable:
    columns = connection.execute(f"describe from {quote(file)}").fetchall()
    names = [column[0] for column in columns]
    values = []
    for name, short_name in zip(names, make_short_names(len(names)), strict=True):
        values.append(f"{quote_name(name)}::varchar as {short_name}")
    source = f"read_parquet({quote(file)})"
    connection.execute(f"create table data as select {', '.join(values)} from {source}")
    return TextTable(names, "Parquet")


def read_sheet(file: Path, sheet: str, plugin: str) -> tuple[Any, str]:
    """Return a sheet of a workbook, by default the largest, as a data frame below its titles, and a description.

    Raises:
        ValueError: The file is no workbook, or the sheet does not exist or is empty.
    """
    sheets = _read_workbook(file, plugin)
    if sheet and sheet not in sheets:
        known_sheets = ", ".join(sheets)
        raise ValueError(f"{str(file)!r} has no sheet {sheet!r}; its sheets are: {known_sheets}")
    if not sheet:
        sheet = max(sheets, key=lambda name: sheets[name].size)
    frame = sheets[sheet]
    rows = frame.map(format_cell).values.tolist()
    if not any(map(any, rows)):
        raise ValueError(f"the sheet {sheet!r} of {str(file)!r} is empty")
    header = find_header(rows)
    table = rows[header.first_row :]
    columns = zip(*table, strict=True)
    used_columns = [at for at, column in enumerate(columns) if any(column)]
    used_rows = [at for at in range(header.start, len(rows)) if any(rows[at])]
    used_cells = []
    for row in rows:
        used_cells.append([row[at] for at in used_columns])
    names = find_header(used_cells).names
    frame = frame.iloc[used_rows, used_columns].set_axis(names, axis=1)
    form = f"Excel, sheet {sheet!r}"
    others = [repr(name) for name in sheets if name != sheet]
    if others:
        form += f" (others: {', '.join(others)})"
    form += _describe_header(header, rows, header.start - 1)
    return frame.reset_index(drop=True).infer_objects(), form


def _read_workbook(file: Path, plugin: str) -> dict[str, Any]:
    """Return all sheets of a workbook as data frames without names."""
    pandas = import_library("pandas", plugin)
    import_library("python_calamine", plugin)
    try:
        sheets: dict[str, Any] = pandas.read_excel(file, sheet_name=None, header=None, dtype=object, engine="calamine")
    except Exception as error:  # the errors of the library have no common class
        raise ValueError(f"{str(file)!r} can't be read as a workbook: {error}") from None
    return sheets


def _load_sheet(connection: Any, file: Path, sheet: str) -> TextTable:
    frame, form = read_sheet(file, sheet, "csv_profile")
    names = list(map(str, frame.columns))
    texts = frame.map(format_cell).set_axis(make_short_names(len(names)), axis=1)
    connection.register("frame", texts)
    connection.execute("create table data as select columns(*)::varchar from frame")
    return TextTable(names, form)


def format_cell(value: Any) -> str:
    """Return the value of a cell as text; "" for none."""
    if value is None or value != value:
        return ""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value).removesuffix(" 00:00:00").strip("\r\n")


def _load_csv(
    connection: Any, file: Path, folder: Path, limit_bytes: int, encoding: str, described_encoding: str
) -> TextTable:
    is_cut = file.stat().st_size > limit_bytes
    source = file
    if is_cut or encoding != "utf-8":
        source = copy_as_utf8(file, encoding, folder, limit_bytes if is_cut else None)
    with source.open(encoding="utf-8-sig", newline="") as lines:
        head = lines.read(_CHUNK_BYTES)
    if "\0" in head:
        raise ValueError(f"{str(file)!r} is not text; csv_profile reads CSV, TSV, Excel and Parquet")
    delimiter = find_delimiter(head)
    rows = []
    line_ends = []  # the number of the last line of each row
    reader = csv.reader(io.StringIO(head, newline=""), delimiter=delimiter)
    try:
        for row in islice(reader, _HEAD_ROWS):
            rows.append(row)
            line_ends.append(reader.line_num)
    except csv.Error as error:
        raise ValueError(f"{str(file)!r} can't be read as CSV: {error}; is a quote left open?") from None
    if not any(rows):
        raise ValueError(f"{str(file)!r} is empty")
    header = find_header(rows)
    lines_above = line_ends[header.start - 2] if header.start > 1 else 0
    form = f"{described_encoding}, delimiter {delimiter!r}"
    form += _describe_header(header, rows, lines_above)
    _create_table(connection, source, delimiter, header)
    form += _describe_left_out(connection, len(header.names))
    if is_cut:
        form += f"; only the first {limit_bytes // 1_000_000} MB of it were read"
    return TextTable(header.names, form)


def _create_table(connection: Any, source: Path, delimiter: str, header: Header) -> None:
    """Create the table `data` from a file in UTF-8."""
    columns = [f"'{name}': 'VARCHAR'" for name in make_short_names(len(header.names))]
    listed_columns = ", ".join(columns)
    query = (
        f"create table data as from read_csv({quote(source)}, header=false, auto_detect=false, skip={header.start}, "
        f"delim='{delimiter}', quote='\"', escape='\"', columns={{{listed_columns}}}, ignore_errors=true, "
        f"store_rejects=true, max_line_size={16 * _CHUNK_BYTES}, strict_mode="
    )
    error_type = import_library("duckdb", "csv_profile").Error
    try:
        connection.execute(f"{query}true)")
    except error_type:  # for example both kinds of line ends
        connection.execute("drop table if exists data")
        connection.execute(f"{query}false)")


def _describe_left_out(connection: Any, column_count: int) -> str:
    """Describe the rows that DuckDB could not read."""
    text = ""
    query = "select count(distinct line), count(*) filter (error_type = 'UNQUOTED VALUE') from reject_errors"
    ((left_out, open_quotes),) = connection.execute(query).fetchall()
    if left_out:
        text += f"; rows left out, without {column_count} values: {left_out:,}"
    if open_quotes:
        text += " (a quote is left open)"
    return text


def find_delimiter(text: str) -> str:
    """Return the delimiter that splits most of the first 50 lines into equally many values."""
    lines = text[:100_000].splitlines()[:50]
    head = [line for line in lines if line] or [""]

    def score(delimiter: str) -> tuple[float, int]:
        lengths = Counter(map(len, csv.reader(head, delimiter=delimiter)))
        lengths.pop(1, None)  # titles
        if not lengths:
            return 0.0, 0
        ((length, times),) = lengths.most_common(1)
        return times / len(head), length

    return max(_DELIMITERS, key=score)


def find_header(rows: Sequence[Sequence[str]]) -> Header:
    """Find the header: the first row with the usual number of values, most of which are not empty.

    A row of numbers is none; the columns have numbers as their names then.
    """
    at = _find_header_row(rows)
    cells = list(map(str.strip, rows[at]))
    if len(cells) > 1 and all(map(read_number, cells)):
        made_up = [f"column_{number}" for number in range(1, len(cells) + 1)]
        return Header(made_up, at, is_written=False)
    names: list[str] = []
    for number, cell in enumerate(cells, 1):
        name = cell or f"column_{number}"
        if name in names:
            name = f"{name}_{number}"
        names.append(name)
    return Header(names, at + 1, is_written=True)


def _find_header_row(rows: Sequence[Sequence[str]]) -> int:
    """Return the index of the first row of the table; titles above it have fewer values."""
    lengths = Counter(map(len, rows))
    del lengths[0]
    if len(lengths) > 1:
        del lengths[1]
    width = max(lengths, key=lambda length: (lengths[length], length))
    fitting = [at for at, row in enumerate(rows) if len(row) == width]
    for at in fitting:
        filled_count = sum(bool(cell.strip()) for cell in rows[at])
        if filled_count * 2 > width:
            return at
    return fitting[0]


def _describe_header(header: Header, rows: Sequence[Sequence[str]], lines_above: int) -> str:
    """Describe the place of the header, and the first title above it."""
    if not header.is_written:
        return "; without a header"
    if not lines_above:
        return ""
    title = ""
    for row in rows[: header.first_row]:
        title = " ".join(filter(None, map(str.strip, row)))
        if title:
            break
    return f"; header in line {lines_above + 1} (skiprows={lines_above}) below {title[:60]!r}"
