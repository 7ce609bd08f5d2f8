from ledger.parse import parse_statement
from ledger.report import format_report


def test_the_balance_of_a_german_bank():
    entries = parse_statement("2026-01-30;rent;-650,00\n2026-01-31;salary;2100,5\n")
    assert format_report(entries).endswith("balance 1450.50")
