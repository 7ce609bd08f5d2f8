"""Tracked files: which files git can bring back, told by the indexes of the repositories at and in a folder."""

import os
import re
import stat
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha1, sha256
from pathlib import Path

from goose_like.config.paths import find_repository_root
from goose_like.core.dataclass import dataclass
from goose_like.core.pattern import compile_later
from goose_like.workspace.repositories.git_index import GitIndex, IndexEntry, count_entries, read_index

from .repository import find_git_folder
from .state import CLOCK_TICK_NS

_LIMIT_INDEX_BYTES = 512 << 20
_LOW_BITS = 0xFFFFFFFF
_KINDS = (stat.S_IFREG, stat.S_IFLNK)
_SHA256_FORMAT = re.compile(rb"objectformat\s*=\s*sha256", re.IGNORECASE)
_CONTENT = compile_later(r"git:([0-9a-f]{40,64}):(\d+)")

ListFiltered = Callable[[Path], frozenset[str] | None]
"""Lists the files of a repository that have a filter, so that git has another content. Returns None if git fails."""


@dataclass(frozen=True, slots=True)
class TrackedRepository:
    """A repository below a folder `top`: its index and the time of it, and the names of files with a filter."""

    top: str
    index: GitIndex
    index_ns: int
    filtered: frozenset[bytes]
    is_sha256: bool

    def find_entry(self, path: str) -> IndexEntry | None:
        """Find the entry of a file or a link at a path."""
        place = self.index.find(self.get_name(path))
        if place is None:
            return None
        entry = self.index.read_entry(place)
        return entry if stat.S_IFMT(entry.mode) in _KINDS else None

    def get_name(self, path: str) -> bytes:
        """Return the name in the index for a path."""
        return os.fsencode(path[len(self.top) + 1 :])

    def is_as_git_saw(self, name: bytes, place: int, status: os.stat_result) -> bool:
        """Check that a file has the content that git stored. A change after git's look shows in the times."""
        is_older = status.st_mtime_ns < self.index_ns  # otherwise it could change after git's look without a new time
        return is_older and self.index.has_status(place, status) and name not in self.filtered


class TrackedFiles:
    """The files that are tracked by the repository around a folder and those inside it. Indexes are read when needed.

    A file with the times, inode and size of its index entry has the content that git stored.
    """

    def __init__(self, root: Path | None = None, list_filtered: ListFiltered = lambda folder: None) -> None:
        """Find the repository around a folder. Without a folder, no file is tracked."""
        self.count = 0
        self.problems: list[str] = []
        self._list_filtered = list_filtered
        self._pending: list[tuple[str, Path]] = []
        self._repositories: list[TrackedRepository] = []
        if root:
            self.add_repository(str(find_repository_root(root)))

    def add_repository(self, folder: str) -> None:
        """Add the repository whose `.git` is in this folder, if it is trustworthy."""
        if git := find_git_folder(Path(folder)):
            self._pending.append((folder, git))
            self.count += count_entries(f"{git}/index")

    def find_content(self, path: str, status: os.stat_result) -> str:
        """Return the name of a file's content in git if the file is as git saw it, else an empty text."""
        if time.time_ns() - status.st_ctime_ns <= CLOCK_TICK_NS:
            return ""
        for repository in self._find_around(path):
            name = repository.get_name(path)
            place = repository.index.find(name)
            if place is not None and repository.is_as_git_saw(name, place, status):
                return name_content(repository.index.read_entry(place), status.st_size)
        return ""

    def find_candidate(self, path: str, size_bytes: int) -> str:
        """Return the name in git of the content that a file has if its times mislead, else an empty text."""
        for repository in self._find_around(path):
            entry = repository.find_entry(path)
            if entry and stat.S_ISREG(entry.mode) and entry.size in (0, size_bytes & _LOW_BITS):
                return name_content(entry, size_bytes)
        return ""

    def covers(self, path: str) -> bool:
        """Check for a tracked path or a folder of tracked files."""
        for repository in self._find_around(path):
            name = repository.get_name(path)
            if repository.index.find(name) is not None or repository.index.has_folder(name):
                return True
        return False

    def _find_around(self, path: str) -> list[TrackedRepository]:
        return [repository for repository in self.load() if path.startswith(f"{repository.top}/")]

    def load(self) -> list[TrackedRepository]:
        """Return the repositories, after reading the indexes that have not been read yet."""
        while self._pending:
            folder, git = self._pending.pop()
            try:
                self._repositories.append(self._read_repository(folder, git))
            except FileNotFoundError:  # nothing was ever added
                continue
            except (OSError, ValueError, IndexError, struct.error) as error:
                self.problems.append(f"{folder} ({error})")
        return self._repositories

    def _read_repository(self, folder: str, git: Path) -> TrackedRepository:
        data, status = read_index(f"{git}/index", _LIMIT_INDEX_BYTES)
        paths = self._list_filtered(Path(folder))
        if paths is None:
            raise ValueError("git can't list the files")
        filtered = frozenset(os.fsencode(path[len(folder) + 1 :]) for path in paths)
        is_sha256 = _uses_sha256(git)
        return TrackedRepository(folder, GitIndex(data, is_sha256=is_sha256), status.st_mtime_ns, filtered, is_sha256)


def name_content(entry: IndexEntry, size_bytes: int) -> str:
    """Return the name of a file's content in git."""
    return f"git:{entry.digest.hex()}:{size_bytes}"


def _uses_sha256(git: Path) -> bool:
    config = find_common_folder(git) / "config"
    with suppress(OSError):
        return _SHA256_FORMAT.search(config.read_bytes()) is not None
    return False


def find_common_folder(git: Path) -> Path:
    """Return the folder with the objects and settings of a repository; that of a worktree is two folders above."""
    if (git / "commondir").is_file():
        return git.parent.parent
    return git


def parse_content(content: str) -> tuple[str, int]:
    """Return the blob and the size of a content in git. Return an empty blob for another content."""
    found = _CONTENT.fullmatch(content)
    if not found:
        return "", 0
    return found[1], int(found[2])


def is_content(content: str, data: bytes) -> bool:
    """Check that these bytes are the content in git with this name, if git stores it without a filter."""
    blob, size_bytes = parse_content(content)
    if not blob or size_bytes != len(data):
        return False
    digest = sha1(usedforsecurity=False) if len(blob) == 40 else sha256()
    digest.update(b"blob %d\0" % len(data))
    digest.update(data)
    return digest.hexdigest() == blob
