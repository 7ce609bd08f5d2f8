"""Ranking: what in some files matters most, by how many others refer to it and by the words of a task."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from heapq import nlargest
from itertools import chain

from .outline import Outline
from .paths import is_aside
from .sketch import Sketch

_COUNTED = 10  # names of a file that add to its rank, so that length alone is no merit
_WORDS = 12
_OTHERWISE = 0.3  # the weight of what nobody refers to
_IN_NAME, _IN_PATH, _IN_TEXT = 6.0, 4.0, 0.3
_ASIDE = 0.2


def _text(sketch: Sketch) -> str:
    return " ".join(sketch.names | sketch.defined).lower()


def words_of(about: str) -> tuple[str, ...]:
    """What to look for, in lower case: words of three letters and more, and those that they are made of; at most 12."""
    found: dict[str, None] = {}
    for name in re.findall(r"\w{3,}", about):
        parts = re.findall(r"[^\W_]{3,}", re.sub(r"([a-z\d])([A-Z])", r"\1 \2", name))
        found |= dict.fromkeys(part.lower() for part in (name, *parts))
    return tuple(found)[:_WORDS]


class Ranking:
    """Of files by their sketches, and of their definitions. A word that many of the files have counts little.

    `unknown` are the words that none of them has.
    """

    def __init__(self, sketches: Mapping[str, Sketch], words: Iterable[str]) -> None:
        self._sketches = sketches
        every = sketches.values()
        self._definers = Counter(chain.from_iterable(sketch.defined for sketch in every))
        self._users = Counter(chain.from_iterable(sketch.names - sketch.defined for sketch in every))
        # Where words say what is wanted, what all the others use matters less.
        self._power = 0.5 if words else 1.0
        texts = {path: _text(sketch) for path, sketch in sketches.items()} if words else {}
        found = {word: sum(word in path.lower() or word in text for path, text in texts.items()) for word in words}
        self.unknown = [word for word, count in found.items() if not count]
        self._rarity = {word: math.log2(1 + len(texts) / count) for word, count in found.items() if count}
        self._relevance = {
            path: 1 + _IN_PATH * self._said(path) + _IN_TEXT * self._said(text) for path, text in texts.items()
        }

    def files(self) -> list[str]:
        """The paths, the best first."""
        return sorted(self._sketches, key=lambda path: (-self._file(path), path))

    def definitions(self, path: str, outline: Outline) -> list[float]:
        """How much each matters. One within another matters no more than that: `get` of some class would else be
        thought to be used wherever there is a dictionary."""
        found: list[float] = []
        weights: list[float] = []
        for definition in outline.definitions:
            weight = self._weight(definition.name)
            if definition.within is not None:
                weight = min(weight, weights[definition.within])
            weights.append(weight)
            found.append(self._score(path, weight, _IN_NAME * self._said(definition.name)))
        return found

    def _file(self, path: str) -> float:
        best = nlargest(_COUNTED, (self._weight(name) for name in self._sketches[path].defined))
        in_names = _IN_NAME * self._said(" ".join(self._sketches[path].defined))
        return self._score(path, sum(best), in_names)

    def _score(self, path: str, weight: float, in_names: float) -> float:
        counted = math.pow(_OTHERWISE + weight, self._power)
        return counted * (self._relevance.get(path, 1.0) + in_names) * (_ASIDE if is_aside(path) else 1.0)

    def _weight(self, name: str) -> float:
        """By how many others refer to it; less where several files define it, as it may be another's. One that
        begins with an underscore always is."""
        if name.startswith("_"):
            return 0.0
        return math.log2(1 + self._users[name] / max(1, self._definers[name]) ** 2)

    def _said(self, text: str) -> float:
        lowered = text.lower()
        return sum(rarity for word, rarity in self._rarity.items() if word in lowered)
