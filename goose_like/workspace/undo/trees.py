"""The folders that undo covers: the states of their files at the last look, and which of these are clean."""

import os
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from pathlib import Path

from goose_like.config.paths import create_private_folder
from goose_like.core.dataclass import dataclass
from goose_like.workspace.programs import find_program

from .clean_files import CleanFiles, CleanSearch, write_index
from .log import SavedClean
from .snapshot import GONE, StoreBlob, take_snapshot
from .state import FileState, Snapshot
from .tracked import ListFiltered, TrackedFiles
from .watched_tree import WatchedTree

MIN_FILES = 5_000
"""In smaller repositories, git would take longer than a look at each file."""

_MAX_IN_GIT = 1_000
_CLEAN = "clean-"


@dataclass(slots=True)
class Look:
    """The states of the files in some folders that are not clean. Of those in `large`, only tracked files count."""

    states: dict[str, FileState] = field(default_factory=dict)
    large: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


class _Excluded:
    """The paths to leave out. Git lists them while it searches for changed files."""

    def __init__(self, wait: Callable[[], frozenset[str]]) -> None:
        self._wait = wait
        self._paths: frozenset[str] | None = None

    def __contains__(self, path: object) -> bool:
        if self._paths is None:
            self._paths = self._wait()
        return path in self._paths


class Trees:
    """The folders with what is known about them. `known` are the states at the last look, without clean files."""

    def __init__(
        self, folder: Path, roots: Sequence[str], list_filtered: ListFiltered, left_out: Collection[str] = ()
    ) -> None:
        """Prepare the trees without any work. The lists of clean files are kept in `folder`.

        Nothing in the folders of `left_out` is among the clean files.
        """
        self.known: Snapshot = {}
        self._folder = folder
        self._roots = tuple(roots)
        self._folders = tuple(map(Path, roots))
        self._list_filtered = list_filtered
        self._left_out = left_out
        self._trees: dict[str, WatchedTree] = {}
        self._in_git: dict[str, int] = {}
        self._number = 0

    @property
    def watched(self) -> tuple[WatchedTree, ...]:
        """The trees of the last call of `look_before`, for other looks at them."""
        return tuple(self._trees[root] for root in self._roots)

    @property
    def clean(self) -> SavedClean:
        """The clean files as they are saved."""
        saved = {}
        for root, tree in self._trees.items():
            if tree.clean:
                saved[root] = (tree.clean.top, tree.clean.file.name)
        return saved

    def find_clean(self, path: str) -> FileState | None:
        """Return the state of a path that was clean at the last call of `look_before`."""
        for tree in self._trees.values():
            state = tree.clean.find(path) if tree.clean else None
            if state:
                return state
        return None

    def load_clean(self, saved: Mapping[str, Sequence[str]]) -> None:
        """Take over the clean files of a session that was killed. Raise OSError if they cannot be read."""
        for root, (top, name) in saved.items():
            tree = self._trees.setdefault(root, WatchedTree(root))
            tree.set_clean(CleanFiles(self._folder / name, top, self._folders))

    def has_many_files(self) -> bool:
        """Return whether git tracks so many files somewhere that a list of the clean ones is worth it."""
        return any(self._track(root).count >= MIN_FILES for root in self._roots)

    def prepare(self) -> bool:
        """Find the clean files before the first turn needs them. Return False if there was a turn.

        Git finds whatever changes until the first turn.
        """
        if self._trees:
            return False
        for root in self._roots:
            tree = WatchedTree(root)
            if self._is_outdated(tree):
                young_count = self._find_clean_files(tree, self._track(root))
                # As in `look_before`; no state is known yet.
                self._in_git[root] = self._count_in_git(root) - young_count
                tree.is_new = False
            self._trees[root] = tree
        return True

    def _track(self, root: str) -> TrackedFiles:
        return TrackedFiles(Path(root), self._list_filtered)

    def look_before(self, wait_for_excluded: Callable[[], frozenset[str]], store: StoreBlob) -> Look:
        """Read the states before a turn, and find the clean files anew where that is worth it.

        `wait_for_excluded` returns the paths to leave out, which git lists meanwhile.
        """
        tracked = {}
        new = {}
        former = self._trees
        self._trees = {}  # without the folders of a session that was killed
        for root in self._roots:
            tree = former.get(root) or WatchedTree(root)
            self._trees[root] = tree
            tracked[root] = self._track(root)
            if self._is_outdated(tree):
                new[root] = self._find_clean_files(tree, tracked[root])
        look = self._look(tracked, _Excluded(wait_for_excluded), store)
        for root, young_count in new.items():
            self._in_git[root] = self._count_in_git(root) - young_count
        for tree in self._trees.values():
            if tree.changed:
                tree.drop_changed(self._name_file())
        gone = [path for path, cached in self.known.items() if cached is GONE]
        for path in gone:
            del self.known[path]
            del look.states[path]
        return look

    def look_after(self, roots: Sequence[str], excluded: frozenset[str], store: StoreBlob) -> Look:
        """Read the states after a turn. A file that was clean before the turn and is gone is absent."""
        tracked = {}
        for root in roots:
            self._trees.setdefault(root, WatchedTree(root))
            tracked[root] = self._track(root)
        return self._look(tracked, excluded, store)

    def _look(self, tracked: Mapping[str, TrackedFiles], excluded: Container[str], store: StoreBlob) -> Look:
        known: Snapshot = {}
        look = Look()
        for root, files in tracked.items():
            found, is_complete = take_snapshot(self._trees[root], excluded, store, self.known, files)
            known |= found
            look.problems += files.problems
            if not is_complete:
                look.large.append(root)
        self.known = known
        look.states = {path: cached.state for path, cached in known.items()}
        return look

    def remove_unused(self) -> None:
        """Remove the lists of clean files of former turns."""
        used = {name for _, name in self.clean.values()}
        with suppress(OSError):
            for file in self._folder.glob(f"{_CLEAN}*"):
                if file.name not in used:
                    file.unlink()

    def remove_all(self) -> None:
        """Forget the trees, and remove their lists of clean files."""
        self._trees = {}
        self.remove_unused()

    def _is_outdated(self, tree: WatchedTree) -> bool:
        """Check for many files that may be clean, and are not among the clean files."""
        if tree.clean is None:
            return find_program("git", *self._folders) is not None
        return self._count_in_git(tree.root) > self._in_git.get(tree.root, 0) + _MAX_IN_GIT

    def _count_in_git(self, root: str) -> int:
        states = self.known.items()
        return sum(1 for path, cached in states if cached.state.is_in_git and path.startswith(f"{root}/"))

    def _find_clean_files(self, tree: WatchedTree, tracked: TrackedFiles) -> int:
        """Find the clean files of a tree. Return the number of those that are too young to be certain."""
        if tracked.count < MIN_FILES:
            return 0
        repository = next(iter(tracked.load()), None)
        if repository is None or repository.is_sha256:
            return 0
        search = CleanSearch(tree.root, repository, self._left_out)
        search.run()
        file = self._name_file()
        write_index(file, [search.entries], search.count)
        tree.set_clean(CleanFiles(file, repository.top, self._folders, search.build_index()), search.listings)
        return search.young_count

    def _name_file(self) -> Path:
        """Return a new file, as the list of the turn before is needed until the next snapshot is recorded."""
        create_private_folder(self._folder)
        while True:
            self._number += 1
            file = self._folder / f"{_CLEAN}{self._number}"
            if not os.path.lexists(file):
                return file
