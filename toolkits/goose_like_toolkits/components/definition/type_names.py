"""Names of types in config.yaml, as Python, JSON or the file itself write them, converted to JSON schemas."""

import ast
import re
from collections.abc import Iterator
from typing import Any, TypeAlias

from goose_like.core.spelling import did_you_mean, find_nearest_name

Schema: TypeAlias = dict[str, Any]

ASSET = "x-asset"
"""A key of schemas: true where a reference to an asset may replace the value."""

FOREIGN = "x-python"
"""A key of schemas: the name of a Python class that JSON has no word for, such as numpy.ndarray."""

_SCALARS = {
    **dict.fromkeys(("string", "str", "text"), "string"),
    **dict.fromkeys(("int", "integer", "long"), "integer"),
    **dict.fromkeys(("float", "number", "double"), "number"),
    **dict.fromkeys(("bool", "boolean"), "boolean"),
    **dict.fromkeys(("none", "null", "nonetype"), "null"),
}
_LISTS = {"list", "array", "sequence", "tuple", "set", "frozenset", "iterable"}
_MAPS = {"dict", "mapping", "mutablemapping", "map", "object"}
_WRAPPERS = {"optional", "union", "literal"}
_MODULES = ("typing.", "collections.abc.", "builtins.")
_PYTHON = {
    "bytes",
    "ndarray",
    "image",
    "dataframe",
    "series",
    "tensor",
    "date",
    "datetime",
    "path",
    "uuid",
    "message",
    "asset",
    "assetref",
    "classdict",
    "identity",
}
_SUGGESTED = ("string", "int", "float", "bool", "Any", "List", "Dict", "Optional", "Union", "Literal")
_MAX_DEPTH = 20
_MAX_CHARACTERS = 1_000
_GENERIC = re.compile(r"([^\[\]]+?)\s*(?:\[(.*)\])?", re.DOTALL)
_DOTTED = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)+")
_CLASS = re.compile(r"[A-Z]\w*")


class UnknownTypeError(Exception):
    """A name of a type that cannot be read; the text says why."""


class TypeNames:
    """The type names of one file. `defined` has the schemas of those that `_type_ref` defines."""

    def __init__(self) -> None:
        self.defined: dict[str, Schema] = {}

    def is_built_in(self, name: str) -> bool:
        """Check whether a name has a meaning without a definition."""
        return name.lower() in {"any", *_SCALARS, *_LISTS, *_MAPS, *_WRAPPERS}

    def read(self, text: str, depth: int = 0) -> Schema:
        """Convert a name to a schema. Raise UnknownTypeError."""
        if len(text) > _MAX_CHARACTERS or depth > _MAX_DEPTH:
            raise UnknownTypeError("it is too long or too deep; give a part of it a name by `_type_ref`")
        text = text.strip().strip("\"'").strip()
        if text in self.defined:
            return self.defined[text]
        alternatives = _split(text, "|")
        if len(alternatives) > 1:
            return join_schemas([self.read(each, depth + 1) for each in alternatives])
        match = _GENERIC.fullmatch(text)
        if match is None:
            raise UnknownTypeError(f"{text[:60]!r} is no name of a type; write one such as List[string]")
        head, inner = match.groups()
        if inner is None:
            return self._read_simple(head)
        return self._read_generic(head.strip(), inner, depth + 1)

    def _read_simple(self, name: str) -> Schema:
        bare = _strip_module(name)
        if bare == "any":
            return {}
        if bare in _SCALARS:
            return {"type": _SCALARS[bare]}
        if bare in _LISTS:
            return {"type": "array", "items": {}}
        if bare in _MAPS:
            return {"type": "object", "properties": {}, "additionalProperties": {}}
        known = {*self.defined, *_SUGGESTED}
        is_known_class = bare in _PYTHON or _DOTTED.fullmatch(name)
        looks_like_class = _CLASS.fullmatch(name) and not find_nearest_name(name, known)
        if is_known_class or looks_like_class:
            return {FOREIGN: name, "not": {"type": "null"}}
        raise UnknownTypeError(f"there is no type {name[:60]!r}; {did_you_mean(name, known)}")

    def _read_generic(self, head: str, inner: str, depth: int) -> Schema:
        bare = _strip_module(head)
        if bare == "literal":
            return _read_literal(inner)
        if not inner.strip():  # TypeScript's `string[]`
            return {"type": "array", "items": self.read(head, depth)}
        if bare not in {*_LISTS, *_MAPS, *_WRAPPERS}:
            return self._read_simple(head)
        names = [each for each in _split(inner, ",") if each.strip() != "..."]
        schemas = [self.read(name, depth) for name in names]
        if bare in _MAPS:
            return {"type": "object", "properties": {}, "additionalProperties": schemas[-1]}
        if bare == "optional":
            schemas.append({"type": "null"})
        joined = join_schemas(schemas)
        return joined if bare in _WRAPPERS else {"type": "array", "items": joined}


def join_schemas(schemas: list[Schema]) -> Schema:
    """Return a schema that accepts what any of these accepts."""
    different: list[Schema] = []
    for schema in schemas:
        alternatives = schema["anyOf"] if set(schema) == {"anyOf"} else [schema]
        for each in alternatives:
            if each not in different:
                different.append(each)
    if len(different) == 1:
        return different[0]
    accepts_all = {} in different
    return {"anyOf": different} if different and not accepts_all else {}


def list_parts(schema: Schema) -> Iterator[Schema]:
    """Yield the schemas within a schema, one step down."""
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield schema[key]
    yield from schema.get("properties", {}).values()
    yield from schema.get("anyOf", ())


def _read_literal(inner: str) -> Schema:
    try:
        values = ast.literal_eval(f"[{inner}]")
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        values = []
    if not values or not all(isinstance(value, str | int | None) for value in values):
        raise UnknownTypeError(f"{inner[:60]!r} are no values for Literal; write an `enum`")
    return {"enum": values}


def _split(text: str, mark: str) -> list[str]:
    """Split a text at marks outside of brackets."""
    found = []
    depth = 0
    start = 0
    for at, character in enumerate(text):
        if character == "[":
            depth += 1
        elif character == "]":
            depth -= 1
        if character == mark and depth == 0:
            found.append(text[start:at])
            start = at + 1
    return [*found, text[start:]]


def _strip_module(name: str) -> str:
    for module in _MODULES:
        name = name.removeprefix(module)
    return name.lower()
