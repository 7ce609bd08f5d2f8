"""The effective `config` of a component: its own, with the values of including components over it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from goose_like.core.errors import GooseLikeError

from .document import Document

_MAX_DEPTH = 100


@dataclass(frozen=True, slots=True)
class Layer:
    """The `config` that one place gives. With a `document`, `at` is the path of `value` in it."""

    value: Mapping[str, Any]
    name: str
    document: Document | None = None
    at: tuple[str | int, ...] = ()

    def origin(self, path: Sequence[str]) -> str:
        """Name the place of the value at a path."""
        return f"{self.name}, line {self.document.line((*self.at, *path))}" if self.document else self.name


def merge_layers(*layers: Layer) -> tuple[dict[str, Any], dict[tuple[str, ...], str]]:
    """Merge layers, the strongest last; return the value and the origin of each leaf by its path.

    Mappings merge at any depth; lists and single values replace. Raise GooseLikeError if a layer is too deep.
    """
    value: dict[str, Any] = {}
    origins: dict[tuple[str, ...], str] = {}
    for layer in layers:
        _merge(value, origins, layer, layer.value, ())
    return value, origins


def _merge(
    target: dict[str, Any],
    origins: dict[tuple[str, ...], str],
    layer: Layer,
    source: Mapping[str, Any],
    path: tuple[str, ...],
) -> None:
    if len(path) > _MAX_DEPTH:
        raise GooseLikeError(f"the `config` in {layer.name} nests deeper than {_MAX_DEPTH} levels; write it flatter")
    for key, value in source.items():
        here = (*path, key)
        former = target.get(key)
        is_merged = isinstance(value, Mapping) and isinstance(former, dict) and bool(former)
        if not is_merged:
            for below in [each for each in origins if each[: len(here)] == here] if former is not None else ():
                del origins[below]
            target[key] = {} if isinstance(value, Mapping) else value
        if isinstance(value, Mapping) and (value or is_merged):
            origins.pop(here, None)
            _merge(target[key], origins, layer, value, here)
        else:
            origins[here] = layer.origin(here)
