"""Map: the definitions of a project that matter most, with their places, within a budget of characters."""

import asyncio
import os
import zlib
from collections.abc import Callable, Container, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from goose_like.core.message import Value
from goose_like.sdk.store import Store
from goose_like.toolkit import Notifier, ToolError, Workspace

from .drawing import Drawing
from .outline import ENDINGS, Grammars, Outline
from .paths import chosen, limit_of, named
from .ranking import Ranking, words_of
from .sketch import Sketch, sketch
from .sources import Sources, digest_of

T = TypeVar("T")
V = TypeVar("V", bound=Value)

# Errors would come in one stream with the names. To leave the choice of types to `rg` would cost it a third more.
_QUIETLY = ("sh", "-c", 'exec rg --no-config --null "$@" 2>/dev/null', "sh")
_SKETCHED_AT_ONCE = 50
_PARSED_AT_ONCE = 4
_PARSED_BEYOND = 2  # how much of what could be shown there is to choose from


class Drawn(Value):
    """A map, and the marks of all the files that were looked at for it."""

    marks: dict[str, str]
    text: str


class Map:
    """Draws maps of a workspace. `file` keeps from session to session what was found.

    One thread does all that takes long, in pieces, so that cancelling is minded.
    """

    def __init__(self, workspace: Workspace, notifier: Notifier, file: Path) -> None:
        self._workspace = workspace
        self._notifier = notifier
        self._file = file
        self._sources: Sources | None = None
        self._grammars = Grammars()
        self._thread = ThreadPoolExecutor(1, "map")

    async def draw(self, path: str, about: str, limit: int) -> str:
        """Of a file or a folder and what is below it, but for what is hidden or ignored by git.

        Files are sketched first, and only the best of them parsed.

        Raises:
            ToolError: there is nothing to be shown; the words say why.
        """
        below, words = self._below(path), words_of(about)
        self._notifier.status("listing files")
        listed, number = await self._rg("--files")
        sources = await self._apart(self._open)
        # What words are in may change in any file, so that such a map is drawn anew each time.
        name = "" if words else digest_of((self._workspace.root, below, limit, len(listed), number))
        if name and (text := await self._apart(_unchanged, sources, name)):
            return text
        paths = await self._apart(_within, listed, below)
        if not paths:
            raise ToolError(
                f"nothing in {path!r} can be mapped: it is empty, hidden, ignored by git, or in languages without a "
                "grammar here; look with rg in the shell"
            )
        picked = await self._apart(chosen, paths, await self._wanted(words, paths) if words else ())
        text = await self._drawn(sources, picked, words, Drawing(path, len(paths), len(picked), words, limit))
        if name:
            await self._apart(_keep, sources, name, picked, text)
        return text

    async def close(self) -> None:
        """Waits for the piece that is being done."""
        if self._sources is not None:
            await self._apart(self._sources.store.close)
        self._thread.shutdown()

    def _open(self) -> Sources:
        if self._sources is None:
            self._sources = Sources(self._workspace, Store(self._file))
        return self._sources

    async def _apart(self, work: Callable[..., T], *values: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *values)

    def _below(self, path: str) -> str:
        """The path as `rg` lists it from the workspace; empty for all of that."""
        real = self._workspace.real(path)
        if not real.is_relative_to(self._workspace.root):
            raise ToolError(f"{path} is outside of the workspace {self._workspace.root}; map a folder within it")
        if not real.exists():
            raise ToolError(f"there is no {path!r}; leave `path` out to map all of the workspace")
        return os.path.relpath(real, self._workspace.root) if real != self._workspace.root else ""

    async def _rg(self, *words: str) -> tuple[bytes, int]:
        """The paths that it prints, each with a NUL behind it, and a number that is another for other paths: `rg`
        prints them in any order, and to sort them would take longer than to count while they come."""
        process = await self._workspace.spawn([*_QUIETLY, *words], writes=False)
        parts: list[bytes] = []
        number, rest = 0, b""
        try:
            while part := await process.read():
                parts.append(part)
                *lines, rest = (rest + part).split(b"\0")
                number += sum(map(zlib.crc32, lines))
        except asyncio.CancelledError:
            await process.stop(0)
            raise
        return b"".join(parts), number

    async def _wanted(self, words: Sequence[str], paths: Sequence[str]) -> list[Container[str]]:
        """The files with most of the words in their path, those with fewer, and where not all are looked at those with
        one in their text."""
        groups = await self._apart(named, paths, words)
        if limit_of(len(paths)) < len(paths):
            self._notifier.status(f"searching for {', '.join(words)}")
            patterns = [part for word in words for part in ("-e", word)]
            found, _ = await self._rg("--files-with-matches", "--ignore-case", "--fixed-strings", *patterns)
            groups.append(frozenset(_read(found)))
        return groups

    async def _drawn(self, sources: Sources, picked: Sequence[str], words: Sequence[str], drawing: Drawing) -> str:
        sketches = await self._made(sources, Sketch, picked, sketch, _SKETCHED_AT_ONCE)
        ranking = await self._apart(Ranking, sketches, words)
        best, outlines = ranking.files(), dict[str, Outline]()
        while best and drawing.size(outlines) < _PARSED_BEYOND * drawing.limit:
            some, best = best[:_PARSED_AT_ONCE], best[_PARSED_AT_ONCE:]
            outlines |= await self._made(sources, Outline, some, self._grammars.outline, _PARSED_AT_ONCE)
        return drawing.text(outlines, ranking, unread=len(picked) - len(sketches))

    async def _made(
        self, sources: Sources, kind: type[V], paths: Sequence[str], make: Callable[[str, bytes], V], at_once: int
    ) -> Mapping[str, V]:
        """In pieces, so that cancelling is minded and the person sees that it goes on."""
        found: dict[str, V] = {}
        for start in range(0, len(paths), at_once):
            self._notifier.status(f"reading {paths[start]}")
            found |= await self._apart(sources.made, kind, paths[start : start + at_once], make)
        return found


def _within(listed: bytes, below: str) -> list[str]:
    paths = [path for path in _read(listed) if path.endswith(ENDINGS)]
    return [path for path in paths if path == below or path.startswith(f"{below}/")] if below else paths


def _read(listed: bytes) -> list[str]:
    return listed.decode(errors="replace").split("\0")[:-1]


def _unchanged(sources: Sources, name: str) -> str:
    """The map of that name, if no file that was looked at for it has changed since."""
    try:
        drawn = Drawn.model_validate_json(sources.store.get([name]).get(name, "{}"))
    except ValidationError:
        return ""
    return drawn.text if all(sources.marks(path) == marks for path, marks in drawn.marks.items()) else ""


def _keep(sources: Sources, name: str, picked: Sequence[str], text: str) -> None:
    """Not where a file has just changed: another change might leave no other mark."""
    marks = {path: sources.marks(path) for path in picked}
    if all(marks.values()):
        sources.store.put({name: Drawn(marks=marks, text=text).model_dump_json()})
