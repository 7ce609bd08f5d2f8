"""The hash of a folder: of the contents of its files, and of what git's index has."""

import os
import stat
import struct
from collections.abc import Callable, Collection, Container, Mapping, Sequence, Set
from contextlib import suppress
from hashlib import sha1, sha256
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from goose_like.config.paths import CACHE_PATHS
from goose_like.core.dataclass import dataclass
from goose_like.workspace.repositories.git_index import GitIndex, read_index
from goose_like.workspace.repositories.ignore_check import IgnoreCheck
from goose_like.workspace.undo.clean_files import CleanFiles
from goose_like.workspace.undo.state import CachedState, FileState, Marks, Snapshot, get_certain_marks, get_marks
from goose_like.workspace.undo.tracked import parse_content
from goose_like.workspace.undo.trees import Trees

from .folder_watch import FolderWatch

_LIMIT_INDEX_BYTES = 512 << 20
_LIMIT_SIGN_BYTES = 1 << 20
"""More is not read twice: for the names in a result, and in the look after it."""
_MAX_NEW_FILES = 200
"""A question about more files takes longer, or is too long for git."""
_SHA1_DIGITS = 40

_read_marks = attrgetter("st_size", "st_mtime_ns", "st_ctime_ns", "st_ino", "st_mode")
"""Does what `get_marks` does, in half of the time."""

ListIgnored = Callable[[], Collection[str]]
"""Lists the paths that git ignores now."""


class _Entry(NamedTuple):
    """A file as it was read: its marks, and its part of the hash."""

    marks: Marks
    value: int


@dataclass(frozen=True, slots=True)
class _Excluded:
    """The paths that do not count: some named ones, and caches of programs."""

    paths: Collection[str]
    is_cache: Callable[[str], bool]
    counted: Container[str]
    """Paths of which it is known that they count."""

    def __contains__(self, path: object) -> bool:
        if path in self.counted:
            return False
        return path in self.paths or self.is_cache(str(path))


class TreeState(NamedTuple):
    """The hash of a folder, and the names of the files that differ from those of the state before."""

    value: str = ""
    changes: tuple[str, ...] = ()


def get_files_hash(tree: str) -> str:
    """Return the part of a tree's hash that stands for the contents of the files."""
    return tree.partition(":")[0]


class TreeHash:
    """The hash of some folders. It costs one look at each folder and at each file that is not clean.

    `value` has two parts: one for the files, as git sees them (content, link target, executable or not), and one for
    the index of git. Files that git ignores, caches of programs and empty folders do not count. A sum of hashes needs
    no order, so one changed file costs one addition.
    """

    def __init__(
        self,
        roots: Sequence[Path],
        trees: Trees,
        gits: Sequence[Path],
        list_ignored: ListIgnored,
        watch: FolderWatch | None = None,
        checks: Sequence[IgnoreCheck] = (),
    ) -> None:
        """Prepare a hash without any work.

        `roots` begin with the workspace; `trees` are those that undo looks at; `gits` are the folders of repositories.
        `watch` gets the folders of each look. `checks` belong to the roots, and know which new files git ignores.
        """
        self._checks = dict(zip(map(str, roots), checks, strict=False))
        self._watch = watch
        self._root = str(roots[0])
        self._roots = tuple(map(str, roots))
        self._trees = trees
        self._indexes = [f"{git}/index" for git in gits]
        self._list_ignored = list_ignored
        self._entries: dict[str, _Entry] = {}
        self._values: dict[str, int] = {}
        """The paths that have changed since the last look, with their part of the hash before."""
        self._ignored: frozenset[str] = frozenset()
        self._ignored_marks: dict[str, Marks] = {}
        self._own_folders: frozenset[str] = frozenset()
        self._clean_sums: dict[CleanFiles, int] = {}
        self._index_marks: dict[str, Marks] = {}
        self._index_hashes: dict[str, str] = {}

    @property
    def value(self) -> str:
        """The hash of the files, and after a colon that of the index."""
        total = sum(entry.value for entry in self._entries.values()) + self._sum_clean_files()
        files = sha256(b"%d" % total).hexdigest()[:32]
        if not self._indexes:
            return files
        indexes = sha256(repr(self._index_hashes).encode()).hexdigest()
        return f"{files}:{indexes[:16]}"

    def take_changes(self) -> tuple[str, ...]:
        """Take the names of the files that differ from those at the last call, or since `load`."""
        changed = self._list_changed()
        names = []
        for path, value in self._values.items():
            if value != self._get_value(path, self._entries, changed):
                names.append(self._get_name(path))
        self._values = {}
        return tuple(sorted(names))

    def name_signs(self, signs: Set[str]) -> tuple[str, ...] | None:
        """Name those of the paths that differ from the last look, as the next look will; None if only it can tell.

        Git knows which new files count, and what becomes of the others after a change of its own files.
        """
        if any(map(self._may_have_rules, signs)):
            self._stop_checks()
            return None
        known, unknown = self._sort_signs(signs)
        if len(unknown) > _MAX_NEW_FILES:
            return None
        try:
            new = [path for path in unknown if _read_status(path)]
            ignored = self._find_ignored(new)
            if ignored is None:
                return None
            changed = self._find_changed(known)
        except OSError:
            return None
        if changed is None:
            return None
        counted = [path for path in new if path not in ignored]
        return tuple(sorted(map(self._get_name, counted + changed)))

    def _sort_signs(self, signs: Set[str]) -> tuple[dict[str, int], list[str]]:
        """Return the files of the last look with their parts of the hash, and the other paths that may count."""
        changed = self._list_changed()
        known = {}
        unknown = []
        for path in signs:
            before = self._get_value(path, self._entries, changed)
            if before:
                known[path] = before
            elif path not in self._ignored and not self._is_cache(path):
                unknown.append(path)
        return known, unknown

    def _find_changed(self, known: Mapping[str, int]) -> list[str] | None:
        """Find those of the files that differ from the last look; None if that takes too long."""
        statuses = {path: _read_status(path) for path in known}
        size_bytes = sum(status.st_size for status in statuses.values() if status)
        if size_bytes > _LIMIT_SIGN_BYTES:
            return None
        found = []
        for path, status in statuses.items():
            after = self._read(path, status).value if status else 0
            if after != known[path]:
                found.append(path)
        return found

    def _may_have_rules(self, path: str) -> bool:
        """Check for a file that may tell git to ignore other files."""
        if os.path.basename(path) in (".gitignore", ".git"):
            return True
        return any(path.startswith(f"{os.path.dirname(index)}/") for index in self._indexes)

    def _stop_checks(self) -> None:
        """Let git read the rules anew before the next question."""
        for check in self._checks.values():
            check.stop()

    def _find_ignored(self, new: Collection[str]) -> Set[str] | None:
        """Find those of the new files that git ignores; None if only a look can tell."""
        if not self._indexes:
            return set()
        ignored: set[str] = set()
        for root in self._roots:
            inside = [path for path in new if path.startswith(f"{root}/")]
            if not inside:
                continue
            check = self._checks.get(root)
            found = check.find_ignored(inside) if check else None
            if found is None:
                return None
            ignored |= found
        return ignored

    def _get_value(self, path: str, entries: Mapping[str, _Entry], changed: Container[str]) -> int:
        """Return the part of the hash that stands for a path; 0 if there is no file that counts."""
        if path in entries:
            return entries[path].value
        for tree in self._trees.watched:
            state = tree.clean.find(path) if tree.clean else None
            if state and path not in changed:
                return self._hash_state(path, state)
        return 0

    def prepare(self) -> None:
        """Hash what will hardly change before the first snapshot: the clean files and the indexes."""
        self._sum_clean_files()
        self._read_indexes()

    def load(self, snapshot: Snapshot, ignored: frozenset[str], own_folders: frozenset[str]) -> None:
        """Take over a new snapshot of the folders, which has looked at each file already."""
        self._own_folders = own_folders
        self._stop_checks()  # a person may have changed rules since the last turn
        self._set_ignored(ignored)
        entries = {}
        for path, cached in snapshot.items():
            if self._is_cache(path) or stat.S_ISDIR(cached.state.mode):
                continue
            known = self._entries.get(path)
            if known is None or cached.marks is None or known.marks != cached.marks:
                known = self._load_state(path, cached)
            if known:
                entries[path] = known
        self._entries = entries
        self._values = {}
        self._read_indexes()
        self._watch_folders()

    def covers(self, path: Path) -> bool:
        """Return whether the hash counts a path, or would count it if it existed."""
        text = str(path)
        is_inside = any(text.startswith(f"{root}/") for root in self._roots)
        return is_inside and not self._is_cache(text) and not self._is_excluded(text)

    def rescan(self) -> None:
        """Look at all folders again, and at the files that are not clean."""
        has_new_entries = self._read_indexes()
        is_ignoring_anew = has_new_entries or self._has_news_in_ignored()
        before = self._entries
        changed_before = self._list_changed()
        found = self._look(before)
        different = self._find_different(found, changed_before)
        has_new_rules = any(os.path.basename(path) == ".gitignore" for path in different)
        if has_new_entries or has_new_rules:
            self._stop_checks()
        is_ignoring_anew |= has_new_rules or self._has_new_files(different, found)
        if is_ignoring_anew and self._set_ignored(frozenset(self._list_ignored())):
            found = self._look()
            different |= self._find_different(found, changed_before)
        for path in different:
            self._values.setdefault(path, self._get_value(path, before, changed_before))
        self._entries = {}
        for path, status in found.items():
            entry = before.get(path)
            if status is not None and path in different:
                entry = self._read(path, status)
            if entry:
                self._entries[path] = entry
        self._watch_folders()

    def _watch_folders(self) -> None:
        """Watch the folders that the last look has listed, and what decides which files git ignores."""
        for check in self._checks.values():
            check.prepare()
        if self._watch is None:
            return
        folders = list(self._ignored_marks)  # a new file there may count
        for tree in self._trees.watched:
            folders += tree.listings
        for index in self._indexes:
            git = os.path.dirname(index)
            folders += (git, f"{git}/info")
        self._watch.watch(folders)

    def _find_different(self, found: Mapping[str, os.stat_result | None], changed_before: Set[str]) -> set[str]:
        """Find the paths that may differ from the last look."""
        different = (self._entries.keys() ^ found.keys()) | (self._list_changed() ^ changed_before)
        for path, entry in self._entries.items():
            status = found.get(path)
            if status is not None and _read_marks(status) != entry.marks:
                different.add(path)
        return different

    def _has_new_files(self, different: Set[str], found: Container[str]) -> bool:
        """Check for new files, which git may ignore."""
        changed = self._list_changed()
        return any(path in found and path not in self._entries and path not in changed for path in different)

    def _list_changed(self) -> set[str]:
        """List the files that were clean, and have changed."""
        return {path for tree in self._trees.watched for path in tree.changed}

    def _look(self, counted: Container[str] = ()) -> dict[str, os.stat_result | None]:
        """Find the files that are not clean, and count."""
        excluded = _Excluded({*self._ignored, *self._own_folders}, self._is_cache, counted)
        found = {}
        for tree in self._trees.watched:
            for path, status in tree.walk(excluded, self._entries):
                is_folder = status is not None and stat.S_ISDIR(status.st_mode)
                is_excluded = path in tree.changed and path in excluded
                if not is_folder and not is_excluded:
                    found[path] = status
        return found

    def _set_ignored(self, ignored: frozenset[str]) -> bool:
        """Leave out what git ignores now. Return whether that is something else than before.

        A folder in which git ignores all files is watched: a new file there may count, but not in folders below.
        """
        is_new = ignored != self._ignored
        self._ignored = ignored
        self._ignored_marks = {}
        for path in ignored:
            with suppress(OSError):
                status = os.lstat(path)
                if stat.S_ISDIR(status.st_mode) and not self._is_cache(path):
                    self._ignored_marks[path] = get_certain_marks(status)
        return is_new

    def _has_news_in_ignored(self) -> bool:
        for path, marks in self._ignored_marks.items():
            try:
                if marks is None or _read_marks(os.lstat(path)) != marks:
                    return True
            except OSError:
                return True
        return False

    def _is_cache(self, path: str) -> bool:
        return CACHE_PATHS.fullmatch(self._get_name(path)) is not None

    def _get_name(self, path: str) -> str:
        """Return the path from the workspace, or the whole path of a file in another folder."""
        return path.removeprefix(f"{self._root}/")

    def _is_excluded(self, path: str) -> bool:
        while path not in self._roots and path != "/":
            if path in self._ignored or path in self._own_folders:
                return True
            path = os.path.dirname(path)
        return False

    # --- one path

    def _load_state(self, path: str, cached: CachedState) -> _Entry | None:
        blob, _ = parse_content(cached.state.content)
        if len(blob) == _SHA1_DIGITS:
            return _Entry(cached.marks, self._hash_state(path, cached.state))
        try:
            return self._read(path, os.lstat(path))
        except OSError:
            return None

    def _read(self, path: str, status: os.stat_result) -> _Entry:
        """Read a file or a link."""
        marks = get_certain_marks(status)
        try:
            content = _read_content(path, status)
        except OSError:  # it is gone, or nobody may read it
            content = repr(get_marks(status)).encode()
        return _Entry(marks, self._hash(path, status.st_mode, content))

    def _hash(self, path: str, mode: int, content: bytes) -> int:
        return _hash_file(os.fsencode(self._get_name(path)), mode, content)

    # --- clean files

    def _sum_clean_files(self) -> int:
        """Add the hashes of the files that are clean still."""
        sums = {}
        total = 0
        for tree in self._trees.watched:
            if tree.first_clean is None:
                continue
            whole = self._clean_sums.get(tree.first_clean) or self._sum_whole(tree.first_clean)
            sums[tree.first_clean] = whole
            total += whole
            for path in (*tree.dropped, *tree.changed):
                state = tree.first_clean.find(path)
                if state:
                    total -= self._hash_state(path, state)
        self._clean_sums = sums
        return total

    def _hash_state(self, path: str, state: FileState) -> int:
        blob, _ = parse_content(state.content)
        return self._hash(path, state.mode, bytes.fromhex(blob))

    def _sum_whole(self, clean: CleanFiles) -> int:
        skipped = 0
        start = b""
        if self._root.startswith(f"{clean.top}/"):
            skipped = len(os.fsencode(self._root)) - len(os.fsencode(clean.top))
        elif self._root != clean.top:
            start = os.fsencode(f"{clean.top}/")
        total = 0
        for name, mode, digest in clean.iterate():
            total += _hash_file(start + name[skipped:], mode, digest)
        return total

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
            marks = get_certain_marks(status)
            if marks is not None and marks == self._index_marks.get(index):
                return
            data, _ = read_index(index, _LIMIT_INDEX_BYTES)
        except (OSError, ValueError):
            self._index_marks.pop(index, None)
            self._index_hashes.pop(index, None)
            return
        self._index_marks[index] = marks
        self._index_hashes[index] = _hash_index(data)


def _read_status(path: str) -> os.stat_result | None:
    """Read the status of a file or a link; None if it is gone. Raise OSError if that is unclear, or no file."""
    try:
        status = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not stat.S_ISREG(status.st_mode) and not stat.S_ISLNK(status.st_mode):
        raise OSError(f"{path} is no file")
    return status


def _read_content(path: str, status: os.stat_result) -> bytes:
    """Return the name that git would give the content."""
    if stat.S_ISLNK(status.st_mode):
        data = os.fsencode(os.readlink(path))
    else:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            data = file.read()
    digest = sha1(b"blob %d\0" % len(data), usedforsecurity=False)
    digest.update(data)
    return digest.digest()


def _hash_index(data: bytes) -> str:
    """Hash the entries of an index without the times in it, which `git status` refreshes."""
    digest = sha256()
    try:
        for facts in GitIndex(data).iterate_facts():
            digest.update(facts)
    except (ValueError, IndexError, struct.error):  # of a format that is read nowhere
        return sha256(data).hexdigest()
    return digest.hexdigest()


def _hash_file(name: bytes, mode: int, content: bytes) -> int:
    """Hash a file. `content` is the name that git would give it."""
    kind = b""
    if stat.S_ISLNK(mode):
        kind = b"link"
    elif mode & stat.S_IXUSR:
        kind = b"program"
    return int.from_bytes(sha256(b"%b\0%b\0%b" % (name, kind, content)).digest())
