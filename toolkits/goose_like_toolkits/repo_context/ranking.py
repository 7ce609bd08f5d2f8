"""The ranking of files and definitions, by how often other files use their names and by the words of a task."""

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from heapq import nlargest

from .file_choice import is_secondary
from .outline import Outline
from .sketch import Sketch

_COUNTED_NAMES = 10  # names of a file that add to its score, so that long files have no advantage
_MAX_WORDS = 12
_UNUSED_WEIGHT = 0.3
_NAME_WEIGHT = 6.0
_PATH_WEIGHT = 4.0
_TEXT_WEIGHT = 0.3
_SECONDARY_WEIGHT = 0.2
_RECENT_WEIGHT = 30.0
_NEIGHBOUR_WEIGHT = 4.0


def split_words(text: str) -> tuple[str, ...]:
    """Split a text into at most 12 lower-case words of three letters or more, and split compound names, too."""
    words: dict[str, None] = {}
    for name in re.findall(r"\w{3,}", text):
        spaced = re.sub(r"([a-z\d])([A-Z])", r"\1 \2", name)
        parts = re.findall(r"[^\W_]{3,}", spaced)
        words |= dict.fromkeys(map(str.lower, (name, *parts)))
    return tuple(words)[:_MAX_WORDS]


class Ranking:
    """A ranking of files by their sketches, and of their definitions. A word that many files contain counts little.

    The files of `recent` come first, then those that define what these use, or use what these define.
    `unmatched_words` are the words that no file contains.
    """

    def __init__(self, sketches: Mapping[str, Sketch], words: Iterable[str], recent: Collection[str] = ()) -> None:
        self._sketches = sketches
        self._definers: Counter[str] = Counter()
        self._users: Counter[str] = Counter()
        for sketch in sketches.values():
            self._definers.update(sketch.defined)
            self._users.update(sketch.names - sketch.defined)
        # Words say what is wanted, so the use by others counts less if there are words.
        self._power = 0.5 if words or recent else 1.0
        self._recent = recent
        self.unmatched_words: list[str] = []
        self._rarity: dict[str, float] = {}
        self._relevance: dict[str, float] = {}
        if words:
            self._weigh_words(words)
        self._weigh_recent_files()

    def _weigh_recent_files(self) -> None:
        """Weigh the recent files, and those that share a name with them which only one of both defines."""
        recent = [self._sketches[path] for path in self._recent if path in self._sketches]
        defined: set[str] = set()
        used: set[str] = set()
        for sketch in recent:
            defined |= {name for name in sketch.defined if self._definers[name] == 1}
            used |= {name for name in sketch.names - sketch.defined if self._definers[name] == 1}
        for path, sketch in self._sketches.items():
            if path in self._recent:
                weight = _RECENT_WEIGHT
            elif sketch.defined & used or sketch.names & defined:
                weight = _NEIGHBOUR_WEIGHT
            else:
                continue
            self._relevance[path] = self._relevance.get(path, 1.0) + weight

    def _weigh_words(self, words: Iterable[str]) -> None:
        """Weigh each word by the number of files that have it, and each file by its words."""
        texts = {path: _join_names(sketch) for path, sketch in self._sketches.items()}
        for word in words:
            count = 0
            for path, text in texts.items():
                if word in path.lower() or word in text:
                    count += 1
            if count:
                self._rarity[word] = math.log2(1 + len(texts) / count)
            else:
                self.unmatched_words.append(word)
        for path, text in texts.items():
            in_path = _PATH_WEIGHT * self._match(path)
            in_text = _TEXT_WEIGHT * self._match(text)
            self._relevance[path] = 1 + in_path + in_text

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
            name_match = _NAME_WEIGHT * self._match(definition.name)
            scores.append(self._score(path, weight, name_match))
        return scores

    def _score_file(self, path: str) -> float:
        names = self._sketches[path].defined
        best = nlargest(_COUNTED_NAMES, map(self._weigh, names))
        name_match = _NAME_WEIGHT * self._match(" ".join(names))
        return self._score(path, sum(best), name_match)

    def _score(self, path: str, weight: float, name_match: float) -> float:
        use = math.pow(_UNUSED_WEIGHT + weight, self._power)
        score = use * (self._relevance.get(path, 1.0) + name_match)
        if is_secondary(path) and path not in self._recent:
            score *= _SECONDARY_WEIGHT
        return score

    def _weigh(self, name: str) -> float:
        """Weigh a name by how many other files use it; less if several files define it, and 0 if it is private."""
        if name.startswith("_"):
            return 0.0
        definer_count = max(1, self._definers[name])
        return math.log2(1 + self._users[name] / definer_count**2)

    def _match(self, text: str) -> float:
        """Sum up the rarity of the words that a text contains."""
        lowered = text.lower()
        return sum(rarity for word, rarity in self._rarity.items() if word in lowered)


def _join_names(sketch: Sketch) -> str:
    return " ".join(sketch.names | sketch.defined).lower()
