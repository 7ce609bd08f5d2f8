"""JSON schemas for models: simplified ones of our own tools, and sanitized ones of other people's tools."""

import json
import re
from collections.abc import Iterator
from typing import Any

_TYPES = ("string", "number", "integer", "boolean", "array", "object", "null")
_TEXT_KEYS = ("description", "format")
_BOUND_KEYS = ("minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems")
_CHOICE_KEYS = ("anyOf", "oneOf", "allOf")
_DATA_KEYS = ("default", "const", "enum", "examples")
_MAX_DEPTH = 12
_MAX_NODES = 2_000
"""Inlined references may contain references, so a short schema could otherwise fill the memory."""

_MAX_DESCRIPTION_CHARS = 4_000
_PROPERTY_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def inline_reference(node: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    """Replace the `$ref` of a node with its target in the same schema.

    The other keys of the node win. A target that does not exist counts as empty.
    """
    target: Any = root
    for step in str(node["$ref"]).removeprefix("#/").split("/"):
        target = target.get(step) if isinstance(target, dict) else None
    return (target if isinstance(target, dict) else {}) | {key: value for key, value in node.items() if key != "$ref"}


def simplify_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Inline the references of a pydantic schema and drop the titles, which only cost tokens.

    A recursive model keeps its `$defs` and the references to itself.
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
        return {
            key: value
            if key in _DATA_KEYS and not is_properties
            else simplify(value, parents, key == "properties" and not is_properties)
            for key, value in node.items()
            if is_properties or not (key == "title" and isinstance(value, str))
        }

    result: dict[str, Any] = simplify({key: value for key, value in schema.items() if key != "$defs"}, ())
    if "$ref" in json.dumps(result):
        result["$defs"] = {name: simplify(body, tuple(definitions)) for name, body in definitions.items()}
    result.setdefault("properties", {})
    result.pop("additionalProperties", None)
    return result


def sanitize_schema(schema: Any) -> dict[str, Any]:
    """Turn any value into an object schema that every model vendor accepts.

    Valid parts stay, references are inlined, and an invalid part allows any value.
    """
    root = schema if isinstance(schema, dict) else {}
    result = _sanitize_node(root, root, 0, iter(range(_MAX_NODES)))
    if result.get("type") != "object":
        result = {"type": "object"}
    properties = result.get("properties", {})
    required = [name for name in result.pop("required", ()) if name in properties]
    result = {key: value for key, value in result.items() if key not in _CHOICE_KEYS}  # vendors refuse these at the top
    return result | {"properties": properties} | ({"required": required} if required else {})


def _sanitize_node(node: Any, root: dict[str, Any], depth: int, budget: Iterator[int]) -> dict[str, Any]:
    if next(budget, None) is None or not isinstance(node, dict) or depth > _MAX_DEPTH:
        return {}
    if isinstance(node.get("$ref"), str):
        return _sanitize_node(inline_reference(node, root), root, depth + 1, budget)
    result: dict[str, Any] = {}
    types = node.get("type")
    type_list = [types] if isinstance(types, str) else types
    if isinstance(type_list, list) and type_list and all(kind in _TYPES for kind in type_list):
        result["type"] = types
    elif isinstance(node.get("properties"), dict):
        result["type"] = "object"
    for key in _TEXT_KEYS:
        if isinstance(text := node.get(key), str):
            result[key] = text[:_MAX_DESCRIPTION_CHARS]
    for key in _BOUND_KEYS:
        if isinstance(bound := node.get(key), int | float) and not isinstance(bound, bool):
            result[key] = bound
    if isinstance(values := node.get("enum"), list) and values:
        result["enum"] = values
    result |= {key: node[key] for key in ("const", "default") if key in node}
    if isinstance(properties := node.get("properties"), dict):
        valid = {name: child for name, child in properties.items() if _PROPERTY_NAME.fullmatch(str(name))}
        result["properties"] = {name: _sanitize_node(child, root, depth + 1, budget) for name, child in valid.items()}
        names = node.get("required")
        required = [name for name in result["properties"] if isinstance(names, list) and name in names]
        result |= {"required": required} if required else {}
    if result.get("type") == "array" or "items" in node:
        result["items"] = _sanitize_node(node.get("items"), root, depth + 1, budget)
    for key in _CHOICE_KEYS:
        if isinstance(choices := node.get(key), list) and choices:
            result[key] = [_sanitize_node(choice, root, depth + 1, budget) for choice in choices]
    return result
