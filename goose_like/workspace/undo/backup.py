"""Backups: the states of files that a destructive command would lose."""

import os
import stat
from collections.abc import Container, Iterable
from pathlib import Path

from .snapshot import LIMIT_ENTRIES, FileState, StoreBlob, read_cached_state, take_snapshot


def read_losses(paths: Iterable[str], stored: Container[str], store: StoreBlob) -> tuple[dict[str, FileState], str]:
    """Read the states of paths and of everything below them, except those in `stored`. Raise the OSError of `store`.

    Also return a reason for the person if something cannot be stored, or an empty text.
    """
    states: dict[str, FileState] = {}
    problems: list[str] = []
    for path in paths:
        if ".git" in Path(path).parts:
            problems.append(f"{path}: part of a repository" if os.path.lexists(path) else "")
        elif path not in stored and (cached := read_cached_state(path, store)):
            states[path] = cached.state
            problems.append(f"{path}: {cached.gap}" if cached.gap else "")
            if stat.S_ISDIR(cached.state.mode):
                problems.append(_read_folder(path, stored, store, states))
    problems = list(filter(None, problems))
    return states, f"{problems[0]}{f' and {len(problems) - 1} more' if problems[1:] else ''}" if problems else ""


def _read_folder(path: str, stored: Container[str], store: StoreBlob, states: dict[str, FileState]) -> str:
    snapshot, is_complete = take_snapshot(Path(path), stored, store, {})
    if not is_complete:
        return f"{path}: over {LIMIT_ENTRIES:,} files"
    states |= {name: cached.state for name, cached in snapshot.items()}
    folders = [path, *(name for name, cached in snapshot.items() if stat.S_ISDIR(cached.state.mode))]
    if repository := next((folder for folder in folders if os.path.lexists(os.path.join(folder, ".git"))), ""):
        return f"{repository}: a repository"
    return next((f"{name}: {cached.gap}" for name, cached in snapshot.items() if cached.gap), "")
