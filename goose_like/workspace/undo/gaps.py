"""Gaps of undo: the files of which no content is stored, for the person."""

import os
from collections.abc import Collection, Mapping
from pathlib import Path

from goose_like.config.paths import CACHE_PATHS, WORKTREES_FOLDER

from .state import Snapshot


def find_gaps(known: Snapshot, ignored: Collection[str], roots: Collection[Path]) -> dict[str, str]:
    """Find the paths that undo does not cover, with the reasons. Caches and worktrees do not count."""
    gaps = {path: cached.gap for path, cached in known.items() if cached.gap}
    for path in sorted(ignored):
        is_cache = CACHE_PATHS.fullmatch(path.rstrip("/"))
        if not is_cache and not _is_around_worktrees(path, roots):
            gaps[path] = "ignored by git"
    return gaps


def _is_around_worktrees(path: str, roots: Collection[Path]) -> bool:
    """Check for a path in the folder of worktrees, or for a folder around it."""
    for root in roots:
        worktrees = root / WORKTREES_FOLDER
        if Path(path).is_relative_to(worktrees) or worktrees.is_relative_to(path):
            return True
    return False


def format_gaps(gaps: Mapping[str, str], root: Path) -> str:
    """Name the first path with its reason, and count the others."""
    path, reason = next(iter(gaps.items()))
    shown = path
    if Path(path).is_relative_to(root):
        shown = os.path.relpath(path, root)
    text = f"{shown} ({reason})"
    more_count = len(gaps) - 1
    if more_count:
        text += f" and {more_count} more"
    return text
