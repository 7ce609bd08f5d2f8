"""What a model reads of assets and other large values: their shape, their beginning, and how to read on."""

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any

from goose_like_toolkits.components.described.references import Reference

_KEYS = 8
_BEGINNING_CHARACTERS = 600
PART_CHARACTERS = 4_000


def shape(value: Any) -> str:
    """What a value is, in a few words: `list of 200 mappings with name, size`."""
    match value:
        case str():
            lines = value.count("\n") + 1
            return f"text of {len(value):,} characters{f' in {lines:,} lines' if lines > 1 else ''}"
        case bytes() | bytearray():
            return f"{len(value):,} bytes"
        case Mapping():
            return f"mapping{_with(value)}" if value else "empty mapping"
        case list() | tuple():
            return _list_shape(value)
        case None:
            return "nothing"
        case bool():
            return f"the truth value {str(value).lower()}"
    return f"the number {value}"


def beginning(value: Any, limit: int = _BEGINNING_CHARACTERS) -> str:
    """Its first characters, as `part` shows them."""
    text = as_text(value)
    return text if len(text) <= limit else f"{text[:limit]}…"


def part(value: Any, start: int = 0, limit: int = PART_CHARACTERS) -> str:
    """The characters of a value from `start` on, and in brackets what comes after them; what is no text as JSON."""
    text = as_text(value)
    start = min(max(start, 0), len(text))
    end = min(start + limit, len(text))
    if end - start == len(text):
        return text
    more = f"; go on with start={end}" if end < len(text) else ""
    return f"{text[start:end]}\n[characters {start:,} to {end:,} of {len(text):,}{more}]"


def told(asset_id: str, asset_type: str, size_bytes: int, content: Any) -> str:
    """What stands for a result that was kept as an asset: its id, type, shape and beginning, and how to read it."""
    whole = Reference(asset_id)
    inner = Reference(asset_id, ("content", first)) if (first := _first_key(content)) is not None else None
    how = f"`get_asset` with {whole}" + (f", or for a part of it with a path such as {inner}" if inner else "")
    return (
        f"[too long to show: kept as the asset {asset_id} of type {asset_type!r}, {size_bytes:,} bytes, "
        f"{shape(content)}. It begins:]\n{beginning(content)}\n[to read it: {how}]"
    )


def as_text(value: Any) -> str:
    """The value as a model reads it: a text as it is, bytes as base64, anything else as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes | bytearray):
        return b64encode(value).decode()
    return json.dumps(value, ensure_ascii=False, default=_plain)


def _plain(value: Any) -> Any:
    return b64encode(value).decode() if isinstance(value, bytes | bytearray) else str(value)


def _list_shape(items: Sequence[Any]) -> str:
    if not items:
        return "empty list"
    if all(isinstance(item, Mapping) for item in items):
        return f"list of {len(items):,} mapping{'s' * (len(items) > 1)}{_with(items[0])}"
    return f"list of {len(items):,} value{'s' * (len(items) > 1)}"


def _with(mapping: Mapping[Any, Any]) -> str:
    more = f" and {len(mapping) - _KEYS:,} more" if len(mapping) > _KEYS else ""
    return f" with {', '.join(map(str, [*mapping][:_KEYS]))}{more}" if mapping else ""


def _first_key(content: Any) -> str | None:
    if isinstance(content, Mapping) and content:
        return str(next(iter(content)))
    return "0" if isinstance(content, list | tuple) and content else None
