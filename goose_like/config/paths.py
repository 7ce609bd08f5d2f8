"""Where things lie: configuration, sessions, caches, by the XDG rules or all below `GOOSE_LIKE_HOME`."""

import os
from pathlib import Path

_APP = "goose-like"


def _base(variable: str, default: str, below_home: str) -> Path:
    home = os.environ.get("GOOSE_LIKE_HOME")
    if home:
        return Path(home).expanduser().absolute() / below_home
    given = os.environ.get(variable, "")
    # A relative XDG path is invalid by the XDG specification and is ignored.
    return (Path(given) if os.path.isabs(given) else Path.home() / default) / _APP


def config_folder() -> Path:
    """`profiles.yaml`, `profiles/`, AGENTS.md. Never writable for tools."""
    return _base("XDG_CONFIG_HOME", ".config", "config")


def state_folder() -> Path:
    """What is remembered from run to run."""
    return _base("XDG_STATE_HOME", ".local/state", "state")


def sessions_folder() -> Path:
    """One folder a session, named by its id."""
    return state_folder() / "sessions"


def cache_folder() -> Path:
    """What can be made again: model weights, indexes."""
    return _base("XDG_CACHE_HOME", ".cache", "cache")
