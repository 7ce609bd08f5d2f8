"""Writes a CSV of 50,000 orders as one gets them, the same each time, and says what is true of them.

    python tests/toolkits/code/messy_orders.py orders.csv

Dates are written in three ways, towns in several and some of them in a wrong encoding, prices are missing, have a
comma, or are a thousand times too high, and every fiftieth row is there twice.
"""

import csv
import random
import sys
from collections import Counter
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

ROWS = 50_000
TWICE = 1_000
TOWNS = ("Berlin", "Hamburg", "Köln", "München", "Zürich")
PRICES = {"lamp": 3490, "chair": 8900, "table": 24900, "shelf": 12950}
"""In cents; each price is within a fifth of it."""
DATES = ("%Y-%m-%d", "%d.%m.%Y", "%d %b %Y")


@dataclass(frozen=True)
class Truth:
    """The result of a good analysis: valid rows, and sales in cents by town and by month."""

    kept: int
    by_town: dict[str, int]
    by_month: dict[str, int]


def write(file: Path) -> Truth:
    """Writes the file, with the columns id, ordered, town, product, quantity and price."""
    draw = random.Random(2026)
    rows, by_town, by_month, kept = list[list[str]](), Counter[str](), Counter[str](), 0
    for number in range(ROWS - TWICE):
        day = date(2025, 1, 1) + timedelta(days=draw.randrange(365))
        town, (product, usual) = draw.choice(TOWNS), draw.choice(list(PRICES.items()))
        quantity, cents = draw.randint(1, 9), usual + draw.randint(-usual // 5, usual // 5)
        price = _written(cents, draw)
        if price is None:
            price = draw.choice(["", "n/a", f"{cents * 10:d}"])  # nothing, or a thousand times too much
        else:
            kept += 1
            by_town[town] += quantity * cents
            by_month[f"{day:%Y-%m}"] += quantity * cents
        rows.append([str(number), day.strftime(draw.choice(DATES)), _spelt(town, draw), product, str(quantity), price])
    for row in draw.sample(rows, TWICE):
        rows.insert(draw.randrange(len(rows)), row)
    with file.open("w", newline="", encoding="utf-8") as target:
        csv.writer(target).writerows([["id", "ordered", "town", "product", "quantity", "price"], *rows])
    return Truth(kept, dict(sorted(by_town.items())), dict(sorted(by_month.items())))


def _written(cents: int, draw: random.Random) -> str | None:
    """The price with a point or a comma, or None: something is wrong with it."""
    if draw.random() < 0.03:
        return None
    return f"{cents // 100}{draw.choice('..,')}{cents % 100:02}"


def _spelt(town: str, draw: random.Random) -> str:
    """The town as it is, in capitals, with a space too many, or in UTF-8 that was read as something else."""
    ways = [town] * 6 + [town.upper(), f"{town} ", town.encode().decode("cp1252")]
    return draw.choice(ways)


if __name__ == "__main__":
    print(write(Path(sys.argv[1])))
