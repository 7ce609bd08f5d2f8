"""Ignored files: what the model must not read, by the patterns of `.gooseignore` and of the profile."""

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from goose_like.config.paths import WORKTREES_FOLDER, find_main_folder, find_repository_root
from goose_like.core.errors import GooseLikeError

from .home import is_around_home

IGNORE_FILE = ".gooseignore"
_MAX_BYTES = 1 << 20
_MAX_PATHS = 200  # each is a mount, and bubblewrap's time grows with the square


class IgnorePatterns:
    """Patterns in the syntax of .gitignore, for the paths below a folder."""

    def __init__(self, folder: Path, lines: Iterable[str]) -> None:
        self.folder = folder
        self._lines = [line for line in lines if line.strip()]

    def __bool__(self) -> bool:
        return bool(self._lines)

    @cached_property
    def _match_file(self) -> Callable[[str], bool]:
        from pathspec import GitIgnoreSpec  # only needed where there are patterns

        try:
            return GitIgnoreSpec.from_lines(self._lines).match_file
        except (ValueError, re.error) as error:
            raise GooseLikeError(f"{IGNORE_FILE} or paths.hide: no pattern: {error}; correct it") from error

    def match_entry(self, entry: "os.DirEntry[str]", path: str) -> bool:
        """Check whether a pattern hides an entry of a folder. A link to a folder counts as a folder."""
        return self._match(_leave_worktree(path), is_folder=entry.is_dir())

    def covers(self, place: Path) -> bool:
        """Check whether a path or a folder above it is hidden."""
        if not self._lines or not place.is_relative_to(self.folder):
            return False
        relative = _leave_worktree(str(place.relative_to(self.folder)))
        parts = Path(relative).parts
        for length in range(1, len(parts)):
            if self._match("/".join(parts[:length]), is_folder=True):
                return True
        return bool(parts) and self._match("/".join(parts), is_folder=os.path.isdir(place))

    def _match(self, path: str, *, is_folder: bool) -> bool:
        path = path.replace("\n", "\0")  # the library's expressions stop at a newline
        if is_folder:
            path += "/"
        return self._match_file(path)


def _leave_worktree(path: str) -> str:
    """Return the relative path in the main folder for one in a worktree of ours."""
    if WORKTREES_FOLDER not in path:
        return path
    return str(find_main_folder(Path("/", path)))[1:]


class IgnoredFiles:
    """The files of a session that the model must not read. The patterns are those of the first use.

    The patterns of `hide` hold in each of the folders that commands change.
    """

    def __init__(self, folders: Sequence[Path], hide: Iterable[str]) -> None:
        self._folders = folders
        self._hide = tuple(hide)

    def __bool__(self) -> bool:
        return any(self._patterns) or bool(self._named)

    @cached_property
    def ignore_files(self) -> tuple[Path, ...]:
        """The files with patterns: in each folder, in the repository around it, and in its main working tree."""
        folders: dict[Path, None] = {}
        for folder in self._folders:
            tops = map(find_repository_root, (find_main_folder(folder), folder))
            folders |= dict.fromkeys((*tops, folder))
        files = [folder / IGNORE_FILE for folder in folders]
        return tuple(filter(os.path.lexists, files))

    def covers(self, place: Path) -> bool:
        """Check whether a path is hidden, existing or not."""
        if any(patterns.covers(place) for patterns in self._patterns):
            return True
        return any(map(place.is_relative_to, self._named))

    def find_paths(self) -> list[Path]:
        """Find the real paths to hide from commands: files and whole folders, targets of links, and hard links.

        Raise GooseLikeError if there are more than 200, or if patterns cannot be read.
        """
        found = self._find_matches()
        found |= self._find_other_names(found)
        found = {path for path in found if found.isdisjoint(path.parents)}
        if len(found) > _MAX_PATHS:
            names = ", ".join(map(str, self.ignore_files)) or "paths.hide"
            raise GooseLikeError(
                f"{names} hides {len(found):,} paths, more than {_MAX_PATHS}; hide whole folders instead of many files"
            )
        return [*found, *self._named]

    def _find_matches(self) -> set[Path]:
        """Find the real paths that match a pattern."""
        found = set()
        for patterns in filter(None, self._patterns):
            for path in _walk(patterns.folder, patterns.match_entry):
                real = Path(os.path.realpath(path))
                # A link may lead anywhere, but a folder around the workspace or the home is not taken away.
                is_around = any(folder.is_relative_to(real) for folder in self._folders)
                if not is_around and not is_around_home(real):
                    found.add(real)
        return found

    def _find_other_names(self, found: Iterable[Path]) -> set[Path]:
        """Find the hard links to files at or below these paths."""
        inodes: set[tuple[int, int]] = set()
        for path in found:
            inodes.update(_list_linked_inodes(path))
        if not inodes:
            return set()
        numbers = {number for _, number in inodes}

        def is_link(entry: "os.DirEntry[str]", _: str) -> bool:
            if entry.inode() not in numbers:  # needs no system call
                return False
            status = entry.stat(follow_symlinks=False)
            return (status.st_dev, status.st_ino) in inodes

        links: set[Path] = set()
        for patterns in filter(None, self._patterns):
            links.update(_walk(patterns.folder, is_link))
        return links

    @cached_property
    def _named(self) -> tuple[Path, ...]:
        """The paths below the home folder that the profile hides."""
        named = []
        for name in self._hide:
            if name.startswith("~/"):
                path = os.path.expanduser(name)
                named.append(Path(os.path.realpath(path)))
        return tuple(named)

    @cached_property
    def _patterns(self) -> list[IgnorePatterns]:
        found = []
        for file in self.ignore_files:
            found.append(IgnorePatterns(file.parent, _read_lines(file)))
        hidden = [name for name in self._hide if not name.startswith("~/")]
        for folder in self._folders:
            own = find_repository_root(folder)
            for patterns in [*found]:
                if patterns.folder in own.parents:  # they hold in a worktree too
                    found.append(IgnorePatterns(own, patterns._lines))
            found.append(IgnorePatterns(folder, hidden))
        return found


def _read_lines(file: Path) -> list[str]:
    """Read a file without following a link or waiting for a pipe. Raise GooseLikeError if it is no plain text."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        with open(descriptor, "rb") as stream:
            is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
            data = stream.read(_MAX_BYTES) if is_file else b""
        if is_file and len(data) < _MAX_BYTES:
            return data.decode("utf-8-sig", errors="surrogateescape").splitlines()
    except OSError as error:
        raise GooseLikeError(f"can't read {file}: {error.strerror}; make it a file that you can read") from error
    raise GooseLikeError(f"can't read {file}: it is no file of less than 1 MB; make it a plain text")


def _walk(folder: Path, is_wanted: Callable[["os.DirEntry[str]", str], bool]) -> Iterator[Path]:
    """Yield the wanted paths below a folder, but none below those. `is_wanted` gets each entry and its relative path.

    A folder that cannot be listed is yielded too, because it may hold wanted paths.
    """
    pending = [""]
    while pending:
        above = pending.pop()
        try:
            with os.scandir(folder / above) as entries:
                listed = list(entries)
        except OSError:
            yield folder / above
            continue
        for entry in listed:
            path = f"{above}{entry.name}"
            if is_wanted(entry, path):
                yield Path(entry.path)
            elif entry.name != ".git" and entry.is_dir(follow_symlinks=False):
                pending.append(f"{path}/")


def _list_linked_inodes(path: Path) -> Iterator[tuple[int, int]]:
    """Yield device and inode of each file at or below a path that has more than one name."""
    for file in _list_files(path):
        with suppress(FileNotFoundError):
            status = os.lstat(file)
            if status.st_nlink > 1 and stat.S_ISREG(status.st_mode):
                yield status.st_dev, status.st_ino


def _list_files(path: Path) -> Iterator[str]:
    """Yield the files below a folder, or the path itself if it is none."""
    if not os.path.isdir(path):
        yield str(path)
        return
    for above, _, names in os.walk(path):
        for name in names:
            yield os.path.join(above, name)
