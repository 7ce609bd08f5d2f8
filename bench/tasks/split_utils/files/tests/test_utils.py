from datetime import date

from notes.utils import next_monday, shorten


def test_shorten():
    assert shorten("short") == "short"
    assert shorten("abcdef", length=4) == "abc…"


def test_next_monday():
    assert next_monday(date(2026, 11, 30)) == date(2026, 12, 7)
