"""The developer toolkit for the moderator `synopsis`, which shows the current state instead of the history."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from typing_extensions import override

from goose_like.core.errors import GooseLikeError
from goose_like.core.events import StateSaved
from goose_like.toolkit import ImageResult, Notifier, Requirements, tool

from .files import MAX_FILE_BYTES, UNSAVED
from .patching import Patch
from .toolkit import READ_ALIASES, DeveloperToolkit, patching_tool, writing_tool

_NAME = "synopsis"
_MAX_FILE_CHARS = 60_000
_MAX_FILES = 20
_CHARS_PER_TOKEN = 3
_WINDOW_SHARE = 0.4


class SynopsisToolkit(DeveloperToolkit):
    """The developer tools with files in use: the model sees their current content at each step."""

    is_confined: ClassVar[bool] = True
    own_config = frozenset({"files_bytes"})

    def __init__(self, notifier: Notifier, requires: Requirements, **kwargs: Any) -> None:
        super().__init__(notifier, requires, **kwargs)
        self._max_file_chars = int(self.config.get("files_bytes", _MAX_FILE_CHARS))
        saved = self.session.history.state.get(_NAME)
        files = saved.get("files") if isinstance(saved, dict) else None
        self._facts: Mapping[str, str] = {}
        self._in_use: dict[str, None] = {}
        if isinstance(files, list):
            self._in_use = dict.fromkeys(map(str, files))

    @override
    async def context_updates(self) -> Mapping[str, str]:
        self._facts = await super().context_updates()
        return {}  # they are in the state

    @override
    def state_sections(self) -> Sequence[tuple[str, str]]:
        return list(self._iterate_sections())

    def _iterate_sections(self) -> Iterator[tuple[str, str]]:
        told = [f"the shell is in: {self._shell.state.cwd}"]
        told += [f"{key}: {value}" for key, value in self._facts.items() if value]
        yield "Where you are", "\n".join(told)
        yield "Processes", self._processes.describe_all()
        room = self._get_file_room()
        left_out: list[str] = []
        for path in reversed(self._in_use):
            try:
                text = self._read_text(path)
            except (GooseLikeError, OSError) as error:
                text = f"(can't be read any more: {error})"
            if text is None or len(text) > room:
                left_out.append(path)
                continue
            room -= len(text)
            yield f"File {path}, current content", text
        if left_out:
            yield "Files in use that do not fit here; look at parts of them in the shell", "\n".join(left_out)

    @tool(aliases=READ_ALIASES, read_only=True, title="Read {path}", paths=("path",))
    async def read_file(
        self, path: str, start_line: int = 1, end_line: int | None = None, encoding: str = ""
    ) -> str | ImageResult:
        """Show a text file, lines of it with numbers, or an image. A whole file stays in the state."""
        shown = await self._files.read(path, start_line, end_line, encoding)
        if isinstance(shown, ImageResult) or len(shown) > self._get_file_room():
            return shown
        facts, _, _ = shown.partition("\n")
        is_whole = start_line == 1 and end_line is None and "go on with start_line" not in facts
        if not is_whole or UNSAVED in facts:  # the state shows what is on the disk
            return shown
        self._use(path)
        return f"{facts} The state shows it from now on."

    @writing_tool
    async def write_file(self, path: str, content: str, encoding: str = "") -> str:
        """Create a file, or replace all of one that you have read. Paths start at the workspace root."""
        answer = await self._files.write(path, content, encoding)
        self._use(path)
        return answer

    @patching_tool
    async def patch_file(self, path: str, patches: list[Patch], encoding: str = "") -> str:
        """Replace parts of a file, one after the other. Those that match are kept if another fails."""
        answer = await self._files.patch(path, patches, encoding)
        self._use(path)
        return answer

    def _use(self, path: str) -> None:
        name = str(self._files.resolve(path))
        self._in_use.pop(name, None)
        self._in_use[name] = None
        while len(self._in_use) > _MAX_FILES:
            oldest = next(iter(self._in_use))
            del self._in_use[oldest]
        self.notifier.notify(StateSaved(toolkit=_NAME, value={"files": list(self._in_use)}))

    def _read_text(self, path: str) -> str | None:
        """Read a text file; None for binary or very large files."""
        data = self.workspace.read_bytes(path, MAX_FILE_BYTES)
        found = self._files.decode(Path(path), data)
        return found.shown if found else None

    def _get_file_room(self) -> int:
        """Compute the characters for files in the state: the profile's limit, or less for a small window."""
        window = self.exchange_view.processor.model.window
        if not window:
            return self._max_file_chars
        fitting_chars = int(window * _CHARS_PER_TOKEN * _WINDOW_SHARE)
        return min(self._max_file_chars, fitting_chars)
