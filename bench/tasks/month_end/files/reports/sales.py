from dataclasses import dataclass
from datetime import date


@dataclass(frozen=True)
class Sale:
    day: date
    article: str
    cents: int


def select_sales(sales, start, end):
    """Return the sales from the day `start` up to and including the day `end`."""
    return [sale for sale in sales if start <= sale.day < end]
