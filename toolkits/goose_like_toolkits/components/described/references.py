"""Reference: which value of which asset is meant, in every form that a model or a component writes."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote_plus

_SCHEME = "asset://"


@dataclass(frozen=True, slots=True)
class Reference:
    """An asset, or what stands in it at `field_path`: keys, names of attributes, or indices as text."""

    asset_id: str
    field_path: tuple[str, ...] = ()

    def __str__(self) -> str:
        return _SCHEME + "/".join(quote(part, safe="") for part in (self.asset_id, *self.field_path))


def read_reference(value: Any) -> Reference | None:
    """What a value refers to; None where it is no reference.

    A reference is `asset://ID`, `asset://ID/KEY/0` with its parts quoted as in a URL, a mapping of `asset_id` and
    perhaps `field_path` and nothing else, or either, the mapping as JSON, between `<|` and `|>`.
    """
    if isinstance(value, str):
        return _of_text(value)
    if not isinstance(value, Mapping) or "asset_id" not in value or not set(value) <= {"asset_id", "field_path"}:
        return None
    asset_id, path = value["asset_id"], value.get("field_path") or ()
    steps = path if isinstance(path, list | tuple) else (None,)
    if not isinstance(asset_id, str) or not all(map(_is_step, steps)):
        return None
    return Reference(asset_id, tuple(map(str, steps)))


def _is_step(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _of_text(text: str) -> Reference | None:
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
    asset_id, *path = text[len(_SCHEME) :].rstrip("/").split("/")
    if not asset_id or asset_id[0].isspace():
        return None
    return Reference(unquote_plus(asset_id), tuple(map(unquote_plus, path)))
