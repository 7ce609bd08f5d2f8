"""Prices that the price table gave before, in the state folder: the import of the table takes longer than a run's end.

Only plain prices are kept, and that a price is unknown. Those that depend on the time or on a request's size are not.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from decimal import Decimal
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from goose_like.config.paths import create_private_folder, kept_folder, replace_private_file
from goose_like.core.dataclass import dataclass
from goose_like.core.message import Usage

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo

_MILLION = 1_000_000
_MAX_MODELS = 500


@dataclass(frozen=True, slots=True)
class Rates:
    """The plain price of a model: US dollars for a million tokens of each kind, and for a thousand searches."""

    fresh: Decimal
    output: Decimal
    cache_read: Decimal
    cache_write: Decimal
    cache_write_long: Decimal
    web_search: Decimal

    def compute_usd(self, used: Usage) -> float:
        """Compute the price of tokens. Those from and for the cache are a part of the input."""
        cached = used.cache_read_tokens + used.cache_write_tokens
        total = self.fresh * (used.input_tokens - cached)
        total += self.output * used.output_tokens
        total += self.cache_read * used.cache_read_tokens
        total += self.cache_write * (used.cache_write_tokens - used.cache_write_long_tokens)
        total += self.cache_write_long * used.cache_write_long_tokens
        total += self.web_search * used.web_searches * 1_000
        return float(total / _MILLION)


def find_plain_rates(model: "ModelInfo") -> Rates | None:
    """Return the rates of a model of the table, or None if they depend on the time or on the size of a request."""
    from genai_prices.types import ModelPrice

    prices = model.prices
    if not isinstance(prices, ModelPrice):
        return None
    fresh = _find_rate(prices, "input_mtok", Decimal(0))
    cache_read = _find_rate(prices, "cache_read_mtok", fresh)
    cache_write = _find_rate(prices, "cache_write_mtok", fresh)
    cache_write_long = _find_rate(prices, "cache_write_1h_mtok", cache_write)
    output = _find_rate(prices, "output_mtok", Decimal(0))
    web_search = _find_rate(prices, "web_searches_kcount", Decimal(0))
    if None in (fresh, cache_read, cache_write, cache_write_long, output, web_search):
        return None
    return Rates(fresh, output, cache_read, cache_write, cache_write_long, web_search)


def _find_rate(prices: Any, name: str, default: Any) -> Any:
    """Return the rate of one kind of tokens; without one, that of the kind which includes it. None: it has tiers."""
    rate = vars(prices).get(name)
    if rate is None:
        return default
    return rate if isinstance(rate, Decimal) else None


def read_kept_prices() -> dict[str, Rates | None]:
    """Read the prices that are kept for this table by the label of the model. None says that a price is unknown."""
    return _read_file(_find_file(), _identify_table())


@cache
def _read_file(file: Path, table: str) -> dict[str, Rates | None]:
    try:
        content = json.loads(file.read_text())
        kept = content["prices"] if content["table"] == table else {}
        return {label: _decode(rates) for label, rates in kept.items()}
    except (OSError, ValueError, ArithmeticError, TypeError, KeyError, AttributeError):
        return {}  # a missing or damaged file, which the next price replaces


def _decode(rates: Mapping[str, str] | None) -> Rates | None:
    if rates is None:
        return None
    return Rates(**{name: Decimal(rate) for name, rate in rates.items()})


def keep_price(label: str, rates: Rates | None) -> None:
    """Keep the price of a model for later processes."""
    kept = read_kept_prices()
    if len(kept) >= _MAX_MODELS:
        kept.clear()
    kept[label] = rates
    prices: dict[str, dict[str, str] | None] = {}
    for each, known in kept.items():
        prices[each] = None
        if known is not None:
            prices[each] = {name: str(getattr(known, name)) for name in Rates.__match_args__}
    text = json.dumps({"table": _identify_table(), "prices": prices})
    file = _find_file()
    with suppress(OSError):  # without the file, each process asks the table
        create_private_folder(file.parent)
        replace_private_file(file, text)


def _find_file() -> Path:
    return kept_folder() / "prices.json"


@cache
def _identify_table() -> str:
    """Return what changes with the price table, which is not imported for it."""
    spec = find_spec("genai_prices")
    if spec is None or spec.origin is None:
        return ""
    state = Path(spec.origin).with_name("data.py").stat()
    return f"{state.st_size}-{state.st_mtime_ns}"
