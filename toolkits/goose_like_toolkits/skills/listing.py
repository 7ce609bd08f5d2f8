"""What the model reads of skills: a short listing in the system prompt, and the results of a search over all."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from goose_like.core.context import estimate_tokens
from goose_like.core.message import Message
from goose_like.core.pattern import compile_later
from goose_like.terminal.escape import to_one_line

from .catalog import Skill, sort_by_owner

MAX_TOKENS = 1_500
HEADING = "Skills are instructions for certain tasks. "
"""The start of the listing, which is one paragraph of the system prompt."""

_INTRODUCTION = f"{HEADING}Before a task that one covers, read it with `use_skill` and do what it says:"
_DESCRIPTION_TOKENS = 1_050
"""The room for lines with descriptions if not everything fits. Names without descriptions take the rest."""
_WIDTHS = (1_024, 300, 120)
_BYTES_PER_TOKEN = 4
_MAX_RESULTS = 20
_WORD = compile_later(r"[^\W_]+")
_NAME_WEIGHT = 3.0
_PART_WEIGHT = 0.4
_MIN_PART_CHARS = 4


def write_listing(skills: Iterable[Skill]) -> str:
    """Write the listing: names with descriptions while they fit, then names, then the number of the others."""
    ordered = sort_by_owner(skills)
    for width in _WIDTHS:
        if _is_longer(ordered, width, MAX_TOKENS * _BYTES_PER_TOKEN):
            continue
        text = "\n".join([_INTRODUCTION, *_describe_all(ordered, width)])
        if count_tokens(text) <= MAX_TOKENS:
            return text
    lines = _describe_some(ordered, _WIDTHS[-1], _DESCRIPTION_TOKENS * _BYTES_PER_TOKEN)
    described = _count_fitting(len(lines), lambda count: "\n".join(lines[:count]), _DESCRIPTION_TOKENS)
    names = [skill.name for skill in ordered[described:]]

    def write(count: int) -> str:
        return _join([_INTRODUCTION, *lines[:described]], names[:count], len(names) - count)

    most = min(len(names), MAX_TOKENS)
    return write(_count_fitting(most, write, MAX_TOKENS))


def _is_longer(skills: Sequence[Skill], width: int, limit_bytes: int) -> bool:
    """Check whether lines with descriptions of this width are longer than a limit, by their least number of bytes."""
    for skill in skills:
        limit_bytes -= len(skill.name) + min(len(skill.description), width - 1)
        if limit_bytes < 0:
            return True
    return False


def _describe_all(skills: Sequence[Skill], width: int) -> list[str]:
    return [_describe(skill, width) for skill in skills]


def _describe_some(skills: Sequence[Skill], width: int, limit_bytes: int) -> list[str]:
    """Describe the first skills, until there are more bytes than the limit."""
    lines: list[str] = []
    for skill in skills:
        line = _describe(skill, width)
        lines.append(line)
        limit_bytes -= len(line)
        if limit_bytes < 0:
            break
    return lines


def _join(lines: Sequence[str], names: Sequence[str], more_count: int) -> str:
    parts = list(lines)
    if names:
        parts.append(f"Also: {', '.join(names)}.")
    if more_count:
        parts.append(f"And {more_count:,} more: `search_skills`.")
    return "\n".join(parts)


def _count_fitting(most: int, write: Callable[[int], str], limit_tokens: int) -> int:
    """Find the largest count whose text keeps to a limit."""
    least = 0
    while least < most:
        middle = (least + most + 1) // 2
        if count_tokens(write(middle)) <= limit_tokens:
            least = middle
        else:
            most = middle - 1
    return least


def count_tokens(text: str) -> int:
    """Estimate the tokens of a text, as goose_like estimates those of messages."""
    return estimate_tokens(Message.user(text))


def _describe(skill: Skill, width: int) -> str:
    return f"- {skill.name}: {to_one_line(skill.description, width)}"


def search(query: str, skills: Iterable[Skill]) -> tuple[list[Skill], int]:
    """Find the skills that have words of a query in their name or description, the best first, and count all that do.

    A rare word counts more than a frequent one, and a word of the name more than one of the description. A word that
    only begins like one of the query counts a little.
    """
    ordered = sort_by_owner(skills)
    names = [set(_split_words(skill.name)) for skill in ordered]
    texts = [{*_split_words(skill.description), *words} for skill, words in zip(ordered, names, strict=True)]
    frequencies: Counter[str] = Counter()
    for words in texts:
        frequencies.update(words)
    scores = [0.0] * len(ordered)
    for word in dict.fromkeys(_split_words(query)):
        rarity = math.log(1 + len(ordered) / (1 + frequencies[word]))
        alike = {other for other in frequencies if _is_part(word, other)}
        for index, words in enumerate(texts):
            if word in names[index]:
                scores[index] += _NAME_WEIGHT * rarity
            elif word in words:
                scores[index] += rarity
            elif not words.isdisjoint(alike):
                scores[index] += _PART_WEIGHT * rarity
    best = [index for index, score in enumerate(scores) if score]
    best.sort(key=lambda index: -scores[index])
    return [ordered[index] for index in best[:_MAX_RESULTS]], len(best)


def _is_part(word: str, other: str) -> bool:
    """Check whether one of two words begins like the other. Short beginnings say nothing."""
    if len(word) < _MIN_PART_CHARS:
        return False
    return other.startswith(word) or (len(other) >= _MIN_PART_CHARS and word.startswith(other))


def _split_words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]


def format_results(found: Sequence[Skill], count: int) -> str:
    """Format what a search found."""
    lines = [_describe(skill, _WIDTHS[1]) for skill in found]
    if count > len(found):
        lines.append(f"[{count - len(found):,} more have such words: use rarer ones]")
    return "\n".join(lines)
