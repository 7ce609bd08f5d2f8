"""Values with bytes in them as JSON: what goes between processes and into files."""

import math
import re
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from typing import Any

from goose_like.core.tool import ToolError

_BYTES = "$base64"
_QUOTED = re.compile(r"\$+base64")
"""A mapping of this key alone is no bytes: it is packed with one more `$`."""

_DEPTH = 200
_VALUES = 2_000_000
"""A short YAML file whose aliases lead to aliases would fill the memory."""


def packed(value: Any, what: str = "content") -> Any:
    """The value as plain JSON; bytes in it are `{"$base64": TEXT}`, tuples lists, whole numbers as keys text.

    Raises:
        ToolError: it holds something else, has no end, or is too large; the text names the place.
    """
    return _packed(value, what, 0, iter(range(_VALUES)))


def unpacked(value: Any) -> Any:
    """What `packed` packed."""
    if isinstance(value, list):
        return [unpacked(item) for item in value]
    if not isinstance(value, dict):
        return value
    only = next(iter(value)) if len(value) == 1 else ""
    if only == _BYTES and isinstance(value[_BYTES], str):
        try:
            return b64decode(value[_BYTES], validate=True)
        except ValueError:
            return value
    if _QUOTED.fullmatch(only[1:]):
        return {only[1:]: unpacked(value[only])}
    return {key: unpacked(item) for key, item in value.items()}


def _packed(value: Any, where: str, depth: int, room: Iterator[int]) -> Any:
    if depth > _DEPTH:
        raise ToolError(f"{where[:80]}… is nested more than {_DEPTH} levels deep, or holds itself; keep less of it")
    if next(room, None) is None:
        raise ToolError(f"it holds more than {_VALUES:,} values; keep less of it, or as a text")
    match value:
        case None | bool() | int() | str():
            return value
        case float() if math.isfinite(value):
            return value
        case bytes() | bytearray():
            return {_BYTES: b64encode(value).decode()}
        case list() | tuple():
            return [_packed(item, f"{where}[{at}]", depth + 1, room) for at, item in enumerate(value)]
        case Mapping():
            made = {_key(key, where): _packed(item, f"{where}.{key}", depth + 1, room) for key, item in value.items()}
            only = next(iter(made)) if len(made) == 1 else ""
            return {f"${only}": made[only]} if _QUOTED.fullmatch(only) else made
    kind = f"the number {value}" if isinstance(value, float) else f"a {type(value).__name__}"
    raise ToolError(f"{where[:80]}: {kind} can't be kept; make text, numbers, lists, mappings or bytes of it")


def _key(key: Any, where: str) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, int) and not isinstance(key, bool):
        return str(key)
    raise ToolError(f"{where[:80]}: the key {key!r} is no text; make one of it")
