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


def find_encoding(file: Path) -> str:
    """Return the encoding of a text file, from its first bytes or the first one that decodes all of it.

    `is_guess` says whether the bytes tell it.
    """
    with file.open("rb") as source:
        head = source.read(4096)
    for mark, encoding in _BOMS.items():
        if head.startswith(mark):
            return encoding
    zeros = [head[at::2].count(0) / max(len(head[at::2]), 1) for at in (0, 1)]
    if max(zeros) > 0.4 and min(zeros) < 0.1:
        return "utf-16-le" if zeros[1] > zeros[0] else "utf-16-be"
    if _can_decode(file, "utf-8"):
        return "utf-8"
    if _is_japanese(file):
        return "cp932"
    return "cp1252" if _can_decode(file, "cp1252") else "latin-1"


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
    text = "".join(islice(_decode(file, "cp932"), 1))
    wide = sum(not letter.isascii() for letter in text)
    return len(_KANA.findall(text)) >= wide / 3 and re.search(f"{_KANA.pattern}{{2}}", text) is not None


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
    decoder = codecs.getincrementaldecoder("utf-8-sig" if encoding == "utf-8" else encoding)(errors)
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
        columns = connection.execute(f"describe from {quote(file)}").fetchall()
        names = [column[0] for column in columns]
        quoted = ('"{}"'.format(name.replace('"', '""')) for name in names)
        values = ", ".join(f"{name}::varchar as c{at}" for at, name in enumerate(quoted))
        connection.execute(f"create table data as select {values} from read_parquet({quote(file)})")
        return TextTable(names, "Parquet")
    if file.suffix.lower() in EXCEL_SUFFIXES:
        return _load_sheet(connection, file, sheet)
    if encoding:
        return _load_csv(connection, file, folder, limit_bytes, encoding, encoding)
    found = find_encoding(file)
    return _load_csv(connection, file, folder, limit_bytes, found, describe_encoding(found))


def quote(path: Path) -> str:
    """Return a path as a string of SQL."""
    return "'{}'".format(str(path).replace("'", "''"))


def read_sheet(file: Path, sheet: str, plugin: str) -> tuple[Any, str]:
    """Return a sheet of a workbook, by default the largest, as a data frame below its titles, and a description.

    Raises:
        ValueError: The file is no workbook, or the sheet does not exist or is empty.
    """
    pandas = import_library("pandas", plugin)
    import_library("python_calamine", plugin)
    try:
        sheets = pandas.read_excel(file, sheet_name=None, header=None, dtype=object, engine="calamine")
    except Exception as error:  # the errors of the library have no common class
        raise ValueError(f"{str(file)!r} can't be read as a workbook: {error}") from None
    if sheet and sheet not in sheets:
        raise ValueError(f"{str(file)!r} has no sheet {sheet!r}; its sheets are: {', '.join(sheets)}")
    sheet = sheet or max(sheets, key=lambda name: sheets[name].size)
    frame = sheets[sheet]
    rows = frame.map(format_cell).values.tolist()
    if not any(map(any, rows)):
        raise ValueError(f"the sheet {sheet!r} of {str(file)!r} is empty")
    start, _, has_header = find_header(rows)
    used = [at for at in range(len(rows[0])) if any(row[at] for row in rows[start - has_header :])]
    _, names, _ = find_header([[row[at] for at in used] for row in rows])
    frame = frame.iloc[[at for at in range(start, len(rows)) if any(rows[at])], used].set_axis(names, axis=1)
    others = ", ".join(repr(name) for name in sheets if name != sheet)
    form = f"Excel, sheet {sheet!r}{f' (others: {others})' if others else ''}"
    form += _describe_start(rows[:start], start - 1, has_header)
    return frame.reset_index(drop=True).infer_objects(), form


def _load_sheet(connection: Any, file: Path, sheet: str) -> TextTable:
    frame, form = read_sheet(file, sheet, "csv_profile")
    names = [str(name) for name in frame.columns]
    connection.register("frame", frame.map(format_cell).set_axis([f"c{at}" for at in range(len(names))], axis=1))
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
    reader = csv.reader(io.StringIO(head, newline=""), delimiter=delimiter)
    try:
        numbered = [(row, reader.line_num) for row in islice(reader, _HEAD_ROWS)]
    except csv.Error as error:
        raise ValueError(f"{str(file)!r} can't be read as CSV: {error}; is a quote left open?") from None
    rows = [row for row, _ in numbered]
    if not any(rows):
        raise ValueError(f"{str(file)!r} is empty")
    start, names, has_header = find_header(rows)
    lines_above = numbered[start - 2][1] if start > 1 else 0
    form = f"{described_encoding}, delimiter {delimiter!r}{_describe_start(rows[:start], lines_above, has_header)}"
    columns = ", ".join(f"'c{index}': 'VARCHAR'" for index in range(len(names)))
    query = (
        f"create table data as from read_csv({quote(source)}, header=false, auto_detect=false, skip={start}, "
        f"delim='{delimiter}', quote='\"', escape='\"', columns={{{columns}}}, ignore_errors=true, "
        f"store_rejects=true, max_line_size={16 * _CHUNK_BYTES}, strict_mode="
    )
    error_type = import_library("duckdb", "csv_profile").Error
    try:
        connection.execute(query + "true)")
    except error_type:  # for example both kinds of line ends
        connection.execute("drop table if exists data")
        connection.execute(query + "false)")
    wrong = "select count(distinct line), count(*) filter (error_type = 'UNQUOTED VALUE') from reject_errors"
    ((left_out, open_quotes),) = connection.execute(wrong).fetchall()
    if left_out:
        form += f"; rows left out, without {len(names)} values: {left_out:,}"
    if open_quotes:
        form += " (a quote is left open)"
    if is_cut:
        form += f"; only the first {limit_bytes // 1_000_000} MB of it were read"
    return TextTable(names, form)


def find_delimiter(text: str) -> str:
    """Return the delimiter that splits most of the first 50 lines into equally many values."""
    head = [line for line in text[:100_000].splitlines()[:50] if line] or [""]

    def score(delimiter: str) -> tuple[float, int]:
        lengths = Counter(len(row) for row in csv.reader(head, delimiter=delimiter))
        lengths.pop(1, None)  # titles
        length, times = lengths.most_common(1)[0] if lengths else (0, 0)
        return times / len(head), length

    return max(_DELIMITERS, key=score)


def find_header(rows: Sequence[Sequence[str]]) -> tuple[int, list[str], bool]:
    """Return the index of the first row of data, the names of the columns, and whether the row above has them.

    The header is the first row with the usual number of values, most of which are not empty.
    """
    lengths = Counter(len(row) for row in rows if len(row) > 1) or Counter(len(row) for row in rows if row)
    width = max(lengths, key=lambda length: (lengths[length], length))
    fitting = [at for at, row in enumerate(rows) if len(row) == width]
    filled = (at for at in fitting if sum(bool(cell.strip()) for cell in rows[at]) * 2 > width)
    at = next(filled, fitting[0])
    header = [cell.strip() for cell in rows[at]]
    if width > 1 and all(map(read_number, header)):
        return at, [f"column_{number}" for number in range(1, width + 1)], False
    names: list[str] = []
    for number, name in enumerate(header, 1):
        name = name or f"column_{number}"
        names.append(name if name not in names else f"{name}_{number}")
    return at + 1, names, True


def _describe_start(above: Sequence[Sequence[str]], lines: int, has_header: bool) -> str:
    """Describe the place of the header, and the first title above it."""
    if not has_header:
        return "; without a header"
    titles = (" ".join(filter(None, map(str.strip, row))) for row in above[:-1])
    title = next(filter(None, titles), "")
    return f"; header in line {lines + 1} (skiprows={lines}) below {title[:60]!r}" if lines else ""
