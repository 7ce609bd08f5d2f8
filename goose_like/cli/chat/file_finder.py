"""Fuzzy search for files of the workspace by letters of their paths."""

import asyncio
import re
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from pathlib import Path

from goose_like.core.errors import GooseLikeError
from goose_like.core.threads import run_in_thread
from goose_like.workspace.repositories.git import RunCommand

LISTING_TIMEOUT_S = 15.0
MAX_PATHS = 50

# Without stderr, because both share one stream. After the timeout a part of the list is better than nothing.
_LIST = 'cd "$1" && { timeout 10 rg --no-config --files --hidden --null -g "!.git" | head -c 50000000; } 2>/dev/null'


class PathIndex:
    """An index of the files below a folder and of their folders, for fast searches."""

    def __init__(self, paths: Iterable[str]) -> None:
        # Shortest first: the first matches are the best, so a search can stop early.
        self._paths = sorted(paths, key=lambda path: (len(path), path))
        self._whole = _LineIndex(self._paths)
        self._last = _LineIndex(list(map(_get_last_name, self._paths)))
        self._top = sorted(path for path in self._paths if "/" not in path[:-1])

    @classmethod
    def from_listing(cls, listing: bytes) -> "PathIndex":
        """Create an index from NUL-terminated file names; skip names that are not printable or contain quotes."""
        files = listing.decode(errors="replace").split("\0")[:-1]
        paths = [*files, *_list_folders(files)]
        return cls(filter(_can_be_typed, paths))

    def find_paths(self, letters: str) -> list[str]:
        """Return the best paths that contain these letters in this order, ignoring case.

        Matches in the last name come before matches in folders, adjacent letters before scattered ones, and short
        paths before long ones.
        """
        if not letters:
            return self._top[:MAX_PATHS]
        numbers: dict[int, None] = {}  # in this order
        for number in self._iterate_matches(letters.lower()):
            numbers[number] = None
            if len(numbers) == MAX_PATHS:
                break
        return [self._paths[number] for number in numbers]

    def _iterate_matches(self, letters: str) -> Iterator[int]:
        """Yield the numbers of the paths that contain the letters, the best first. A path may come again."""
        for lines in (self._last, self._whole):
            yield from lines.find_adjacent(letters)
            yield from lines.find_scattered(letters)


def _get_last_name(path: str) -> str:
    """Return the name of a file, or that of a folder with its slash."""
    start = path.rfind("/", 0, -1) + 1
    return path[start:]


def _list_folders(files: Iterable[str]) -> set[str]:
    """Return the folders of files, with a slash at their ends."""
    folders: set[str] = set()
    for file in files:
        folder, _, _ = file.rpartition("/")
        while folder and f"{folder}/" not in folders:  # with a folder, those above it are there too
            folders.add(f"{folder}/")
            folder, _, _ = folder.rpartition("/")
    return folders


def _can_be_typed(path: str) -> bool:
    """Return whether a mention in a message can name a path."""
    return path.isprintable() and "\ufffd" not in path and '"' not in path


class _LineIndex:
    """Lines joined to one text, so that one search covers all of them."""

    def __init__(self, lines: list[str]) -> None:
        self._text = "\n".join(["", *map(str.lower, lines), ""])
        self._ends = array("L")
        end = 0
        for line in self._text.split("\n")[1:-1]:
            end += len(line) + 1
            self._ends.append(end)

    def find_adjacent(self, letters: str) -> Iterator[int]:
        """Yield the numbers of the lines that contain the letters next to each other."""
        at = self._text.find(letters)
        while at >= 0:
            number = bisect_right(self._ends, at)
            yield number
            at = self._text.find(letters, self._ends[number])

    def find_scattered(self, letters: str) -> Iterator[int]:
        """Yield the numbers of the lines that contain the letters in this order."""
        # Anchored at the start of a line and possessive: a line without a letter fails at once.
        pattern = r"\n"
        for letter in map(re.escape, letters):
            pattern += rf"[^{letter}\n]*+{letter}"
        for match in re.finditer(pattern, self._text):
            yield bisect_right(self._ends, match.start())


class FileFinder:
    """A search over the files of a workspace, with a list that is refreshed in the background.

    Create it in the event loop and call `find_paths` in another thread. `run` runs a short command in the workspace.
    """

    def __init__(self, root: Path, run: RunCommand) -> None:
        self._root = root
        self._run = run
        self._loop = asyncio.get_running_loop()
        self._index: PathIndex | None = None
        self._listing: Future[PathIndex] | None = None

    def find_paths(self, letters: str) -> list[str]:
        """Return the best matches; see `PathIndex.find_paths`.

        The first call waits for the list of files. A call without letters refreshes the list in the background.
        """
        needs_listing = self._index is None or not letters
        if self._listing is None and needs_listing:
            self._listing = asyncio.run_coroutine_threadsafe(self._list(), self._loop)
        listing = self._listing
        if listing and (self._index is None or listing.done()):
            with suppress(GooseLikeError, TimeoutError, CancelledError):
                self._index = listing.result(LISTING_TIMEOUT_S)
            self._listing = None
        if self._index is None:
            return []
        return self._index.find_paths(letters)

    async def _list(self) -> PathIndex:
        _, listing = await self._run(["sh", "-c", _LIST, "sh", str(self._root)])
        return await run_in_thread(PathIndex.from_listing, listing)
