"""Path rules: for every path, the rights that the commands of a session have there."""

import os
import shutil
import stat
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import field
from itertools import chain
from pathlib import Path
from typing import Literal

from goose_like.config.paths import config_folder, find_repository_root, normalize_path, state_folder
from goose_like.core.dataclass import dataclass

from .home import (
    SECRETS,
    START_FILES,
    SYSTEM_SECRETS,
    is_around_home,
    list_named_secrets,
    list_private_paths,
    list_shown_paths,
    resolve_in_homes,
)
from .settings_files import find_cleaned_settings

Rule = Literal["read", "write", "protected", "private", "hidden", "tmp"]
"""The rights at a path.

- `read`: read-only, unless the person allows a write.
- `write`: readable and writable.
- `protected`: read-only in any case.
- `private`: in a home folder. Hidden from commands. Tools read what the person named, and ask before they write.
- `hidden`: neither readable nor writable.
- `tmp`: the machine's /tmp, which is replaced by the private folder.
"""

_TEMPORARY = ("/tmp", "/var/tmp")
_SHOWN: tuple[Rule, ...] = ("read", "protected")


@dataclass(frozen=True, slots=True)
class Rules:
    """A rule for each path, all of them real paths. The rule of the nearest parent applies.

    `tmp` is the private folder that commands see as /tmp, `outputs` the folder for the outputs of the session.
    `cleaned` maps hidden settings to their text without credentials, which commands see instead if there are mounts.
    """

    table: dict[Path, Rule]
    tmp: Path
    outputs: Path | None = None
    cleaned: dict[Path, bytes] = field(default_factory=dict)

    def get_rule(self, path: Path) -> Rule:
        """Return the rule of a real path."""
        return self.table[self._find_ruled_path(path)]

    def is_writable(self, path: str | Path) -> bool:
        """Check whether commands can change a path, or the target of a link. The path is one of the machine."""
        return self.get_rule(resolve_path(path)) in ("write", "tmp")

    def change_rule(self, paths: Iterable[Path], rule: Rule, *, of: tuple[Rule, ...]) -> None:
        """Set a rule for each real path whose rule so far is one of these."""
        for path in paths:
            if self.get_rule(path) in of:
                self.table[path] = rule

    def to_host_path(self, path: Path) -> Path:
        """Translate a path of the sandbox to the machine: /tmp is the private folder, other paths are equal."""
        above = self._find_ruled_path(path)
        if self.table[above] != "tmp":
            return path
        return self.tmp / path.relative_to(above)

    def _find_ruled_path(self, path: Path) -> Path:
        for place in chain((path,), path.parents):
            if place in self.table:
                return place
        raise ValueError(f"{str(path)!r} is no path from the root")

    def find_pins(self) -> set[Path]:
        """Find the writable folders that must keep their names, because a rule for a path inside depends on them.

        If they could be moved, `mv .git x` would take a protected path away from the name that protects it.
        """
        parents: set[Path] = set()
        for path in self.table:
            parents.update(path.parents)
        parents -= self.table.keys()
        return {path for path in parents if self.get_rule(path) in ("write", "tmp")}


def build_rules(
    root: Path,
    tmp: Path,
    *,
    writable: Iterable[Path] = (),
    protected: Iterable[Path] = (),
    shown: Iterable[str] = (),
    opened: Iterable[Path] = (),
    hidden: Iterable[Path] = (),
    outputs: Path | None = None,
    is_read_only: bool = False,
) -> Rules:
    """Build the rules of a session with its workspace `root` and the private folder `tmp`, seen as /tmp.

    `writable` lists git folders outside the workspace, and `protected` paths that stay read-only in writable folders.
    `shown` are paths that the profile shows, secrets included; `opened` are folders that toolkits show. `hidden` are
    real paths to hide. `outputs` is the only folder of goose_like's own state that commands may read. With
    `is_read_only`, nothing but `tmp` is writable.
    """
    writable = tuple(writable)
    table: dict[Path, Rule] = {Path("/"): "read"}
    for folder in ("/proc", "/dev", "/run"):
        table[Path(folder)] = "hidden"
    for folder in _TEMPORARY:
        table[resolve_path(folder)] = "tmp"
    table[resolve_path(tmp)] = "write"
    own_folders = [*map(resolve_path, (root, *writable))]
    for path in own_folders:
        table[path] = "read" if is_read_only else "write"
    rules = Rules(table, resolve_path(tmp), resolve_path(outputs) if outputs else None)
    secrets = list_secret_paths()
    named: list[Path] = []
    for name in shown:
        named += _find_named_paths(root, name)
    rules.change_rule(list_private_paths(own_folders), "private", of=("read", "write", "private"))
    # Git finds no repository across an invisible folder, and takes invisible files for deleted ones.
    around = [top for top in find_repositories(root, writable) if can_be_shown(top)]
    rules.change_rule(around, "read", of=("private", "tmp"))
    rules.change_rule(list_shown_paths(root), "read", of=("private",))
    rules.change_rule(named, "read", of=("private", "tmp"))
    rules.change_rule(_list_program_folders(), "read", of=("tmp", "hidden", "private"))
    # The Python that runs goose_like is protected too: its files run outside any sandbox the next time.
    prefixes = map(Path, {sys.prefix, sys.base_prefix})
    pythons = [path for path in prefixes if _is_own_python(path, own_folders)]
    started = list(resolve_in_homes(START_FILES))
    own_programs = [*map(resolve_path, (config_folder(), *pythons))]
    rules.change_rule((*started, *map(resolve_path, protected)), "protected", of=("read", "write"))
    rules.change_rule(own_programs, "protected", of=("read", "write", "private"))
    rules.change_rule(started, "hidden", of=("private",))
    for path, text in find_cleaned_settings().items():
        is_mount_point = path in table or path == resolve_path(path)
        if is_mount_point and rules.get_rule(path) in _SHOWN:
            rules.cleaned[path] = text
            table[path] = "hidden"
    rules.change_rule(secrets, "hidden", of=("read", "write", "protected", "private"))
    rules.change_rule(named, "read", of=("hidden",))
    _open_folders(rules, opened)
    table |= dict.fromkeys(list_own_secrets(), "hidden")
    rules.change_rule(hidden, "hidden", of=("read", "write", "protected", "private"))
    # A read-only mount does not stop connect(2).
    rules.change_rule(map(resolve_path, _list_listening_sockets()), "hidden", of=("read", "protected"))
    if rules.outputs is not None:
        table[rules.outputs] = "read"
    return rules


def _open_folders(rules: Rules, folders: Iterable[Path]) -> None:
    """Let commands read folders, also one within a secret, such as `~/.claude/skills`.

    The target of a link stays hidden if it is a secret: the link could lead to any.
    """
    for folder in folders:
        real = resolve_path(folder)
        is_link = real != resolve_path(folder.parent) / folder.name
        rules.change_rule([real], "read", of=("private", "tmp"))
        if not is_link:
            rules.change_rule([real], "read", of=("hidden",))


def find_repositories(root: Path, commit_folders: Iterable[Path]) -> set[Path]:
    """Find the working trees that commits write for: the one around the workspace, and a worktree's main repository."""
    tops = {find_repository_root(root)}
    for folder in commit_folders:
        if folder.name == ".git":
            tops.add(folder.parent)
    return tops


def can_be_shown(top: Path) -> bool:
    """Check that a repository holds neither a home folder nor a whole /tmp, which stay hidden."""
    if is_around_home(top):
        return False
    return not any(resolve_path(folder).is_relative_to(top) for folder in _TEMPORARY)


def _is_own_python(prefix: Path, roots: Iterable[Path]) -> bool:
    """Check for a virtual environment, or an installation below a writable folder, but not around one."""
    is_venv = prefix == Path(sys.prefix) != Path(sys.base_prefix)
    return is_venv or any(root in resolve_path(prefix).parents for root in roots)


def list_secret_paths() -> list[Path]:
    """List the real paths that no command may see, existing or not: the person's secrets and goose_like's own state."""
    listed = (*resolve_in_homes(SECRETS), *map(resolve_path, SYSTEM_SECRETS))
    return [*listed, *list_named_secrets(), *list_own_secrets()]


def list_own_secrets() -> list[Path]:
    """List the real paths of goose_like's keys and state."""
    return [*map(resolve_path, config_folder().glob("keys*")), resolve_path(state_folder())]


def _find_named_paths(root: Path, name: str) -> set[Path]:
    """Find the path and the real path of a name in the profile: `~` is the home folder; relative: to the workspace."""
    path = normalize_path(root / os.path.expanduser(name))
    return {path, resolve_path(path)}


def _list_program_folders() -> list[Path]:
    """List the real folders of goose_like, its Python and rg, which stay visible wherever they are installed."""
    folders: list[str | Path] = [*list_python_folders(), Path(__file__).parents[2]]
    folders += filter(os.path.isabs, sys.path)  # a `.pth` file may lead anywhere
    rg = shutil.which("rg") or shutil.which("rg", path=str(Path(sys.executable).parent))
    if rg:
        folders += [Path(rg).parent, resolve_path(rg).parent]  # its link may lead to another folder
    return [path for path in sorted(map(resolve_path, folders)) if not is_around_home(path)]


def list_python_folders() -> tuple[Path, ...]:
    """List the folders of the Python that runs goose_like: its environment, the base installation, the executable."""
    return Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable).parent


def resolve_path(path: str | Path) -> Path:
    """Resolve all links of a path."""
    return Path(os.path.realpath(path))


def _list_listening_sockets() -> list[str]:
    """List the paths of unix sockets in our network namespace."""
    found = []
    with suppress(OSError), open("/proc/net/unix", errors="surrogateescape") as table:
        for line in table:
            path = line.rstrip("\n").split(maxsplit=7)[-1]
            with suppress(OSError, ValueError):
                if path.startswith("/") and stat.S_ISSOCK(os.stat(path).st_mode):
                    found.append(path)
    return found
