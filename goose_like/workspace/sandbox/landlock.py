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
    is_old = landlock_start.read_version() < _OLDEST_VERSION
    return "the kernel has no Landlock of version 3 (Linux 6.2)" if is_old else None


def build_landlock_command(rules: Rules, root: Path, read_only: Iterable[Path]) -> list[str]:
    """Build the front of a command line that runs a program with the rights of the rules.

    The folders `read_only` and everything below can only be read. Other differences from a sandbox: /tmp is the
    machine's and hidden; beside a hidden path, new files stay unseen, and folders cannot be listed except in `root`.
    """
    words = [f"write={Path('/dev', name)}" for name in _DEVICES] + ["read=/proc"]
    for path, right in _list_rights(rules, Path("/"), root):
        is_writable = right == "write" and not any(path.is_relative_to(folder) for folder in read_only)
        words.append(f"{right if is_writable or right == 'list' else 'read'}={path}")
    return [sys.executable, "-I", "-S", landlock_start.__file__, *words, "--"]


def _list_rights(rules: Rules, path: Path, root: Path) -> Iterator[tuple[Path, str]]:
    """List paths with a right for everything below. A folder with a hidden path inside is split into its entries."""
    inside = [place for place in rules.table if path in place.parents]
    rule = rules.get_rule(path)
    if rule not in _UNSEEN and not any(rules.table[place] in _UNSEEN for place in inside):
        yield path, "write" if rule == "write" else "read"
        yield from ((place, "write") for place in inside if rules.table[place] == "write" != rule)
        return
    if rule not in _UNSEEN and path.is_relative_to(root):
        yield path, "list"
    with suppress(OSError):  # no rights are lost where nothing can be listed
        for entry in os.scandir(path) if path.is_dir() else ():
            below = Path(entry.path)
            if not entry.is_symlink() and (rule not in _UNSEEN or below in inside or _is_above(below, inside)):
                yield from _list_rights(rules, below, root)


def _is_above(path: Path, places: list[Path]) -> bool:
    return any(path in place.parents for place in places)
