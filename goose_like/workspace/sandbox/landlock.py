"""Landlock: the confinement of commands where bubblewrap cannot make a sandbox."""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from . import landlock_start
from .path_rules import Rules

_OLDEST_VERSION = 3  # before, truncate(2) was free
_DEVICES = ("null", "zero", "full", "random", "urandom")  # no terminals: those of the person are there too
_UNSEEN = ("hidden", "private", "tmp")


def find_landlock_problem() -> str | None:
    """Return the reason why Landlock cannot confine commands here; None if it can."""
    if landlock_start.read_version() < _OLDEST_VERSION:
        return "the kernel has no Landlock of version 3 (Linux 6.2)"
    return None


def build_landlock_command(rules: Rules, root: Path, read_only: Iterable[Path]) -> list[str]:
    """Build the front of a command line that runs a program with the rights of the rules.

    The folders `read_only` and everything below can only be read. Other differences from a sandbox: /tmp is the
    machine's and hidden; beside a hidden path, new files stay unseen, and folders cannot be listed except in `root`.
    """
    words = [f"write=/dev/{name}" for name in _DEVICES]
    words.append("read=/proc")
    for path, right in _list_rights(rules, Path("/"), root):
        is_closed = any(path.is_relative_to(folder) for folder in read_only)
        if right == "write" and is_closed:
            right = "read"
        words.append(f"{right}={path}")
    return [sys.executable, "-I", "-S", landlock_start.__file__, *words, "--"]


def _list_rights(rules: Rules, path: Path, root: Path) -> Iterator[tuple[Path, str]]:
    """List paths with a right for everything below. A folder with a hidden path inside is split into its entries."""
    inside = [place for place in rules.table if path in place.parents]
    rule = rules.get_rule(path)
    is_seen = rule not in _UNSEEN
    hides_nothing = all(rules.table[place] not in _UNSEEN for place in inside)
    if is_seen and hides_nothing:
        yield path, "write" if rule == "write" else "read"
        for place in inside:
            if rules.table[place] == "write" and rule != "write":
                yield place, "write"
        return
    if is_seen and path.is_relative_to(root):
        yield path, "list"
    if not os.path.isdir(path):
        return
    with suppress(OSError):  # no rights are lost where nothing can be listed
        for entry in os.scandir(path):
            below = Path(entry.path)
            if entry.is_symlink():
                continue
            if is_seen or below in inside or _is_above(below, inside):
                yield from _list_rights(rules, below, root)


def _is_above(path: Path, places: list[Path]) -> bool:
    return any(path in place.parents for place in places)
