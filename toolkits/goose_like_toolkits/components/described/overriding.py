"""Overriding: what a component is configured with in the end, and who said each part of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from goose_like.core.errors import GooseLikeError

Path: TypeAlias = tuple[str, ...]

_LIMIT_DEPTH = 100


class Lined(Protocol):
    """What was read of a file, and knows its lines: a `Document`."""

    def line(self, path: Sequence[str | int]) -> int: ...


@dataclass(frozen=True, slots=True)
class Layer:
    """What one place says of a component's `config`.

    `name` is that place in words; where it is a file, `document` is what was read of it and `at` the path of `value`
    in it, and each origin has its line.
    """

    value: Mapping[str, Any]
    name: str
    document: Lined | None = None
    at: tuple[str | int, ...] = ()

    def origin(self, path: Sequence[str]) -> str:
        """Who says what stands at a path, in words."""
        return f"{self.name}, line {self.document.line((*self.at, *path))}" if self.document else self.name


@dataclass(frozen=True, slots=True)
class Effective:
    """`origins` has the path of each key whose value is no mapping, or an empty one: the keys of `value` one by one."""

    value: dict[str, Any]
    origins: Mapping[Path, str]


def overlaid(own: Layer, *outer: Layer) -> Effective:
    """A component's own `config` with those of all around it over it, the outermost last and strongest.

    Mappings merge, at any depth; lists and single values replace what was there. Nothing is shared with the layers.

    Raises:
        GooseLikeError: one nests deeper than 100 levels.
    """
    effective: dict[str, Any] = {}
    origins: dict[Path, str] = {}
    for layer in (own, *outer):
        _overlay(effective, origins, layer, layer.value, ())
    return Effective(effective, origins)


def _overlay(
    effective: dict[str, Any], origins: dict[Path, str], layer: Layer, said: Mapping[str, Any], path: Path
) -> None:
    for key, value in said.items():
        here = (*path, key)
        former = effective.get(key)
        is_merged = isinstance(value, Mapping) and isinstance(former, dict) and former
        if not is_merged:
            for below in [each for each in origins if each[: len(here)] == here] if former else ():
                del origins[below]
            effective[key] = {} if isinstance(value, Mapping) else _copied(value, layer, len(here))
        if isinstance(value, Mapping) and (value or is_merged):
            _check_depth(layer, len(here))
            origins.pop(here, None)
            _overlay(effective[key], origins, layer, value, here)
        else:
            origins[here] = layer.origin(here)


def _check_depth(layer: Layer, depth: int) -> None:
    if depth > _LIMIT_DEPTH:
        raise GooseLikeError(f"the `config` in {layer.name} nests deeper than {_LIMIT_DEPTH} levels; write it flatter")


def _copied(value: Any, layer: Layer, depth: int) -> Any:
    _check_depth(layer, depth)
    if isinstance(value, Mapping):
        return {key: _copied(inner, layer, depth + 1) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_copied(inner, layer, depth + 1) for inner in value]
    return value
