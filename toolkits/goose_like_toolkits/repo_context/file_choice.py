"""The choice of files for a map, by their paths alone."""

import re
from collections import defaultdict
from collections.abc import Container, Iterator, Sequence
from itertools import filterfalse, groupby

_MAX_FILES = 2_000
_MIN_FILES = 60

_SECONDARY = re.compile(
    r"(?:^|/)(?:tests?|specs?|__tests__|testdata|fixtures|examples?|vendor|third_party|migrations|generated|dist)/"
    r"|(?:^|/)(?:test_|conftest)[^/]*$|[._](?:test|spec|min|pb|pb2|gen|generated)\.[^/]*$"
)


def max_files(count: int) -> int:
    """Return how many of `count` files to look at.

    Up to 2,000 files, all of them. Beyond that, the number falls, because each file says less about the whole.
    """
    if count <= _MAX_FILES:
        return count
    return max(_MIN_FILES, _MAX_FILES * _MAX_FILES // count)


def group_by_words(paths: Sequence[str], words: Sequence[str]) -> list[Container[str]]:
    """Group paths by how many of the words they contain, most words first; leave out paths without any."""
    groups: dict[int, set[str]] = defaultdict(set)
    for path in paths:
        lowered = path.lower()
        word_count = sum(word in lowered for word in words)
        groups[word_count].add(path)
    return [groups[count] for count in sorted(groups, reverse=True) if count]


def choose_files(paths: Sequence[str], wanted: Sequence[Container[str]] = ()) -> list[str]:
    """Choose the files to look at: those of the first group of `wanted`, then of the next, then the others.

    Within a group, short paths come first: they are near the top and have general names. Tests and generated files
    come last.
    """
    chosen: dict[str, None] = {}
    limit = max_files(len(paths))
    for path in _iterate_candidates(paths, wanted):
        if len(chosen) == limit:
            break
        chosen[path] = None
    return list(chosen)


def _iterate_candidates(paths: Sequence[str], wanted: Sequence[Container[str]]) -> Iterator[str]:
    """Yield the paths, best first; those of a group come again later."""
    for group in wanted:
        yield from filter(group.__contains__, _sort_by_length(paths))
    yield from filterfalse(is_secondary, _sort_by_length(paths))
    yield from _sort_by_length(paths)


def _sort_by_length(paths: Sequence[str]) -> Iterator[str]:
    """Sort by length, then by name; sort names only as far as they are needed, because there may be 100,000."""
    for _, equal in groupby(sorted(paths, key=len), len):
        yield from sorted(equal)


def is_secondary(path: str) -> bool:
    """Tell whether a path belongs to a test, to third-party code or to a generated file."""
    return bool(_SECONDARY.search(path))
