"""Plugin `csv_profile`: describe the columns of a CSV, TSV or Parquet file, and find suspicious values."""

import codecs
import csv
import io
import re
from collections import Counter
from pathlib import Path
from typing import Any

from taskweaver.plugin import Plugin, register_plugin, test_plugin

from ._errors import check_file, import_library

MISSING = {"", "-", "--", "?", "n/a", "na", "nan", "nat", "nil", "none", "null", "#n/a", "missing", "unknown", "tbd"}
DATE_FORMATS = {
    "ISO": r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d.*)?",
    "Y/M/D": r"\d{4}/\d\d?/\d\d?",
    "D.M.Y": r"\d\d?\.\d\d?\.\d{4}",
    "D/M/Y": r"(0?[1-9]|[12]\d|3[01])/(0?[1-9]|1[0-2])/\d{4}",
    "M/D/Y": r"(0?[1-9]|1[0-2])/(0?[1-9]|[12]\d|3[01])/\d{4}",
    "D Mon Y": r"\d\d?[ -][A-Za-z]{3,9}\.?[ -]\d{4}",
    "Mon D, Y": r"[A-Za-z]{3,9}\.? \d\d?,? \d{4}",
}
"""Date formats; the first match counts for an ambiguous date."""
NUMBER = re.compile(r"[-+]?(\d+|\d{1,3}([ ,.']\d{3})+)?([.,]\d+)?([eE][-+]?\d+)?(?<=\d)")
BOOLEANS = {"true", "false", "yes", "no", "y", "n", "t", "f"}
BROKEN = re.compile("\ufffd|[ÃÂ][\u0080-¿]|â€")
"""UTF-8 text that another program decoded with a wrong encoding."""


@register_plugin
class CsvProfile(Plugin):
    """A reader that keeps each value as text first, so that no guess of a type loses anything."""

    def __call__(self, path: str) -> Any:
        """Return a frame with a row for each column of the file, and a text with all suspicious findings.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: The file is empty, or has another format.
        """
        pandas = import_library("pandas", "csv_profile")
        file = check_file(str(path))
        limit = int(self.config.get("limit_mb", 200)) * 1_000_000
        with file.open("rb") as source:
            data = source.read(limit)
        if data.startswith(b"PAR1"):
            frame, form = _read_parquet(file)
        elif file.stat().st_size <= limit:
            frame, form = _read_text(file, data, pandas)
        else:
            frame, form = _read_text(file, data[: data.rfind(b"\n") + 1], pandas)
            form += f"; only the first {limit // 1_000_000} MB of it were read"
        share = float(self.config.get("share", 0.6))
        rows = [_profile_column(name, frame.iloc[:, at], share, pandas) for at, name in enumerate(frame.columns)]
        repeated = int(frame.duplicated().sum())
        lines = [f"{file.name}: {len(frame):,} rows, {len(frame.columns)} columns; {form}"]
        if repeated:
            lines.append(f"- rows that are the same as an earlier one: {repeated:,}")
        lines += [f"- {row['column']}: {row['suspicious']}" for row in rows if row["suspicious"]]
        return pandas.DataFrame(rows), "\n".join(lines)


def _read_parquet(file: Path) -> tuple[Any, str]:
    frame = import_library("duckdb", "csv_profile").connect().read_parquet(str(file)).df()
    return frame.map(lambda value: "" if value is None or value != value else str(value)), "Parquet"


def _read_text(file: Path, data: bytes, pandas: Any) -> tuple[Any, str]:
    """Return all values as text, and the form of the file. Rows of a wrong length are counted and left out."""
    text, encoding = _decode(data)
    if "\0" in text:
        raise ValueError(f"{str(file)!r} is not text; csv_profile reads CSV, TSV and Parquet")
    delimiter = _find_delimiter(text)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        rows = [row for row in reader if row]
    except csv.Error as error:
        raise ValueError(f"{str(file)!r} can't be read as CSV: {error}; is a quote left open?") from None
    if not rows:
        raise ValueError(f"{str(file)!r} is empty")
    header, body = rows[0], rows[1:]
    complete = [row for row in body if len(row) == len(header)]
    form = f"{encoding}, delimiter {delimiter!r}"
    if len(complete) < len(body):
        form += f"; rows left out, without {len(header)} values: {len(body) - len(complete):,}"
    return pandas.DataFrame(complete, columns=header, dtype=object), form


def _decode(data: bytes) -> tuple[str, str]:
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", "replace"), "utf-16"
    data = data.removeprefix(codecs.BOM_UTF8)
    for encoding in ("utf-8", "cp1252"):
        try:
            return data.decode(encoding), encoding
        except UnicodeDecodeError:
            continue
    return data.decode("latin-1"), "latin-1"


def _find_delimiter(text: str) -> str:
    """Return the delimiter that splits most of the first 50 lines into equally many values."""
    head = [line for line in text[:100_000].splitlines()[:50] if line] or [""]

    def score(delimiter: str) -> tuple[float, int]:
        lengths = Counter(len(row) for row in csv.reader(head, delimiter=delimiter))
        length, times = lengths.most_common(1)[0] if lengths else (0, 0)
        return (times / len(head), length) if length > 1 else (0.0, 0)

    return max(",;\t|", key=score)


def _profile_column(name: str, values: Any, share: float, pandas: Any) -> dict[str, Any]:
    """Describe a column from the count of each value; `share` of the values must have the column's type."""
    counts = {str(value): int(times) for value, times in values.value_counts().items()}
    absent = {value: times for value, times in counts.items() if value.strip().casefold() in MISSING}
    present = {value: times for value, times in counts.items() if value not in absent}
    kinds = {value: _classify(value.strip()) for value in present}
    by_kind = Counter[str]()
    for value, times in present.items():
        by_kind[kinds[value].partition(" ")[0]] += times
    kind, times = by_kind.most_common(1)[0] if present else ("empty", 0)
    if times < share * sum(present.values()):
        kind = "text"
    found: list[str] = []
    if absent:
        words = [value for value in absent if value.strip()]
        found.append(f"{sum(absent.values()):,} missing{f', some written {_format_some(words)}' if words else ''}")
    if kind not in ("text", "empty"):
        other = [value for value in present if not kinds[value].startswith(kind)]
        found += [f"{sum(map(present.__getitem__, other)):,} not a {kind}: {_format_some(other)}"] if other else []
    lowest: Any = min(present, default=None)
    highest: Any = max(present, default=None)
    if kind == "number":
        lowest, highest, outliers = _find_range(present, pandas)
        found += outliers
    elif kind == "date":
        formats = Counter[str]()
        for value in present:
            formats[kinds[value].removeprefix("date ")] += present[value] * kinds[value].startswith("date")
        if len(+formats) > 1:
            lowest = highest = None  # the order of the texts is not the order of the dates
            found.append("dates are written " + ", ".join(f"{form} ({n:,})" for form, n in (+formats).most_common()))
    elif kind == "text":
        found += _find_odd_texts(present)
    if len(present) == 1 and not absent and len(values) > 1:
        found.append("always the same")
    return {
        "column": name, "type": kind, "missing": sum(absent.values()), "distinct": len(present), "lowest": lowest,
        "highest": highest, "most_common": max(present, key=present.__getitem__, default=""),
        "suspicious": "; ".join(found),
    }  # fmt: skip


def _find_odd_texts(present: dict[str, int]) -> list[str]:
    """Describe different spellings of the same text, and traces of a wrong encoding."""
    spellings: dict[str, list[str]] = {}
    for value in present:
        spellings.setdefault(" ".join(value.casefold().split()), []).append(value)
    groups = [" = ".join(map(repr, group)) for group in spellings.values() if len(group) > 1]
    broken = [value for value in present if BROKEN.search(value)]
    found = [f"{len(groups):,} written in more than one way: {_format_some(groups, str)}"] if groups else []
    count = sum(map(present.__getitem__, broken))
    return found + ([f"{count:,} in a wrong encoding: {_format_some(broken)}"] if broken else [])


def _classify(value: str) -> str:
    if NUMBER.fullmatch(value):
        return "number"
    if value.casefold() in BOOLEANS:
        return "boolean"
    form = next((form for form, pattern in DATE_FORMATS.items() if re.fullmatch(pattern, value)), None)
    return f"date {form}" if form else "text"


def _find_range(present: dict[str, int], pandas: Any) -> tuple[float, float, list[str]]:
    """Return the lowest and the highest number, and a description of numbers far from the middle half."""
    numbers = {value: _parse_number(value.strip()) for value in present if NUMBER.fullmatch(value.strip())}
    series = pandas.Series(list(numbers.values())).repeat([present[value] for value in numbers])
    low, high = series.quantile(0.25), series.quantile(0.75)
    margin = 3 * (high - low)
    far = [value for value, number in numbers.items() if margin and not low - margin <= number <= high + margin]
    far.sort(key=lambda value: -abs(numbers[value] - (low + high) / 2))
    count = sum(present[value] for value in far)
    outliers = [f"{count:,} far from the others: {_format_some(far)}"] if far else []
    return float(series.min()), float(series.max()), outliers


def _parse_number(value: str) -> float:
    """Parse a number. The last mark is the decimal mark, unless three digits follow it."""
    value = re.sub(r"[ ']", "", value)
    if "," in value and (re.search(r",\d{3}$", value) is None or "." in value) and value.rfind(",") > value.rfind("."):
        value = value.replace(".", "").replace(",", ".")
    value = value.replace(",", "")
    return float(value.replace(".", "", value.count(".") - 1) if value.count(".") > 1 else value)


def _format_some(values: list[str], form: Any = repr) -> str:
    return ", ".join(map(form, values[:3])) + (", ..." if len(values) > 3 else "")


@test_plugin(name="a small file")
def test_a_small_file(call: Any) -> None:
    """The delimiter, the types and the odd values are found."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "a.csv")
        file.write_text("town;sold\nKiel;1\nkiel;x\n" + "Bonn;2\n" * 30, "utf-8")
        frame, text = call(str(file))
    assert frame["type"].to_list() == ["text", "number"]
    assert "'Kiel' = 'kiel'" in text
    assert "1 not a number: 'x'" in text
