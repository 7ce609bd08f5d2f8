"""SynopsisToolkit: the developer's tools for the moderator `synopsis`, which tells the state in place of the past."""

import platform
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from goose_like.core.errors import GooseLikeError
from goose_like.core.events import StateSaved
from goose_like.toolkit import Notifier, Picture, Requirements, tool

from .files import MAX_FILE_BYTES, Patch
from .text import Text
from .toolkit import DeveloperToolkit

_NAME = "synopsis"
_FILES_BYTES = 60_000
_MOST_FILES = 20
_CHARACTERS_A_TOKEN = 3
_SHARE = 0.4  # of the window


class SynopsisToolkit(DeveloperToolkit):
    """As `developer`; but what is read is a file in use, which the model is shown as it is at each step."""

    own_config = frozenset({"files_bytes"})

    def __init__(self, notifier: Notifier, requires: Requirements, **kwargs: Any) -> None:
        super().__init__(notifier, requires, **kwargs)
        self._room_bytes = int(self.config.get("files_bytes", _FILES_BYTES))
        saved = self.session.history.state.get(_NAME)
        files = saved.get("files") if isinstance(saved, dict) else None
        self._in_use = dict.fromkeys(map(str, files)) if isinstance(files, list) else {}

    def news(self) -> Mapping[str, str]:
        """Nothing: it stands in the state."""
        return {}

    def live(self) -> Sequence[tuple[str, str]]:
        """The machine, what runs on, and the files in use, those used last first."""
        return [*self._state()]

    def _state(self) -> Iterator[tuple[str, str]]:
        facts = super().news()
        where = [f"folder: {self._shell.state.cwd}", f"system: {platform.system()} {platform.machine()}"]
        yield "Where you are", "\n".join([*where, *(f"{key}: {value}" for key, value in facts.items() if value)])
        yield "What runs on", self._processes.listed()
        room, left_out = self._files_room(), []
        for path in reversed(self._in_use):
            try:
                text = self._text(path)
            except (GooseLikeError, OSError) as error:
                text = f"(can't be read any more: {error})"
            if text is None or len(text) > room:
                left_out.append(path)
                continue
            room -= len(text)
            yield f"File {path}, as it is now", text
        if left_out:
            yield "Files in use for which there is no room; look at parts of them in the shell", "\n".join(left_out)

    @tool
    def read_file(self, path: str, start_line: int = 1, end_line: int | None = None) -> str | Picture:
        """Read a text file, or some of its lines. Read whole, it stays in the state, as it is at each step."""
        shown = self._files.read(path, start_line, end_line)
        is_part = (start_line, end_line) != (1, None) or "go on with start_line" in str(shown).split("\n", 1)[0]
        if isinstance(shown, Picture) or is_part or len(shown) > self._files_room():
            return shown
        self._use(path)
        return shown.split("\n", 1)[0] + " It stands in the state from here on."

    @tool
    async def write_file(self, path: str, content: str) -> str:
        """Create a file, or replace all of one that you have read."""
        said = await self._files.write(path, content)
        self._use(path)
        return said

    @tool
    async def patch_file(self, path: str, patches: list[Patch]) -> str:
        """Replace parts of a file that you have read, one after the other, all or none."""
        said = await self._files.patch(path, patches)
        self._use(path)
        return said

    def _use(self, path: str) -> None:
        name = str(self._files.real(path))
        self._in_use.pop(name, None)
        self._in_use[name] = None
        while len(self._in_use) > _MOST_FILES:
            del self._in_use[next(iter(self._in_use))]
        self.notifier.notify(StateSaved(toolkit=_NAME, value={"files": list(self._in_use)}))

    def _text(self, path: str) -> str | None:
        """What a file holds; None where that is no text, or far too much."""
        found = Text.decode(self.workspace.read_bytes(path, MAX_FILE_BYTES))
        return found.shown if found else None

    def _files_room(self) -> int:
        """How many letters of files may stand in the state: what the profile says, or less in a small window."""
        window = self.exchange_view.processor.model.window
        return min(self._room_bytes, int(window * _CHARACTERS_A_TOKEN * _SHARE) if window else self._room_bytes)
