"""Folders of goose_like: the XDG base directories, or subfolders of `GOOSE_LIKE_HOME`; and changes of files there."""

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_APP = "goose-like"


def _base(variable: str, default: str, below_home: str) -> Path:
    home = os.environ.get("GOOSE_LIKE_HOME")
    if home:
        return Path(home).expanduser().absolute() / below_home
    value = os.environ.get(variable, "")
    # The XDG specification says to ignore relative paths.
    return (Path(value) if os.path.isabs(value) else Path.home() / default) / _APP


def config_folder() -> Path:
    """Return the folder of `profiles.yaml`, `profiles/` and AGENTS.md. Tools can never write there."""
    return _base("XDG_CONFIG_HOME", ".config", "config")


def state_folder() -> Path:
    """Return the folder of data that goose_like keeps between runs."""
    return _base("XDG_STATE_HOME", ".local/state", "state")


def sessions_folder() -> Path:
    """Return the folder that holds one subfolder per session, named by the session's id."""
    return state_folder() / "sessions"


def cache_folder() -> Path:
    """Return the folder of data that can be created again: model weights and indexes."""
    return _base("XDG_CACHE_HOME", ".cache", "cache")


def find_repository_root(folder: Path) -> Path:
    """Return the root of the git repository around a folder, or the folder itself outside a repository."""
    return next((above for above in (folder, *folder.parents) if (above / ".git").exists()), folder)


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Create a folder if necessary, and let only one process at a time run the block for this folder."""
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def replace_private_file(file: Path, text: str) -> None:
    """Replace a file, or the target of a link, atomically with one that only its owner can read."""
    target = Path(os.path.realpath(file))
    target.parent.mkdir(parents=True, exist_ok=True)
    # The sandbox hides `keys*` from commands. `mkstemp` creates files with mode 0600.
    descriptor, name = tempfile.mkstemp(prefix=f"{file.name}.", dir=target.parent)
    with open(descriptor, "w", encoding="utf-8") as stream:
        stream.write(text)
    os.replace(name, target)
