"""The hash of a folder: of the contents of its files, and of what git's index has."""

import os
import stat
import struct
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from hashlib import sha1, sha256
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from goose_like.config.paths import CACHE_PATHS
from goose_like.workspace.repositories.git_index import iterate_entries, read_index
from goose_like.workspace.undo.snapshot import CachedState, Snapshot, get_marks
from goose_like.workspace.undo.tracked import CLOCK_TICK_NS, parse_content

_LIMIT_INDEX_BYTES = 512 << 20
_SHA1_DIGITS = 40
_KINDS = (stat.S_IFREG, stat.S_IFLNK, stat.S_IFDIR)

_read_marks = attrgetter("st_size", "st_mtime_ns", "st_ctime_ns", "st_ino", "st_mode")
"""Does what `get_marks` does, in half of the time."""

Marks = tuple[int, ...] | None
ListIgnored = Callable[[], Collection[str]]
"""Lists the paths that git ignores now."""


class _Entry(NamedTuple):
    """A path as it was read: its marks, unless a later change may leave the same ones, and its part of the hash."""

    marks: Marks
    value: int


class TreeState(NamedTuple):
    """The hash of a folder, and the names of the files that differ from those of the state before."""

    value: str = ""
    changes: tuple[str, ...] = ()


def get_files_hash(tree: str) -> str:
    """Return the part of a tree's hash that stands for the contents of the files."""
    return tree.partition(":")[0]


class TreeHash:
    """The hash of a folder, which costs one look at each known file after the first time.

    `value` has two parts: one for the files, as git sees them (content, link target, executable or not), and one for
    the index of git. Files that git ignores, caches of programs and empty folders do not count. A sum of hashes needs
    no order, so one changed file costs one addition.
    """

    def __init__(self, roots: Sequence[Path], gits: Sequence[Path], list_ignored: ListIgnored) -> None:
        """Prepare a hash without any work. `roots` begin with the workspace; `gits` are the folders of repositories."""
        self._root = str(roots[0])
        self._roots = tuple(map(str, roots))
        self._indexes = [f"{git}/index" for git in gits]
        self._list_ignored = list_ignored
        self._entries: dict[str, _Entry] = {}
        self._excluded: set[str] = set()
        self._own_folders: frozenset[str] = frozenset()
        self._sum = 0
        self._touched: dict[str, int] = {}
        """The paths that were set or removed since the last look, with their part of the hash before."""
        self._index_marks: dict[str, Marks] = {}
        self._index_hashes: dict[str, str] = {}

    @property
    def value(self) -> str:
        """The hash of the files, and after a colon that of the index."""
        files = sha256(b"%d" % self._sum).hexdigest()[:32]
        if not self._indexes:
            return files
        indexes = sha256(repr(self._index_hashes).encode()).hexdigest()
        return f"{files}:{indexes[:16]}"

    def take_changes(self) -> tuple[str, ...]:
        """Take the names of the files that differ from those at the last call, or since `load`."""
        changed = []
        for path, value in self._touched.items():
            entry = self._entries.get(path)
            if value != (entry.value if entry else 0):
                changed.append(self._get_name(path))
        self._touched = {}
        return tuple(sorted(changed))

    def load(self, snapshot: Snapshot, ignored: Collection[str], own_folders: frozenset[str]) -> None:
        """Take over a new snapshot of the folder, which has looked at each file already."""
        self._excluded = {*ignored, *own_folders}
        self._own_folders = own_folders
        for path in self._entries.keys() - snapshot.keys():
            self._remove(path)
        for path, cached in snapshot.items():
            known = self._entries.get(path)
            is_known = known is not None and cached.marks is not None and known.marks == cached.marks
            if not is_known and not self._is_cache(path):
                self._load_state(path, cached)
        for root in self._roots:
            self._read_folder_marks(root)
        self._watch_ignored(ignored)
        self._read_indexes()
        self._touched = {}

    def covers(self, path: Path) -> bool:
        """Return whether the hash counts a path, or would count it if it existed."""
        text = str(path)
        is_inside = any(text.startswith(f"{root}/") for root in self._roots)
        return is_inside and not self._is_cache(text) and not self._is_excluded(text)

    def rescan(self) -> None:
        """Look at each known path again, and into folders whose list has changed."""
        is_index_changed = self._read_indexes()
        folders = []
        changed = []
        for path, entry in list(self._entries.items()):
            try:
                status = os.lstat(path)
            except OSError:
                self._remove(path)
                changed.append(path)
                continue
            if _read_marks(status) == entry.marks:
                continue
            if path not in self._entries:  # a folder above was replaced
                continue
            if stat.S_ISDIR(status.st_mode):
                folders.append(path)
                continue
            if self._is_folder(entry):  # a link in its place may lead to the same files
                self._remove_below(path)
            if self._read(path, status):
                changed.append(path)
        new = list(self._find_new(folders))
        is_ignoring_anew = is_index_changed or any(os.path.basename(path) == ".gitignore" for path in changed + new)
        if new or is_ignoring_anew:
            self._add_new(new, is_ignoring_anew=is_ignoring_anew)

    def _add_new(self, new: list[str], *, is_ignoring_anew: bool) -> None:
        """Add new paths that git does not ignore. After a change of what is ignored, look into all folders."""
        ignored = self._list_ignored()
        self._excluded = {*ignored, *self._own_folders}
        if is_ignoring_anew:
            folders = [path for path, entry in self._entries.items() if self._is_folder(entry)]
            new = list(self._find_new(folders))
            for path in list(self._entries):
                if self._is_excluded(path):
                    self._remove(path)
        for path in new:
            if not self._is_excluded(path):
                self._add(path)
        self._watch_ignored(ignored)

    def _watch_ignored(self, ignored: Collection[str]) -> None:
        """Watch folders in which git ignores all files now: a new file there may count, but not in folders below."""
        for path in ignored:
            if not self._is_cache(path) and os.path.isdir(path):
                self._read_folder_marks(path)

    def _add(self, path: str) -> None:
        """Add a new path with everything below it."""
        try:
            status = os.lstat(path)
        except OSError:
            return
        if not stat.S_ISDIR(status.st_mode):
            self._read(path, status)
            return
        self._read_folder_marks(path)
        for below in self._find_new([path]):
            if not self._is_excluded(below):
                self._add(below)

    def _find_new(self, folders: list[str]) -> Iterator[str]:
        """Yield the unknown paths in folders, which are read anew."""
        for folder in folders:
            self._read_folder_marks(folder)
            with suppress(OSError), os.scandir(folder) as listing:
                for entry in listing:
                    path = entry.path
                    is_known = path in self._entries or path in self._excluded
                    if not is_known and entry.name != ".git" and not self._is_cache(path):
                        yield path

    def _is_cache(self, path: str) -> bool:
        return CACHE_PATHS.fullmatch(self._get_name(path)) is not None

    def _get_name(self, path: str) -> str:
        """Return the path from the workspace, or the whole path of a file in another folder."""
        return path.removeprefix(f"{self._root}/")

    def _is_excluded(self, path: str) -> bool:
        while path not in self._roots and path != "/":
            if path in self._excluded:
                return True
            path = os.path.dirname(path)
        return False

    # --- one path

    def _load_state(self, path: str, cached: CachedState) -> None:
        mode = cached.state.mode
        blob, _ = parse_content(cached.state.content)
        if stat.S_ISDIR(mode):
            self._entries[path] = _Entry(cached.marks, 0)
        elif len(blob) == _SHA1_DIGITS:
            self._set(path, cached.marks, mode, blob)
        else:
            with suppress(OSError):
                self._read(path, os.lstat(path))

    def _read_folder_marks(self, path: str) -> None:
        with suppress(OSError):
            status = os.lstat(path)
            self._remove(path)
            self._entries[path] = _Entry(_get_certain_marks(status), 0)

    def _read(self, path: str, status: os.stat_result) -> bool:
        """Read a file or a link. Return whether its part of the hash is another one."""
        if stat.S_IFMT(status.st_mode) not in _KINDS:
            return False
        marks = _get_certain_marks(status)
        try:
            content = _read_content(path, status)
        except OSError:  # it is gone, or nobody may read it
            content = str(get_marks(status))
        before = self._entries.get(path)
        self._set(path, marks, status.st_mode, content)
        return before is None or before.value != self._entries[path].value

    def _set(self, path: str, marks: Marks, mode: int, content: str) -> None:
        self._remove(path)
        kind = "link" if stat.S_ISLNK(mode) else ""
        if mode & stat.S_IXUSR and not kind:
            kind = "program"
        text = f"{self._get_name(path)}\0{kind}\0{content}"
        digest = sha256(text.encode(errors="surrogateescape")).digest()
        value = int.from_bytes(digest)
        self._entries[path] = _Entry(marks, value)
        self._sum += value

    def _remove(self, path: str) -> None:
        entry = self._entries.pop(path, None)
        self._touched.setdefault(path, entry.value if entry else 0)
        if entry:
            self._sum -= entry.value

    def _remove_below(self, folder: str) -> None:
        for path in list(self._entries):
            if path.startswith(f"{folder}/"):
                self._remove(path)

    @staticmethod
    def _is_folder(entry: _Entry) -> bool:
        return entry.value == 0

    # --- git's index

    def _read_indexes(self) -> bool:
        """Read the indexes that have changed. Return whether entries are others, so that other files are ignored."""
        before = dict(self._index_hashes)
        for index in self._indexes:
            self._read_index(index)
        return before != self._index_hashes

    def _read_index(self, index: str) -> None:
        try:
            status = os.lstat(index)
            marks = _get_certain_marks(status)
            if marks is not None and marks == self._index_marks.get(index):
                return
            data, _ = read_index(index, _LIMIT_INDEX_BYTES)
        except (OSError, ValueError):
            self._index_marks.pop(index, None)
            self._index_hashes.pop(index, None)
            return
        self._index_marks[index] = marks
        self._index_hashes[index] = _hash_index(data)


def _get_certain_marks(status: os.stat_result) -> Marks:
    """Return the marks, or None if a change within the same clock tick would leave the same ones."""
    if time.time_ns() - status.st_ctime_ns <= CLOCK_TICK_NS:
        return None
    return get_marks(status)


def _read_content(path: str, status: os.stat_result) -> str:
    """Return the name that git would give the content."""
    if stat.S_ISLNK(status.st_mode):
        data = os.fsencode(os.readlink(path))
    else:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            data = file.read()
    digest = sha1(b"blob %d\0" % len(data), usedforsecurity=False)
    digest.update(data)
    return digest.hexdigest()


def _hash_index(data: bytes) -> str:
    """Hash the entries of an index without the times in it, which `git status` refreshes."""
    digest = sha256()
    try:
        for name, entry in iterate_entries(data):
            fields = (name, entry.mode, entry.digest, entry.has_conflict, entry.is_assumed)
            digest.update(repr(fields).encode(errors="surrogateescape"))
    except (ValueError, IndexError, struct.error):  # of a format that is read nowhere
        return sha256(data).hexdigest()
    return digest.hexdigest()
