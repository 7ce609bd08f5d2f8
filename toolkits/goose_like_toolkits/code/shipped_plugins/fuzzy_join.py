"""Plugin `fuzzy_join`: join two data frames on keys with nearly the same text."""

import re
import unicodedata
from difflib import SequenceMatcher
from typing import Any

from taskweaver.plugin import Plugin, register_plugin, test_plugin

from ._errors import check_column, import_library

CANDIDATES = 3
"""Number of keys that are compared letter by letter: those with the most informative trigrams in common."""


@register_plugin
class FuzzyJoin(Plugin):
    """A join that compares keys with common trigrams only, so that 10,000 by 10,000 keys take seconds."""

    def __call__(
        self, left: Any, right: Any, left_on: str, right_on: str = "", threshold: float | None = None,
        how: str = "left",
    ) -> Any:  # fmt: skip
        """Return the rows of `left` in their order, each with the best match of `right` and a `score` from 0 to 1.

        Raises:
            ValueError: A column is missing, or a frame is empty.
        """
        pandas = import_library("pandas", "fuzzy_join")
        right_on = right_on or left_on
        _check_frame(left, left_on, "left")
        _check_frame(right, right_on, "right")
        if how not in ("left", "inner"):
            raise ValueError(f"unknown join {how!r}; use 'left' (all rows of left) or 'inner' (those with a match)")
        at_least = float(self.config.get("threshold", 0.8) if threshold is None else threshold)
        if not 0 < at_least <= 1:
            raise ValueError(f"the threshold {at_least} is not between 0 and 1")
        wanted = {key: _normalize(key) for key in left[left_on].dropna().unique()}
        offered: dict[str, int] = {}
        repeated = 0
        for row, key in enumerate(right[right_on]):
            if key == key and key is not None and _normalize(key):
                repeated += _normalize(key) in offered
                offered.setdefault(_normalize(key), row)
        best = _find_matches(set(wanted.values()) - {""}, list(offered), bool(self.config.get("same_digits", True)))
        found = [best.get(wanted.get(key, ""), ("", 0.0)) for key in left[left_on]]
        rows = [offered[key] if score >= at_least else -1 for key, score in found]
        # Row -1 does not exist and gives missing values; if all rows match, integers stay integers.
        matches = right.set_axis(range(len(right))).reindex(rows).set_axis(left.index)
        names = {name: f"{name}_right" for name in matches.columns if name in left.columns or name == "score"}
        joined = pandas.concat([left, matches.rename(columns=names)], axis=1)
        joined["score"] = [round(score, 3) if score >= at_least else float("nan") for _, score in found]
        count = sum(row >= 0 for row in rows)
        note = f"; repeated keys in right: {repeated:,}, the first was taken" if repeated else ""
        print(f"{count:,} of {len(left):,} rows matched{note}")
        return joined if how == "left" else joined[[row >= 0 for row in rows]]


def _check_frame(frame: Any, name: str, side: str) -> None:
    if not hasattr(frame, "columns"):
        raise ValueError(f"{side} is a {type(frame).__name__}; fuzzy_join takes data frames")
    check_column(name, frame.columns, side)
    if not len(frame):
        raise ValueError(f"{side} has no rows; there is nothing to join")


def _normalize(key: object) -> str:
    """Return a key without accents, case, punctuation and repeated spaces."""
    letters = unicodedata.normalize("NFKD", str(key).replace("&", " and ")).casefold()
    return " ".join(re.sub(r"[^\w\s]|_", " ", "".join(filter(lambda x: not unicodedata.combining(x), letters))).split())


def _split_trigrams(key: str) -> set[str]:
    padded = f"  {key} "
    return {padded[at : at + 3] for at in range(len(padded) - 2)}


def _find_matches(wanted: set[str], offered: list[str], same_digits: bool) -> dict[str, tuple[str, float]]:
    """Return the most similar offered key for each wanted key, with its score.

    The cosine of the trigrams, where rare trigrams count more, selects the candidates.
    """
    import numpy

    best = {key: (key, 1.0) for key in wanted.intersection(offered)}
    holders: dict[str, list[int]] = {}
    for at, key in enumerate(offered):
        for trigram in _split_trigrams(key):
            holders.setdefault(trigram, []).append(at)
    rows = {trigram: numpy.array(indexes, dtype=numpy.int32) for trigram, indexes in holders.items()}
    weights = {trigram: float(numpy.log1p(len(offered) / len(each))) ** 2 for trigram, each in holders.items()}
    lengths = numpy.zeros(len(offered))
    for trigram, indexes in rows.items():
        lengths[indexes] += weights[trigram]
    lengths = numpy.sqrt(lengths) + 1e-9
    count = min(CANDIDATES, len(offered))
    for key in wanted - best.keys():
        shared = [trigram for trigram in _split_trigrams(key) if trigram in rows]
        if not shared:
            continue
        indexes = numpy.concatenate([rows[trigram] for trigram in shared])
        counted = numpy.repeat([weights[trigram] for trigram in shared], [len(rows[trigram]) for trigram in shared])
        cosine = numpy.bincount(indexes, counted, minlength=len(offered)) / lengths
        candidates = [offered[at] for at in numpy.argpartition(cosine, -count)[-count:] if cosine[at]]
        if same_digits:
            candidates = [each for each in candidates if re.findall(r"\d+", each) == re.findall(r"\d+", key)]
        scores = {each: _score(key, each) for each in candidates}
        if nearest := max(scores, key=scores.__getitem__, default=None):
            best[key] = (nearest, scores[nearest])
    return best


def _score(key: str, other: str) -> float:
    """Return the similarity of two keys; the order of words counts little."""
    score = SequenceMatcher(None, other, key, autojunk=False).ratio()
    if " " not in key:
        return score
    words, other_words = " ".join(sorted(key.split())), " ".join(sorted(other.split()))
    return max(score, 0.99 * SequenceMatcher(None, other_words, words, autojunk=False).ratio())


@test_plugin(name="names")
def test_names(call: Any) -> None:
    """Different spellings of a name match."""
    import pandas

    left = pandas.DataFrame({"name": ["MÜLLER & Sons", "Smith, John", "Nobody", None, "Depot 12"]})
    right = pandas.DataFrame({"name": ["John Smith", "Muller and Sons", "Depot 13"], "town": ["Bonn", "Kiel", "Ulm"]})
    joined = call(left, right, "name")
    assert joined["town"].fillna("").to_list() == ["Kiel", "Bonn", "", "", ""]
    assert call(left, right, "name", how="inner")["score"].min() > 0.9
