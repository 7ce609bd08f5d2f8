"""A source of random inputs: changed copies of real ones. The same key gives the same input."""

import json
import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, AnyStr

_NUMBERS = (0, -1, 2**31, 2**63, 2**64, 10**400, -0.0, 1e308, 1e999, 0.1)
_JUNK = (None, True, False, "", "x", "5", "\0", "\ud83d", "😀", "</think>", [], {}, [[]], {"a": None}, *_NUMBERS)
_MAX_EDITS = 3


class Source(random.Random):
    """Random choices from one key. With a `long_size`, `mutate` repeats a part of each text up to this size."""

    def __init__(self, key: int, long_size: int = 0) -> None:
        super().__init__(key)
        self.long_size = long_size

    def happens(self, share: float) -> bool:
        """Return True in this share of the calls."""
        return self.random() < share

    def below(self, end: int) -> int:
        """Choose a number from 0 to before `end`, quicker than `randrange`."""
        return int(self.random() * end)

    def some(self, values: Sequence[Any], max_count: int) -> list[Any]:
        """Choose up to `max_count` values."""
        return [values[self.below(len(values))] for _ in range(self.below(max_count + 1))]

    def cut(self, text: AnyStr, max_size: int = 30) -> AnyStr:
        """Choose a part of a text."""
        start = self.below(len(text) + 1)
        return text[start : start + self.below(max_size) + 1]

    def split(self, data: bytes) -> list[bytes]:
        """Split bytes at up to five random places."""
        places = [0, *sorted(self.below(len(data) + 1) for _ in range(self.below(6))), len(data)]
        return [data[start:end] for start, end in pairwise(places)]

    def mutate(self, text: AnyStr, pieces: Sequence[AnyStr]) -> AnyStr:
        """Change up to three places of a text: leave out, repeat, move or replace a part, or insert a piece."""
        for _ in range(self.below(_MAX_EDITS) + 1):
            at, size = self.below(len(text) + 1), self.below(9)
            match self.below(5):
                case 0:
                    new = text[:0]
                case 1:
                    new = self.cut(text)
                    size = 0
                case 2:
                    new = text[at : at + size] * 2
                case 3:
                    new = pieces[self.below(len(pieces))]
                case _:
                    new = pieces[self.below(len(pieces))]
                    size = 0
            text = text[:at] + new + text[at + size :]
        return self.stretch(text)

    def stretch(self, text: AnyStr) -> AnyStr:
        """Repeat a part of a text, if this input is to be a long one."""
        if not (self.long_size and text):
            return text
        at, size = self.below(len(text)), self.below(40) + 1
        part = text[at : at + size]
        return text[:at] + part * (self.long_size // len(part)) + text[at:]

    def graft(self, value: Any, keys: Sequence[str] = ()) -> Any:
        """Return a copy of a JSON value in which one part is missing, doubled, renamed or replaced by another."""
        copy = json.loads(json.dumps(value))
        node, parent, key = copy, None, None
        while isinstance(node, dict | list) and node and (parent is None or self.happens(0.8)):
            parent = node
            key = self.choice(list(node)) if isinstance(node, dict) else self.below(len(node))
            node = node[key]
        if parent is None:
            return self.choice(_JUNK)
        match self.below(5):
            case 0:
                del parent[key]
            case 1 if isinstance(parent, list):
                parent.insert(key, node)
            case 1 if keys:
                parent[self.choice(keys)] = parent.pop(key)
            case 2 if isinstance(node, str):
                parent[key] = self.mutate(
                    node, ("\0", "\ud800", "😀", "\n", '"', "\\", "<think>", "</think>", "é", "{")
                )
            case 3:
                parent[key] = [node]
            case _:
                parent[key] = self.choice(_JUNK)
        return copy
