"""References to assets, in every form that a model or a component writes."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote_plus

_SCHEME = "asset://"


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference to an asset, or to the value in it at `field_path`: keys, attributes, or indexes as text."""

    asset_id: str
    field_path: tuple[str, ...] = ()

    def __str__(self) -> str:
        parts = (self.asset_id, *self.field_path)
        return _SCHEME + "/".join(quote(part, safe="") for part in parts)


def read_reference(value: Any) -> Reference | None:
    """Return the reference that a value is, or None.

    Forms: `asset://ID/KEY/0`, a mapping of `asset_id` and perhaps `field_path`, or either between `<|` and `|>`.
    """
    if isinstance(value, str):
        return _read_text(value)
    if not isinstance(value, Mapping) or not set(value) <= {"asset_id", "field_path"}:
        return None
    asset_id = value.get("asset_id")
    path = value.get("field_path") or ()
    if not isinstance(asset_id, str) or not isinstance(path, list | tuple):
        return None
    for step in path:
        if isinstance(step, bool) or not isinstance(step, str | int):
            return None
    return Reference(asset_id, tuple(map(str, path)))


def _read_text(text: str) -> Reference | None:
    text = text.strip()
    if text.startswith("<|") and text.endswith("|>") and len(text) > 4:
        text = text[2:-2].strip()
        if text.startswith("{"):
            try:
                return read_reference(json.loads(text))
            except (ValueError, RecursionError):
                return None
    if not text.lower().startswith(_SCHEME):
        return None
    address = text[len(_SCHEME) :].rstrip("/")
    asset_id, *path = address.split("/")
    if not asset_id or asset_id[0].isspace():
        return None
    return Reference(unquote_plus(asset_id), tuple(map(unquote_plus, path)))
