"""The models that a person can use now: of all providers with a key, and the embedded one.

Names come from the lists that the servers gave last time, else from the offline table of genai-prices.
"""

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from goose_like.config.paths import replace_private_file, state_folder
from goose_like.config.profile import ModelChoice
from goose_like.core.errors import CredentialError, GooseLikeError
from goose_like.core.threads import run_in_thread

from .base import SupportsProbe
from .foreign_code import find_setup_error, probe_server
from .known_models import find_known_model
from .model_names import can_chat, find_table, is_offered, make_sort_key
from .prices import find_shared_window, is_free
from .registry import find_provider_class, list_working_providers

_SAMPLE_TOKENS = 1_000  # the first tier of prices that grow with the length


@dataclass(frozen=True, slots=True)
class ModelOffer:
    """A model that can be used: `provider:name`, its window in tokens, and its price as text. Both may be unknown."""

    label: str
    window: int | None = None
    price: str = ""

    def describe(self) -> str:
        """Describe window and price in a few words."""
        return " · ".join(filter(None, (format_window(self.window), self.price)))


def format_window(tokens: int | None) -> str:
    """Format a number of tokens in a few characters, for example 200k, or nothing if it is unknown."""
    if not tokens:
        return ""
    if tokens >= 1_000_000:
        millions = tokens / 1_000_000
        return f"{millions:.3g}M"
    thousands = tokens / 1_000
    return f"{thousands:.0f}k"


def list_usable_providers() -> Iterator[str]:
    """Yield the providers that miss no key, library or setting. A server on this machine may not run."""
    for name, factory in list_working_providers():
        needs_model = factory.info.processor is None
        choice = ModelChoice(model=f"{name}:model" if needs_model else name)
        if find_setup_error(factory, choice) is None:
            yield name


def list_offers() -> list[ModelOffer]:
    """List the usable models without asking any server; each provider's default models come first."""
    listed = _read_lists()
    offers: list[ModelOffer] = []
    for name in list_usable_providers():
        offers += _list_provider_offers(name, listed.get(name))
    return offers


async def refresh_offers() -> list[ModelOffer]:
    """Ask all usable servers for their models, keep the answers for later, and list the usable models."""
    names = await run_in_thread(lambda: [*list_usable_providers()])
    answers = await asyncio.gather(*map(_fetch_names, names))
    lists: dict[str, Sequence[str]] = {}
    for name, models in _read_lists().items():
        # A server on this machine that does not answer does not run; others may be out of reach for a moment.
        if name not in names or not is_free(name):
            lists[name] = models
    for name, answer in zip(names, answers, strict=True):
        if answer:
            lists[name] = answer
    with suppress(OSError):
        replace_private_file(state_folder() / "models.json", json.dumps(lists))
    return await run_in_thread(list_offers)


async def fetch_offers(provider: str) -> list[ModelOffer]:
    """Ask the server of one provider for its models and list them. One that cannot be asked has those of the table.

    Raises:
        CredentialError: the server refused the key, or needs one.
    """
    factory = find_provider_class(provider)
    names: Sequence[str] | None = _read_lists().get(provider)
    if isinstance(factory, SupportsProbe):
        try:
            result = await probe_server(factory, ModelChoice(model=provider))
            names = result.models or names
        except CredentialError:
            raise
        except GooseLikeError:  # a request to the chosen model will say what is wrong
            pass
    return await run_in_thread(lambda: [*_list_provider_offers(provider, names)])


async def _fetch_names(provider: str) -> Sequence[str]:
    factory = find_provider_class(provider)
    if isinstance(factory, SupportsProbe):
        with suppress(GooseLikeError):
            result = await probe_server(factory, ModelChoice(model=provider))
            return result.models or ()
    return ()


def _read_lists() -> Mapping[str, list[str]]:
    """Read the names that the servers gave last time, by provider."""
    try:
        lists = json.loads((state_folder() / "models.json").read_text(encoding="utf-8"))
        return {str(provider): [str(name) for name in names] for provider, names in lists.items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


def _list_provider_offers(provider: str, listed: Sequence[str] | None) -> Iterator[ModelOffer]:
    info = find_provider_class(provider).info
    if provider == "local":
        from .local import WINDOW_TOKENS

        yield ModelOffer("local", WINDOW_TOKENS, "free")
        return
    known = _read_table(provider)
    names = listed or [name for name in known if is_offered(provider, name)]
    defaults = filter(None, (info.processor, info.accelerator))
    ordered = [*defaults, *sorted(names, key=make_sort_key)]
    for name in dict.fromkeys(ordered):
        if not name.isprintable() or not can_chat(name):
            continue
        table_window, price = known.get(name) or _look_up(provider, name)
        window = info.find_window(name) or find_known_model(provider, name).window or table_window
        if is_free(provider):
            price = "free"
        yield ModelOffer(f"{provider}:{name}", window, price)


def _read_table(provider: str) -> dict[str, tuple[int | None, str]]:
    """Return window and price of the models in the offline table by name."""
    found = find_table(provider)
    if not found:
        return {}
    table = {}
    for model in found.models:
        if model.deprecated:
            continue
        window = model.context_window or find_shared_window(model.id)
        table[model.id] = (window, _format_price(model, found))
    return table


def _look_up(provider: str, name: str) -> tuple[int | None, str]:
    """Return window and price of a model whose name the table has in another form, such as one with a date."""
    from genai_prices.data_snapshot import get_snapshot

    try:
        found, model = get_snapshot().find_provider_model(name, None, provider, None)
    except LookupError:
        return None, ""
    return model.context_window or find_shared_window(model.id), _format_price(model, found)


def _format_price(model: Any, provider: Any) -> str:
    """Format the US dollars for a million tokens in and out."""
    from genai_prices import Usage

    usage = Usage(input_tokens=_SAMPLE_TOKENS, output_tokens=_SAMPLE_TOKENS)
    price = model.calc_price(usage, provider, genai_request_timestamp=datetime.now(UTC))
    texts = []
    for sample_usd in (price.input_price, price.output_price):
        million_usd = float(sample_usd) * 1_000_000 / _SAMPLE_TOKENS
        texts.append(f"${million_usd:.4g}")
    return " / ".join(texts)
