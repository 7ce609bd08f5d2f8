"""Prices and context windows of models, from the offline table of genai-prices.

The price of an unknown model is unknown, not 0. Models on the user's own machine cost nothing.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache, lru_cache

from goose_like.config.entry_points import list_names
from goose_like.core.message import Usage

from .kept_prices import find_plain_rates, keep_price, read_kept_prices
from .presets import load_presets


def compute_cost_usd(usage: Mapping[str, Usage]) -> float | None:
    """Compute the cost of tokens by model, or return None if any price is unknown.

    A model is `provider:name`, or `provider:name (tier)`; see `Model.price_label`.
    """
    total = 0.0
    for label, used in usage.items():
        provider, _, name = label.partition(":")
        if not used.total_tokens or is_free(provider):
            continue
        price = _compute_price_usd(provider, name, used)
        if price is None:
            return None
        total += price
    return total


def has_price(label: str) -> bool:
    """Return whether the price of a model (`provider:name`) is known. Models on the user's own machine cost nothing."""
    return compute_cost_usd({label: Usage(input_tokens=1, output_tokens=1)}) is not None


@cache
def find_context_window(label: str) -> int | None:
    """Return the context window of a model (`provider:name`) in tokens, or None if unknown."""
    from genai_prices.data_snapshot import get_snapshot  # slow: 0.4 s

    provider, _, name = label.partition(":")
    try:
        model = get_snapshot().find_provider_model(name, None, provider, None)[1]
    except LookupError:
        return None
    return model.context_window or find_shared_window(model.id)


def find_shared_window(name: str) -> int | None:
    """Return the smallest context window that other providers give a model of this name, in tokens."""
    return _read_windows().get(_get_bare_name(name))


@cache
def _read_windows() -> Mapping[str, int]:
    from genai_prices.data_snapshot import get_snapshot

    windows: dict[str, int] = {}
    for model in (model for provider in get_snapshot().providers for model in provider.models):
        if model.context_window:
            name = _get_bare_name(model.id)
            windows[name] = min(model.context_window, windows.get(name, model.context_window))
    return windows


def _get_bare_name(name: str) -> str:
    """Return a name without the vendor before a slash and the variant behind a colon, and with one spelling of dots."""
    return re.sub(r"[._]", "-", name.lower().rpartition("/")[2].partition(":")[0])


def is_free(provider: str) -> bool:
    """Return whether a provider's models run on the user's own machine."""
    # Read the presets only for providers that are presets: errors in the user's file must not affect the others.
    if provider in list_names("goose_like.provider"):
        return provider in ("local", "scripted")
    preset = load_presets().get(provider)
    return preset is not None and preset.is_free


@lru_cache(maxsize=16)  # the status line asks at each frame
def _compute_price_usd(provider: str, name: str, used: Usage) -> float | None:
    label = f"{provider}:{name}"
    kept = read_kept_prices()
    if label not in kept:
        return _ask_table(provider, name, used)
    rates = kept[label]
    if rates is None:
        return None
    return rates.compute_usd(used)


def _ask_table(provider: str, name: str, used: Usage) -> float | None:
    """Compute a price with the table, and keep the rates of the model if they are plain."""
    import genai_prices  # slow: 0.2 s

    tokens = genai_prices.Usage(
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
        cache_read_tokens=used.cache_read_tokens,
        cache_write_tokens=used.cache_write_tokens,
        cache_write_1h_tokens=used.cache_write_long_tokens,
        web_searches=used.web_searches,
    )
    bare_name, tier = _split_tier(name)
    # Vendors name the tier by one of two keys.
    context = {"service_tier": tier, "speed": tier} if tier else None
    now = datetime.now(UTC)
    try:
        price = genai_prices.calc_price(
            tokens, bare_name, provider_id=provider, genai_request_timestamp=now, price_context=context
        )
    except LookupError:
        keep_price(f"{provider}:{name}", None)
        return None
    variants = price.model.price_variants or ()
    has_tier = any(tier in variant.when.values() for variant in variants)
    # For a model that refers to another provider's, as those of Azure do, the library ignores the tier.
    is_of_tier = price.model_price == price.model.get_prices(now, context)
    if tier and not (has_tier and is_of_tier):
        keep_price(f"{provider}:{name}", None)  # the table has only the usual price
        return None
    total_usd = float(price.total_price)
    rates = find_plain_rates(price.model)
    if rates is not None and rates.compute_usd(used) == total_usd:
        keep_price(f"{provider}:{name}", rates)
    return total_usd


def _split_tier(name: str) -> tuple[str, str]:
    """Split the name of a model and that of its tier, which may be empty."""
    found = re.fullmatch(r"(.*) \((\w+)\)", name)
    if found is None:
        return name, ""
    return found[1], found[2]
