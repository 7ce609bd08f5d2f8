import pytest

from ledger.money import format_amount, parse_amount


@pytest.mark.parametrize(("text", "cents"), [("12.50", 1250), ("3", 300), ("-0.05", -5), ("+7.1", 710)])
def test_parse_amount(text, cents):
    assert parse_amount(text) == cents


def test_format_amount():
    assert format_amount(-1205) == "-12.05"
