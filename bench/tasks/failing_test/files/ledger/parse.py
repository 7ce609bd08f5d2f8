from dataclasses import dataclass
from datetime import date

from ledger.money import parse_amount


@dataclass(frozen=True)
class Entry:
    day: date
    text: str
    cents: int


def parse_statement(text):
    entries = []
    for line in text.splitlines():
        if line.strip():
            day, words, amount = line.split(";")
            entries.append(Entry(date.fromisoformat(day), words, parse_amount(amount)))
    return entries
