"""Values of components as JSON. Values that JSON cannot hold are replaced by the caller."""

import base64
import datetime
import os
import uuid
from collections.abc import Callable, Mapping
from typing import Any

_DEPTH = 60
_BYTES = "$base64"

Keep = Callable[[Any], Any]
"""Return the JSON that replaces a value which JSON cannot hold."""


def to_json(value: Any, keep: Keep, depth: int = 0) -> Any:
    """Convert a value to JSON; bytes become `{"$base64": text}`. Raise ValueError if it nests deeper than 60 levels."""
    if depth > _DEPTH:
        raise ValueError(f"a value nests deeper than {_DEPTH} levels or holds itself; give less of it")
    if isinstance(value, Mapping):
        return {str(key): to_json(entry, keep, depth + 1) for key, entry in value.items()}
    if isinstance(value, set | frozenset):
        value = sorted(value, key=repr)
    if isinstance(value, list | tuple):
        return [to_json(entry, keep, depth + 1) for entry in value]
    return _convert_scalar(value, keep, depth)


def _convert_scalar(value: Any, keep: Keep, depth: int) -> Any:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, float):
        return float(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return {_BYTES: base64.b64encode(bytes(value)).decode("ascii")}
    if isinstance(value, uuid.UUID | os.PathLike):
        return str(value)
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if type(value).__module__ == "numpy" and getattr(value, "ndim", 1) == 0:
        return to_json(value.item(), keep, depth + 1)
    return keep(value)


def from_json(value: Any) -> Any:
    """Convert JSON of `to_json` back; bytes are bytes again."""
    if isinstance(value, dict):
        if value.keys() == {_BYTES}:
            return base64.b64decode(value[_BYTES])
        return {key: from_json(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [from_json(entry) for entry in value]
    return value
