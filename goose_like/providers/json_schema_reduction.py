"""Reduction of a JSON schema to the keywords that a vendor accepts for the format of an answer.

Vendors constrain a model to a subset of JSON Schema and refuse the rest. A lost limit, such as `minLength`, becomes a
hint in the description. Whoever reads the answer checks it against the original schema.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from .base import SchemaDialect

Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Rules:
    """What a vendor accepts beside types, properties, items, enums, `anyOf`, `$defs` and descriptions.

    `limits` are keywords with numbers. `formats` are values of `format`, and `min_items` those of `minItems`, or None
    for any. `requires_all`: each property must be required, so that an optional one has the value null.
    """

    limits: frozenset[str]
    formats: frozenset[str]
    min_items: frozenset[int] | None
    requires_all: bool
    takes_recursion: bool


_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
_LIMITS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "maxItems"})
_TEXT_LIMITS = frozenset({"minLength", "maxLength", "pattern"})

_RULES: Mapping[SchemaDialect, _Rules] = {
    # Source: OpenAI's guide on structured outputs, "supported schemas".
    "openai": _Rules(_LIMITS, _FORMATS, min_items=None, requires_all=True, takes_recursion=True),
    # Source: `transform_schema` in Anthropic's SDK, and for recursion Anthropic's guide on structured outputs.
    "anthropic": _Rules(
        frozenset(), _FORMATS | {"uri"}, min_items=frozenset({0, 1}), requires_all=False, takes_recursion=False
    ),
    # What all servers with OpenAI's chat completions share; Azure, for example, refuses limits.
    "portable": _Rules(frozenset(), frozenset(), min_items=frozenset(), requires_all=True, takes_recursion=True),
    # The grammars of the embedded engine. Source: llguidance's page "JSON schema".
    "llguidance": _Rules(_LIMITS | _TEXT_LIMITS, _FORMATS, min_items=None, requires_all=True, takes_recursion=True),
}

_ANNOTATIONS = frozenset(
    {"title", "default", "examples", "deprecated", "readOnly", "writeOnly"}
    | {"$schema", "$id", "$anchor", "$comment", "$defs", "definitions"}
)
"""Keywords that say nothing about an answer."""

_PARTS = frozenset({"$ref", "anyOf", "oneOf", "allOf", "properties", "patternProperties", "items", "prefixItems"})
"""Keywords with schemas inside. Closed objects cannot be combined, so a schema may have one of these only."""

_BEYOND_AUTOMATA = re.compile(r"\(\?(?!:)|\\[1-9bBk]")
"""What a pattern has that no grammar can follow: looks ahead and behind, references, edges of words."""

_MAX_HINT_CHARS = 300


class _InexpressibleError(ValueError):
    """A schema whose answers a vendor cannot describe, such as an object with any keys."""


def reduce_schema(schema: Schema, dialect: SchemaDialect) -> Schema | None:
    """Reduce the schema of an object to what the vendors of a dialect accept.

    Answers that are valid for the result have no keys that `schema` does not name. With some dialects optional
    properties are null instead of missing. Return None for a schema that the dialect cannot express.
    """
    try:
        return _Reducer(schema, _RULES[dialect]).reduce()
    except _InexpressibleError:
        return None


def find_target(root: Schema, ref: str) -> Any:
    """Return the part of a schema that a `$ref` names.

    Raises:
        LookupError: The schema has no such part.
    """
    path, *steps = unquote(ref).split("/")
    if path != "#":
        raise LookupError(ref)
    target: Any = root
    for step in steps:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(target, list) and key.isdecimal():
            target = target[int(key)]
        elif isinstance(target, dict):
            target = target[key]
        else:
            raise LookupError(ref)
    return target


class _Reducer:
    """A walk through one schema. Each target of a `$ref` becomes an entry of `$defs`."""

    def __init__(self, root: Schema, rules: _Rules) -> None:
        self._root = root
        self._rules = rules
        self._definitions: dict[str, Schema] = {}
        self._names: dict[str, str] = {}
        self._open_refs: list[str] = []

    def reduce(self) -> Schema:
        reduced = self._reduce(self._root)
        if self._definitions:
            reduced["$defs"] = self._definitions
        return reduced

    def _reduce(self, node: Any) -> Schema:
        if not isinstance(node, dict) or len(_PARTS & node.keys()) > 1:
            raise _InexpressibleError
        if "$ref" in node:
            # Vendors refuse other keywords beside a reference.
            return self._reduce_reference(node["$ref"])
        if "enum" in node or "const" in node:
            reduced = _reduce_values(node.get("enum", [node.get("const")]))
            return self._describe(node, reduced, {"enum", "const", "type"})
        for key in ("anyOf", "oneOf"):
            if key in node:
                reduced = {"anyOf": [self._reduce(choice) for choice in node[key]]}
                return self._describe(node, reduced, {key, "type"})
        if "allOf" in node:
            return self._reduce_single(node)
        kind = node.get("type")
        if isinstance(kind, list):
            choices = [self._reduce_type(node, each) for each in kind]
            reduced = choices[0] if len(choices) == 1 else {"anyOf": choices}
        else:
            reduced = self._reduce_type(node, kind)
        return self._describe(node, reduced, {"type"})

    def _reduce_reference(self, ref: str) -> Schema:
        if ref in self._open_refs and not self._rules.takes_recursion:
            raise _InexpressibleError
        name = self._names.get(ref)
        if name is None:
            last_step = ref.rpartition("/")[2]
            name = re.sub(r"[^a-zA-Z0-9_-]", "_", last_step).strip("_") or "root"
            if name in self._names.values():
                name = f"{name}_{len(self._names)}"
            self._names[ref] = name
            self._open_refs.append(ref)
            self._definitions[name] = self._reduce(find_target(self._root, ref))
            self._open_refs.pop()
        return {"$ref": f"#/$defs/{name}"}

    def _reduce_single(self, node: Schema) -> Schema:
        if len(node["allOf"]) != 1:
            raise _InexpressibleError
        reduced = self._reduce(node["allOf"][0])
        if "$ref" in reduced:
            return reduced
        return self._describe(node, reduced, {"allOf", "type"})

    def _reduce_type(self, node: Schema, kind: Any) -> Schema:
        match kind:
            case "object":
                return self._reduce_object(node)
            case "array":
                return {"type": kind, "items": self._reduce(node.get("items"))}
            case "string" | "number" | "integer" | "boolean" | "null":
                return {"type": kind}
        raise _InexpressibleError

    def _reduce_object(self, node: Schema) -> Schema:
        properties = node.get("properties", {})
        required = node.get("required", [])
        # Without the keyword an object may have any keys, but these are hardly meant beside named ones.
        is_closed = node.get("additionalProperties", not properties) is False and "patternProperties" not in node
        if not is_closed or not properties.keys() >= set(required):
            raise _InexpressibleError
        reduced = {name: self._reduce(child) for name, child in properties.items()}
        if self._rules.requires_all:
            for name in reduced.keys() - set(required):
                reduced[name] = _make_nullable(reduced[name])
            required = list(reduced)
        return {"type": "object", "properties": reduced, "required": required, "additionalProperties": False}

    def _describe(self, node: Schema, reduced: Schema, read: set[str]) -> Schema:
        """Add the limits that the vendor accepts, and a description that names the others."""
        read = read | {"properties", "required", "additionalProperties", "items", "description"}
        hints = []
        for key, value in node.items():
            if key in read or key in _ANNOTATIONS:
                continue
            if "type" in reduced and self._takes(key, value):
                reduced[key] = value
            else:
                hints.append(f"{key}: {json.dumps(value, ensure_ascii=False)}"[:_MAX_HINT_CHARS])
        texts = [node.get("description", ""), reduced.get("description", "")]
        if hints:
            listed = ", ".join(hints)
            texts.append(f"({listed})")
        description = "\n\n".join(filter(None, texts))
        if description:
            reduced["description"] = description
        return reduced

    def _takes(self, key: str, value: Any) -> bool:
        rules = self._rules
        if key == "format":
            return value in rules.formats
        if key == "pattern" and _BEYOND_AUTOMATA.search(value):
            return False
        if key == "minItems":
            return rules.min_items is None or value in rules.min_items
        return key in rules.limits


def _reduce_values(values: Sequence[Any]) -> Schema:
    """Reduce a list of allowed values, which must be scalars."""
    kinds = {bool: "boolean", int: "number", float: "number", str: "string", type(None): "null"}
    if not values or any(type(value) not in kinds for value in values):
        raise _InexpressibleError
    types = list(dict.fromkeys(kinds[type(value)] for value in values))
    if len(types) == 1:
        return {"type": types[0], "enum": list(values)}
    return {"type": types, "enum": list(values)}


def _make_nullable(schema: Schema) -> Schema:
    choices = schema["anyOf"] if schema.keys() == {"anyOf"} else [schema]
    if {"type": "null"} in choices:
        return schema
    return {"anyOf": [*choices, {"type": "null"}]}
