"""Map: the definitions of a project that matter most, with their places, within a budget of characters."""

import asyncio
import os
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from goose_like.message import Value
from goose_like.toolkit import Notifier, ToolError, Workspace

from .drawing import Drawing
from .outline import Grammars, Outline
from .paths import chosen, parsable
from .ranking import Ranking, words_of
from .sketch import Sketch, sketch
from .sources import Sources, digest_of
from .store import Store

V = TypeVar("V", bound=Value)

# Errors would come in one stream with the names.
_QUIETLY = ("sh", "-c", 'cd "$1" && shift && exec rg --no-config --null "$@" 2>/dev/null', "sh")
_SKETCHED_AT_ONCE = 50
_PARSED_AT_ONCE = 10
_PARSED_BEYOND = 2  # how much of what could be shown there is to choose from


class Drawn(Value):
    """A map, and the marks of all the files that were looked at for it."""

    marks: dict[str, str]
    text: str


class Map:
    """Draws maps of a workspace, one at a time. `file` keeps from session to session what was found."""

    def __init__(self, workspace: Workspace, notifier: Notifier, file: Path) -> None:
        self._workspace = workspace
        self._notifier = notifier
        self._file = file
        self._store: Store | None = None
        self._grammars = Grammars()
        self._drawing = asyncio.Lock()

    async def draw(self, path: str, about: str, limit: int) -> str:
        """Of a file or a folder and what is below it, but for what is hidden or ignored by git.

        Files are sketched first, and only the best of them parsed.

        Raises:
            ToolError: there is nothing to be shown; the words say why.
        """
        below = self._below(path)
        async with self._drawing:
            self._notifier.status("listing files")
            listed = await self._rg("--files")
            if self._store is None:
                self._store = await asyncio.to_thread(Store, self._file)
            sources, words = Sources(self._workspace, self._store), words_of(about)
            name = await asyncio.to_thread(self._name, listed, below, limit)
            if not words and (text := await asyncio.to_thread(_unchanged, self._store, sources, name)):
                return text
            paths = await asyncio.to_thread(_within, listed, below)
            if not paths:
                raise ToolError(
                    f"nothing in {path!r} can be mapped: it is empty, hidden, ignored by git, or in languages without "
                    "a grammar here; look with rg in the shell"
                )
            picked = await asyncio.to_thread(chosen, paths, await self._wanted(words, paths) if words else ())
            text = await self._drawn(sources, picked, words, Drawing(path, len(paths), len(picked), words, limit))
            if not words:
                await asyncio.to_thread(_keep, self._store, sources, name, picked, text)
            return text

    async def close(self) -> None:
        """Ends what is kept."""
        if self._store is not None:
            await asyncio.to_thread(self._store.close)

    def _below(self, path: str) -> str:
        """The path as `rg` lists it from the workspace; empty for all of that."""
        real = self._workspace.real(path)
        if not real.is_relative_to(self._workspace.root):
            raise ToolError(f"{path} is outside of the workspace {self._workspace.root}; map a folder within it")
        if not real.exists():
            raise ToolError(f"there is no {path!r}; leave `path` out to map all of the workspace")
        return os.path.relpath(real, self._workspace.root) if real != self._workspace.root else ""

    def _name(self, listed: bytes, below: str, limit: int) -> str:
        """Of the map of just these files; `rg` lists them in any order."""
        lines = listed.split(b"\0")
        return digest_of((self._workspace.root, below, limit, len(lines), sum(map(zlib.crc32, lines))))

    async def _rg(self, *words: str) -> bytes:
        _, output = await self._workspace.run([*_QUIETLY, str(self._workspace.root), *words])
        return output

    async def _wanted(self, words: Sequence[str], paths: Sequence[str]) -> list[frozenset[str]]:
        """The files with one of the words in their path, and those with one in their text."""
        named = frozenset(path for path in paths if any(word in path.lower() for word in words))
        if chosen(paths) == paths:
            return [named]
        self._notifier.status(f"searching for {', '.join(words)}")
        patterns = [part for word in words for part in ("-e", word)]
        found = await self._rg("--files-with-matches", "--ignore-case", "--fixed-strings", *patterns)
        return [named, frozenset(found.decode(errors="replace").split("\0"))]

    async def _drawn(self, sources: Sources, picked: Sequence[str], words: Sequence[str], drawing: Drawing) -> str:
        sketches = await self._made(sources, Sketch, picked, sketch, _SKETCHED_AT_ONCE)
        ranking = await asyncio.to_thread(Ranking, sketches, words)
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
            found |= await asyncio.to_thread(sources.made, kind, paths[start : start + at_once], make)
        return found


def _within(listed: bytes, below: str) -> list[str]:
    paths = parsable(listed)
    return [path for path in paths if path == below or path.startswith(f"{below}/")] if below else paths


def _unchanged(store: Store, sources: Sources, name: str) -> str:
    """The map of that name, if no file that was looked at for it has changed since."""
    try:
        drawn = Drawn.model_validate_json(store.get([name]).get(name, "{}"))
    except ValidationError:
        return ""
    return drawn.text if all(sources.marks(path) == marks for path, marks in drawn.marks.items()) else ""


def _keep(store: Store, sources: Sources, name: str, picked: Sequence[str], text: str) -> None:
    """Not where a file has just changed: another change might leave no other mark."""
    marks = {path: sources.marks(path) for path in picked}
    if all(marks.values()):
        store.put({name: Drawn(marks=marks, text=text).model_dump_json()})
