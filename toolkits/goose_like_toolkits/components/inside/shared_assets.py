"""`context.assets`: what components share, kept by the host and loaded when it is looked at."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from concopilot.framework.asset import Asset
from concopilot.util import ClassDict

from .likeness import is_alike, likeness
from .plain import plain, unplain
from .wire import call

_LIVE = "$object"


class SharedAssets(ClassDict):
    """Assets by their ids. What a command changed of them is told to the host at its end (`changes`).

    The mapping's attributes are its keys, so what it must know of itself stands beside.
    """

    def __init__(self) -> None:
        super().__init__()
        object.__setattr__(self, "waiting", set[str]())  # known to the host, not loaded yet
        object.__setattr__(self, "seen", dict[str, Any]())  # likenesses, as the host has those that were looked at

    def learn(self, ids: Iterable[str]) -> None:
        """These are all that the host has: others that were loaded are there no more."""
        there = set(ids)
        for gone in self.seen.keys() - there:
            del self.seen[gone]
            dict.pop(self, gone, None)
        object.__setattr__(self, "waiting", there - set(dict.keys(self)))

    def changes(self) -> dict[str, Any]:
        """What is new or different since the last time, and what was taken out."""
        put, seen = list[dict[str, Any]](), dict[str, Any]()
        there: dict[str, Any] = dict(zip(dict.keys(self), dict.values(self), strict=True))
        for key, asset in there.items():
            if key in self.seen and is_alike(asset, self.seen[key]):
                seen[key] = self.seen[key]
            else:
                put.append(_told(key, asset))
                seen[key] = likeness(asset)
        removed = [key for key in self.seen if key not in seen]
        object.__setattr__(self, "seen", seen)
        return {"put": put, "removed": removed}

    def __getitem__(self, key: str) -> Any:
        self._load(str(key))
        return super().__getitem__(str(key))

    def __setitem__(self, key: str, value: Any) -> None:
        if isinstance(value, Mapping) and not isinstance(value, Asset):
            value = Asset(**ClassDict.convert(value))
        self.waiting.discard(str(key))
        super().__setitem__(str(key), value)

    def __delitem__(self, key: str) -> None:
        self._load(str(key))
        super().__delitem__(str(key))

    def __contains__(self, key: object) -> bool:
        return str(key) in self.waiting or super().__contains__(str(key))

    def __iter__(self) -> Iterator[str]:
        return iter([*dict.keys(self), *self.waiting])

    def __len__(self) -> int:
        return dict.__len__(self) + len(self.waiting)

    def get(self, key: str, default: Any = None) -> Any:
        if key not in self:
            return default
        return self[key]

    def pop(self, key: str, *default: Any) -> Any:
        self._load(str(key))
        return super().pop(str(key), *default)

    def keys(self) -> Any:
        self._load_all()
        return super().keys()

    def values(self) -> Any:
        self._load_all()
        return super().values()

    def items(self) -> Any:
        self._load_all()
        return super().items()

    def _load_all(self) -> None:
        for key in list(self.waiting):
            self._load(key)

    def _load(self, key: str) -> None:
        if key in self.waiting:
            told = call("asset", op="get", id=key)
            self.waiting.discard(key)
            asset = Asset(**ClassDict.convert(unplain(told)))
            dict.__setitem__(self, key, asset)
            self.seen[key] = likeness(asset)


def _told(key: str, asset: Any) -> dict[str, Any]:
    """An asset for the host; `live` are the kinds of values in it that only this process can hold."""
    live = list[str]()

    def keep(value: Any) -> Any:
        live.append(str(type(value)))
        return {_LIVE: live[-1]}

    return {"id": key, "asset": plain(asset, keep), "live": live}
