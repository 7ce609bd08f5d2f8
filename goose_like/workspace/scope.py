"""Reach: what one process sees where it is to see less than the session's commands do."""

import os
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from goose_like.config.paths import cache_folder, sessions_folder, state_folder
from goose_like.core.errors import DeniedError

from . import spawner
from .sandbox import Rule, Rules, python_folders, real, secrets

# What programs need to run at all. Of them there is what there is.
_SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix/store", "/gnu/store"),
    *("/run/current-system", "/sys/devices/system", "/sys/fs/cgroup"),
)
_MOST_HIDDEN = 100  # each is a mount, and bubblewrap's time grows with their square: 0.1 s for these, 2 s for 500
_MOST_FOLDERS = 20_000


@dataclass(frozen=True, slots=True)
class Reach:
    """What a process sees beside the system's own folders, the Python that runs us, /tmp and the workspace.

    The home folder and everything else is not there; what is hidden from commands is not seen in any case. Paths that
    don't exist when the sandbox is entered are left out. In mode `full`, and with access `full`, there is no sandbox,
    and a reach does nothing.

    `readable`, `writable`: more files and folders, seen by their real path and by the given one. Those below our own
    state and cache folders may be written whatever the mode, others only where the session's commands may write.
    `dot_folders`: the names of those that are seen. Of the workspace the folders whose names begin with a dot, at any
    depth, and files named `.env` or `.env.*` are hidden otherwise: those that are there when the sandbox is entered,
    the 100 nearest to the top. Later and deeper ones are not, nor links; what links lead to is judged by its own path.
    `is_read_only`: of the workspace nothing may be written but what `writable` names.
    """

    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    dot_folders: tuple[str, ...] = ()
    is_read_only: bool = False


def within(rules: Rules, root: Path, reach: Reach) -> Rules:
    """The rules for a process that sees no more than that of what `rules`, those of the session, let it see.

    Looks through the workspace for names that begin with a dot: some 0.2 s for 10,000 folders, and no more
    than 20,000 of them.

    Raises:
        DeniedError: a path is named that is hidden from commands.
    """
    secret = set(secrets())
    named = _named(rules, reach, secret)
    hidden = set(_dotted(root, reach.dot_folders))
    system = [path for path in map(Path, _SYSTEM) if path.exists()]
    seen = [*map(real, system), root, *named]

    table: dict[Path, Rule] = {Path("/"): "hidden", Path("/proc"): "hidden", Path("/dev"): "hidden"}
    table |= dict.fromkeys(system, "read")
    for path, rule in rules.table.items():
        is_seen = any(path.is_relative_to(folder) for folder in seen) and not hidden.intersection(path.parents)
        if rule == "tmp" or path == rules.tmp or (is_seen and rule != "pin" and path != Path("/")):
            table[path] = "read" if rule == "write" and reach.is_read_only and path != rules.tmp else rule
    table |= dict.fromkeys(hidden, "hidden")
    drawn = Rules(table, rules.tmp)
    given = (*python_folders(), Path(spawner.__file__), *reach.readable, *reach.writable)
    for path in (*map(real, given), *map(Path.absolute, given)):  # by these names they are started, links or not
        if drawn.of(path) in ("hidden", "tmp"):
            table[path] = "read"
    table |= {path: "hidden" for path in secret if drawn.of(path) not in ("tmp", "hidden")}
    for path in reach.writable:
        if named[real(path)] == "write":
            table |= dict.fromkeys((real(path), path.absolute()), "write")
    return drawn.with_pins()


def _named(rules: Rules, reach: Reach, secret: set[Path]) -> dict[Path, Rule]:
    """The real paths that a reach names, each read or written."""
    named: dict[Path, Rule] = dict.fromkeys(map(real, reach.readable), "read")
    for path in map(real, reach.writable):
        may_write = rules.of(path) in ("write", "pin") and rules.on_this_side(path) == path
        named[path] = "write" if may_write or _is_ours(path) else "read"
    for path in named:
        if not _is_ours(path) and (rules.of(path) == "hidden" or secret.intersection((path, *path.parents))):
            raise DeniedError(f"{path} is hidden from commands, as it may hold secrets; name another folder")
    return named


def _is_ours(path: Path) -> bool:
    """Whether a real path lies below a folder of ours, and not among the sessions."""
    if path.is_relative_to(real(sessions_folder())):
        return False
    return any(real(folder) in path.parents for folder in (state_folder(), cache_folder()))


def _dotted(root: Path, shown: tuple[str, ...]) -> Iterator[Path]:
    """What is hidden below a folder, from the top down."""
    folders, found, looked_at = deque([str(root)]), 0, 0
    while folders and found < _MOST_HIDDEN and looked_at < _MOST_FOLDERS:
        looked_at += 1
        with suppress(OSError), os.scandir(folders.popleft()) as entries:
            for entry in entries:
                is_folder = entry.is_dir(follow_symlinks=False)
                if is_hidden(entry.name, is_folder) and entry.name not in shown and not entry.is_symlink():
                    yield Path(entry.path)
                    found += 1
                    if found == _MOST_HIDDEN:
                        return
                elif is_folder:
                    folders.append(entry.path)


def is_hidden(name: str, is_folder: bool) -> bool:
    """Whether what has this name is reserved: `.git`, and of files those that hold a project's keys."""
    return name.startswith(".") and (is_folder or name == ".env" or name.startswith(".env."))
