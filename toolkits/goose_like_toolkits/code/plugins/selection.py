"""Which plugins a model is told of: all where there are few, else those that fit what was said."""

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
from goose_like.sdk.store import ParseCache

from .spec import Definition

_SATURATION, _LENGTH = 1.2, 0.75
"""BM25's k1 and b as they are usually set: how soon a repeated word adds little, how much long texts are held back."""

_PATIENCE_S = 10.0


def words_of(text: str) -> list[str]:
    """Words in lower case, and the parts of names; a plural's `s` is dropped."""
    words = re.findall(r"[^\W_]+", re.sub(r"([a-z\d])([A-Z])", r"\1 \2", text))
    return [
        word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
        for word in map(str.lower, words)
    ]


def text_of(definition: Definition) -> str:
    """What is searched of a plugin, and what its vector is made of."""
    return "\n".join((definition.name, definition.description, definition.examples))


def bm25(texts: Sequence[str], said: str) -> list[float]:
    """How well each text fits what was said (Robertson and Zaragoza, 2009); 0: not a word in common."""
    counts = [Counter(words_of(text)) for text in texts]
    lengths = [sum(count.values()) for count in counts]
    usual = sum(lengths) / max(len(texts), 1) or 1.0
    scores = [0.0] * len(texts)
    for word in set(words_of(said)):
        holders = sum(word in count for count in counts)
        rarity = math.log(1 + (len(texts) - holders + 0.5) / (holders + 0.5))
        for at, count in enumerate(counts):
            if times := count[word]:
                held_back = _SATURATION * (1 - _LENGTH + _LENGTH * lengths[at] / usual)
                scores[at] += rarity * times * (_SATURATION + 1) / (times + held_back)
    return scores


def picked(definitions: Sequence[Definition], scores: Sequence[float], k: int) -> tuple[Definition, ...]:
    """The `k` best in the order in which they stand, those with `required: true` among them in any case."""
    ranked = sorted(range(len(definitions)), key=lambda at: (not definitions[at].required, -scores[at], at))
    always = sum(definition.required for definition in definitions)
    return tuple(definitions[at] for at in sorted(ranked[: max(k, always)]))


async def selected(
    definitions: Sequence[Definition],
    said: str,
    k: int,
    model: ModelView | None = None,
    store: ParseCache | None = None,
) -> tuple[Definition, ...]:
    """The plugins to tell of: all where they are no more than `k`.

    By meaning where the model's provider makes vectors, which the store keeps by their text; else, or when that fails,
    by words.
    """
    if len(definitions) <= k:
        return tuple(definitions)
    texts = [text_of(definition) for definition in definitions]
    if model and model.embedding_model and said.strip():
        with suppress(GooseLikeError, TimeoutError):  # words do as well
            async with asyncio.timeout(_PATIENCE_S):
                return picked(definitions, await _nearness(texts, said, model, store), k)
    return picked(definitions, bm25(texts, said), k)


async def _nearness(texts: Sequence[str], said: str, model: ModelView, store: ParseCache | None) -> list[float]:
    """The cosine of the angle between the vectors of each text and of what was said."""
    names = {text: f"vector {model.embedding_model} {sha256(text.encode()).hexdigest()}" for text in texts}
    kept = store.get(names.values()) if store else {}
    missing = [text for text in names if names[text] not in kept]
    *made, wanted = await model.embed([*missing, said], purpose="choice of plugins")
    new = {names[text]: dumps(vector) for text, vector in zip(missing, made, strict=True)}
    if store:
        store.put(new)
    vectors = {name: loads(text) for name, text in (kept | new).items()}
    return [_cosine(vectors[names[text]], wanted) for text in texts]


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    if len(one) != len(other):
        return 0.0
    size = math.hypot(*one) * math.hypot(*other)
    return sum(a * b for a, b in zip(one, other, strict=True)) / size if size else 0.0
