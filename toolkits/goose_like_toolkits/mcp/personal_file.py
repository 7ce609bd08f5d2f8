"""Changes of the person's file of servers, which other agents could read too."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from goose_like.config.foreign_text import parse_json
from goose_like.config.paths import (
    config_folder,
    describe_file_error,
    describe_read_error,
    lock_folder,
    read_user_file,
    replace_private_file,
    shorten_home,
)
from goose_like.core.errors import GooseLikeError, UsageError

from .config import SERVERS_KEY
from .places import find_personal_file


def add_entries(entries: Mapping[str, Any]) -> str:
    """Add servers to the person's file, for its owner alone, and return the file for display.

    Raises:
        UsageError: the file has a server of such a name, or cannot be read.
        GooseLikeError: the file cannot be written.
    """
    with _edit() as servers:
        for name, entry in entries.items():
            if name in servers:
                text = f"{_show_file()} has a server {name!r} already; remove it first: goose-like mcp remove {name}"
                raise UsageError(text)
            servers[name] = entry
    return _show_file()


def remove_entry(name: str) -> bool:
    """Remove a server from the person's file. Return whether it was there. Raise as `add_entries`."""
    with _edit() as servers:
        return servers.pop(name, None) is not None


@contextmanager
def _edit() -> Iterator[dict[str, Any]]:
    """Give the servers of the file as a dict to change, and write them at the end. Other keys of the file stay."""
    file = find_personal_file()
    try:
        with lock_folder(config_folder()):
            content = _read(file)
            servers = content.setdefault(SERVERS_KEY, {})
            if not isinstance(servers, dict):
                raise UsageError(f"{_show_file()}: expected servers by name in `{SERVERS_KEY}`; correct it")
            before = json.dumps(content)
            yield servers
            if json.dumps(content) != before:
                replace_private_file(file, json.dumps(content, indent=2, ensure_ascii=False) + "\n")
    except OSError as error:
        raise GooseLikeError(f"{_show_file()} can't be written: {describe_file_error(error)}") from error


def _read(file: Path) -> dict[str, Any]:
    if not os.path.lexists(file):
        return {}
    try:
        content = parse_json(read_user_file(file))
    except (OSError, ValueError) as error:
        raise UsageError(f"{_show_file()} can't be read: {describe_read_error(error)}; correct it") from error
    if not isinstance(content, dict):
        raise UsageError(f"{_show_file()}: expected an object with `{SERVERS_KEY}`; correct it")
    return content


def _show_file() -> str:
    return shorten_home(str(find_personal_file()))
