"""Fuzzy search for files of the workspace by letters of their paths."""

import asyncio
import re
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from itertools import chain, islice
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
        self._last = _LineIndex([path[path.rfind("/", 0, -1) + 1 :] for path in self._paths])
        self._top = sorted(path for path in self._paths if "/" not in path[:-1])

    @classmethod
    def from_listing(cls, listing: bytes) -> "PathIndex":
        """Create an index from NUL-terminated file names; skip names that are not printable or contain quotes."""
        files = listing.decode(errors="replace").split("\0")[:-1]
        folders = {f"{folder}/" for file in files if (folder := file.rpartition("/")[0])}
        for folder in list(folders):
            while (folder := folder[:-1].rpartition("/")[0] + "/") != "/" and folder not in folders:
                folders.add(folder)
        paths = chain(files, folders)
        return cls(path for path in paths if path.isprintable() and "\ufffd" not in path and '"' not in path)

    def find_paths(self, letters: str) -> list[str]:
        """Return the best paths that contain these letters in this order, ignoring case.

        Matches in the last name come before matches in folders, adjacent letters before scattered ones, and short
        paths before long ones.
        """
        if not letters:
            return self._top[:MAX_PATHS]
        query = letters.lower()
        matches: dict[int, None] = {}
        for lines in (self._last, self._whole):
            for numbers in (lines.find_adjacent(query), lines.find_scattered(query)):
                new = (number for number in numbers if number not in matches)
                matches.update(dict.fromkeys(islice(new, MAX_PATHS - len(matches))))
        return [self._paths[number] for number in matches]


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
        """Return the numbers of the lines that contain the letters in this order."""
        # Anchored at the start of a line and possessive: a line without a letter fails at once.
        pattern = "\\n" + "".join(rf"[^{letter}\n]*+{letter}" for letter in map(re.escape, letters))
        return (bisect_right(self._ends, match.start()) for match in re.finditer(pattern, self._text))


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
        listing = self._listing
        if listing is None and (self._index is None or not letters):
            listing = self._listing = asyncio.run_coroutine_threadsafe(self._list(), self._loop)
        if listing and (self._index is None or listing.done()):
            with suppress(GooseLikeError, TimeoutError, CancelledError):
                self._index = listing.result(LISTING_TIMEOUT_S)
            self._listing = None
        return self._index.find_paths(letters) if self._index else []

    async def _list(self) -> PathIndex:
        _, listing = await self._run(["sh", "-c", _LIST, "sh", str(self._root)])
        return await run_in_thread(PathIndex.from_listing, listing)
