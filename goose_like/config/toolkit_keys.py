"""Keys of a profile that are named like a toolkit: the value is the configuration of that toolkit."""

from collections.abc import Iterable, Mapping
from typing import Any

from goose_like.core.errors import ProfileError

from .entry_points import DEFAULT_TOOLKIT, list_names


def find_toolkit_keys(keys: Iterable[str], own_keys: Iterable[str]) -> list[str]:
    """Return the keys that are no keys of a profile, and name a toolkit."""
    others = set(keys).difference(own_keys)
    if not others:
        return []  # most profiles: no scan of the installed packages
    return [name for name in list_names("goose_like.toolkit") if name in others]


def move_toolkit_keys(data: Mapping[str, Any], own_keys: Iterable[str]) -> dict[str, Any]:
    """Return the data of a profile with the values of toolkit keys as `config` in the list of toolkits.

    A toolkit that the list lacks is added at its end. What the list itself configures wins over the key.

    Raises:
        ProfileError: a value is no mapping; `path` is its key.
    """
    moved = dict(data)
    for name in find_toolkit_keys(data, own_keys):
        config = moved.pop(name)
        if not isinstance(config, Mapping):
            raise ProfileError(f"{name}: expected a mapping, the configuration of the toolkit {name!r}", (name,))
        listed = moved.get("toolkits", (DEFAULT_TOOLKIT,))
        if isinstance(listed, list | tuple):  # anything else is an error that the profile explains
            moved["toolkits"] = _configure(listed, name, dict(config))
    return moved


def _configure(listed: Iterable[Any], name: str, config: dict[str, Any]) -> list[Any]:
    configured = []
    is_listed = False
    for item in listed:
        choice = _read_choice(item)
        if choice.get("name") != name:
            configured.append(item)
            continue
        is_listed = True
        own_config = choice.get("config") or {}
        configured.append({**choice, "config": {**config, **own_config}})
    if not is_listed:
        configured.append({"name": name, "config": config})
    return configured


def _read_choice(item: Any) -> dict[str, Any]:
    """Return an item of a list of toolkits as a mapping, whichever form it has. An invalid one gives no name."""
    match item:
        case str():
            return {"name": item}
        case [str() as name, Mapping() as requires]:
            return {"name": name, "requires": requires}
        case Mapping():
            return dict(item)
    return {}
