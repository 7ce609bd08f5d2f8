"""Tracked files: which files git can bring back, told by the indexes of the repositories at and in a folder."""

import os
import re
import stat
import struct
import time
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import suppress
from hashlib import sha1, sha256
from pathlib import Path

from goose_like.config.paths import find_repository_root
from goose_like.workspace.repositories.git_index import IndexEntry, count_entries, iterate_entries, read_index

from .repository import find_git_folder

CLOCK_TICK_NS = 50_000_000
"""A change within this time after a look may leave the same times."""

_LIMIT_INDEX_BYTES = 512 << 20
_NEVER = -1  # a time that no file has
_SHA256_FORMAT = re.compile(rb"objectformat\s*=\s*sha256", re.IGNORECASE)
_CONTENT = re.compile(r"git:([0-9a-f]{40,64}):(\d+)")

ListFiltered = Callable[[Path], frozenset[str] | None]
"""Lists the files of a repository that have a filter, so that git has another content. Returns None if git fails."""


class TrackedFiles:
    """The files that are tracked by the repository around a folder and those inside it. Indexes are read when needed.

    A file with the times, inode and size of its index entry has the content that git stored.
    """

    def __init__(self, root: Path | None = None, list_filtered: ListFiltered = lambda folder: None) -> None:
        """Find the repository around a folder. Without a folder, no file is tracked."""
        self.count = 0
        self.problems: list[str] = []
        self._root = f"{root}/"
        self._list_filtered = list_filtered
        self._pending: list[tuple[str, Path]] = []
        self._entries: dict[str, IndexEntry] = {}
        if root:
            self.add_repository(str(find_repository_root(root)))

    def add_repository(self, folder: str) -> None:
        """Add the repository whose `.git` is in this folder, if it is trustworthy."""
        if git := find_git_folder(Path(folder)):
            self._pending.append((folder, git))
            self.count += count_entries(f"{git}/index")

    def find_content(self, path: str, status: os.stat_result) -> str:
        """Return the name of a file's content in git if the file is as git saw it, else an empty text."""
        entry = self.load().get(path)
        if (
            entry is None
            or entry.mtime_ns != status.st_mtime_ns
            or entry.ctime_ns != status.st_ctime_ns
            or entry.size != status.st_size & 0xFFFFFFFF
            or entry.inode != status.st_ino & 0xFFFFFFFF
            or time.time_ns() - status.st_ctime_ns <= CLOCK_TICK_NS
        ):
            return ""
        return f"git:{entry.digest.hex()}:{status.st_size}"

    def find_candidate(self, path: str, size_bytes: int) -> str:
        """Return the name in git of the content that a file has if its times mislead, else an empty text."""
        entry = self.load().get(path)
        if entry is None or not stat.S_ISREG(entry.mode):
            return ""
        if entry.size not in (0, size_bytes & 0xFFFFFFFF):
            return ""
        return f"git:{entry.digest.hex()}:{size_bytes}"

    def count_others(self, paths: Iterable[str]) -> int:
        """Count the paths that are neither tracked nor folders of tracked files."""
        entries = self.load()
        folders = self._list_folders()
        return sum(1 for path in paths if path not in entries and path not in folders)

    def walk(self, excluded: Container[str]) -> Iterator[tuple[str, os.stat_result]]:
        """Yield the tracked files and their folders that exist and are not in `excluded`, without following links."""
        real = {os.path.dirname(self._root)}
        for path in sorted(self._list_folders()):
            if path in excluded or os.path.dirname(path) not in real:
                continue
            with suppress(OSError):
                status = os.lstat(path)
                if stat.S_ISDIR(status.st_mode):
                    real.add(path)
                    yield path, status
        for path in self.load():
            if path in excluded or os.path.dirname(path) not in real:
                continue
            with suppress(OSError):
                yield path, os.lstat(path)

    def _list_folders(self) -> set[str]:
        folders: set[str] = set()
        for folder in {os.path.dirname(path) for path in self.load()}:
            while folder not in folders and folder.startswith(self._root):
                folders.add(folder)
                folder = os.path.dirname(folder)
        return folders

    def load(self) -> dict[str, IndexEntry]:
        """Return the entries by path, after reading the indexes that have not been read yet."""
        while self._pending:
            folder, git = self._pending.pop()
            try:
                self._entries |= self._read_entries(folder, git)
            except FileNotFoundError:  # nothing was ever added
                continue
            except (OSError, ValueError, IndexError, struct.error) as error:
                self.problems.append(f"{folder} ({error})")
        return self._entries

    def _read_entries(self, folder: str, git: Path) -> dict[str, IndexEntry]:
        data, status = read_index(f"{git}/index", _LIMIT_INDEX_BYTES)
        filtered = self._list_filtered(Path(folder))
        if filtered is None:
            raise ValueError("git can't list the files")
        entries: dict[str, IndexEntry] = {}
        for name, entry in iterate_entries(data, is_sha256=_uses_sha256(git)):
            path = f"{folder}/{name}"
            kind = stat.S_IFMT(entry.mode)
            if kind not in (stat.S_IFREG, stat.S_IFLNK) or not path.startswith(self._root):
                continue
            # A file could change after git's look without a new time.
            if entry.mtime_ns >= status.st_mtime_ns or entry.has_conflict or path in filtered:
                entry = entry._replace(mtime_ns=_NEVER)
            entries[path] = entry
        return entries


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
