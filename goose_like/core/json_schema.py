"""JSON schemas for models: simplified ones of our own tools, and sanitized ones of other people's tools."""

import json
from collections.abc import Container
from typing import Any

from goose_like.core.dataclass import dataclass
from goose_like.core.pattern import compile_later

_TYPES = ("string", "number", "integer", "boolean", "array", "object", "null")
_TEXT_KEYS = ("description", "format")
_BOUND_KEYS = ("minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems")
_CHOICE_KEYS = ("anyOf", "oneOf", "allOf")
_DATA_KEYS = ("default", "const", "enum", "examples")
_MAX_DEPTH = 12
_MAX_NODES = 2_000
"""Inlined references may contain references, so a short schema could otherwise fill the memory."""

_MAX_DESCRIPTION_CHARS = 4_000
_PROPERTY_NAME = compile_later(r"[A-Za-z0-9_.-]{1,64}")


def inline_reference(node: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    """Replace the `$ref` of a node with its target in the same schema.

    The other keys of the node win. A target that does not exist counts as empty.
    """
    target = _find_target(str(node["$ref"]), root)
    return target | _leave_out(node, {"$ref"})


def _find_target(reference: str, root: dict[str, Any]) -> dict[str, Any]:
    target: Any = root
    for step in reference.removeprefix("#/").split("/"):
        if not isinstance(target, dict):
            return {}
        target = target.get(step)
    return target if isinstance(target, dict) else {}


def _leave_out(node: dict[str, Any], keys: Container[str]) -> dict[str, Any]:
    return {key: value for key, value in node.items() if key not in keys}


def simplify_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Inline the references of a pydantic schema and drop what only costs tokens: titles, and empty defaults.

    A field that may be null by default is one that may be left out. A recursive model keeps its `$defs` and the
    references to itself.
    """
    definitions: dict[str, Any] = schema.get("$defs", {})

    def simplify(node: Any, parents: tuple[str, ...], is_properties: bool = False) -> Any:
        if isinstance(node, list):
            return [simplify(entry, parents) for entry in node]
        if not isinstance(node, dict):
            return node
        name = str(node.get("$ref", "")).removeprefix("#/$defs/")
        if name in definitions and name not in parents:
            return simplify(inline_reference(node, schema), (*parents, name))
        if is_properties:
            return {key: simplify(value, parents) for key, value in node.items()}
        simple = {}
        for key, value in _drop_empty(node).items():
            if key not in _DATA_KEYS:
                value = simplify(value, parents, is_properties=key == "properties")
            simple[key] = value
        return simple

    result: dict[str, Any] = simplify(_leave_out(schema, {"$defs"}), ())
    is_recursive = "$ref" in json.dumps(result)
    if is_recursive:
        # All definitions count as parents, so that each reference to one of them stays.
        parents = tuple(definitions)
        result["$defs"] = {name: simplify(body, parents) for name, body in definitions.items()}
    result.setdefault("properties", {})
    result.pop("additionalProperties", None)
    return result


def _drop_empty(node: dict[str, Any]) -> dict[str, Any]:
    """Leave out the keys of a node that tell a model nothing. An unknown field is refused with a list of all fields."""
    choices = node.get("anyOf")
    if "default" in node and node["default"] is None and isinstance(choices, list):
        given = [choice for choice in choices if choice != {"type": "null"}]
        if len(given) == 1:
            node = _leave_out(node, {"anyOf"}) | given[0]
    dropped = set()
    default = node.get("default", 0)
    if default is None or default is False or default in ("", [], {}):
        dropped.add("default")
    if isinstance(node.get("title"), str):
        dropped.add("title")
    if node.get("additionalProperties") is False:
        dropped.add("additionalProperties")
    return _leave_out(node, dropped)


def sanitize_schema(schema: Any) -> dict[str, Any]:
    """Turn any value into an object schema that every model vendor accepts.

    Valid parts stay, references are inlined, and an invalid part allows any value.
    """
    root = schema if isinstance(schema, dict) else {}
    result = _Sanitizer(root).sanitize(root, depth=0)
    if result.get("type") != "object":
        result = {"type": "object"}
    properties = result.get("properties", {})
    required = [name for name in result.pop("required", ()) if name in properties]
    result = _leave_out(result, _CHOICE_KEYS)  # vendors refuse these at the top
    result["properties"] = properties
    if required:
        result["required"] = required
    return result


@dataclass(slots=True)
class _Sanitizer:
    """A walk through a schema of other people. `nodes_left` is the number of nodes that may still be visited."""

    root: dict[str, Any]
    nodes_left: int = _MAX_NODES

    def sanitize(self, node: Any, depth: int) -> dict[str, Any]:
        """Return the valid parts of a node. The order of the keys is part of the prompt: it must not change."""
        is_spent = self.nodes_left == 0
        if is_spent:
            return {}
        self.nodes_left -= 1
        if not isinstance(node, dict) or depth > _MAX_DEPTH:
            return {}
        if isinstance(node.get("$ref"), str):
            return self.sanitize(inline_reference(node, self.root), depth + 1)
        result = _select_values(node)
        properties = node.get("properties")
        if isinstance(properties, dict):
            self._add_properties(result, properties, node.get("required"), depth)
        if result.get("type") == "array" or "items" in node:
            result["items"] = self.sanitize(node.get("items"), depth + 1)
        for key in _CHOICE_KEYS:
            choices = node.get(key)
            if isinstance(choices, list) and choices:
                result[key] = [self.sanitize(choice, depth + 1) for choice in choices]
        return result

    def _add_properties(self, result: dict[str, Any], given: dict[str, Any], required: Any, depth: int) -> None:
        properties = {}
        for name, child in given.items():
            if _PROPERTY_NAME.fullmatch(str(name)):
                properties[name] = self.sanitize(child, depth + 1)
        result["properties"] = properties
        if not isinstance(required, list):
            return
        required_names = [name for name in properties if name in required]
        if required_names:
            result["required"] = required_names


def _select_values(node: dict[str, Any]) -> dict[str, Any]:
    """Select the valid entries of a node that hold no other nodes."""
    result: dict[str, Any] = {}
    types = node.get("type")
    if _is_type(types):
        result["type"] = types
    elif isinstance(node.get("properties"), dict):
        result["type"] = "object"
    for key in _TEXT_KEYS:
        text = node.get(key)
        if isinstance(text, str):
            result[key] = text[:_MAX_DESCRIPTION_CHARS]
    for key in _BOUND_KEYS:
        bound = node.get(key)
        if isinstance(bound, int | float) and not isinstance(bound, bool):
            result[key] = bound
    values = node.get("enum")
    if isinstance(values, list) and values:
        result["enum"] = values
    for key in ("const", "default"):
        if key in node:
            result[key] = node[key]
    return result


def _is_type(types: Any) -> bool:
    """Check the `type` of a node: one type, or a list of some."""
    if isinstance(types, str):
        return types in _TYPES
    return isinstance(types, list) and bool(types) and all(kind in _TYPES for kind in types)
