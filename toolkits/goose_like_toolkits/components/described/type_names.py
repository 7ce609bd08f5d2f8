"""TypeNames: what a type is called, in Python, in JSON, or by the file itself."""

import ast
import re
from typing import TypeAlias

from goose_like.core.spelling import did_you_mean, find_nearest_name

from .kinds import (
    Anything,
    Choice,
    Foreign,
    Kind,
    ListOf,
    MapOf,
    Nothing,
    Number,
    OneOf,
    Text,
    Truth,
    Whole,
)

_SCALARS: dict[str, Kind] = {
    **dict.fromkeys(("string", "str", "text"), Text()),
    **dict.fromkeys(("int", "integer", "long"), Whole()),
    **dict.fromkeys(("float", "number", "double"), Number()),
    **dict.fromkeys(("bool", "boolean"), Truth()),
    **dict.fromkeys(("none", "null", "nonetype"), Nothing()),
    "any": Anything(),
}
_LISTS = {"list", "array", "sequence", "tuple", "set", "frozenset", "iterable"}
_MAPS = {"dict", "mapping", "mutablemapping", "map", "object"}
_WRAPPERS = {"optional", "union", "literal"}
_MODULES = ("typing.", "collections.abc.", "builtins.")

_PYTHON = {
    *("bytes", "ndarray", "image", "dataframe", "series", "tensor", "date", "datetime", "path", "uuid"),
    *("message", "asset", "assetref", "classdict", "identity"),
}
"""Classes that are written without their module, and no misspelling of anything."""

_SHOWN = ("string", "int", "float", "bool", "Any", "List", "Dict", "Optional", "Union", "Literal")
_LIMIT_DEPTH = 20
_LIMIT_CHARACTERS = 1_000
_LIMIT_SUGGESTIONS = 20
_GENERIC = re.compile(r"([^\[\]]+?)\s*(?:\[(.*)\])?", re.DOTALL)
_DOTTED = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)+")
_CLASS = re.compile(r"[A-Z]\w*")

Named: TypeAlias = tuple[Kind, str, bool]
"""A kind, what is to be said of its name ("" for nothing), and whether that is a remark only."""


class _Unknown(Exception):
    """Why the name of a type can't be read."""


class TypeNames:
    """`later` are the names that the file gives anywhere, with their lines."""

    def __init__(self, later: dict[str, int]) -> None:
        self._later = later
        self._known: dict[str, Kind] = {}
        self._places: dict[str, int] = {}
        self._open: set[str] = set()
        self._unknown: set[str] = set()
        self._remark = ""

    def open(self, name: str, place: int) -> str:
        """Begins the definition of a name, at a place of the file. What is wrong with that, "" if nothing is.

        An alias may bring a definition again.
        """
        if name in self._open or self._places.setdefault(name, place) != place:
            return f"the type {name!r} is defined twice; choose another name"
        if name.lower() in {*_SCALARS, *_LISTS, *_MAPS, *_WRAPPERS}:
            return f"{name!r} is the name of a type already; choose another"
        self._open.add(name)
        return ""

    def close(self, name: str, kind: Kind) -> None:
        self._open.discard(name)
        self._known[name] = kind

    def kind(self, text: str, line: int) -> Named:
        """What a name stands for. One that can't be read stands for any value."""
        self._remark = ""
        try:
            if len(text) > _LIMIT_CHARACTERS:
                raise _Unknown("it is too long; give a part of it a name by `_type_ref`")
            return self._read(text, line, 0), self._remark, True
        except _Unknown as unknown:
            return Anything(), str(unknown), False

    def _read(self, text: str, line: int, depth: int) -> Kind:
        text = text.strip().strip("\"'").strip()
        if own := self._own(text):
            return own
        if depth > _LIMIT_DEPTH:
            raise _Unknown("it nests too deep; give a part of it a name by `_type_ref`")
        if len(alternatives := _split(text, "|")) > 1:
            return _one_of([self._read(each, line, depth + 1) for each in alternatives])
        match = _GENERIC.fullmatch(text)
        if match is None:
            raise _Unknown(f"{_clipped(text)} is no name of a type; write one such as List[string]")
        head, inner = match.groups()
        if inner is None:
            return self._simple(head, line)
        return self._generic(head.strip(), inner, line, depth)

    def _own(self, name: str) -> Kind | None:
        if name in self._open:
            self._remark = f"the type {name!r} holds itself: within it any value is taken in its place"
            return Anything()
        return self._known.get(name)

    def _simple(self, name: str, line: int) -> Kind:
        bare = _bare(name)
        if bare in _SCALARS:
            return _SCALARS[bare]
        if bare in _LISTS:
            return ListOf(Anything())
        if bare in _MAPS:
            return MapOf(Anything())
        if bare in _PYTHON or _DOTTED.fullmatch(name):
            return Foreign(name)
        return self._stranger(name, line)

    def _stranger(self, name: str, line: int) -> Kind:
        if (later := self._later.get(name)) is not None:
            raise _Unknown(
                f"the type {name!r} is defined in line {later}, and this is line {line}; move the definition up"
            )
        self._unknown.add(name)
        known = {*self._known, *_SHOWN}
        is_compared = len(self._unknown) <= _LIMIT_SUGGESTIONS  # each with all names
        if _CLASS.fullmatch(name) and not (is_compared and find_nearest_name(name, known)):
            self._remark = f"{name!r} is taken for a class of Python's, and any value for one of it"
            return Foreign(name)
        raise _Unknown(f"there is no type {_clipped(name)}" + (f"; {did_you_mean(name, known)}" if is_compared else ""))

    def _generic(self, head: str, inner: str, line: int, depth: int) -> Kind:
        bare = _bare(head)
        if bare == "literal":
            return _literal(inner)
        if not inner.strip():  # TypeScript's `string[]`
            return ListOf(self._read(head, line, depth + 1))
        if bare not in {*_LISTS, *_MAPS, *_WRAPPERS}:
            return self._simple(head, line)
        kinds = [self._read(each, line, depth + 1) for each in _split(inner, ",") if each.strip() != "..."]
        if bare in _MAPS:
            return MapOf(kinds[-1])
        if bare == "optional":
            kinds.append(Nothing())
        return _one_of(kinds) if bare in _WRAPPERS else ListOf(_one_of(kinds))


def _one_of(kinds: list[Kind]) -> Kind:
    flat = [each for kind in kinds for each in (kind.kinds if isinstance(kind, OneOf) else (kind,))]
    different = [kind for at, kind in enumerate(flat) if kind not in flat[:at]]
    return different[0] if len(different) == 1 else OneOf(tuple(different)) if different else Anything()


def _literal(inner: str) -> Kind:
    try:
        values = ast.literal_eval(f"[{inner}]")
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        values = []
    kinds: dict[type, Kind] = {str: Text(), int: Whole(), bool: Truth(), type(None): Nothing()}
    if not values or not all(type(value) in kinds for value in values):
        raise _Unknown(f"{_clipped(inner)} are no values for Literal; write an `enum`")
    return Choice(_one_of([kinds[type(value)] for value in values]), tuple(values))


def _split(text: str, mark: str) -> list[str]:
    """The parts between marks that stand in no brackets."""
    found, depth, start = [], 0, 0
    for at, character in enumerate(text):
        depth += (character == "[") - (character == "]")
        if character == mark and depth == 0:
            found.append(text[start:at])
            start = at + 1
    return [*found, text[start:]]


def _bare(name: str) -> str:
    for module in _MODULES:
        name = name.removeprefix(module)
    return name.lower()


def _clipped(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
