"""Lines of a document that an answer quotes closely."""

import re
from collections import Counter
from collections.abc import Sequence

from .document import Line

_SENTENCE_END = re.compile(r"(?<=[.!?;:])\s+|\n+")
_WORD = re.compile(r"\w+(?:[.,]\d+)*")
_MIN_LETTERS = 4
_NEAR_WORDS = 4
"""Words between two neighbouring words of a quote, at most."""
_MIN_SCORE, _MIN_SHARE = 5, 0.5
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
    words = [_list_words(line.text) for line in lines]
    places: dict[str, list[int]] = {}
    for index, own in enumerate(words):
        for word in set(own):
            places.setdefault(word, []).append(index)
    common = max(3, len(lines) // 10)
    telling = {word: found for word, found in places.items() if len(found) <= common}
    scores: dict[int, int] = {}
    for sentence in _SENTENCE_END.split(answer):
        said = _list_words(sentence)
        denies = _DENIAL.search(sentence) is not None
        # Most lines share too little, and need no closer look.
        shared_scores: Counter[int] = Counter()
        for word in set(said):
            for index in telling.get(word, ()):
                shared_scores[index] += _weigh(word)
        for index in sorted(shared_scores):
            if shared_scores[index] < _SHORT_SCORE:
                continue
            if denies and not _DENIAL.search(lines[index].text):
                continue
            own = words[index]
            shared = _find_run(set(own), said)
            total = sum(_weigh(word) for word in shared if word in telling)
            is_quote = total >= _MIN_SCORE and len(shared) >= _MIN_SHARE * len(set(own))
            if is_quote or (total >= _SHORT_SCORE and _contains(said, own)):
                scores[index] = max(total, scores.get(index, 0))
    best = sorted(scores, key=lambda index: -scores[index])
    return [lines[index] for index in sorted(best[:_MAX_LINES])]


def _weigh(word: str) -> int:
    return 3 if word[0].isdigit() else 1


def _find_run(own: set[str], said: Sequence[str]) -> set[str]:
    """Find the largest set of a line's words that stand close together in a sentence."""
    best: set[str] = set()
    run: set[str] = set()
    gap = 0
    for word in said:
        if word in own:
            run = run | {word} if gap <= _NEAR_WORDS else {word}
            gap = 0
        else:
            gap += 1
        best = max(best, run, key=len)
    return best


def _contains(said: Sequence[str], own: Sequence[str]) -> bool:
    """Check whether a sentence has all words of a line, one behind the other."""
    return any(said[start : start + len(own)] == own for start in range(len(said) - len(own) + 1))


def _list_words(text: str) -> list[str]:
    words = (word.replace(",", "") for word in _WORD.findall(text.lower()))
    return [word for word in words if len(word) >= _MIN_LETTERS or word[0].isdigit()]
