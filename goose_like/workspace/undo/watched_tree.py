"""The walk through a folder: it yields all paths but clean files, and remembers the lists of folders."""

import os
import stat
from collections.abc import Container, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from .clean_files import CleanFiles
from .state import Listing, Statuses, get_certain_marks
from .tracked import TrackedFiles

KINDS = {stat.S_IFREG, stat.S_IFLNK, stat.S_IFDIR}


class WatchedTree:
    """A folder that is looked at again and again. A folder with the marks of the last look is not listed again.

    With `clean` files, git tells which of them have changed. Without, each file is looked at.
    """

    def __init__(self, root: str) -> None:
        """Prepare a walk without any work."""
        self.root = root
        self.clean: CleanFiles | None = None
        self.first_clean: CleanFiles | None = None
        """The clean files as they were found, before those in `dropped` were dropped."""
        self.dropped: set[str] = set()
        self.listings: dict[str, Listing] = {}
        self.changed: dict[str, bool] = {}
        """The clean files that have changed since, as the last walk has found; with False for one that is gone."""
        self.is_new = False
        """True if the clean files were found just now: the next walk does not ask git for changes."""

    def set_clean(self, clean: CleanFiles, listings: dict[str, Listing] | None = None) -> None:
        """Take over clean files. With `listings` of their folders, they were found just now."""
        self.clean = clean
        self.first_clean = clean
        self.dropped = set()
        self.listings = listings or {}
        self.changed = {}
        self.is_new = listings is not None

    def walk(
        self,
        excluded: Container[str],
        known: Iterable[str] = (),
        tracked: TrackedFiles | None = None,
        *,
        is_tracked_only: bool = False,
    ) -> Statuses:
        """Yield every path below the folder but unchanged clean files. Add the repositories there to `tracked`.

        It leaves out `.git`, mounted folders, sockets, devices, and the paths in `excluded`. In a folder that cannot be
        listed, yield the known paths without a status. If `is_tracked_only`, yield only what `tracked` covers.

        Raises:
            OSError: git fails.
        """
        search = None
        if self.clean and not self.is_new:
            search = self.clean.start_search()
        self.is_new = False
        try:
            yield from self._walk(excluded, known, tracked, tracked if is_tracked_only else None)
            self.changed = search.read() if search else {}
        finally:
            if search:
                search.stop()
        for path, exists in self.changed.items():
            if exists:
                with suppress(OSError):
                    yield path, os.lstat(path)

    def drop_changed(self, file: Path) -> None:
        """Count the changed files no longer among the clean ones. Their list is written to a new file."""
        if self.clean:
            self.clean = self.clean.drop(self.changed, file)
            self.dropped |= self.changed.keys()
            for path in self.changed:
                self.listings.pop(os.path.dirname(path), None)
        self.changed = {}

    def _walk(
        self,
        excluded: Container[str],
        known: Iterable[str],
        tracked: TrackedFiles | None,
        wanted: TrackedFiles | None,
    ) -> Statuses:
        try:
            top = os.lstat(self.root)
        except OSError:
            return
        folders = [(self.root, top)]
        former = self.listings
        self.listings = {}
        while folders:
            folder, status = folders.pop()
            names = self._list(folder, status, former.get(folder))
            if names is None:
                yield from ((path, None) for path in known if path.startswith(f"{folder}/"))
                continue
            if tracked and folder != self.root and ".git" in names:
                tracked.add_repository(folder)
            for path, found in _look(folder, names, excluded, wanted):
                if found.st_dev != top.st_dev:
                    continue
                if stat.S_ISDIR(found.st_mode):
                    folders.append((path, found))
                yield path, found

    def _list(self, folder: str, status: os.stat_result, known: Listing | None) -> list[str] | None:
        marks = get_certain_marks(status)
        if known is None or marks is None or known.marks != marks:
            try:
                known = Listing(marks, list(self._list_names(folder)))
            except OSError:
                return None
        self.listings[folder] = known
        return known.names

    def _list_names(self, folder: str) -> Iterator[str]:
        with os.scandir(folder) as entries:
            for entry in entries:
                is_folder = entry.is_dir(follow_symlinks=False)
                if is_folder or self.clean is None or entry.path not in self.clean:
                    yield entry.name


def _look(
    folder: str, names: list[str], excluded: Container[str], wanted: TrackedFiles | None
) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the wanted paths in a folder with their status."""
    for name in names:
        path = f"{folder}/{name}"
        if name == ".git" or path in excluded:
            continue
        if wanted and not wanted.covers(path):
            continue
        try:  # `suppress` would take a third of the time
            status = os.lstat(path)
        except OSError:
            continue
        if stat.S_IFMT(status.st_mode) in KINDS:
            yield path, status
