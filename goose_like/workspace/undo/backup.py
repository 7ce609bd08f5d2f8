"""Backups: the states of files that a destructive command would lose."""

import os
import shlex
import stat
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from goose_like.core.dataclass import dataclass

from .log import OpenTurn
from .snapshot import LIMIT_ENTRIES, StoreBlob, read_cached_state, take_snapshot
from .state import FileState, Snapshot
from .watched_tree import WatchedTree

if TYPE_CHECKING:  # see `undo.py`
    from .losses import Losses
    from .names import UnknownName


class BackupChoice:
    """The choice of the paths to store before a command, from its losses and from what the snapshot lacks.

    Without a complete snapshot, the status of git is needed to tell which files there are.
    """

    def __init__(self, roots: Sequence[str], turn: OpenTurn, losses: "Losses", is_confined: bool) -> None:
        self.has_snapshot = bool(turn.roots) and not turn.is_partial
        self._roots = roots
        self._turn = turn
        self._losses = losses
        self._is_confined = is_confined
        self._statuses = dict.fromkeys(turn.ignored, "!!")
        self._gaps: set[str] = set()
        if losses.needs_tree or losses.replaced:
            for path, state in turn.before.items():
                if not state.is_stored and "/.git/" not in path:
                    self._gaps.add(path)

    @property
    def needs_status(self) -> bool:
        """True if the status of git tells more than the snapshot."""
        if not self.has_snapshot:
            return self._losses.needs_tree
        return bool(self._gaps) and self._losses.resets_tree

    def add_status(self, changed: Mapping[str, str]) -> None:
        """Add the status of paths. With a snapshot, only what it lacks counts."""
        for path, status in changed.items():
            if not self.has_snapshot or path in self._gaps:
                self._statuses[path] = status

    def list_asked(self) -> list[str]:
        """List the paths that the command loses. The person is asked about those that cannot be stored."""
        lost = [*self._losses.paths, *sorted(self._find_away())]
        paths = [path for path in lost if self._is_reached(path)]
        for path, status in sorted(self._statuses.items()):
            if self._losses.clears(path, status):
                paths.append(path)
        paths += self._find_meant(self._losses.unknown)
        return list(dict.fromkeys(paths))

    def list_spared(self) -> list[str]:
        """List the paths that the command moves within the workspace, or may overwrite."""
        away = self._find_away()
        paths = [path for path in self._losses.moved if path not in away]
        paths += self._find_meant(self._losses.replaced)
        return [path for path in paths if self._is_reached(path)]

    def _find_away(self) -> set[str]:
        """Find the paths that a confined command moves out of the workspace, where they may not last."""
        if not self._is_confined:
            return set()
        return {path for path, end in self._losses.moved.items() if end and not _is_below_any(end, self._roots)}

    def _is_reached(self, path: str) -> bool:
        return not self._is_confined or _is_below_any(path, self._roots)

    def _find_meant(self, names: "Iterable[UnknownName]") -> list[str]:
        """Find the paths that unknown names may mean, among those that the snapshot does not keep."""
        paths: list[str] = []
        for name in dict.fromkeys(names):
            paths += name.find(self._candidates)
        return paths

    @cached_property
    def _candidates(self) -> list[str]:
        return sorted({*self._statuses, *self._gaps, *self._find_repositories()})

    def _find_repositories(self) -> list[str]:
        """Find the repositories that a folder of unknown name might be, or contain."""
        if not self._losses.is_unknown:
            return []
        folders = [path for path, state in self._turn.before.items() if stat.S_ISDIR(state.mode)]
        repositories = [os.path.join(folder, ".git") for folder in (*self._roots, *folders)]
        return list(filter(os.path.lexists, repositories))


@dataclass(frozen=True, slots=True)
class StoredPaths:
    """The paths that a destructive command cannot lose, without a pass over all files of a large repository."""

    find_before: Callable[[str], FileState | None]
    own_folders: frozenset[str]

    def __contains__(self, path: object) -> bool:
        if path in self.own_folders:
            return True
        state = self.find_before(str(path))
        return state is not None and state.is_stored and not stat.S_ISDIR(state.mode)


def get_line(argv: Sequence[str]) -> str:
    """Return the line of `bash -c LINE`, and the quoted words of any other command."""
    match argv:
        case [program, "-c", line] if os.path.basename(program) == "bash":
            return line
    return shlex.join(argv)


def _is_below_any(path: str, folders: Iterable[str]) -> bool:
    return any(map(Path(path).is_relative_to, folders))


def read_losses(paths: Iterable[str], stored: Container[str], store: StoreBlob) -> tuple[dict[str, FileState], str]:
    """Read the states of paths and of everything below them, except those in `stored`. Raise the OSError of `store`.

    Also return a reason for the person if something cannot be stored, or an empty text.
    """
    states: dict[str, FileState] = {}
    problems: list[str] = []
    for path in paths:
        if ".git" in Path(path).parts:
            if os.path.lexists(path):
                problems.append(f"{path}: part of a repository")
            continue
        if path in stored:
            continue
        cached = read_cached_state(path, store)
        if cached is None:
            continue
        states[path] = cached.state
        if cached.gap:
            problems.append(f"{path}: {cached.gap}")
        if stat.S_ISDIR(cached.state.mode):
            problems += _read_folder(path, stored, store, states)
    return states, _summarize(problems)


def _read_folder(path: str, stored: Container[str], store: StoreBlob, states: dict[str, FileState]) -> list[str]:
    """Read the states of everything below a folder into `states`. Return the first problem, if there is one."""
    snapshot, is_complete = take_snapshot(WatchedTree(path), stored, store, {})
    if not is_complete:
        return [f"{path}: over {LIMIT_ENTRIES:,} files"]
    for name, cached in snapshot.items():
        states[name] = cached.state
    repository = _find_repository(path, snapshot)
    if repository:
        return [f"{repository}: a repository"]
    for name, cached in snapshot.items():
        if cached.gap:
            return [f"{name}: {cached.gap}"]
    return []


def _find_repository(path: str, snapshot: Snapshot) -> str | None:
    """Find a repository at or in a folder. Its `.git` is in no snapshot."""
    folders = [name for name, cached in snapshot.items() if stat.S_ISDIR(cached.state.mode)]
    for folder in (path, *folders):
        if os.path.lexists(os.path.join(folder, ".git")):
            return folder
    return None


def _summarize(problems: Sequence[str]) -> str:
    if not problems:
        return ""
    more_count = len(problems) - 1
    if more_count == 0:
        return problems[0]
    return f"{problems[0]} and {more_count} more"
