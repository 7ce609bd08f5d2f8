"""Whether a value is still what it was, at the cost of a look at it: most of it is the very same objects."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .plain import plain

_PLAIN = frozenset({type(None), bool, int, float, str, bytes})


@dataclass(frozen=True, slots=True)
class _Told:
    """What is told of a value whose inside is not looked at."""

    text: str


def likeness(value: Any) -> Any:
    """What `is_alike` compares the value with later: containers of its own around the same leaves.

    What no JSON can hold is not kept alive by it: its kind is all that counts.
    """
    if isinstance(value, Mapping):
        return {key: entry if type(entry) in _PLAIN else likeness(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [entry if type(entry) in _PLAIN else likeness(entry) for entry in value]
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    return value if isinstance(value, tuple(_PLAIN)) else _told(value)


def is_alike(value: Any, kept: Any) -> bool:
    """Whether the value would be told as that of the likeness is. A 1 in place of True would not."""
    if value is kept:
        return True
    if isinstance(kept, list):
        return isinstance(value, list | tuple) and len(value) == len(kept) and _are_alike(value, kept)
    if isinstance(kept, dict):
        is_one = isinstance(value, Mapping) and value.keys() == kept.keys()
        return is_one and _are_alike(map(value.__getitem__, kept), kept.values())
    if isinstance(kept, bytes):
        return isinstance(value, bytes | bytearray | memoryview) and bytes(value) == kept
    if isinstance(kept, _Told):
        return not isinstance(value, (*_PLAIN, Mapping, list, tuple)) and _told(value) == kept
    return type(value) is type(kept) and bool(value == kept)


def _are_alike(values: Iterable[Any], kept: Iterable[Any]) -> bool:
    return all(value is old or is_alike(value, old) for value, old in zip(values, kept, strict=True))


def _told(value: Any) -> _Told:
    return _Told(repr(plain(value, lambda held: f"<{type(held)}>")))
