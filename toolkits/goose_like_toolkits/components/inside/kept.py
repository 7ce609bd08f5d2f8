"""Plain values as text and back: JSON, with marks for what JSON has not."""

import base64
import json
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from .asset import Asset, AssetRef
from .class_dict import ClassDict
from .message import Identity, Message

_MARK = "$type"
_MAPPINGS: dict[str, type[ClassDict]] = {
    "ClassDict": ClassDict,
    "Message": Message,
    "Message.Command": Message.Command,
    "Identity": Identity,
    "Asset": Asset,
    "AssetRef": AssetRef,
}
_NAMES = {kind: name for name, kind in _MAPPINGS.items()}
_MADE: dict[str, Callable[[Any], Any]] = {
    "bytes": base64.b64decode,
    "uuid": uuid.UUID,
    "tuple": tuple,
    "set": set,
    "dict": lambda pairs: {_hashable(key): value for key, value in pairs},
}


def to_text(value: Any, name: str) -> str:
    """The value as text.

    Raises:
        TypeError: naming the part of it that is not plain.
        ValueError: when it holds itself.
    """
    return json.dumps(_marked(value, name, ()), ensure_ascii=False)


def from_text(text: str) -> Any:
    """The value of such text."""
    return json.loads(text, object_hook=_made)


def _marked(value: Any, path: str, above: tuple[int, ...]) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, bytes):
        return {_MARK: "bytes", "value": base64.b64encode(value).decode()}
    if isinstance(value, uuid.UUID):
        return {_MARK: "uuid", "value": str(value)}
    if not isinstance(value, Mapping | list | tuple | set | frozenset):
        raise TypeError(f"{path}: a {type(value).__name__} can't be kept, only text, bytes and plain values can")
    if id(value) in above:
        raise ValueError(f"{path}: a {type(value).__name__} holds itself, so it can't be kept")
    within = (*above, id(value))
    if isinstance(value, Mapping):
        return _marked_mapping(value, path, within)
    items = [_marked(item, f"{path}[{place}]", within) for place, item in enumerate(value)]
    return items if isinstance(value, list) else {_MARK: "tuple" if isinstance(value, tuple) else "set", "value": items}


def _marked_mapping(value: Mapping[Any, Any], path: str, above: tuple[int, ...]) -> Any:
    items = {key: _marked(item, f"{path}.{key}", above) for key, item in value.items()}
    if isinstance(value, ClassDict):
        kind = next(kind for kind in type(value).__mro__ if kind in _NAMES)
        return {_MARK: _NAMES[kind], "value": [[key, item] for key, item in items.items()]}
    if all(isinstance(key, str) for key in items) and _MARK not in items:
        return items
    return {_MARK: "dict", "value": [[_marked(key, path, above), item] for key, item in items.items()]}


def _made(read: dict[str, Any]) -> Any:
    kind = read.get(_MARK)
    if kind in _MAPPINGS:
        made = _MAPPINGS[kind].__new__(_MAPPINGS[kind])
        made.update(read["value"])
        return made
    return _MADE[kind](read["value"]) if kind in _MADE else read


def _hashable(key: Any) -> Any:
    return tuple(key) if isinstance(key, list) else key
