"""Plugin `csv_profile`: describe the columns of a CSV, Excel or Parquet file, and find suspicious values."""

import math
import re
import unicodedata
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from taskweaver.plugin import Plugin, register_plugin, test_plugin

from ._data_files import load_text_table, make_short_names
from ._errors import check_file, import_library
from ._numbers import Number, describe_notations, has_decimal_comma, list_counts, read_number

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
BOOLEANS = {"true", "false", "yes", "no", "y", "n", "t", "f"}
BROKEN = re.compile("\ufffd|[ÃÂ][\u0080-¿]|â€")
"""UTF-8 text that another program decoded with a wrong encoding."""
TOTALS = {
    *("total", "totals", "grand total", "subtotal", "sub total", "sum", "overall"),
    *("summe", "gesamt", "gesamtsumme", "zwischensumme", "insgesamt"),
    *("total général", "somme", "totaal", "totale", "suma", "soma", "итого", "合计", "合計"),
}
"""Words in a row that sums up the others."""
UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "å": "aa", "ø": "oe", "æ": "ae", "œ": "oe"})
MIN_ADDENDS = 5
MAX_EXACT = 2**53
"""Up to here, a double holds each whole number."""
MANY_VALUES = 50_000
"""Above this number of different values, a column is described from a sample and its odd values."""
SAMPLE_ROWS = 20_000
MANY_ROWS = 1_000_000
"""Above this number, repeated rows are counted in a tenth of the rows."""
ODD = {
    "number": "try_cast({0} as double) is null",
    "date": "try_cast({0} as timestamp) is null",
    "text": (
        "contains({0}, 'Ã') or contains({0}, 'Â') or contains({0}, 'â€') or contains({0}, '\ufffd') "
        "or lower(trim({0})) in ('total', 'grand total', 'sum', 'summe')"
    ),
}
"""Conditions for values that a sample may miss, by the type of the column."""


@register_plugin
class CsvProfile(Plugin):
    """A reader that keeps each value as text first, so that no guess of a type loses anything."""

    def __call__(self, path: str, sheet: str = "", encoding: str = "") -> Any:
        """Return a frame with a row for each column of the file, and a text with all suspicious findings.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: The file is empty, or has another format.
            LookupError: There is no such encoding.
        """
        pandas = import_library("pandas", "csv_profile")
        file = check_file(str(path))
        limit_bytes = int(self.config.get("limit_mb", 2000)) * 1_000_000
        memory_mb = int(self.config.get("memory_mb", 800))
        share = float(self.config.get("share", 0.6))
        duckdb = import_library("duckdb", "csv_profile")
        with TemporaryDirectory() as folder, duckdb.connect() as connection:
            connection.execute(f"set memory_limit = '{memory_mb}MB'")
            connection.execute(f"set temp_directory = '{folder}'")
            connection.execute("set preserve_insertion_order = false")
            table = load_text_table(connection, file, Path(folder), limit_bytes, sheet, encoding)
            row_count, rows = _profile_table(connection, table.names, share)
            repeated_count = _count_repeated(connection, len(table.names), row_count)
        column_count = len(table.names)
        lines = [f"{file.name}: {row_count:,} rows, {column_count} columns; {table.form}"]
        if repeated_count:
            about = "about " if row_count > MANY_ROWS else ""
            lines.append(f"- rows that are the same as an earlier one: {about}{repeated_count:,}")
        for row in rows:
            if row["suspicious"]:
                lines.append(f"- {row['column']}: {row['suspicious']}")
        estimated = [str(row["column"]) for row in rows if row["distinct"] > MANY_VALUES]
        if estimated:
            lines.append(f"Estimated from a sample, except odd values: {', '.join(estimated)}")
        frame = pandas.DataFrame(rows, dtype=object)  # with floats among them, long ids would become floats too
        return frame.astype({"missing": int, "distinct": int}), "\n".join(lines)


def _profile_table(connection: Any, titles: Sequence[str], share: float) -> tuple[int, list[dict[str, Any]]]:
    """Return the number of rows in the table `data`, and a description of each column."""
    names = make_short_names(len(titles))
    estimates = ", ".join(f"approx_count_distinct({name})" for name in names)
    query = f"select count(*), {estimates} from data"
    ((row_count, *distinct),) = connection.execute(query).fetchall()
    connection.execute(f"create table sample as from data using sample {SAMPLE_ROWS} rows (reservoir, 1)")
    rows = []
    for name, title, estimate in zip(names, titles, distinct, strict=True):
        column = _Column(connection, name, row_count)
        rows.append(column.profile(title, share, estimate))
    return row_count, rows


class _Column:
    """A column of the table `data`, of which the table `sample` has some rows."""

    def __init__(self, connection: Any, name: str, row_count: int) -> None:
        self._connection = connection
        self._name = name
        self._row_count = row_count

    def profile(self, title: str, share: float, estimate: int) -> dict[str, Any]:
        """Describe the column; `share` of the values must have its type. `estimate` counts the different values."""
        if estimate <= MANY_VALUES:
            return _profile_values(title, self._count("data"), share)
        sample = self._count("sample")
        frequent = dict(islice(sample.items(), 2_000))
        kind = _profile_values(title, frequent, share)["type"]
        is_odd = ODD.get(kind, ODD["text"]).format(self._name)
        odd = self._count(f"data where {is_odd}")
        odd_count = sum(odd.values())
        is_mostly_odd = odd_count > 0.2 * self._row_count  # SQL does not know this notation
        if is_mostly_odd:
            counts = _scale(sample, self._row_count)
        else:
            usual = self._count(f"sample where not ({is_odd})")
            counts = _scale(usual, self._row_count - odd_count) | odd
        row = _profile_values(title, counts, share)
        row["distinct"] = estimate
        if row["lowest"] is None:
            return row
        if row["type"] != "number":
            lowest, highest = self._find_bounds(f"nullif({self._name}, '')")
            row["lowest"] = lowest
            row["highest"] = highest
        elif not is_mostly_odd:
            lowest, highest = self._find_bounds(f"try_cast({self._name} as double)")
            row["lowest"] = self._find_exact(lowest, "min")
            row["highest"] = self._find_exact(highest, "max")
        return row

    def _find_bounds(self, value: str) -> tuple[Any, Any]:
        """Return the lowest and the highest value of an expression."""
        query = f"select min({value}), max({value}) from data"
        ((lowest, highest),) = self._connection.execute(query).fetchall()
        return lowest, highest

    def _find_exact(self, bound: float, function: str) -> int | float:
        """Return the exact number that the lowest or highest double stands for."""
        if abs(bound) < MAX_EXACT:
            return bound
        where = f"try_cast({self._name} as double) = ?"
        query = f"select {function}(try_cast({self._name} as hugeint)) from data where {where}"
        ((exact,),) = self._connection.execute(query, [bound]).fetchall()
        return bound if exact is None else int(exact)

    def _count(self, source: str) -> dict[str, int]:
        """Return the most frequent values of a source with their counts; a missing value is ""."""
        value = f"coalesce({self._name}, '')"
        limit = 4 * MANY_VALUES
        query = f"select {value}, count(*) from {source} group by 1 order by 2 desc, 1 limit {limit}"
        return dict(self._connection.execute(query).fetchall())


def _scale(counts: Mapping[str, int], total: int) -> dict[str, int]:
    """Return the counts of a sample as they would be for `total` values, at least 1 each."""
    factor = total / max(sum(counts.values()), 1)
    scaled = {}
    for value, times in counts.items():
        scaled[value] = max(round(times * factor), 1)
    return scaled


def _count_repeated(connection: Any, column_count: int, row_count: int) -> int:
    """Return the number of rows that repeat an earlier one; of many rows an estimate."""
    names = ", ".join(make_short_names(column_count))
    part = 10 if row_count > MANY_ROWS else 1
    rows = f"select hash({names}) as row from data"
    query = f"select count(*) - count(distinct row) from ({rows}) where row % {part} = 0"
    ((count,),) = connection.execute(query).fetchall()
    return int(count) * part


class _Values:
    """The different values of a column with their counts, and what they look like. Missing ones are apart."""

    def __init__(self, counts: Mapping[str, int]) -> None:
        self.missing: dict[str, int] = {}
        self.present: dict[str, int] = {}
        self.types: dict[str, str] = {}
        self.numbers: dict[str, Number] = {}
        self.date_formats: dict[str, str] = {}
        for value, times in counts.items():
            text = value.strip()
            if text.casefold() in MISSING:
                self.missing[value] = times
            else:
                self.present[value] = times
                self.types[value] = self._read(value, text)

    def _read(self, value: str, text: str) -> str:
        """Return the type of a value, and keep its number or its date format."""
        number = read_number(text)
        if number:
            self.numbers[value] = number
            return "number"
        if text.casefold() in BOOLEANS:
            return "boolean"
        date_format = _find_date_format(text)
        if date_format:
            self.date_formats[value] = date_format
            return "date"
        return "text"

    def count(self, values: Iterable[str]) -> int:
        """Count how often some of the values occur."""
        return sum(map(self.present.__getitem__, values))

    def describe(self, values: list[str], what: str) -> str:
        """Describe some of the values: how often they occur, what they are, and the first ones."""
        return f"{self.count(values):,} {what}: {_format_some(values)}"

    def find_type(self, share: float) -> str:
        """Return the type that most values have, or "text" if less than `share` of them have it."""
        if not self.present:
            return "empty"
        counts = Counter[str]()
        for value, times in self.present.items():
            counts[self.types[value]] += times
        ((kind, count),) = counts.most_common(1)
        is_usual = count >= share * self.count(self.present)
        return kind if is_usual else "text"

    def count_date_formats(self) -> Counter[str]:
        """Count the values of each date format."""
        counts = Counter[str]()
        for value, date_format in self.date_formats.items():
            counts[date_format] += self.present[value]
        return counts


def _profile_values(name: str, counts: Mapping[str, int], share: float) -> dict[str, Any]:
    """Describe a column from the count of each value; `share` of the values must have the column's type."""
    values = _Values(counts)
    present = values.present
    kind = values.find_type(share)
    found = [*_describe_missing(values), *_describe_others(values, kind)]
    lowest: Any = min(present, default=None)
    highest: Any = max(present, default=None)
    if kind == "number":
        numbers = _Numbers(values)
        lowest, highest = numbers.find_bounds()
        found += numbers.describe()
    elif kind == "date":
        date_formats = values.count_date_formats()
        if len(date_formats) > 1:
            lowest = None  # the order of the texts is not the order of the dates
            highest = None
            found.append(f"dates are written {list_counts(date_formats)}")
    elif kind == "text":
        found += _describe_odd_texts(values)
    totals = list(filter(_is_total, present))
    if totals:
        found.append(values.describe(totals, "as in a total row"))
    is_constant = len(present) == 1 and not values.missing
    if is_constant and values.count(present) > 1:
        found.append("always the same")
    return {
        "column": name,
        "type": kind,
        "missing": sum(values.missing.values()),
        "distinct": len(present),
        "lowest": lowest,
        "highest": highest,
        "most_common": max(present, key=present.__getitem__, default=""),
        "suspicious": "; ".join(found),
    }


def _is_total(value: str) -> bool:
    word = value.strip().rstrip(":")
    return word.casefold() in TOTALS


def _describe_missing(values: _Values) -> list[str]:
    if not values.missing:
        return []
    text = f"{sum(values.missing.values()):,} missing"
    words = [value for value in values.missing if value.strip()]
    if words:
        text += f", some written {_format_some(words)}"
    return [text]


def _describe_others(values: _Values, kind: str) -> list[str]:
    """Describe the values that have another type than the column."""
    if kind in ("text", "empty"):
        return []
    others = [value for value in values.present if values.types[value] != kind]
    if not others:
        return []
    return [values.describe(others, f"not a {kind}")]


def _describe_odd_texts(values: _Values) -> list[str]:
    """Describe different spellings of the same text, and traces of a wrong encoding."""
    found = []
    groups = []
    for group in _group_spellings(values.present):
        if len(group) > 1:
            groups.append(" = ".join(map(repr, group)))
    if groups:
        found.append(f"{len(groups):,} written in more than one way: {_format_some(groups, str)}")
    broken = [value for value in values.present if BROKEN.search(value)]
    if broken:
        found.append(values.describe(broken, "in a wrong encoding"))
    return found


def _group_spellings(values: Iterable[str]) -> list[list[str]]:
    """Group texts that differ in case, blanks, or the spelling of letters: Köln, Koeln and Koln."""
    spelled: dict[str, str] = {}
    meant: dict[str, str] = {}  # `Koln` means `Köln` only where this is in the column
    for value in values:
        words = unicodedata.normalize("NFC", value).casefold().split()
        plain = " ".join(words)
        spelled[value] = _drop_accents(plain.translate(UMLAUTS))
        if not plain.isascii():
            meant[_drop_accents(plain)] = spelled[value]
    groups: dict[str, list[str]] = {}
    for value, key in spelled.items():
        group = groups.setdefault(meant.get(key, key), [])
        group.append(value)
    return list(groups.values())


def _drop_accents(text: str) -> str:
    if text.isascii():
        return text
    letters = unicodedata.normalize("NFD", text)
    return "".join(each for each in letters if not unicodedata.combining(each))


def _find_date_format(text: str) -> str | None:
    for name, pattern in DATE_FORMATS.items():
        if re.fullmatch(pattern, text):
            return name
    return None


class _Numbers:
    """The numbers of a column."""

    def __init__(self, values: _Values) -> None:
        self._values = values
        self._written: list[tuple[Number, int]] = []  # with their counts, as are the sorted ones
        for value, number in values.numbers.items():
            self._written.append((number, values.present[value]))
        is_decimal_comma = has_decimal_comma(self._written)
        self._by_value: dict[str, int | float] = {}
        self._sorted: list[tuple[int | float, int]] = []
        for value, number in values.numbers.items():
            exact = number.to_value(is_decimal_comma)
            self._by_value[value] = exact
            self._sorted.append((exact, values.present[value]))
        self._sorted.sort()

    def find_bounds(self) -> tuple[int | float, int | float]:
        """Return the lowest and the highest number."""
        lowest, _ = self._sorted[0]
        highest, _ = self._sorted[-1]
        return lowest, highest

    def describe(self) -> list[str]:
        """Describe mixed notations, ids, a total, and numbers far from most."""
        found = describe_notations(self._written)
        zeros = [value for value in self._by_value if re.fullmatch(r"0\d+", value.strip())]
        if zeros:
            found.append(self._values.describe(zeros, "with leading zeros"))
        total = self._find_total()
        if total:
            found.append(f"1 is the sum of all others, as in a total row: {total!r}")
        far = self._list_far()
        if far:
            found.append(self._values.describe(far, "far from the others"))
        return found

    def _list_far(self) -> list[str]:
        """List the values that are far from the middle half of all, the farthest first."""
        low = self._find_quantile(0.25)
        high = self._find_quantile(0.75)
        margin = 3 * (high - low)
        if not margin:
            return []
        middle = (low + high) / 2
        distances: dict[str, float] = {}
        for value, number in self._by_value.items():
            if not low - margin <= number <= high + margin:
                distances[value] = abs(number - middle)
        return sorted(distances, key=lambda value: -distances[value])

    def _find_quantile(self, share: float) -> int | float:
        """Return the number below which a share of all numbers lies."""
        places = list(accumulate(times for _, times in self._sorted))
        place = bisect(places, places[-1] * share)
        number, _ = self._sorted[place]
        return number

    def _find_total(self) -> str:
        """Return the value that is the sum of all others, or nothing. Few numbers may add up by chance."""
        present = self._values.present
        if self._values.count(self._by_value) < MIN_ADDENDS:
            return ""
        largest = max(self._by_value, key=lambda value: abs(self._by_value[value]))
        total = self._by_value[largest]
        if not total or present[largest] != 1:
            return ""
        others = []
        for value, number in self._by_value.items():
            if value != largest:
                others.append(number * present[value])
        is_sum = math.isclose(total, sum(others), rel_tol=1e-9, abs_tol=0.005)
        return largest if is_sum else ""


def _format_some(values: list[str], form: Callable[[str], str] = repr) -> str:
    shown = list(map(form, values[:3]))
    if len(values) > 3:
        shown.append("...")
    return ", ".join(shown)


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
