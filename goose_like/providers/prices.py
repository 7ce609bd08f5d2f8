"""What tokens cost and how many a model takes, from genai-prices' offline table; what it doesn't know is not 0.

What runs on one's own machine costs nothing.
"""

from collections.abc import Mapping

from goose_like.core.entry_points import list_entry_points
from goose_like.core.message import Usage

from .presets import load_presets


def compute_cost_usd(usage: Mapping[str, Usage]) -> float | None:
    """The cost of the tokens by model (`provider:name`); None when the price of any model is not known."""
    total = 0.0
    for label, spent in usage.items():
        provider, _, name = label.partition(":")
        if not spent.total_tokens or _is_free(provider):
            continue
        price = _price(provider, name, spent)
        if price is None:
            return None
        total += price
    return total


def find_context_window(label: str) -> int | None:
    """The window in tokens of a model (`provider:name`); None when it is not known."""
    from genai_prices.data_snapshot import get_snapshot  # imported when first used: 0.4 s

    provider, _, name = label.partition(":")
    try:
        return get_snapshot().find_provider_model(name, None, provider, None)[1].context_window
    except LookupError:
        return None


def _is_free(provider: str) -> bool:
    # The table is only read for those whom it is about: what is wrong in a person's own rows is no matter for others.
    if provider in list_entry_points("goose_like.provider"):
        return provider in ("local", "scripted")
    row = load_presets().get(provider)
    return row is not None and row.is_free


def _price(provider: str, name: str, spent: Usage) -> float | None:
    # Imported when first used: the table takes 0.2 s to load.
    import genai_prices

    tokens = genai_prices.Usage(
        input_tokens=spent.input_tokens,
        output_tokens=spent.output_tokens,
        cache_read_tokens=spent.cache_read_tokens,
        cache_write_tokens=spent.cache_write_tokens,
    )
    try:
        return float(genai_prices.calc_price(tokens, name, provider_id=provider).total_price)
    except LookupError:
        return None
