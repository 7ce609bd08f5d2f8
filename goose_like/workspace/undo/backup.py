"""Backups: the states of files that a destructive command would lose."""

import os
import stat
from collections.abc import Container, Iterable, Sequence
from pathlib import Path

from .snapshot import LIMIT_ENTRIES, FileState, Snapshot, StoreBlob, read_cached_state, take_snapshot


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
    snapshot, is_complete = take_snapshot(Path(path), stored, store, {})
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
