"""Names of models in the offline table of genai-prices: the newest first, and full names of short ones."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from goose_like.core.errors import ProfileError
from goose_like.core.pattern import compile_later
from goose_like.core.spelling import find_nearest_name

from .prices import has_price

_NO_CHAT = compile_later(
    r"embed|whisper|tts|dall-e|moderation|realtime|transcri|image|audio|video|sora|\blive\b|ocr|rerank|guard|"
    r"^(ft:|ada$|babbage|curie|davinci|text-)|:batch$"
)
_OFFLINE_NAMES = {"azure": r"$.", "bedrock": r"(\w+\.)?anthropic\.", "google": "gemini|gemma", "vertex": "claude"}
"""The names of the offline table that a provider takes. Others take all. Azure's names are the user's own."""


_NO_FAMILY = frozenset(("", "latest", "preview"))
_MAX_CANDIDATES = 8


def can_chat(name: str) -> bool:
    """Return whether a model probably answers messages with text."""
    return not _NO_CHAT.search(name)


def is_offered(provider: str, name: str) -> bool:
    """Return whether a provider takes this name of the offline table."""
    return re.match(_OFFLINE_NAMES.get(provider, ""), name) is not None


def make_sort_key(name: str) -> tuple[str, list[int], str]:
    """Sort by vendor, then the newest version first. Sizes such as 70b and dates are no versions."""
    versions = re.findall(r"(?<!\d)\d{1,2}(?![\dbBk])", name)
    vendor = name.rpartition("/")[0]
    newest_first = [-int(part) for part in versions]
    newest_first.append(1)  # a name without further versions comes last
    return vendor, newest_first, name


def find_table(provider: str) -> Any:
    """Return the part of the offline table about a provider, or None."""
    from genai_prices.data_snapshot import get_snapshot  # slow: 0.3 s

    try:
        return get_snapshot().find_provider(None, provider, None)
    except LookupError:
        return None


def find_similar_model(provider: str, name: str) -> str | None:
    """Return the model of the offline table that was probably meant; None if the name is known, or like no other."""
    table = find_table(provider)
    if table is None or not name or has_price(f"{provider}:{name}"):
        return None
    near = find_nearest_name(name, [model.id for model in table.models])
    return f"{provider}:{near}" if near and near != name else None


def find_model(words: str, provider: str, defaults: Iterable[str] = ()) -> str | None:
    """Return the model of a provider that a short name means, such as `opus`, or None if it has no such model.

    `defaults` are models that the offline table may lack. The exact name wins, then a default, then the newest version.

    Raises:
        ProfileError: Models of several families fit, such as `sol` and `luna` to `gpt-6`. The text lists them.
    """
    best = list(defaults)
    names = dict.fromkeys([*best, *_list_table_names(provider)])
    if words in names:
        return words
    has_words = re.compile(rf"(?<![\w.]){re.escape(words)}(?![\w.])", re.I).search
    families = {name: _get_family(name) for name in names if has_words(name)}
    if not families:
        return None
    shortest = min(families.values(), key=len)
    if not all(shortest <= family for family in families.values()):
        ordered = sorted(families, key=lambda name: make_sort_key(name)[1:])
        candidates = ", ".join(f"{provider}:{name}" for name in ordered[:_MAX_CANDIDATES])
        raise ProfileError(f"several models have {words!r} in their names; name one, such as {candidates}")
    fitting = [name for name, family in families.items() if family == shortest]
    newest = min(fitting, key=lambda name: make_sort_key(name)[1:])
    return next((name for name in best if name in fitting), newest)


def _list_table_names(provider: str) -> Iterator[str]:
    """Yield the names of the offline table with which a provider can chat."""
    table = find_table(provider)
    if not table:
        return
    for model in table.models:
        if not model.deprecated and can_chat(model.id) and is_offered(provider, model.id):
            yield model.id


def _get_family(name: str) -> frozenset[str]:
    """Return the words of a name without vendor, versions and dates, such as `claude` and `opus`."""
    own_name = name.lower().rpartition("/")[2]
    versions = re.findall(r"\bv?\d+\b", own_name)
    return frozenset(re.split(r"[-_.:]", own_name)) - _NO_FAMILY - frozenset(versions)
