"""Text that the person has in an editor and has not saved: what a file holds with it, and writes through the editor."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

from goose_like.core.text_file import TextFile, normalize_newlines

from .sandbox.path_rules import resolve_path

KeepText = Callable[[Path, bytes], Awaitable[None]]
"""Keeps the unsaved text of a file for undo, before somebody else changes the file."""

HasWriters = Callable[[], Awaitable[bool]]
"""Tells whether a command may run that could exchange a folder for a link."""


class EditorFiles(Protocol):
    """The files of the editor in which a session runs. A front-end provides them."""

    async def read(self, path: Path) -> str | None:
        """Return the text that the editor shows for a file. None: the file on the disk counts."""

    async def write(self, path: Path, text: str) -> bool:
        """Let the editor write a file. Return False if it writes none.

        Raises:
            GooseLikeError: the editor failed, or did not answer.
        """


class UnsavedText:
    """The unsaved text of a workspace and of those of its subagents.

    It is about text files in UTF-8 below `folders`: an editor may decode other files in another way. The editor opens a
    path outside the sandbox, and follows links. So nobody asks it while a command runs that could put one there, none
    starts before it has answered, and a path that leads through a link by then is left to the caller.
    """

    def __init__(self, editor: EditorFiles | None, folders: Sequence[Path]) -> None:
        self.keep: KeepText | None = None
        self.writers: list[HasWriters] = []
        """One for each workspace."""
        self._editor = editor
        self._folders = folders
        self._lock = asyncio.Lock()  # of the editor while it answers, and of a command while it starts

    @asynccontextmanager
    async def keep_from_editor(self) -> AsyncIterator[None]:
        """Wait until the editor has answered, and let nobody ask it while a command starts."""
        if self._editor is None:
            yield
            return
        async with self._lock:
            yield

    async def read(self, place: Path, saved: bytes) -> bytes:
        """Return what a file would hold if the person saved it now. `saved` is its content on the disk."""
        text = _decode(saved)
        if text is None:
            return saved
        async with self._open_editor(place) as editor:
            if editor is None:
                return saved
            shown = await editor.read(place)
        if shown is None or normalize_newlines(shown) == text.shown:
            return saved
        return text.with_all(shown).encode()

    async def write(self, place: Path, data: bytes, is_allowed: Callable[[], bool]) -> bool:
        """Let the editor write a file. Return False if that is left to the caller.

        `is_allowed` judges the write once more, when no command can start before the editor has answered.

        Raises:
            GooseLikeError: the editor failed.
        """
        text = _decode(data)
        if text is None:
            return False
        async with self._open_editor(place) as editor:
            if editor is None or not is_allowed():
                return False
            return await editor.write(place, text.exact)

    @asynccontextmanager
    async def _open_editor(self, place: Path) -> AsyncIterator[EditorFiles | None]:
        """Provide the editor if it may be asked about a file now. No command starts meanwhile."""
        if self._editor is None or not any(map(place.is_relative_to, self._folders)):
            yield None
            return
        async with self._lock:
            is_safe = not await self._has_writers() and resolve_path(place) == place
            yield self._editor if is_safe else None

    async def _has_writers(self) -> bool:
        for has_writers in tuple(self.writers):  # a subagent may end meanwhile
            if await has_writers():
                return True
        return False


def _decode(data: bytes) -> TextFile | None:
    """Decode plain UTF-8. Return None for anything else."""
    text = TextFile.decode(data)
    if text is None or text.encoding != "utf-8" or text.bom:
        return None
    return text
