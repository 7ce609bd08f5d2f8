"""What is done to a payload's keys on its way from one flow to the next."""

import copy
from typing import Any

from goose_like.core.entry_points import did_you_mean
from goose_like.core.tool import ToolError
from goose_like_toolkits.boss.spec import Interface

Payload = dict[str, Any]

AS_IT_IS = Interface()


def applied(interface: Interface, payload: Payload) -> Payload:
    """The payload as the next flow gets it: renamed, copied, set, what else there is, selected, deleted, unpacked.

    That order is aiflows' own (`KeyInterface`). `a.b` is the key `b` within `a`. A key may be missing, but
    for one to select.

    Raises:
        ToolError: a key to select is missing.
    """
    payload = copy.deepcopy(payload)
    for old, new in interface.keys_to_rename.items():
        if old != new and (home := _home(payload, old)) is not None:
            _put(payload, new, home.pop(_last(old)))
    for old, new in interface.keys_to_copy.items():
        if (home := _home(payload, old)) is not None:
            _put(payload, new, copy.deepcopy(home[_last(old)]))
    for key, value in interface.keys_to_set.items():
        _put(payload, key, copy.deepcopy(value))
    for further in interface.additional_transformations:
        payload = applied(further, payload)
    if interface.keys_to_select:
        payload = _selected(payload, interface.keys_to_select)
    for key in interface.keys_to_delete:
        if (home := _home(payload, key)) is not None:
            del home[_last(key)]
    for key in interface.keys_to_unpack:
        if isinstance(payload.get(key), dict):
            payload |= payload.pop(key)
    return payload


def _selected(payload: Payload, keys: tuple[str, ...]) -> Payload:
    selected: Payload = {}
    for key in keys:
        home = _home(payload, key)
        if home is None:
            raise ToolError(f"no key {key!r} to select; {did_you_mean(key, payload)}")
        _put(selected, key, home[_last(key)])
    return selected


def _last(key: str) -> str:
    return key.rpartition(".")[2]


def _home(payload: Payload, key: str) -> Payload | None:
    """The mapping in which the key's last part stands; None where there is none."""
    node: Any = payload
    *path, last = key.split(".")
    for step in path:
        node = node.get(step) if isinstance(node, dict) else None
    return node if isinstance(node, dict) and last in node else None


def _put(payload: Payload, key: str, value: Any) -> None:
    *path, last = key.split(".")
    for step in path:
        if not isinstance(payload.get(step), dict):
            payload[step] = {}
        payload = payload[step]
    payload[last] = value
