"""Selection of the plugins that fit a text, by meaning (embeddings) or by words (BM25F)."""

import asyncio
import math
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from json import dumps, loads
from operator import mul

from goose_like.agent.view import ModelView
from goose_like.core.errors import GooseLikeError
from goose_like.sdk.parse_cache import ParseCache

from .spec import PluginSpec

_K1 = 1.2
_B = 0.75
"""The usual parameters of BM25: saturation of repeated words, and penalty for long texts."""

_NAME_WEIGHT = 3.0
_PARAMETER_WEIGHT = 0.5
_EXAMPLE_WEIGHT = 0.5
"""Weights of words in a plugin's name, parameters and examples; a word of the description counts 1."""

_MIN_SHARE = 0.3
"""Plugins with less than this share of the best score are left out."""

_EMBEDDING_TIMEOUT_S = 10.0

_SUFFIXES = re.compile(
    "(?:i[sz]ations?|i[sz]e|ications?|at(?:ion|or)s?|ment|ing|ion|ous|ies|als?|ers?|ors?|ed|es|(?<!s)s|e|y)$"
)
_STOP_TEXT = """
a about after all also am an and any are as at be been but by can could did do does for from get give go had has have he
her here him his how i if in into is it its just let like make may me more most much must my need no not of off on one
only or our out over please same she should show so some such take tell than that the their them then there these they
this those to too up use used uses using very want was we were what when where which while who why will with without
would you your"""
_STOP_WORDS = frozenset(_STOP_TEXT.split())


def split_words(text: str) -> list[str]:
    """Split a text into the stems of its words and of the parts of names, without words that have little meaning."""
    spaced = re.sub(r"([a-z\d])([A-Z])", r"\1 \2", text)
    words = re.findall(r"[^\W_]+", spaced)
    return [_get_stem(word) for word in map(str.lower, words) if word not in _STOP_WORDS]


def _get_stem(word: str) -> str:
    """Return what English forms of a word share: `detect` for `detection`, `plot` for `plotting`."""
    while True:
        stem = _SUFFIXES.sub("", word)
        if len(stem) < 3 or stem == word:
            return word
        is_doubled = stem[-1] == stem[-2] and stem[-1] not in "lsz"
        word = stem[:-1] if is_doubled else stem


def get_search_text(spec: PluginSpec) -> str:
    """Return the text of a plugin that is embedded."""
    return "\n".join((spec.name, spec.description, spec.examples))


def _weigh_words(spec: PluginSpec) -> Counter[str]:
    """Return the weight of each word of a plugin."""
    parts = [
        (spec.name, _NAME_WEIGHT),
        (spec.description, 1.0),
        (spec.examples, _EXAMPLE_WEIGHT),
    ]
    for parameter in spec.parameters:
        parts.append((f"{parameter.name} {parameter.description}", _PARAMETER_WEIGHT))
    weights = Counter[str]()
    for text, weight in parts:
        for word in split_words(text):
            weights[word] += weight  # type: ignore[assignment]
    return weights


def score_words(specs: Sequence[PluginSpec], query: str) -> list[float]:
    """Score how well each plugin fits a query (BM25F, Robertson and Zaragoza, 2009); 0 without a common word."""
    counts = list(map(_weigh_words, specs))
    lengths = [sum(count.values()) for count in counts]
    mean_length = sum(lengths) / max(len(specs), 1) or 1.0
    scores = [0.0] * len(specs)
    for word in sorted(set(split_words(query))):
        holders = sum(word in count for count in counts)
        odds = (len(specs) - holders + 0.5) / (holders + 0.5)
        rarity = math.log(1 + odds)
        for index, count in enumerate(counts):
            times = count[word]
            if not times:
                continue
            saturation = _K1 * (1 - _B + _B * lengths[index] / mean_length)
            scores[index] += rarity * times * (_K1 + 1) / (times + saturation)
    return scores


def pick_best(specs: Sequence[PluginSpec], scores: Sequence[float], count: int) -> tuple[PluginSpec, ...]:
    """Return at most `count` plugins in their original order: those with `required: true`, and the best of the others.

    The best one is there however many are required. A plugin whose score is 0 or far below the best one is left out: a
    wrong plugin is worse than none.
    """
    required_count = sum(spec.required for spec in specs)
    free_count = max(count - required_count, 1)
    limit = max(_MIN_SHARE * max(scores, default=0.0), 0)
    fitting = []
    for index, (spec, score) in enumerate(zip(specs, scores, strict=True)):
        if score > limit and not spec.required:
            fitting.append(index)
    fitting.sort(key=lambda index: -scores[index])
    best = set(fitting[:free_count])
    picked = []
    for index, spec in enumerate(specs):
        if spec.required or index in best:
            picked.append(spec)
    return tuple(picked)


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
    if model and model.embedding_model and text.strip():
        texts = list(map(get_search_text, specs))
        with suppress(GooseLikeError, TimeoutError):  # words are good enough
            async with asyncio.timeout(_EMBEDDING_TIMEOUT_S):
                scores = await _score_meaning(texts, text, model, cache)
            return pick_best(specs, scores, count)
    return pick_best(specs, score_words(specs, text), count)


async def _score_meaning(texts: Sequence[str], query: str, model: ModelView, cache: ParseCache | None) -> list[float]:
    """Return the cosine similarity between each text and the query."""
    keys = {text: _make_key(model, text) for text in texts}
    cached = cache.get(keys.values()) if cache else {}
    missing = [text for text in keys if keys[text] not in cached]
    *embedded, target = await model.embed([*missing, query], purpose="choice of plugins")
    new: dict[str, str] = {}
    for text, vector in zip(missing, embedded, strict=True):
        new[keys[text]] = dumps(vector)
    if cache:
        cache.put(new)
    vectors = {key: loads(text) for key, text in (cached | new).items()}
    return [_cosine(vectors[keys[text]], target) for text in texts]


def _make_key(model: ModelView, text: str) -> str:
    """Return the name of a vector in the cache."""
    digest = sha256(text.encode()).hexdigest()
    return f"vector {model.embedding_model} {digest}"


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    if len(one) != len(other):
        return 0.0
    size = math.hypot(*one) * math.hypot(*other)
    if not size:
        return 0.0
    product: float = sum(map(mul, one, other))
    return product / size
