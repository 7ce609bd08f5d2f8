"""fuzzy_join: two data frames joined where their keys are nearly the same text."""

import re
import unicodedata
from difflib import SequenceMatcher, get_close_matches
from typing import Any

from taskweaver.plugin import Plugin, register_plugin, test_plugin

NEAREST = 3
"""How many keys are compared letter by letter, of those that share the most telling groups of three letters."""


@register_plugin
class FuzzyJoin(Plugin):
    """Each key meets only those that it shares groups of three letters with, so that 10,000 by 10,000 take seconds."""

    def __call__(
        self, left: Any, right: Any, left_on: str, right_on: str = "", threshold: float | None = None,
        how: str = "left",
    ) -> Any:  # fmt: skip
        """The rows of `left`, in their order, each with the best match of `right` and its `score` from 0 to 1.

        Raises:
            ValueError: there is no such column, or a frame is empty.
        """
        try:
            import pandas
        except ImportError:
            raise RuntimeError("fuzzy_join needs pandas, which this Python has not: pip install pandas") from None
        right_on = right_on or left_on
        _check(left, left_on, "left")
        _check(right, right_on, "right")
        if how not in ("left", "inner"):
            raise ValueError(f"no way {how!r} to join; take 'left' (all rows of left) or 'inner' (those that matched)")
        at_least = float(self.config.get("threshold", 0.8) if threshold is None else threshold)
        if not 0 < at_least <= 1:
            raise ValueError(f"the threshold {at_least} is not between 0 and 1")
        wanted = {key: _plain(key) for key in left[left_on].dropna().unique()}
        offered: dict[str, int] = {}
        repeated = 0
        for row, key in enumerate(right[right_on]):
            if key == key and key is not None and _plain(key):
                repeated += _plain(key) in offered
                offered.setdefault(_plain(key), row)
        best = _matched(set(wanted.values()) - {""}, list(offered), bool(self.config.get("same_digits", True)))
        found = [best.get(wanted.get(key, ""), ("", 0.0)) for key in left[left_on]]
        rows = [offered[key] if score >= at_least else -1 for key, score in found]
        # A row that there is not stands for no match; where all match, integers stay integers.
        matches = right.set_axis(range(len(right))).reindex(rows).set_axis(left.index)
        names = {name: f"{name}_right" for name in matches.columns if name in left.columns or name == "score"}
        joined = pandas.concat([left, matches.rename(columns=names)], axis=1)
        joined["score"] = [round(score, 3) if score >= at_least else float("nan") for _, score in found]
        matched = sum(row >= 0 for row in rows)
        same = f"; keys of right that came again: {repeated:,}, the first was taken" if repeated else ""
        print(f"{matched:,} of {len(left):,} rows matched{same}")
        return joined if how == "left" else joined[[row >= 0 for row in rows]]


def _check(frame: Any, name: str, side: str) -> None:
    if not hasattr(frame, "columns"):
        raise ValueError(f"{side} is a {type(frame).__name__}; fuzzy_join takes data frames")
    if name not in frame.columns:
        columns = [str(column) for column in frame.columns]
        near = get_close_matches(str(name), columns, 3)
        told = f"did you mean: {', '.join(near)}?" if near else f"its columns are: {', '.join(columns)}"
        raise ValueError(f"{side} has no column {name!r}; {told}")
    if not len(frame):
        raise ValueError(f"{side} has no rows; nothing is joined")


def _plain(key: object) -> str:
    """Without accents, case, punctuation and double spaces: what is the same then is the same."""
    letters = unicodedata.normalize("NFKD", str(key).replace("&", " and ")).casefold()
    return " ".join(re.sub(r"[^\w\s]|_", " ", "".join(filter(lambda x: not unicodedata.combining(x), letters))).split())


def _groups(key: str) -> set[str]:
    padded = f"  {key} "
    return {padded[at : at + 3] for at in range(len(padded) - 2)}


def _matched(wanted: set[str], offered: list[str], same_digits: bool) -> dict[str, tuple[str, float]]:
    """For each key that is wanted the one that is nearest, and how near it is.

    Candidates are found by the cosine of their groups of three letters, a rare group counting more than a common one.
    """
    import numpy  # pandas needs it as well

    known = set(offered)
    best = {key: (key, 1.0) for key in wanted & known}
    holders: dict[str, list[int]] = {}
    for at, key in enumerate(offered):
        for group in _groups(key):
            holders.setdefault(group, []).append(at)
    rows = {group: numpy.array(held, dtype=numpy.int32) for group, held in holders.items()}
    weights = {group: float(numpy.log1p(len(offered) / len(held))) ** 2 for group, held in holders.items()}
    lengths = numpy.zeros(len(offered))
    for group, held in rows.items():
        lengths[held] += weights[group]
    lengths = numpy.sqrt(lengths) + 1e-9
    digits = [re.findall(r"\d+", key) for key in offered]
    matcher = SequenceMatcher(autojunk=False)
    for key in wanted - known:
        shared = [group for group in _groups(key) if group in rows]
        if not shared:
            continue
        held = numpy.concatenate([rows[group] for group in shared])
        counted = numpy.repeat([weights[group] for group in shared], [len(rows[group]) for group in shared])
        cosine = numpy.bincount(held, counted, minlength=len(offered)) / lengths
        count = min(NEAREST, len(offered))
        matcher.set_seq2(key)
        own_digits = re.findall(r"\d+", key)
        ordered = " ".join(sorted(key.split()))
        for at in numpy.argpartition(cosine, -count)[-count:]:
            if cosine[at] == 0 or (same_digits and digits[at] != own_digits):
                continue
            matcher.set_seq1(offered[at])
            score = matcher.ratio()
            if score < 1 and " " in key:  # `Miller John` is `John Miller`
                other = " ".join(sorted(offered[at].split()))
                score = max(score, 0.99 * SequenceMatcher(None, other, ordered, autojunk=False).ratio())
            if score > best.get(key, ("", 0.0))[1]:
                best[key] = (offered[at], score)
    return best


@test_plugin(name="names")
def test_names(call: Any) -> None:
    """Finds a name that is written otherwise."""
    import pandas

    left = pandas.DataFrame({"name": ["MÜLLER & Sons", "Smith, John", "Nobody", None, "Depot 12"]})
    right = pandas.DataFrame({"name": ["John Smith", "Muller and Sons", "Depot 13"], "town": ["Bonn", "Kiel", "Ulm"]})
    joined = call(left, right, "name")
    assert joined["town"].fillna("").to_list() == ["Kiel", "Bonn", "", "", ""]
    assert call(left, right, "name", how="inner")["score"].min() > 0.9
