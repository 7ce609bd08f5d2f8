"""Numbers as people write them: with thousands separators, a decimal comma, a currency and kinds of signs."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_CURRENCY = r"[$€£¥₹₽₩₺]|[A-Z]{2}\$|EUR|USD|GBP|CHF|JPY|CNY|INR|CAD|AUD|SEK|NOK|DKK|PLN|CZK|BRL|kr\.?|zł|Fr\."
_MINUS = "-−–"  # noqa: RUF001
_SPACES = " \u00a0\u202f"
_AMOUNT = re.compile(
    rf"(?P<open>\()?\s*(?P<sign>[{_MINUS}+])?\s*(?P<before>{_CURRENCY})?\s*(?P<sign2>[{_MINUS}+])?"
    rf"(?P<body>(?:\d|[.,]\d)(?:[\d.,'’{_SPACES}]*\d)?[.,]?(?:[eE][-+]?\d+)?)"  # noqa: RUF001
    rf"\s*(?P<after>{_CURRENCY}|%)?\s*(?P<trailing>[{_MINUS}])?(?P<close>\))?"
)
_POINT, _COMMA, _UNKNOWN = "1234.56", "1234,56", "1.234 or 1,234"
_STYLES = {
    "1234": re.compile(r"\d+"),
    _UNKNOWN: re.compile(r"[1-9]\d{0,2}[.,]\d{3}"),
    _POINT: re.compile(r"\d*\.\d*(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+"),
    _COMMA: re.compile(r"\d*,\d*(?:[eE][-+]?\d+)?"),
    "1,234.56": re.compile(r"\d{1,3}(?:,\d{2,3})*,\d{3}(?:\.\d*)?"),
    "1.234,56": re.compile(r"\d{1,3}(?:\.\d{3})+(?:,\d*)?"),
    "1 234.56": re.compile(rf"\d{{1,3}}(?:[{_SPACES}]\d{{3}})+(?:\.\d*)?"),
    "1 234,56": re.compile(rf"\d{{1,3}}(?:[{_SPACES}]\d{{3}})+,\d*"),
    "1'234.56": re.compile(r"\d{1,3}(?:['’]\d{3})+(?:\.\d*)?"),  # noqa: RUF001
}
"""Ways to write a number; the first match counts."""
_POINT_STYLES = {_POINT, "1,234.56", "1 234.56", "1'234.56"}
_COMMA_STYLES = {_COMMA, "1.234,56", "1 234,56"}
_FLOAT_DIGITS, _MAX_DIGITS = 15, 300
"""Digits that a float keeps exactly, and more than it can hold at all."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number as it is written. `sign` is an example of its sign, "" without one; `unit` a currency or %."""

    digits: str
    style: str
    unit: str
    sign: str

    def to_value(self, is_decimal_comma: bool) -> int | float:
        """Return the value, exactly if it is an id of many digits. `is_decimal_comma` is for `1.234` and `1,234`."""
        decimal = "," if is_decimal_comma else "."
        if self.style != _UNKNOWN:
            decimal = "," if self.style in _COMMA_STYLES else "."
        digits = "".join(each for each in self.digits if each.isdigit() or each in "eE+-" or each == decimal)
        is_long = digits.isdecimal() and _FLOAT_DIGITS < len(digits) < _MAX_DIGITS
        value = int(digits) if is_long else float(digits.replace(",", "."))
        return -value if self.sign else value


def read_number(text: str) -> Number | None:
    """Read a number with its unit and sign; return None for any other text."""
    if text.isascii() and text.isdigit():
        return Number(text, "1234", "", "")
    match = _AMOUNT.fullmatch(text)
    if match is None or bool(match["open"]) != bool(match["close"]) or (match["before"] and match["after"]):
        return None
    signs = [each for each in (match["sign"], match["sign2"], match["trailing"], match["open"]) if each]
    style = next((name for name, pattern in _STYLES.items() if pattern.fullmatch(match["body"])), None)
    if style is None or len(signs) > 1:
        return None
    sign = "" if not signs or signs == ["+"] else "(12)" if match["open"] else "12-" if match["trailing"] else "-12"
    return Number(match["body"], style, match["before"] or match["after"] or "", sign)


def has_decimal_comma(counts: Iterable[tuple[Number, int]]) -> bool:
    """Return True if more numbers have a decimal comma than a decimal point."""
    styles = _count_styles(counts)
    return sum(styles[name] for name in _COMMA_STYLES) > sum(styles[name] for name in _POINT_STYLES)


def _count_styles(counts: Iterable[tuple[Number, int]]) -> Counter[str]:
    styles = Counter[str]()
    for number, count in counts:
        styles[number.style] += count
    return styles


def describe_notations(counts: Sequence[tuple[Number, int]]) -> list[str]:
    """Describe different ways of writing numbers, currencies and negative values, each with its count."""
    styles, units, signs = _count_styles(counts), Counter[str](), Counter[str]()
    for number, count in counts:
        units[number.unit or "none"] += count
        signs[number.sign] += count
    del signs[""]
    unknown = styles.pop(_UNKNOWN, 0)
    marks = {name: count for name, count in styles.items() if name != "1234"}
    found = []
    if marks.keys() - {_POINT}:
        found.append(f"numbers are written {_list_counts(styles)}")
    if unknown and marks.keys() & _COMMA_STYLES and marks.keys() & _POINT_STYLES:
        found.append(f"{unknown:,} ambiguous, such as {_find_example(counts)!r}")
    if units.keys() - {"none"}:
        found.append(f"units: {_list_counts(units)}")
    if signs.keys() - {"-12"}:
        found.append(f"negative numbers are written {_list_counts(signs)}")
    return found


def _find_example(counts: Iterable[tuple[Number, int]]) -> str:
    return next(number.digits for number, _ in counts if number.style == _UNKNOWN)


def _list_counts(counts: Counter[str]) -> str:
    return ", ".join(f"{name} ({count:,})" for name, count in counts.most_common())
