"""The map of a project: its most important definitions and their places, within a number of characters."""

import asyncio
import os
import zlib
from collections.abc import Callable, Container, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from goose_like.core.message import FrozenModel
from goose_like.core.threads import run_in_executor
from goose_like.sdk.parse_cache import ParseCache
from goose_like.toolkit import Notifier, ToolError, Workspace

from .file_cache import FileCache, digest
from .file_choice import choose_files, group_by_words, max_files
from .map_text import MapText
from .outline import SUFFIXES, Grammars, Outline
from .ranking import Ranking, split_words
from .sketch import Sketch, sketch_file
from .task_hints import TaskHints

T = TypeVar("T")
V = TypeVar("V", bound=FrozenModel)

# The shell drops errors, which would be mixed with the names. Filtering by file type in rg would take a third longer.
_RG = ("sh", "-c", 'exec rg --no-config --null "$@" 2>/dev/null', "sh")
_SKETCH_BATCH = 50
_PARSE_BATCH = 4
_NO_HINTS = TaskHints()
_PARSE_FACTOR = 2  # parse until the definitions would fill this many maps, to have a choice


class CachedMap(FrozenModel):
    """A map, and the fingerprints of all files that it was computed from."""

    fingerprints: dict[str, str]
    text: str


class RepoMap:
    """A builder of maps of a workspace, with a cache in `cache_file`.

    One thread does all long work in small batches, so that it can be cancelled between them.
    """

    def __init__(self, workspace: Workspace, notifier: Notifier, cache_file: Path) -> None:
        self._workspace = workspace
        self._notifier = notifier
        self._cache_file = cache_file
        self._files: FileCache | None = None
        self._grammars = Grammars()
        self._thread = ThreadPoolExecutor(1, "map")

    async def build(self, path: str, about: str, max_characters: int, hints: TaskHints = _NO_HINTS) -> str:
        """Build the map of a file or folder, without files that are hidden or ignored by git.

        All chosen files are sketched, but only the best of them are parsed. Without `about`, the names of the task
        count.

        Raises:
            ToolError: there is nothing to map.
        """
        folder = self._to_relative(path)
        words = split_words(about or hints.names)
        self._notifier.status("listing files")
        listed, checksum = await self._run_rg("--files")
        files = await self._run(self._open_cache)
        key = ""
        recent = await self._run(_find_recent, hints, listed, folder)
        if not words and not recent:  # a map with words is never reused: a change in any file may add one of the words
            key = digest((self._workspace.root, folder, max_characters, len(listed), checksum))
            text = await self._run(_get_cached_map, files, key)
            if text:
                return text
        paths = await self._run(_filter_paths, listed, folder)
        if not paths:
            raise ToolError(
                f"nothing in {path!r} can be mapped: it is empty, hidden, ignored by git, or in languages without a "
                "grammar here; look with rg in the shell"
            )
        wanted: list[Container[str]] = [frozenset(recent)]
        if words:
            wanted += await self._find_wanted(words, paths)
        chosen = await self._run(choose_files, paths, wanted)
        map_text = MapText(path, len(paths), len(chosen), words, max_characters, has_recent=bool(recent))
        text = await self._render(files, chosen, map_text, recent)
        if key:
            await self._run(_cache_map, files, key, chosen, text)
        return text

    async def close(self) -> None:
        """Wait for the current batch, and close the cache."""
        if self._files is not None:
            await self._run(self._files.cache.close)
        self._thread.shutdown()

    def _open_cache(self) -> FileCache:
        if self._files is None:
            self._files = FileCache(self._workspace, ParseCache(self._cache_file))
        return self._files

    async def _run(self, work: Callable[..., T], *values: object) -> T:
        return await run_in_executor(self._thread, partial(work, *values))

    def _to_relative(self, path: str) -> str:
        """Return a path relative to the workspace, as rg lists it; empty for the whole workspace."""
        real = self._workspace.resolve(path)
        if not real.is_relative_to(self._workspace.root):
            raise ToolError(f"{path} is outside of the workspace {self._workspace.root}; map a folder within it")
        if not real.exists():
            raise ToolError(f"there is no {path!r}; leave `path` out to map all of the workspace")
        if real == self._workspace.root:
            return ""
        return os.path.relpath(real, self._workspace.root)

    async def _run_rg(self, *arguments: str) -> tuple[bytes, int]:
        """Run rg and return its paths, each followed by a NUL, and a checksum of them.

        The checksum ignores the order, which differs from run to run; sorting would take longer.
        """
        process = await self._workspace.spawn([*_RG, *arguments], writes=False)
        parts: list[bytes] = []
        checksum = 0
        rest = b""
        try:
            while part := await process.read():
                parts.append(part)
                *lines, rest = (rest + part).split(b"\0")
                checksum += sum(map(zlib.crc32, lines))
        except asyncio.CancelledError:
            await process.stop(0)
            raise
        return b"".join(parts), checksum

    async def _find_wanted(self, words: Sequence[str], paths: Sequence[str]) -> list[Container[str]]:
        """Group files by the words in their paths; the last group has a word in the text, if not all files fit."""
        groups = await self._run(group_by_words, paths, words)
        if max_files(len(paths)) == len(paths):
            return groups
        self._notifier.status(f"searching for {', '.join(words)}")
        patterns: list[str] = []
        for word in words:
            patterns += ["-e", word]
        matching, _ = await self._run_rg("--files-with-matches", "--ignore-case", "--fixed-strings", *patterns)
        groups.append(frozenset(_split_paths(matching)))
        return groups

    async def _render(self, files: FileCache, chosen: Sequence[str], map_text: MapText, recent: Sequence[str]) -> str:
        sketches = await self._load(files, Sketch, chosen, sketch_file, _SKETCH_BATCH)
        ranking = await self._run(Ranking, sketches, map_text.words, recent)
        best = ranking.rank_files()
        outlines: dict[str, Outline] = {}
        for start in range(0, len(best), _PARSE_BATCH):
            if map_text.measure(outlines) >= _PARSE_FACTOR * map_text.max_characters:
                break
            batch = best[start : start + _PARSE_BATCH]
            outlines |= await self._load(files, Outline, batch, self._grammars.parse, _PARSE_BATCH)
        return map_text.render(outlines, ranking, unread=len(chosen) - len(sketches))

    async def _load(
        self,
        files: FileCache,
        kind: type[V],
        paths: Sequence[str],
        compute: Callable[[str, bytes], V],
        batch_size: int,
    ) -> Mapping[str, V]:
        """Load values in batches, so that the work can be cancelled and the user sees progress."""
        values: dict[str, V] = {}
        for start in range(0, len(paths), batch_size):
            self._notifier.status(f"reading {paths[start]}")
            batch = paths[start : start + batch_size]
            values |= await self._run(files.load, kind, batch, compute)
        return values


def _filter_paths(listed: bytes, folder: str) -> list[str]:
    """Return the paths of a folder, or the path of a file, in languages that have a grammar."""
    paths = []
    for path in _split_paths(listed):
        is_within = not folder or path == folder or path.startswith(f"{folder}/")
        if is_within and path.endswith(SUFFIXES):
            paths.append(path)
    return paths


def _find_recent(hints: TaskHints, listed: bytes, folder: str) -> list[str]:
    """Find the files of a folder that the task is about."""
    if not hints.paths:
        return []
    return hints.find_files(_filter_paths(listed, folder))


def _split_paths(listed: bytes) -> list[str]:
    return listed.decode(errors="replace").split("\0")[:-1]


def _get_cached_map(files: FileCache, key: str) -> str:
    """Return the cached map if none of its files has changed, else an empty text."""
    stored = files.cache.get([key])
    try:
        cached = CachedMap.model_validate_json(stored.get(key, "{}"))
    except ValidationError:
        return ""
    for path, mark in cached.fingerprints.items():
        if files.fingerprint(path) != mark:
            return ""
    return cached.text


def _cache_map(files: FileCache, key: str, paths: Sequence[str], text: str) -> None:
    """Cache a map, unless a file changed just now: the next change might leave the same fingerprint."""
    fingerprints = {path: files.fingerprint(path) for path in paths}
    if all(fingerprints.values()):
        cached = CachedMap(fingerprints=fingerprints, text=text)
        files.cache.put({key: cached.model_dump_json()})
