"""The search for repositories and start files: all below some folders, also in closed folders, and pointers."""

import os
from collections.abc import Iterable, Iterator, Set
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from goose_like.config.private_folder import PRIVATE_NAME

from .file_copy import Mark, open_closed_folder, read_mark
from .start_files import PARENTS, find_start_names

_MAX_FOLDERS = 50_000
_MAX_CHECKED = 200


class _Listing(NamedTuple):
    """The content of a folder; `mark` is None if a later change may not show."""

    mark: Mark | None
    below: list[str]
    repositories: list[str]  # those directly in this folder
    start_files: list[str]


class RepositoryScanner:
    """Finds every repository below some folders, including bare ones and pointers. A repeated scan is cheap.

    Git enters folders that cannot be listed. The first scan leaves them as they are. Later scans open them, because
    only a command can have closed them. If a killed session recorded those that were `closed`, the first scan does so.
    """

    def __init__(self, roots: Iterable[Path], closed: Iterable[str] | None = None, *, top_count: int = 1) -> None:
        """Prepare a search. The first `top_count` roots are folders of the person, the others are git folders."""
        self.roots = [root for root in roots if root.is_dir()]
        self._top_count = top_count
        self.is_complete = True
        self.closed = set(closed or ())
        """Folders that git can enter, and that could not be searched."""
        self.start_files: set[Path] = set()
        """Start files and files of CI servers, found by the last scan."""
        self._listings: dict[str, _Listing] = {}
        self._is_first = closed is None

    @property
    def is_unchanged(self) -> bool:
        """True if it is certain, and was cheap to find out, that a scan would find the same as the last one."""
        if self._is_first or self.closed or not self.is_complete or len(self._listings) > _MAX_CHECKED:
            return False
        for path, listing in self._listings.items():
            if listing.mark is None or listing.mark != read_mark(path):
                return False
        return True

    def scan(self) -> list[Path]:
        """Return each repository: its git folder, or the file or link in its place.

        No folder is skipped, not even `node_modules`, because a command could hide a repository there.
        """
        found: set[str] = set()
        start_files: set[str] = set()
        pending = list(map(str, self.roots))
        known = self._listings
        self._listings = {}
        while pending and len(self._listings) < _MAX_FOLDERS:
            path = pending.pop()
            if path in self._listings:
                continue
            listing = self._list(path, known.get(path))
            if listing is None:
                continue
            self._listings[path] = listing
            pending += listing.below
            found.update(listing.repositories)
            start_files.update(listing.start_files)
        self.is_complete = not pending
        self._is_first = False
        self.start_files = set(map(Path, start_files))
        return sorted(map(Path, found))

    def list_top_start_files(self) -> list[Path]:
        """List the start files near the tops of the person's folders as they are now, without a whole scan."""
        found: list[Path] = []
        for root in self.roots[: self._top_count]:
            found += self._list_start_files_near(str(root))
        return found

    def _list_start_files_near(self, root: str) -> Iterator[Path]:
        top = self._list_unless_link(root)
        listings = [top]
        for name in PARENTS:
            first = name.partition("/")[0]
            # This runs after each call of a tool: only folders that exist are looked at.
            if top is None or os.path.join(root, first) in top.below:
                listings.append(self._list_unless_link(os.path.join(root, name)))
        for listing in listings:
            if listing:
                yield from map(Path, listing.start_files)

    def _list_unless_link(self, path: str) -> _Listing | None:
        if os.path.islink(path):
            return None
        return self._list(path, self._listings.get(path))

    def _list(self, path: str, known: _Listing | None) -> _Listing | None:
        try:
            mark = read_mark(path)
            if known and mark and known.mark == mark:
                return known
            return self._list_folder(path, mark)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError:
            is_known = self._is_first or path in self.closed
            if not is_known and open_closed_folder(path):
                return self._list(path, None)
            if os.access(path, os.X_OK):
                self.closed.add(path)
            return None

    def _list_folder(self, path: str, mark: Mark | None) -> _Listing:
        with os.scandir(path) as entries:
            found = {entry.name: entry for entry in entries}
        below = []
        links = []
        repositories = []
        for entry in found.values():
            if entry.is_dir(follow_symlinks=False):
                below.append(entry.path)
            elif entry.is_symlink():
                links.append(entry.name)
                if _leads_to_tmp(entry.path):
                    repositories.append(entry.path)
        names = found.keys()
        if _is_git_folder(names):
            repositories.append(path)
        if ".git" in names:
            repositories.append(f"{path}/.git")
        start_files = [f"{path}/{name}" for name in find_start_names(path, names, links)]
        return _Listing(mark, below, repositories, start_files)


def _is_git_folder(names: Set[str]) -> bool:
    """Check for a git folder by the names in it, since git follows links."""
    if {"HEAD", "commondir"} <= names:  # a worktree's folder, which borrows `objects` and `refs`
        return True
    return {"objects", "refs"} <= names and not names.isdisjoint({"HEAD", "worktrees"})


def _leads_to_tmp(link: str) -> bool:
    """Check for a link to files of commands where no scan looks: a private folder, by its name outside the sandbox."""
    with suppress(OSError):
        return PRIVATE_NAME.search(os.readlink(link)) is not None
    return False
