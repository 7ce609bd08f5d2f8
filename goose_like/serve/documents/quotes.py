"""Lines of a document that an answer quotes closely."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from goose_like.workspace.documents.document import Line

_SENTENCE_END = re.compile(r"(?<=[.!?;:])\s+|\n+")
_WORD = re.compile(r"\w+(?:[.,]\d+)*")
_MIN_LETTERS = 4
_NEAR_WORDS = 4
"""Words between two neighbouring words of a quote, at most."""
_MIN_SCORE = 5
_MIN_SHARE = 0.5
_SHORT_SCORE = 2
_MAX_LINES = 6
_DENIAL = re.compile(
    r"\b(no|not|none|nothing|neither|nor|never|cannot|unknown|unclear|unable|without|absent|missing|lack\w*|omit\w*|"
    r"fail(s|ed)?|nicht\w*|kein\w*|fehl\w*|ohne|weder|pas|aucune?|rien|sans|manque\w*)\b|n['\u2019]t\b",
    re.IGNORECASE,
)


def find_quotes(lines: Sequence[Line], answer: str) -> list[Line]:
    """Find the few lines that a sentence of an answer quotes closely, in the order of the document.

    Words that many lines share say nothing about one of them, and numbers say more than words. A sentence that denies
    something quotes only lines that deny something, too: "the report does not give the revenue" is based on no line.
    """
    index = _LineIndex(lines)
    scores: dict[int, int] = {}
    for sentence in _SENTENCE_END.split(answer):
        for number, score in index.score_lines(sentence):
            scores[number] = max(score, scores.get(number, 0))
    best = sorted(scores, key=lambda number: -scores[number])
    return [lines[number] for number in sorted(best[:_MAX_LINES])]


class _LineIndex:
    """The words of each line, and the lines that have a telling word: one that few lines share."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self._lines = lines
        self._words = [_list_words(line.text) for line in lines]
        places: dict[str, list[int]] = {}
        for number, words in enumerate(self._words):
            for word in set(words):
                places.setdefault(word, []).append(number)
        common = max(3, len(lines) // 10)
        self._telling = {word: numbers for word, numbers in places.items() if len(numbers) <= common}

    def score_lines(self, sentence: str) -> Iterator[tuple[int, int]]:
        """Yield the lines that a sentence quotes, with their scores."""
        said = _list_words(sentence)
        denies = _DENIAL.search(sentence) is not None
        for number in self._find_candidates(said):
            if denies and not _DENIAL.search(self._lines[number].text):
                continue
            score = self._score_line(number, said)
            if score:
                yield number, score

    def _find_candidates(self, said: Sequence[str]) -> list[int]:
        """Find the lines that need a closer look: most of them share too little with a sentence."""
        scores: Counter[int] = Counter()
        for word in set(said):
            for number in self._telling.get(word, ()):
                scores[number] += _weigh(word)
        return [number for number in sorted(scores) if scores[number] >= _SHORT_SCORE]

    def _score_line(self, number: int, said: Sequence[str]) -> int:
        words = self._words[number]
        shared = _find_run(set(words), said)
        score = sum(_weigh(word) for word in shared if word in self._telling)
        if score >= _MIN_SCORE and len(shared) >= _MIN_SHARE * len(set(words)):
            return score
        is_short_quote = score >= _SHORT_SCORE and _contains(said, words)
        return score if is_short_quote else 0


def _weigh(word: str) -> int:
    return 3 if word[0].isdigit() else 1


def _find_run(own: set[str], said: Sequence[str]) -> set[str]:
    """Find the largest set of a line's words that stand close together in a sentence."""
    best: set[str] = set()
    run: set[str] = set()
    gap = 0
    for word in said:
        if word in own:
            if gap > _NEAR_WORDS:
                run = set()
            run = run | {word}
            gap = 0
        else:
            gap += 1
        best = max(best, run, key=len)
    return best


def _contains(said: Sequence[str], own: Sequence[str]) -> bool:
    """Check whether a sentence has all words of a line, one behind the other."""
    length = len(own)
    for start in range(len(said) - length + 1):
        if said[start : start + length] == own:
            return True
    return False


def _list_words(text: str) -> list[str]:
    words = []
    for found in _WORD.findall(text.lower()):
        word = found.replace(",", "")
        if len(word) >= _MIN_LETTERS or word[0].isdigit():
            words.append(word)
    return words
