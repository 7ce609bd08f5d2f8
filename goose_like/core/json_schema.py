"""A JSON schema of somebody else's, made such that every model's vendor takes it."""

import re
from collections.abc import Iterator
from typing import Any

_TYPES = {"string", "number", "integer", "boolean", "array", "object", "null"}
_TEXTS = ("description", "title", "format")
_BOUNDS = ("minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems")
_CHOICES = ("anyOf", "oneOf", "allOf")
_DEPTH = 12
_NODES = 2_000
"""References may lead to references; written out, a short schema would fill the memory."""

_DESCRIPTION_CHARACTERS = 4_000
_PROPERTY = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def sound(schema: Any) -> dict[str, Any]:
    """The schema of an object with all of the given one that is sound; what is not allows anything in its place.

    References are written out, so that none leads nowhere.
    """
    given = schema if isinstance(schema, dict) else {}
    made = _node(given, given, 0, iter(range(_NODES)))
    if made.get("type") != "object":
        made = {"type": "object"}
    properties = made.get("properties", {})
    required = [name for name in made.pop("required", ()) if name in properties]
    made = {key: value for key, value in made.items() if key not in _CHOICES}  # no vendor takes these at the top
    return made | {"properties": properties} | ({"required": required} if required else {})


def _node(node: Any, root: dict[str, Any], depth: int, room: Iterator[int]) -> dict[str, Any]:
    if next(room, None) is None or not isinstance(node, dict) or depth > _DEPTH:
        return {}
    if isinstance(where := node.get("$ref"), str):
        beside = {key: value for key, value in node.items() if key != "$ref"}
        return _node(_at(where, root) | beside, root, depth + 1, room)
    made: dict[str, Any] = {}
    kinds = node.get("type")
    listed = [kinds] if isinstance(kinds, str) else kinds
    if isinstance(listed, list) and listed and all(isinstance(kind, str) and kind in _TYPES for kind in listed):
        made["type"] = kinds
    elif isinstance(node.get("properties"), dict):
        made["type"] = "object"
    for key in _TEXTS:
        if isinstance(text := node.get(key), str) and key != "title":
            made[key] = text[:_DESCRIPTION_CHARACTERS]
    for key in _BOUNDS:
        if isinstance(bound := node.get(key), int | float) and not isinstance(bound, bool):
            made[key] = bound
    if isinstance(values := node.get("enum"), list) and values:
        made["enum"] = values
    for key in ("const", "default"):
        if key in node:
            made[key] = node[key]
    if isinstance(properties := node.get("properties"), dict):
        fitting = {name: child for name, child in properties.items() if _PROPERTY.fullmatch(str(name))}
        made["properties"] = {name: _node(child, root, depth + 1, room) for name, child in fitting.items()}
        names = node.get("required")
        required = [name for name in made["properties"] if isinstance(names, list) and name in names]
        made |= {"required": required} if required else {}
    if made.get("type") == "array" or "items" in node:
        made["items"] = _node(node.get("items"), root, depth + 1, room)
    for key in _CHOICES:
        if isinstance(choices := node.get(key), list) and choices:
            made[key] = [_node(choice, root, depth + 1, room) for choice in choices]
    return made


def _at(where: str, root: dict[str, Any]) -> dict[str, Any]:
    """What a reference within the schema leads to; nothing where it leads elsewhere."""
    found: Any = root
    for step in where.removeprefix("#/").split("/"):
        found = found.get(step) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}
