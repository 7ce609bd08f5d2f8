"""Values of a storage as JSON that keeps their types: a message comes back as a message.

A pickle could run code when it is read. Here only classes that are already loaded are restored, without calling them.
"""

import base64
import dataclasses
import datetime
import sys
import uuid
from collections import deque
from collections.abc import Callable, Mapping
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from concopilot.util import ClassDict

_MAX_DEPTH = 120
_TYPE = "$type"
_VALUE = "value"


class _Kind(NamedTuple):
    """A type of Python: how its values become plain ones, and back."""

    take: Callable[[Any], Any]
    make: Callable[[Any], Any]


def _to_text(data: Any) -> str:
    return base64.b64encode(bytes(data)).decode("ascii")


_KINDS: dict[type, _Kind] = {
    tuple: _Kind(list, tuple),
    set: _Kind(list, set),
    frozenset: _Kind(list, frozenset),
    deque: _Kind(list, deque),
    range: _Kind(lambda value: [value.start, value.stop, value.step], lambda parts: range(*parts)),
    bytes: _Kind(_to_text, base64.b64decode),
    bytearray: _Kind(_to_text, lambda text: bytearray(base64.b64decode(text))),
    dict: _Kind(lambda value: [list(item) for item in value.items()], dict),
    complex: _Kind(str, complex),
    Decimal: _Kind(str, Decimal),
    Fraction: _Kind(str, Fraction),
    uuid.UUID: _Kind(str, uuid.UUID),
    Path: _Kind(str, Path),
    datetime.datetime: _Kind(datetime.datetime.isoformat, datetime.datetime.fromisoformat),
    datetime.date: _Kind(datetime.date.isoformat, datetime.date.fromisoformat),
    datetime.time: _Kind(datetime.time.isoformat, datetime.time.fromisoformat),
    datetime.timedelta: _Kind(
        lambda value: [value.days, value.seconds, value.microseconds],
        lambda parts: datetime.timedelta(*parts),
    ),
}
_BUILT_IN = {kind.__name__: kind for kind in _KINDS}


def encode(value: Any, depth: int = 0) -> Any:
    """Convert a value to JSON that `decode` converts back.

    Raises:
        TypeError: the value is of a type that JSON cannot hold, such as an open file.
        ValueError: the value nests deeper than 120 levels.
    """
    if depth > _MAX_DEPTH:
        raise ValueError(f"a value nests deeper than {_MAX_DEPTH} levels or holds itself; store less of it")
    if value is None or type(value) in (bool, int, float, str):
        return value
    if type(value) is list:
        return [encode(entry, depth + 1) for entry in value]
    if type(value) is dict and _has_plain_keys(value):
        return {key: encode(entry, depth + 1) for key, entry in value.items()}
    return _encode_typed(value, depth)


def decode(data: Any) -> Any:
    """Convert JSON of `encode` back. Raise ValueError if a class of it is gone."""
    if isinstance(data, list):
        return [decode(entry) for entry in data]
    if not isinstance(data, dict):
        return data
    if _TYPE not in data:
        return {key: decode(entry) for key, entry in data.items()}
    name = str(data[_TYPE])
    content = decode(data[_VALUE])
    if name in _BUILT_IN:
        return _KINDS[_BUILT_IN[name]].make(content)
    return _restore(_find_class(name), content)


def _has_plain_keys(value: dict[Any, Any]) -> bool:
    return _TYPE not in value and all(type(key) is str for key in value)


def _encode_typed(value: Any, depth: int) -> Any:
    kind = type(value)
    if isinstance(value, ClassDict):
        return _tag(_get_name(kind), dict(value), depth)
    if isinstance(value, Enum):
        return _tag(_get_name(kind), value.name, depth)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return _tag(_get_name(kind), fields, depth)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return _tag(_get_name(kind), list(value), depth)
    if kind.__module__ == "numpy" and getattr(value, "ndim", 1) == 0:
        return encode(value.item(), depth)
    base = _find_base(value)
    if base is None:
        raise TypeError(f"a {kind.__name__} can't be stored; store plain values, messages, assets or data classes")
    if base in (int, float, str):
        return encode(base(value), depth)
    return _tag(base.__name__, _KINDS[base].take(value), depth)


def _find_base(value: Any) -> type | None:
    """Return the type as which a value is stored: its own, or one that it inherits from."""
    if type(value) in _KINDS:
        return type(value)
    if isinstance(value, Mapping):
        return dict
    if isinstance(value, memoryview):
        return bytes
    if isinstance(value, PurePath):
        return Path
    for base in (int, float, str, *_KINDS):
        if isinstance(value, base):
            return base
    return None


def _tag(name: str, content: Any, depth: int) -> dict[str, Any]:
    return {_TYPE: name, _VALUE: encode(content, depth + 1)}


def _get_name(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _find_class(name: str) -> type:
    """Return a loaded class that may be restored. Nothing is imported, and only kinds that hold data are found."""
    module, _, path = name.partition(":")
    found: Any = sys.modules.get(module)
    for part in path.split("."):
        found = getattr(found, part, None)
    if isinstance(found, type) and _get_name(found) == name and _holds_data(found):
        return found
    raise ValueError(f"a stored value is of the class {path} of {module}, which is not there; store it again")


def _holds_data(kind: type) -> bool:
    is_named_tuple = issubclass(kind, tuple) and hasattr(kind, "_fields")
    return issubclass(kind, ClassDict | Enum) or dataclasses.is_dataclass(kind) or is_named_tuple


def _restore(kind: Any, content: Any) -> Any:
    """Return an object with this content. Methods of its class are not called."""
    if issubclass(kind, Enum):
        return kind[content]
    if issubclass(kind, tuple):
        return tuple.__new__(kind, content)
    if issubclass(kind, ClassDict):
        mapping = dict.__new__(kind)
        dict.update(mapping, content)
        return mapping
    made = object.__new__(kind)
    for name, value in content.items():
        object.__setattr__(made, name, value)
    return made
