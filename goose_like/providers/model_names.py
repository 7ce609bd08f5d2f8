"""Names of models in the offline table of genai-prices: the newest first, and full names of short ones."""

import re
from collections.abc import Iterable
from typing import Any

_NO_CHAT = re.compile(
    r"embed|whisper|tts|dall-e|moderation|realtime|transcri|image|audio|video|sora|\blive\b|ocr|rerank|guard|"
    r"^(ft:|ada$|babbage|curie|davinci|text-)|:batch$"
)
_OFFLINE_NAMES = {"azure": r"$.", "bedrock": r"(\w+\.)?anthropic\.", "google": "gemini|gemma", "vertex": "claude"}
"""The names of the offline table that a provider takes. Others take all. Azure's names are the user's own."""


def can_chat(name: str) -> bool:
    """Return whether a model probably answers messages with text."""
    return not _NO_CHAT.search(name)


def is_offered(provider: str, name: str) -> bool:
    """Return whether a provider takes this name of the offline table."""
    return re.match(_OFFLINE_NAMES.get(provider, ""), name) is not None


def make_sort_key(name: str) -> tuple[str, list[int], str]:
    """Sort by vendor, then the newest version first. Sizes such as 70b and dates are no versions."""
    versions = re.findall(r"(?<!\d)\d{1,2}(?![\dbBk])", name)
    return name.rpartition("/")[0], [*(-int(part) for part in versions), 1], name


def find_table(provider: str) -> Any:
    """Return the part of the offline table about a provider, or None."""
    from genai_prices.data_snapshot import get_snapshot  # slow: 0.3 s

    try:
        return get_snapshot().find_provider(None, provider, None)
    except LookupError:
        return None


def find_full_name(words: str, providers: Iterable[str]) -> str | None:
    """Return `provider:name` of the model with certain words in its name, such as `opus`, from the offline table.

    The first provider with such a model decides. The exact name wins, then the newest model.
    """
    has_words = re.compile(rf"(?<![\w.]){re.escape(words.lower())}(?![\w.])").search
    for provider in providers:
        table = find_table(provider)
        names = [model.id for model in (table.models if table else ()) if not model.deprecated]
        fitting = [name for name in names if has_words(name) and can_chat(name) and is_offered(provider, name)]
        if fitting:
            return f"{provider}:{words if words in fitting else min(fitting, key=lambda name: make_sort_key(name)[1:])}"
    return None
