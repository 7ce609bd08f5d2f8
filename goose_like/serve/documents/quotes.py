"""Lines of a document that an answer is based on."""

import re
from collections import Counter
from collections.abc import Sequence

from .document import Line

_WORD = re.compile(r"\w+(?:[.,]\d+)*")
_MIN_LETTERS = 4
_MIN_SCORE, _MIN_SHARE = 5, 0.4
_SHORT_SCORE, _SHORT_SHARE = 2, 0.8
_MAX_LINES = 6


def find_quotes(lines: Sequence[Line], answer: str) -> list[Line]:
    """Find the few lines that share most words and numbers with an answer, in the order of the document.

    Words that many lines share say nothing about one of them, and numbers say more than words.
    """
    wanted = _list_words(answer)
    words = [_list_words(line.text) for line in lines]
    counts = Counter(word for each in words for word in each)
    common = max(3, len(lines) // 10)

    def score(index: int) -> int:
        total = sum(3 if word[0].isdigit() else 1 for word in words[index] & wanted if counts[word] <= common)
        share = len(words[index] & wanted) / len(words[index])
        is_quote = total >= _MIN_SCORE and share >= _MIN_SHARE
        return total if is_quote or (total >= _SHORT_SCORE and share >= _SHORT_SHARE) else 0

    scores = {index: score(index) for index in range(len(lines)) if words[index]}
    best = sorted((index for index in scores if scores[index]), key=lambda index: -scores[index])
    return [lines[index] for index in sorted(best[:_MAX_LINES])]


def _list_words(text: str) -> set[str]:
    words = (word.replace(",", "") for word in _WORD.findall(text.lower()))
    return {word for word in words if len(word) >= _MIN_LETTERS or word[0].isdigit()}
