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
_POINT = "1234.56"
_COMMA = "1234,56"
_UNKNOWN = "1.234 or 1,234"
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
_FLOAT_DIGITS = 15
_MAX_DIGITS = 300
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
        if self.style != _UNKNOWN:
            is_decimal_comma = self.style in _COMMA_STYLES
        marks = "eE+-," if is_decimal_comma else "eE+-."
        digits = "".join(each for each in self.digits if each.isdigit() or each in marks)
        is_long = digits.isdecimal() and _FLOAT_DIGITS < len(digits) < _MAX_DIGITS
        value = int(digits) if is_long else float(digits.replace(",", "."))
        return -value if self.sign else value


def read_number(text: str) -> Number | None:
    """Read a number with its unit and sign; return None for any other text."""
    if text.isascii() and text.isdigit():
        return Number(text, "1234", "", "")
    match = _AMOUNT.fullmatch(text)
    if match is None:
        return None
    has_half_brackets = bool(match["open"]) != bool(match["close"])
    has_two_units = match["before"] and match["after"]
    if has_half_brackets or has_two_units:
        return None
    style = _find_style(match["body"])
    sign = _find_sign(match)
    if style is None or sign is None:
        return None
    unit = match["before"] or match["after"] or ""
    return Number(match["body"], style, unit, sign)


def _find_style(digits: str) -> str | None:
    for name, pattern in _STYLES.items():
        if pattern.fullmatch(digits):
            return name
    return None


def _find_sign(match: re.Match[str]) -> str | None:
    """Return an example of the sign of an amount: "" for a positive one, None for more than one sign."""
    places = [name for name in ("sign", "sign2", "trailing", "open") if match[name]]
    if len(places) > 1:
        return None
    if not places or match[places[0]] == "+":
        return ""
    return {"open": "(12)", "trailing": "12-"}.get(places[0], "-12")


def has_decimal_comma(counts: Iterable[tuple[Number, int]]) -> bool:
    """Return True if more numbers have a decimal comma than a decimal point."""
    styles = _count_styles(counts)
    comma_count = sum(styles[name] for name in _COMMA_STYLES)
    point_count = sum(styles[name] for name in _POINT_STYLES)
    return comma_count > point_count


def _count_styles(counts: Iterable[tuple[Number, int]]) -> Counter[str]:
    styles = Counter[str]()
    for number, count in counts:
        styles[number.style] += count
    return styles


def describe_notations(counts: Sequence[tuple[Number, int]]) -> list[str]:
    """Describe different ways of writing numbers, currencies and negative values, each with its count."""
    units = Counter[str]()
    signs = Counter[str]()
    for number, count in counts:
        units[number.unit or "none"] += count
        if number.sign:
            signs[number.sign] += count
    styles = _count_styles(counts)
    unknown_count = styles.pop(_UNKNOWN, 0)
    marks = styles.keys() - {"1234"}
    found = []
    if marks - {_POINT}:
        found.append(f"numbers are written {list_counts(styles)}")
    if unknown_count and marks & _COMMA_STYLES and marks & _POINT_STYLES:
        example = next(number.digits for number, _ in counts if number.style == _UNKNOWN)
        found.append(f"{unknown_count:,} ambiguous, such as {example!r}")
    if units.keys() - {"none"}:
        found.append(f"units: {list_counts(units)}")
    if signs.keys() - {"-12"}:
        found.append(f"negative numbers are written {list_counts(signs)}")
    return found


def list_counts(counts: Counter[str]) -> str:
    """List names with their counts, the most frequent first."""
    texts = [f"{name} ({count:,})" for name, count in counts.most_common()]
    return ", ".join(texts)
