"""Which of a project's files a map looks at, chosen by their paths alone."""

import re
from collections.abc import Container, Iterator, Sequence
from itertools import chain

from .outline import ENDINGS

_ALL = 2_000
_LEAST = 100

_ASIDE = re.compile(
    r"(?:^|/)(?:tests?|specs?|__tests__|testdata|fixtures|examples?|vendor|third_party|migrations|generated|dist)/"
    r"|(?:^|/)(?:test_|conftest)[^/]*$|[._](?:test|spec|min|pb|pb2|gen|generated)\.[^/]*$"
)
"""Tests, and what others or programs wrote: they tell least of what a project is."""


def parsable(listed: bytes) -> list[str]:
    """Of paths that end with a NUL each, those in a language that can be parsed, in the order of their names."""
    paths = listed.decode(errors="surrogateescape").split("\0")[:-1]
    return sorted(path for path in paths if f".{path.rpartition('.')[2]}" in ENDINGS)


def chosen(paths: Sequence[str], wanted: Sequence[Container[str]] = ()) -> list[str]:
    """All of up to 2,000 files; of more the fewer the more there are, as each then tells less of the whole.

    First those of the first group of `wanted`, then of the next; among equals short paths, which are near the top and
    of general names, and last what stands aside.
    """
    if len(paths) <= _ALL:
        return list(paths)
    limit = max(_LEAST, _ALL * _ALL // len(paths))
    by_length = sorted(paths, key=len)
    groups = [*(filter(group.__contains__, by_length) for group in wanted), _plain(by_length), iter(by_length)]
    found: dict[str, None] = {}
    for path in chain.from_iterable(groups):
        found[path] = None
        if len(found) == limit:
            break
    return list(found)


def _plain(paths: Sequence[str]) -> Iterator[str]:
    return (path for path in paths if not is_aside(path))


def is_aside(path: str) -> bool:
    """Whether it is a test, or others or a program wrote it."""
    return bool(_ASIDE.search(path))
