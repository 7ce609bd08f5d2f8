"""The ranking of files and definitions, by how often other files use their names and by the words of a task."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from heapq import nlargest
from itertools import chain

from .file_choice import is_secondary
from .outline import Outline
from .sketch import Sketch

_COUNTED_NAMES = 10  # names of a file that add to its score, so that long files have no advantage
_MAX_WORDS = 12
_UNUSED_WEIGHT = 0.3
_NAME_WEIGHT, _PATH_WEIGHT, _TEXT_WEIGHT = 6.0, 4.0, 0.3
_SECONDARY_WEIGHT = 0.2


def split_words(text: str) -> tuple[str, ...]:
    """Split a text into at most 12 lower-case words of three letters or more, and split compound names, too."""
    words: dict[str, None] = {}
    for name in re.findall(r"\w{3,}", text):
        parts = re.findall(r"[^\W_]{3,}", re.sub(r"([a-z\d])([A-Z])", r"\1 \2", name))
        words |= dict.fromkeys(part.lower() for part in (name, *parts))
    return tuple(words)[:_MAX_WORDS]


class Ranking:
    """A ranking of files by their sketches, and of their definitions. A word that many files contain counts little.

    `unmatched_words` are the words that no file contains.
    """

    def __init__(self, sketches: Mapping[str, Sketch], words: Iterable[str]) -> None:
        self._sketches = sketches
        all_sketches = sketches.values()
        self._definers = Counter(chain.from_iterable(sketch.defined for sketch in all_sketches))
        self._users = Counter(chain.from_iterable(sketch.names - sketch.defined for sketch in all_sketches))
        # Words say what is wanted, so the use by others counts less if there are words.
        self._power = 0.5 if words else 1.0
        texts = {path: _join_names(sketch) for path, sketch in sketches.items()} if words else {}
        counts = {word: sum(word in path.lower() or word in text for path, text in texts.items()) for word in words}
        self.unmatched_words = [word for word, count in counts.items() if not count]
        self._rarity = {word: math.log2(1 + len(texts) / count) for word, count in counts.items() if count}
        self._relevance = {
            path: 1 + _PATH_WEIGHT * self._match(path) + _TEXT_WEIGHT * self._match(text)
            for path, text in texts.items()
        }

    def rank_files(self) -> list[str]:
        """Sort the paths, best first."""
        return sorted(self._sketches, key=lambda path: (-self._score_file(path), path))

    def score_definitions(self, path: str, outline: Outline) -> list[float]:
        """Score each definition of a file.

        A nested definition scores no higher than the one around it. Otherwise the method `get` of some class would
        seem to be used wherever there is a dictionary.
        """
        scores: list[float] = []
        weights: list[float] = []
        for definition in outline.definitions:
            weight = self._weigh(definition.name)
            if definition.parent is not None:
                weight = min(weight, weights[definition.parent])
            weights.append(weight)
            scores.append(self._score(path, weight, _NAME_WEIGHT * self._match(definition.name)))
        return scores

    def _score_file(self, path: str) -> float:
        best = nlargest(_COUNTED_NAMES, (self._weigh(name) for name in self._sketches[path].defined))
        name_match = _NAME_WEIGHT * self._match(" ".join(self._sketches[path].defined))
        return self._score(path, sum(best), name_match)

    def _score(self, path: str, weight: float, name_match: float) -> float:
        use = math.pow(_UNUSED_WEIGHT + weight, self._power)
        factor = _SECONDARY_WEIGHT if is_secondary(path) else 1.0
        return use * (self._relevance.get(path, 1.0) + name_match) * factor

    def _weigh(self, name: str) -> float:
        """Weigh a name by how many other files use it; less if several files define it, and 0 if it is private."""
        if name.startswith("_"):
            return 0.0
        return math.log2(1 + self._users[name] / max(1, self._definers[name]) ** 2)

    def _match(self, text: str) -> float:
        """Sum up the rarity of the words that a text contains."""
        lowered = text.lower()
        return sum(rarity for word, rarity in self._rarity.items() if word in lowered)


def _join_names(sketch: Sketch) -> str:
    return " ".join(sketch.names | sketch.defined).lower()
