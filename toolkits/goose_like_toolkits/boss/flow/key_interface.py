"""Apply the key changes of an aiflows `KeyInterface` to a payload."""

import copy
from typing import Any

from goose_like.core.entry_points import did_you_mean
from goose_like.core.tool import ToolError
from goose_like_toolkits.boss.spec import KeyInterface

Payload = dict[str, Any]

NO_CHANGE = KeyInterface()


def apply_interface(interface: KeyInterface, payload: Payload) -> Payload:
    """Return a copy of the payload with changed keys: rename, copy, set, transform, select, delete, unpack.

    The order is that of aiflows. `a.b` means the key `b` inside `a`. Missing keys are skipped, except for select.

    Raises:
        ToolError: a key to select is missing.
    """
    payload = copy.deepcopy(payload)
    for old, new in interface.keys_to_rename.items():
        if old != new and (parent := _find_parent(payload, old)) is not None:
            _set_key(payload, new, parent.pop(_last_part(old)))
    for old, new in interface.keys_to_copy.items():
        if (parent := _find_parent(payload, old)) is not None:
            _set_key(payload, new, copy.deepcopy(parent[_last_part(old)]))
    for key, value in interface.keys_to_set.items():
        _set_key(payload, key, copy.deepcopy(value))
    for transformation in interface.additional_transformations:
        payload = apply_interface(transformation, payload)
    if interface.keys_to_select:
        payload = _select_keys(payload, interface.keys_to_select)
    for key in interface.keys_to_delete:
        if (parent := _find_parent(payload, key)) is not None:
            del parent[_last_part(key)]
    for key in interface.keys_to_unpack:
        if isinstance(payload.get(key), dict):
            payload |= payload.pop(key)
    return payload


def _select_keys(payload: Payload, keys: tuple[str, ...]) -> Payload:
    selected: Payload = {}
    for key in keys:
        parent = _find_parent(payload, key)
        if parent is None:
            raise ToolError(f"no key {key!r} to select; {did_you_mean(key, payload)}")
        _set_key(selected, key, parent[_last_part(key)])
    return selected


def _last_part(key: str) -> str:
    return key.rpartition(".")[2]


def _find_parent(payload: Payload, key: str) -> Payload | None:
    """Return the mapping that holds the last part of a key, or None."""
    node: Any = payload
    *path, last = key.split(".")
    for step in path:
        node = node.get(step) if isinstance(node, dict) else None
    return node if isinstance(node, dict) and last in node else None


def _set_key(payload: Payload, key: str, value: Any) -> None:
    *path, last = key.split(".")
    for step in path:
        if not isinstance(payload.get(step), dict):
            payload[step] = {}
        payload = payload[step]
    payload[last] = value
