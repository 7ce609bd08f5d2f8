"""Selection of the plugins that fit a text, by meaning (embeddings) or by words (BM25)."""

import asyncio
import math
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from json import dumps, loads

from goose_like.agent.view import ModelView
from goose_like.core.errors import GooseLikeError
from goose_like.sdk.parse_cache import ParseCache

from .spec import PluginSpec

_K1, _B = 1.2, 0.75
"""The usual parameters of BM25: saturation of repeated words, and penalty for long texts."""

_EMBEDDING_TIMEOUT_S = 10.0


def split_words(text: str) -> list[str]:
    """Split a text into lower-case words and parts of names, without the `s` of a plural."""
    words = re.findall(r"[^\W_]+", re.sub(r"([a-z\d])([A-Z])", r"\1 \2", text))
    return [
        word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
        for word in map(str.lower, words)
    ]


def get_search_text(spec: PluginSpec) -> str:
    """Return the text of a plugin that is searched and embedded."""
    return "\n".join((spec.name, spec.description, spec.examples))


def score_bm25(texts: Sequence[str], query: str) -> list[float]:
    """Score how well each text fits a query (Robertson and Zaragoza, 2009); 0 without a common word."""
    counts = [Counter(split_words(text)) for text in texts]
    lengths = [sum(count.values()) for count in counts]
    mean_length = sum(lengths) / max(len(texts), 1) or 1.0
    scores = [0.0] * len(texts)
    for word in set(split_words(query)):
        holders = sum(word in count for count in counts)
        rarity = math.log(1 + (len(texts) - holders + 0.5) / (holders + 0.5))
        for index, count in enumerate(counts):
            if times := count[word]:
                saturation = _K1 * (1 - _B + _B * lengths[index] / mean_length)
                scores[index] += rarity * times * (_K1 + 1) / (times + saturation)
    return scores


def pick_best(specs: Sequence[PluginSpec], scores: Sequence[float], count: int) -> tuple[PluginSpec, ...]:
    """Return the plugins with the best scores in their original order, and in any case those with `required: true`."""
    ranked = sorted(range(len(specs)), key=lambda index: (not specs[index].required, -scores[index], index))
    required = sum(spec.required for spec in specs)
    return tuple(specs[index] for index in sorted(ranked[: max(count, required)]))


async def select_plugins(
    specs: Sequence[PluginSpec],
    text: str,
    count: int,
    model: ModelView | None = None,
    cache: ParseCache | None = None,
) -> tuple[PluginSpec, ...]:
    """Select the plugins that fit a text: all if there are at most `count`.

    Embeddings decide if the model's provider has them; the cache keeps the vectors of the plugins. Without embeddings,
    or after an error, words decide.
    """
    if len(specs) <= count:
        return tuple(specs)
    texts = [get_search_text(spec) for spec in specs]
    if model and model.embedding_model and text.strip():
        with suppress(GooseLikeError, TimeoutError):  # words are good enough
            async with asyncio.timeout(_EMBEDDING_TIMEOUT_S):
                return pick_best(specs, await _score_meaning(texts, text, model, cache), count)
    return pick_best(specs, score_bm25(texts, text), count)


async def _score_meaning(texts: Sequence[str], query: str, model: ModelView, cache: ParseCache | None) -> list[float]:
    """Return the cosine similarity between each text and the query."""
    keys = {text: f"vector {model.embedding_model} {sha256(text.encode()).hexdigest()}" for text in texts}
    cached = cache.get(keys.values()) if cache else {}
    missing = [text for text in keys if keys[text] not in cached]
    *embedded, target = await model.embed([*missing, query], purpose="choice of plugins")
    new = {keys[text]: dumps(vector) for text, vector in zip(missing, embedded, strict=True)}
    if cache:
        cache.put(new)
    vectors = {key: loads(text) for key, text in (cached | new).items()}
    return [_cosine(vectors[keys[text]], target) for text in texts]


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    if len(one) != len(other):
        return 0.0
    size = math.hypot(*one) * math.hypot(*other)
    return sum(a * b for a, b in zip(one, other, strict=True)) / size if size else 0.0
