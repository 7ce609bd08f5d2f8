"""Which of a project's files a map looks at, chosen by their paths alone."""

import re
from collections import defaultdict
from collections.abc import Container, Iterator, Sequence
from itertools import chain, groupby

_ALL = 2_000
_LEAST = 60

_ASIDE = re.compile(
    r"(?:^|/)(?:tests?|specs?|__tests__|testdata|fixtures|examples?|vendor|third_party|migrations|generated|dist)/"
    r"|(?:^|/)(?:test_|conftest)[^/]*$|[._](?:test|spec|min|pb|pb2|gen|generated)\.[^/]*$"
)
"""Tests, and what others or programs wrote: they tell least of what a project is."""


def limit_of(count: int) -> int:
    """How many of so many files are looked at: up to 2,000 all, of more the fewer the more there are, as each then
    tells less of the whole."""
    return count if count <= _ALL else max(_LEAST, _ALL * _ALL // count)


def named(paths: Sequence[str], words: Sequence[str]) -> list[Container[str]]:
    """Those with most of the words in their path, then those with fewer; none without any."""
    groups: dict[int, set[str]] = defaultdict(set)
    for path in paths:
        lowered = path.lower()
        groups[sum(word in lowered for word in words)].add(path)
    return [groups[count] for count in sorted(groups, reverse=True) if count]


def chosen(paths: Sequence[str], wanted: Sequence[Container[str]] = ()) -> list[str]:
    """Those to look at, the first ones of the first group of `wanted`, then of the next.

    Among equals short paths come first, which are near the top and of general names, and last what stands aside.
    """
    groups = (filter(group.__contains__, _by_length(paths)) for group in wanted)
    plain = (path for path in _by_length(paths) if not is_aside(path))
    found: dict[str, None] = {}
    limit = limit_of(len(paths))
    for path in chain(*groups, plain, _by_length(paths)):
        if len(found) == limit:
            break
        found[path] = None
    return list(found)


def _by_length(paths: Sequence[str]) -> Iterator[str]:
    """Equal ones by name, but only as far as they are asked for: it is about a hundred thousand."""
    for _, equal in groupby(sorted(paths, key=len), len):
        yield from sorted(equal)


def is_aside(path: str) -> bool:
    """Whether it is a test, or others or a program wrote it."""
    return bool(_ASIDE.search(path))
