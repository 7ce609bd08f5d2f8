"""The assets of a session in the worker: the real `context.assets`, and its changes after each command."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from concopilot.framework.asset import Asset
from concopilot.util import ClassDict

from .values import from_json, to_json

_LIVE = "$object"


class SharedAssets:
    """`mapping` is what components see. goose_like sends assets before a command and receives changes after it."""

    def __init__(self) -> None:
        self.mapping: Any = ClassDict()
        self._digests: dict[str, str] = {}

    def update(self, assets: Mapping[str, Any]) -> None:
        """Add assets of goose_like."""
        for key, fields in assets.items():
            self.mapping[key] = Asset(**ClassDict.convert(from_json(fields)))
            encoded, _ = _encode(self.mapping[key])
            self._digests[key] = _digest(encoded)

    def take_changes(self) -> dict[str, Any]:
        """Return assets that are new or different since the last time, and the ids of removed ones."""
        put = []
        digests: dict[str, str] = {}
        for key, asset in list(self.mapping.items()):
            if isinstance(asset, Mapping) and not isinstance(asset, Asset):
                fields = {"asset_type": "value", "asset_id": key, **ClassDict.convert(asset)}
                asset = Asset(**fields)
                self.mapping[key] = asset
            asset_id = str(key)
            fields, live = _encode(asset)
            digests[asset_id] = _digest(fields)
            if self._digests.get(asset_id) != digests[asset_id]:
                put.append({"id": asset_id, "asset": fields, "live": live})
        removed = [key for key in self._digests if key not in digests]
        self._digests = digests
        return {"put": put, "removed": removed}


def _encode(asset: Any) -> tuple[Any, list[str]]:
    """Encode an asset. The list holds the types of the values in it that only this process can hold."""
    live: list[str] = []

    def keep(value: Any) -> Any:
        live.append(str(type(value)))
        return {_LIVE: live[-1]}

    return to_json(asset, keep), live


def _digest(fields: Any) -> str:
    text = json.dumps(fields, allow_nan=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
