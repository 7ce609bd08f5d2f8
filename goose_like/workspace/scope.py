"""Sandbox scopes: processes that see less than the commands of the session."""

import os
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from goose_like.config.paths import cache_folder, sessions_folder, state_folder
from goose_like.core.errors import DeniedError

from . import spawner
from .rules import Rule, Rules, list_python_folders, list_secret_paths, resolve_path

# Folders that programs need in order to run. Those that do not exist are left out.
_SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix/store", "/gnu/store"),
    *("/run/current-system", "/sys/devices/system", "/sys/fs/cgroup"),
)
_MAX_HIDDEN = 100  # each is a mount, and bubblewrap's time grows with the square: 0.1 s for 100, 2 s for 500
_MAX_FOLDERS = 20_000


@dataclass(frozen=True, slots=True)
class SandboxScope:
    """The paths that a process sees besides the system's folders, goose_like's Python, /tmp and the workspace.

    The home folder and everything else is absent. Paths that are hidden from commands stay hidden. Paths that do not
    exist when the sandbox starts are left out. Without a sandbox (mode or access `full`), a scope has no effect.
    """

    readable: tuple[Path, ...] = ()
    """More files and folders that are visible, by their real path and by the given one."""

    writable: tuple[Path, ...] = ()
    """More files and folders that are visible and, where the session's commands may write, writable.

    Paths below goose_like's own state and cache folders are always writable.
    """

    dot_folders: tuple[str, ...] = ()
    """Names of dot folders and `.env` files that stay visible in the workspace.

    All other dot folders, and files named `.env` or `.env.*`, are hidden at any depth. Only the 100 nearest to the top
    that exist when the sandbox starts are hidden. Links are not hidden: the rule of their target applies.
    """

    is_read_only: bool = False
    """Makes the workspace read-only, except for paths in `writable`."""


def narrow_rules(rules: Rules, root: Path, scope: SandboxScope) -> Rules:
    """Narrow the session's rules to a scope.

    The search for dot folders takes about 0.2 s for 10,000 folders and stops after 20,000.

    Raises:
        DeniedError: the scope names a path that is hidden from commands.
    """
    secret = set(list_secret_paths())
    named = _check_named_paths(rules, scope, secret)
    hidden = set(_find_dot_paths(root, scope.dot_folders))
    system = [path for path in map(Path, _SYSTEM) if path.exists()]
    visible = [*map(resolve_path, system), root, *named]

    table: dict[Path, Rule] = {Path("/"): "hidden", Path("/proc"): "hidden", Path("/dev"): "hidden"}
    table |= dict.fromkeys(system, "read")
    for path, rule in rules.table.items():
        is_visible = any(path.is_relative_to(folder) for folder in visible) and not hidden.intersection(path.parents)
        if rule == "tmp" or path == rules.tmp or (is_visible and rule != "pin" and path != Path("/")):
            table[path] = "read" if rule == "write" and scope.is_read_only and path != rules.tmp else rule
    table |= dict.fromkeys(hidden, "hidden")
    narrowed = Rules(table, rules.tmp)
    given = (*list_python_folders(), Path(spawner.__file__), *scope.readable, *scope.writable)
    for path in (*map(resolve_path, given), *map(Path.absolute, given)):  # programs start by these names, links or not
        if narrowed.get_rule(path) in ("hidden", "tmp"):
            table[path] = "read"
    table |= {path: "hidden" for path in secret if narrowed.get_rule(path) not in ("tmp", "hidden")}
    for path in scope.writable:
        if named[resolve_path(path)] == "write":
            table |= dict.fromkeys((resolve_path(path), path.absolute()), "write")
    return narrowed.with_pins()


def _check_named_paths(rules: Rules, scope: SandboxScope, secret: set[Path]) -> dict[Path, Rule]:
    """Return the rule of each path that a scope names, by its real path."""
    named: dict[Path, Rule] = dict.fromkeys(map(resolve_path, scope.readable), "read")
    for path in map(resolve_path, scope.writable):
        may_write = rules.get_rule(path) in ("write", "pin") and rules.to_host_path(path) == path
        named[path] = "write" if may_write or _is_own_folder(path) else "read"
    for path in named:
        if not _is_own_folder(path) and (
            rules.get_rule(path) == "hidden" or secret.intersection((path, *path.parents))
        ):
            raise DeniedError(f"{path} is hidden from commands, as it may hold secrets; name another folder")
    return named


def _is_own_folder(path: Path) -> bool:
    """Check whether a real path is below goose_like's state or cache folder, but not among the sessions."""
    if path.is_relative_to(resolve_path(sessions_folder())):
        return False
    return any(resolve_path(folder) in path.parents for folder in (state_folder(), cache_folder()))


def _find_dot_paths(root: Path, shown: tuple[str, ...]) -> Iterator[Path]:
    """Yield the paths to hide below a folder, from the top down."""
    folders, found, searched = deque([str(root)]), 0, 0
    while folders and found < _MAX_HIDDEN and searched < _MAX_FOLDERS:
        searched += 1
        with suppress(OSError), os.scandir(folders.popleft()) as entries:
            for entry in entries:
                is_folder = entry.is_dir(follow_symlinks=False)
                if _is_reserved(entry.name, is_folder) and entry.name not in shown and not entry.is_symlink():
                    yield Path(entry.path)
                    found += 1
                    if found == _MAX_HIDDEN:
                        return
                elif is_folder:
                    folders.append(entry.path)


def _is_reserved(name: str, is_folder: bool) -> bool:
    """Check for a dot folder such as `.git`, or a file that holds a project's keys."""
    return name.startswith(".") and (is_folder or name == ".env" or name.startswith(".env."))
