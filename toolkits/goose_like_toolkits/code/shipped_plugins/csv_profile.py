"""Plugin `csv_profile`: describe the columns of a CSV, Excel or Parquet file, and find suspicious values."""

import math
import re
import unicodedata
from bisect import bisect
from collections import Counter
from collections.abc import Iterable
from itertools import accumulate, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from taskweaver.plugin import Plugin, register_plugin, test_plugin

from ._data_files import load_text_table
from ._errors import check_file, import_library
from ._numbers import Number, describe_notations, has_decimal_comma, read_number

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
        share = float(self.config.get("share", 0.6))
        with TemporaryDirectory() as folder, import_library("duckdb", "csv_profile").connect() as connection:
            connection.execute(f"set memory_limit = '{int(self.config.get('memory_mb', 800))}MB'")
            connection.execute(f"set temp_directory = '{folder}'")
            connection.execute("set preserve_insertion_order = false")
            table = load_text_table(connection, file, Path(folder), limit_bytes, sheet, encoding)
            names = [f"c{at}" for at in range(len(table.names))]
            estimates = ", ".join(f"approx_count_distinct({name})" for name in names)
            ((rows, *distinct),) = connection.execute(f"select count(*), {estimates} from data").fetchall()
            connection.execute(f"create table sample as from data using sample {SAMPLE_ROWS} rows (reservoir, 1)")
            columns = [
                _Column(connection, name, rows).profile(title, share, estimate)
                for name, title, estimate in zip(names, table.names, distinct, strict=True)
            ]
            repeated = _count_repeated(connection, names, rows)
        lines = [f"{file.name}: {rows:,} rows, {len(names)} columns; {table.form}"]
        if repeated:
            about = "about " if rows > MANY_ROWS else ""
            lines.append(f"- rows that are the same as an earlier one: {about}{repeated:,}")
        lines += [f"- {row['column']}: {row['suspicious']}" for row in columns if row["suspicious"]]
        if estimated := [row["column"] for row in columns if row["distinct"] > MANY_VALUES]:
            lines.append(f"Estimated from a sample, except odd values: {', '.join(map(str, estimated))}")
        frame = pandas.DataFrame(columns, dtype=object)  # with floats among them, long ids would become floats too
        return frame.astype({"missing": int, "distinct": int}), "\n".join(lines)


class _Column:
    """A column of the table `data`, of which the table `sample` has some rows."""

    def __init__(self, connection: Any, name: str, rows: int) -> None:
        self._connection, self._name, self._rows = connection, name, rows

    def profile(self, title: str, share: float, estimate: int) -> dict[str, Any]:
        """Describe the column; `share` of the values must have its type. `estimate` counts the different values."""
        if estimate <= MANY_VALUES:
            return _profile_values(title, self._count("data"), share)
        sample = self._count("sample")
        kind = _profile_values(title, dict(islice(sample.items(), 2_000)), share)["type"]
        is_odd = ODD.get(kind, ODD["text"]).format(self._name)
        odd, left = self._count(f"data where {is_odd}"), 0
        is_mostly_odd = sum(odd.values()) > 0.2 * self._rows  # SQL does not know this notation
        if is_mostly_odd:
            odd, usual, left = {}, sample, self._rows
        else:
            usual, left = self._count(f"sample where not ({is_odd})"), self._rows - sum(odd.values())
        scale = left / max(sum(usual.values()), 1)
        counts = {value: max(round(times * scale), 1) for value, times in usual.items()} | odd
        row = _profile_values(title, counts, share) | {"distinct": estimate}
        if row["lowest"] is not None:
            is_number = row["type"] == "number" and not is_mostly_odd
            value = f"try_cast({self._name} as double)" if is_number else f"nullif({self._name}, '')"
            if is_number or row["type"] != "number":
                bounds = self._connection.execute(f"select min({value}), max({value}) from data").fetchall()[0]
                exact = map(self._find_exact, bounds, ("min", "max")) if is_number else bounds
                row |= zip(("lowest", "highest"), exact, strict=True)
        return row

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
        query = f"select coalesce({self._name}, ''), count(*) from {source} group by 1 order by 2 desc, 1"
        return dict(self._connection.execute(f"{query} limit {4 * MANY_VALUES}").fetchall())


def _count_repeated(connection: Any, names: list[str], rows: int) -> int:
    """Return the number of rows that repeat an earlier one; of many rows an estimate."""
    row, part = f"hash({', '.join(names)})", 10 if rows > MANY_ROWS else 1
    query = f"select count(*) - count(distinct row) from (select {row} as row from data) where row % {part} = 0"
    return int(connection.execute(query).fetchall()[0][0]) * part


def _profile_values(name: str, counts: dict[str, int], share: float) -> dict[str, Any]:
    """Describe a column from the count of each value; `share` of the values must have the column's type."""
    absent = {value: times for value, times in counts.items() if value.strip().casefold() in MISSING}
    present = {value: times for value, times in counts.items() if value not in absent}
    numbers = {value: number for value in present if (number := read_number(value.strip()))}
    kinds = {value: "number" if value in numbers else _classify(value.strip()) for value in present}
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
        lowest, highest, notations = _describe_numbers(numbers, present)
        found += notations
    elif kind == "date":
        formats = Counter[str]()
        for value in present:
            formats[kinds[value].removeprefix("date ")] += present[value] * kinds[value].startswith("date")
        if len(+formats) > 1:
            lowest = highest = None  # the order of the texts is not the order of the dates
            found.append("dates are written " + ", ".join(f"{form} ({n:,})" for form, n in (+formats).most_common()))
    elif kind == "text":
        found += _find_odd_texts(present)
    totals = [value for value in present if value.strip().rstrip(":").casefold() in TOTALS]
    if totals:
        found.append(f"{sum(map(present.__getitem__, totals)):,} as in a total row: {_format_some(totals)}")
    if len(present) == 1 and not absent and sum(counts.values()) > 1:
        found.append("always the same")
    return {
        "column": name, "type": kind, "missing": sum(absent.values()), "distinct": len(present), "lowest": lowest,
        "highest": highest, "most_common": max(present, key=present.__getitem__, default=""),
        "suspicious": "; ".join(found),
    }  # fmt: skip


def _find_odd_texts(present: dict[str, int]) -> list[str]:
    """Describe different spellings of the same text, and traces of a wrong encoding."""
    groups = [" = ".join(map(repr, group)) for group in _group_spellings(present) if len(group) > 1]
    broken = [value for value in present if BROKEN.search(value)]
    found = [f"{len(groups):,} written in more than one way: {_format_some(groups, str)}"] if groups else []
    count = sum(map(present.__getitem__, broken))
    return found + ([f"{count:,} in a wrong encoding: {_format_some(broken)}"] if broken else [])


def _group_spellings(values: Iterable[str]) -> list[list[str]]:
    """Group texts that differ in case, blanks, or the spelling of letters: Köln, Koeln and Koln."""
    plain = {value: " ".join(unicodedata.normalize("NFC", value).casefold().split()) for value in values}
    spelled = {value: _drop_accents(text.translate(UMLAUTS)) for value, text in plain.items()}
    # `Koln` means `Köln` only where this is in the column.
    meant = {_drop_accents(text): spelled[value] for value, text in plain.items() if not text.isascii()}
    groups: dict[str, list[str]] = {}
    for value, key in spelled.items():
        groups.setdefault(meant.get(key, key), []).append(value)
    return list(groups.values())


def _drop_accents(text: str) -> str:
    if text.isascii():
        return text
    return "".join(each for each in unicodedata.normalize("NFD", text) if not unicodedata.combining(each))


def _classify(value: str) -> str:
    """Return the type of a value that is no number."""
    if value.casefold() in BOOLEANS:
        return "boolean"
    form = next((form for form, pattern in DATE_FORMATS.items() if re.fullmatch(pattern, value)), None)
    return f"date {form}" if form else "text"


def _describe_numbers(
    numbers: dict[str, Number], present: dict[str, int]
) -> tuple[int | float, int | float, list[str]]:
    """Return the lowest and the highest number, and descriptions of mixed notations and of numbers far from most."""
    counts = [(number, present[value]) for value, number in numbers.items()]
    is_decimal_comma = has_decimal_comma(counts)
    values = {value: number.to_value(is_decimal_comma) for value, number in numbers.items()}
    ordered = sorted((number, present[value]) for value, number in values.items())
    places = list(accumulate(times for _, times in ordered))
    low, high = (ordered[bisect(places, places[-1] * share)][0] for share in (0.25, 0.75))
    margin = 3 * (high - low)
    far = [value for value, number in values.items() if margin and not low - margin <= number <= high + margin]
    far.sort(key=lambda value: -abs(values[value] - (low + high) / 2))
    found = describe_notations(counts)
    zeros = [value for value in values if re.fullmatch(r"0\d+", value.strip())]
    if zeros:
        found.append(f"{sum(present[value] for value in zeros):,} with leading zeros: {_format_some(zeros)}")
    if total := _find_total(values, present):
        found.append(f"1 is the sum of all others, as in a total row: {total!r}")
    if far:
        found.append(f"{sum(present[value] for value in far):,} far from the others: {_format_some(far)}")
    return ordered[0][0], ordered[-1][0], found


def _find_total(values: dict[str, int | float], present: dict[str, int]) -> str:
    """Return the value that is the sum of all others, or nothing. Few numbers may add up by chance."""
    if sum(present[value] for value in values) < MIN_ADDENDS:
        return ""
    largest = max(values, key=lambda value: abs(values[value]))
    others = sum(number * present[value] for value, number in values.items() if value != largest)
    is_sum = math.isclose(values[largest], others, rel_tol=1e-9, abs_tol=0.005)
    return largest if is_sum and present[largest] == 1 and values[largest] else ""


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
