"""The workspace's files, found by some letters of their names."""

import asyncio
import re
import time
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path

from goose_like.core.errors import GooseLikeError
from goose_like.workspace.ignored import Run

FRESH_S = 5.0
PATIENCE_S = 15.0
OFFERED = 50

# Errors would come in one stream with the names. What there is when the time is over is better than nothing.
_LIST = 'cd "$1" && { timeout 10 rg --no-config --files --hidden --null -g "!.git" | head -c 50000000; } 2>/dev/null'


class Names:
    """Paths below a folder, of files and of the folders that they are in, kept so that they are searched quickly."""

    def __init__(self, paths: Iterable[str]) -> None:
        # The shortest first: what is found first is best, and the search may end with it.
        self._paths = sorted(paths, key=lambda path: (len(path), path))
        self._whole = _Lines(self._paths)
        self._last = _Lines([path[path.rfind("/", 0, -1) + 1 :] for path in self._paths])
        self._top = sorted(path for path in self._paths if "/" not in path[:-1])
        self._former: tuple[str, Names] | None = None

    @classmethod
    def read(cls, listed: bytes) -> "Names":
        """Of files that end with a NUL each, but for those that a screen, UTF-8 or quotes can't hold."""
        files = listed.decode(errors="replace").split("\0")[:-1]
        folders = {f"{folder}/" for file in files if (folder := file.rpartition("/")[0])}
        for folder in list(folders):
            while (folder := folder[:-1].rpartition("/")[0] + "/") != "/" and folder not in folders:
                folders.add(folder)
        every = chain(files, folders)
        return cls(path for path in every if path.isprintable() and "\ufffd" not in path and '"' not in path)

    def matching(self, letters: str) -> list[str]:
        """The best paths that have these letters in this order, in upper or lower case.

        What has them in its last name comes before what has them in its folders, letters in a row before scattered
        ones, a short path before a long one.
        """
        if not letters:
            return self._top[:OFFERED]
        sought = letters.lower()
        if self._former and sought.startswith(self._former[0]):
            return self._former[1].matching(letters)
        found: dict[int, None] = {}
        for lines in (self._last, self._whole):
            for numbers in (lines.with_all(sought), lines.with_each(sought)):
                found.update(dict.fromkeys(islice((n for n in numbers if n not in found), OFFERED - len(found))))
                if len(found) == OFFERED:
                    return [self._paths[number] for number in found]
        best = [self._paths[number] for number in found]
        self._former = sought, Names(best)  # whoever types on finds nothing but some of these
        return best


class _Lines:
    """Lines in one text: it is searched as a whole, and only what is found is looked at."""

    def __init__(self, lines: list[str]) -> None:
        self._text = "\n".join(["", *map(str.lower, lines), ""])
        self._ends = array("L")
        end = 0
        for line in self._text.split("\n")[1:-1]:
            end += len(line) + 1
            self._ends.append(end)

    def with_all(self, letters: str) -> Iterator[int]:
        """The numbers of the lines that have the letters in a row."""
        at = self._text.find(letters)
        while at >= 0:
            number = bisect_right(self._ends, at)
            yield number
            at = self._text.find(letters, self._ends[number])

    def with_each(self, letters: str) -> Iterator[int]:
        """The numbers of the lines that have the letters in their order."""
        # From each line's beginning and possessive: a line that lacks a letter is given up at once.
        pattern = "\\n" + "".join(rf"[^{letter}\n]*+{letter}" for letter in map(re.escape, letters))
        return (bisect_right(self._ends, found.start()) for found in re.finditer(pattern, self._text))


class Files:
    """The files of a workspace as they were listed last. `matching` is called in a thread, beside the loop's.

    `run` runs a short command in the workspace, on the loop in which this is made.
    """

    def __init__(self, root: Path, run: Run) -> None:
        self._root = root
        self._run = run
        self._loop = asyncio.get_running_loop()
        self._names: Names | None = None
        self._listed_at = 0.0
        self._listing: Future[Names] | None = None

    def matching(self, letters: str) -> list[str]:
        """See `Names.matching`; without letters a new search is begun, and what is old is listed anew behind it.

        Waits for a listing where there is none yet.
        """
        listing = self._listing
        if listing is None and (self._names is None or (not letters and self._is_old)):
            listing = self._listing = asyncio.run_coroutine_threadsafe(self._list(), self._loop)
        if listing and (self._names is None or listing.done()):
            with suppress(GooseLikeError, TimeoutError, CancelledError):
                self._names = listing.result(PATIENCE_S)
                self._listed_at = time.monotonic()
            self._listing = None
        return self._names.matching(letters) if self._names else []

    @property
    def _is_old(self) -> bool:
        return time.monotonic() - self._listed_at > FRESH_S

    async def _list(self) -> Names:
        _, listed = await self._run(["sh", "-c", _LIST, "sh", str(self._root)])
        return await asyncio.to_thread(Names.read, listed)
