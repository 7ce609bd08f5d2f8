"""Sandbox scopes: processes that see less than the commands of the session."""

import os
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from goose_like.config.paths import cache_folder, sessions_folder, state_folder
from goose_like.core.dataclass import dataclass
from goose_like.core.errors import DeniedError
from goose_like.workspace.processes import spawner

from .home import START_FILES, resolve_in_homes
from .path_rules import Rule, Rules, list_python_folders, list_secret_paths, resolve_path

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
    """More visible paths, writable where the session's commands may write, and in goose_like's own folders.

    Those are its state and cache without the sessions, and the outputs of this session.
    """

    dot_folders: tuple[str, ...] = ()
    """Names of dot folders and `.env` files that stay visible in the workspace.

    All others are hidden at any depth, but at most the 100 nearest to the top that exist when the sandbox starts. For a
    link, the rule of its target applies.
    """

    is_read_only: bool = False
    """Makes the workspace read-only, except for paths in `writable`."""

    is_wide: bool = False
    """Keeps all that commands of the session see and reach, so that the scope only adds its writable paths."""


def narrow_rules(rules: Rules, root: Path, scope: SandboxScope) -> Rules:
    """Narrow the session's rules to a scope. Raise DeniedError if it names a path that is hidden from commands.

    The search for dot folders takes about 0.2 s for 10,000 folders and stops after 20,000.
    """
    # Settings that are start files too, such as those of pip, may be named.
    start_files = set(resolve_in_homes(START_FILES))
    secret = set(list_secret_paths()) - start_files
    named = set(map(resolve_path, (*scope.readable, *scope.writable)))
    for path in named:
        is_hidden = rules.get_rule(path) == "hidden" and path not in start_files
        is_secret = bool(secret.intersection((path, *path.parents)))
        if (is_hidden or is_secret) and not _is_own_folder(path, rules):
            raise DeniedError(f"{path} is hidden from commands, as it may hold secrets; name another folder")
    if scope.is_wide:
        widened = Rules(dict(rules.table), rules.tmp, rules.outputs, rules.cleaned)
        _open_writable(widened, rules, scope)
        return widened
    hidden = set(islice(_find_dot_paths(root, scope.dot_folders), _MAX_HIDDEN))
    system = list(filter(Path.exists, map(Path, _SYSTEM)))
    visible = [*map(resolve_path, system), root, *named]

    table: dict[Path, Rule] = {Path("/"): "hidden", Path("/proc"): "hidden", Path("/dev"): "hidden"}
    table |= dict.fromkeys(system, "read")
    for path, rule in rules.table.items():
        if rule != "tmp" and path != rules.tmp:
            is_visible = any(map(path.is_relative_to, visible)) and hidden.isdisjoint(path.parents)
            if not is_visible or path == Path("/") or rule == "private":
                continue
            if rule == "write" and scope.is_read_only:
                rule = "read"
        table[path] = rule
    table |= dict.fromkeys(hidden, "hidden")
    narrowed = Rules(table, rules.tmp, rules.outputs, rules.cleaned)
    given = (*list_python_folders(), Path(spawner.__file__), *scope.readable, *scope.writable)
    names = (*map(resolve_path, given), *map(Path.absolute, given))  # programs start by these, links or not
    narrowed.change_rule(names, "read", of=("hidden", "tmp"))
    narrowed.change_rule(secret, "hidden", of=("read", "write", "protected"))
    _open_writable(narrowed, rules, scope)
    return narrowed


def _open_writable(narrowed: Rules, rules: Rules, scope: SandboxScope) -> None:
    """Make the writable paths of a scope writable, where the rules of the session let it."""
    for path in scope.writable:
        real = resolve_path(path)
        if rules.get_rule(real) == "write" or _is_own_folder(real, rules):
            narrowed.table[real] = "write"
            narrowed.table[path.absolute()] = "write"


def _is_own_folder(path: Path, rules: Rules) -> bool:
    """Check whether a real path is in the session's outputs, or in goose_like's state or cache but not in a session."""
    if rules.outputs and rules.outputs in path.parents:
        return True
    if path.is_relative_to(resolve_path(sessions_folder())):
        return False
    return any(resolve_path(own) in path.parents for own in (state_folder(), cache_folder()))


def _find_dot_paths(root: Path, shown: tuple[str, ...]) -> Iterator[Path]:
    """Yield the paths to hide below a folder, from the top down."""
    folders = deque([str(root)])
    for _ in range(_MAX_FOLDERS):
        if not folders:
            return
        with suppress(OSError), os.scandir(folders.popleft()) as entries:
            for entry in entries:
                name = entry.name
                is_folder = entry.is_dir(follow_symlinks=False)
                is_reserved = name == ".env" or name.startswith(".env.") or (is_folder and name.startswith("."))
                if is_reserved and name not in shown and not entry.is_symlink():
                    yield Path(entry.path)
                elif is_folder:
                    folders.append(entry.path)
