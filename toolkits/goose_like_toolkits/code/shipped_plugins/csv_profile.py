"""csv_profile: what the columns of a CSV, TSV or Parquet file hold, and what in them looks wrong."""

import codecs
import csv
import io
import re
from collections import Counter
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from taskweaver.plugin import Plugin, register_plugin, test_plugin

MISSING = {"", "-", "--", "?", "n/a", "na", "nan", "nat", "nil", "none", "null", "#n/a", "missing", "unknown", "tbd"}
DATES = {
    "ISO": r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d.*)?",
    "Y/M/D": r"\d{4}/\d\d?/\d\d?",
    "D.M.Y": r"\d\d?\.\d\d?\.\d{4}",
    "D/M/Y": r"(0?[1-9]|[12]\d|3[01])/(0?[1-9]|1[0-2])/\d{4}",
    "M/D/Y": r"(0?[1-9]|1[0-2])/(0?[1-9]|[12]\d|3[01])/\d{4}",
    "D Mon Y": r"\d\d?[ -][A-Za-z]{3,9}\.?[ -]\d{4}",
    "Mon D, Y": r"[A-Za-z]{3,9}\.? \d\d?,? \d{4}",
}
"""The ways of writing a date that are told apart. What could be two of them counts as the first."""
NUMBER = re.compile(r"[-+]?(\d+|\d{1,3}([ ,.']\d{3})+)?([.,]\d+)?([eE][-+]?\d+)?(?<=\d)")
BOOLEANS = {"true", "false", "yes", "no", "y", "n", "t", "f"}
BROKEN = re.compile("\ufffd|[ÃÂ][\u0080-¿]|â€")
"""Text that was UTF-8 and was read as something else, before it came into the file."""


@register_plugin
class CsvProfile(Plugin):
    """Reads each value as text first, so that nothing is lost by a guess of its type."""

    def __call__(self, path: str) -> Any:
        """A frame with one row for each column of the file, and a text that says what looks wrong.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: the file is empty, or is none of these kinds.
        """
        try:
            import pandas
        except ImportError:
            raise RuntimeError("csv_profile needs pandas, which this Python has not: pip install pandas") from None
        file = Path(path)
        if not file.is_file():
            names = [each.name for each in file.parent.iterdir()] if file.parent.is_dir() else []
            near = get_close_matches(file.name, names, 3)
            raise FileNotFoundError(f"no file {str(path)!r}{'; near it: ' + ', '.join(near) if near else ''}")
        limit = int(self.config.get("limit_mb", 200)) * 1_000_000
        with file.open("rb") as source:
            data = source.read(limit)
        if data.startswith(b"PAR1"):
            frame, told = _parquet(file)
        elif file.stat().st_size <= limit:
            frame, told = _text(file, data, pandas)
        else:
            frame, told = _text(file, data[: data.rfind(b"\n") + 1], pandas)
            told += f"; only the first {limit // 1_000_000} MB of it were read"
        share = float(self.config.get("share", 0.6))
        rows = [_column(name, frame.iloc[:, at], share, pandas) for at, name in enumerate(frame.columns)]
        repeated = int(frame.duplicated().sum())
        lines = [f"{file.name}: {len(frame):,} rows, {len(frame.columns)} columns; {told}"]
        if repeated:
            lines.append(f"- rows that are the same as an earlier one: {repeated:,}")
        lines += [f"- {row['column']}: {row['suspicious']}" for row in rows if row["suspicious"]]
        return pandas.DataFrame(rows), "\n".join(lines)


def _parquet(file: Path) -> tuple[Any, str]:
    try:
        import duckdb
    except ImportError:
        raise RuntimeError("csv_profile needs duckdb to read Parquet: pip install duckdb") from None
    frame = duckdb.connect().read_parquet(str(file)).df()
    return frame.map(lambda value: "" if value is None or value != value else str(value)), "Parquet"


def _text(file: Path, data: bytes, pandas: Any) -> tuple[Any, str]:
    """All values as text, and how the file is written. Rows of a wrong length are counted and left out."""
    text, encoding = _decoded(data)
    if "\0" in text:
        raise ValueError(f"{str(file)!r} is no text; csv_profile reads CSV, TSV and Parquet")
    delimiter = _delimiter(text)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        rows = [row for row in reader if row]
    except csv.Error as error:
        raise ValueError(f"{str(file)!r} can't be read as CSV: {error}; is a quote left open?") from None
    if not rows:
        raise ValueError(f"{str(file)!r} is empty")
    header, body = rows[0], rows[1:]
    fitting = [row for row in body if len(row) == len(header)]
    told = f"{encoding}, delimiter {delimiter!r}"
    if len(fitting) < len(body):
        told += f"; rows left out, as they have not {len(header)} values: {len(body) - len(fitting):,}"
    return pandas.DataFrame(fitting, columns=header, dtype=object), told


def _decoded(data: bytes) -> tuple[str, str]:
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", "replace"), "utf-16"
    data = data.removeprefix(codecs.BOM_UTF8)
    for encoding in ("utf-8", "cp1252"):
        try:
            return data.decode(encoding), encoding
        except UnicodeDecodeError:
            continue
    return data.decode("latin-1"), "latin-1"


def _delimiter(text: str) -> str:
    """The one that cuts the first 50 lines into equally many values, and most."""
    head = [line for line in text[:100_000].splitlines()[:50] if line] or [""]

    def fit(delimiter: str) -> tuple[float, int]:
        lengths = Counter(len(row) for row in csv.reader(head, delimiter=delimiter))
        length, times = lengths.most_common(1)[0] if lengths else (0, 0)
        return (times / len(head), length) if length > 1 else (0.0, 0)

    return max(",;\t|", key=fit)


def _column(name: str, values: Any, share: float, pandas: Any) -> dict[str, Any]:
    """What is known of a column, from how often each of its values occurs."""
    counts = {str(value): int(times) for value, times in values.value_counts().items()}
    absent = {value: times for value, times in counts.items() if value.strip().casefold() in MISSING}
    held = {value: times for value, times in counts.items() if value not in absent}
    kinds = {value: _kind(value.strip()) for value in held}
    by_kind = Counter[str]()
    for value, times in held.items():
        by_kind[kinds[value].partition(" ")[0]] += times
    kind, times = by_kind.most_common(1)[0] if held else ("empty", 0)
    if times < share * sum(held.values()):
        kind = "text"
    found: list[str] = []
    if absent:
        words = [value for value in absent if value.strip()]
        found.append(f"{sum(absent.values()):,} missing{f', some written {_some(words)}' if words else ''}")
    if kind not in ("text", "empty"):
        other = [value for value in held if not kinds[value].startswith(kind)]
        found += [f"{sum(map(held.__getitem__, other)):,} not a {kind}: {_some(other)}"] if other else []
    lowest: Any = min(held, default=None)
    highest: Any = max(held, default=None)
    if kind == "number":
        lowest, highest = _range(held, found, pandas)
    elif kind == "date":
        forms = Counter[str]()
        for value in held:
            forms[kinds[value].removeprefix("date ")] += held[value] * kinds[value].startswith("date")
        if len(+forms) > 1:
            lowest = highest = None  # as text they would be wrong
            found.append("dates are written " + ", ".join(f"{form} ({n:,})" for form, n in (+forms).most_common()))
    elif kind == "text":
        found += _odd_texts(held)
    if len(held) == 1 and not absent and len(values) > 1:
        found.append("always the same")
    return {
        "column": name, "type": kind, "missing": sum(absent.values()), "distinct": len(held), "lowest": lowest,
        "highest": highest, "most_common": max(held, key=held.__getitem__, default=""), "suspicious": "; ".join(found),
    }  # fmt: skip


def _odd_texts(held: dict[str, int]) -> list[str]:
    """Spellings of what is probably one value, and traces of a wrong encoding."""
    alike: dict[str, list[str]] = {}
    for value in held:
        alike.setdefault(" ".join(value.casefold().split()), []).append(value)
    groups = [" = ".join(map(repr, group)) for group in alike.values() if len(group) > 1]
    broken = [value for value in held if BROKEN.search(value)]
    found = [f"{len(groups):,} written in more than one way: {_some(groups, shown=str)}"] if groups else []
    return found + ([f"{sum(map(held.__getitem__, broken)):,} in a wrong encoding: {_some(broken)}"] if broken else [])


def _kind(value: str) -> str:
    if NUMBER.fullmatch(value):
        return "number"
    if value.casefold() in BOOLEANS:
        return "boolean"
    form = next((form for form, pattern in DATES.items() if re.fullmatch(pattern, value)), None)
    return f"date {form}" if form else "text"


def _range(held: dict[str, int], found: list[str], pandas: Any) -> tuple[float, float]:
    """The lowest and the highest number; those far outside of the middle half are suspicious."""
    numbers = {value: _number(value.strip()) for value in held if NUMBER.fullmatch(value.strip())}
    series = pandas.Series(list(numbers.values())).repeat([held[value] for value in numbers])
    low, high = series.quantile(0.25), series.quantile(0.75)
    reach = 3 * (high - low)
    far = [value for value, number in numbers.items() if reach and not low - reach <= number <= high + reach]
    if far:
        far.sort(key=lambda value: -abs(numbers[value] - (low + high) / 2))
        found.append(f"{sum(held[value] for value in far):,} far from the others: {_some(far)}")
    return float(series.min()), float(series.max())


def _number(value: str) -> float:
    """With a decimal comma as well: the last mark is the decimal one, if it does not cut off three digits."""
    value = re.sub(r"[ ']", "", value)
    if "," in value and (re.search(r",\d{3}$", value) is None or "." in value) and value.rfind(",") > value.rfind("."):
        value = value.replace(".", "").replace(",", ".")
    value = value.replace(",", "")
    return float(value.replace(".", "", value.count(".") - 1) if value.count(".") > 1 else value)


def _some(values: list[str], shown: Any = repr) -> str:
    return ", ".join(map(shown, values[:3])) + (", ..." if len(values) > 3 else "")


@test_plugin(name="a small file")
def test_a_small_file(call: Any) -> None:
    """Finds the delimiter, the types and what is odd."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "a.csv")
        file.write_text("town;sold\nKiel;1\nkiel;x\n" + "Bonn;2\n" * 30, "utf-8")
        frame, text = call(str(file))
    assert frame["type"].to_list() == ["text", "number"]
    assert "'Kiel' = 'kiel'" in text
    assert "1 not a number: 'x'" in text
