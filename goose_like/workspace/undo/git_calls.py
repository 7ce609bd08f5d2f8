"""Calls of git from the thread of undo. Git runs in the sandbox, and the event loop waits for it."""

import asyncio
import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from goose_like.core.errors import GooseLikeError
from goose_like.workspace.repositories.git import RunCommand, list_filtered_paths, list_ignored_paths

from .repository import list_changed_paths, restore_head

_T = TypeVar("_T")


class GitCalls:
    """Runs git for a thread, which waits for the results."""

    def __init__(self, run: RunCommand) -> None:
        """Take over the running event loop. `run` runs a short command of our own."""
        self._run = run
        self._loop = asyncio.get_running_loop()

    def read_output(self, words: list[str]) -> bytes:
        """Run a command and return its output. Raise OSError if it cannot start."""
        try:
            _, output = self._start(self._run(words)).result()
        except GooseLikeError as error:
            raise OSError(str(error)) from error
        return output

    def list_changed(self, root: Path) -> dict[str, str] | None:
        """Map the changed, untracked and ignored paths to their status; None if git fails."""
        return self._start(list_changed_paths(root, self._run)).result()

    def list_filtered(self, folder: Path) -> frozenset[str] | None:
        """List the tracked files that git converts; None if git fails."""
        return self._start(list_filtered_paths(folder, self._run)).result()

    def list_ignored(self, roots: Sequence[str]) -> frozenset[str]:
        """List what git ignores below some folders."""
        return self.start_listing_ignored(roots)()

    def start_listing_ignored(self, roots: Sequence[str]) -> Callable[[], frozenset[str]]:
        """Let git list what it ignores. Return a function that waits for the result."""
        lists = [self._start(list_ignored_paths(Path(root), self._run)) for root in roots]
        return lambda: frozenset[str]().union(*(listed.result() for listed in lists))

    def restore_head(self, root: Path, data: bytes) -> None:
        """Restore HEAD and its branch. Raise GooseLikeError if git refuses it."""
        self._start(restore_head(root, data, self._run)).result()

    def serve(self, argv: list[str], descriptors: Mapping[int, int]) -> None:
        """Start a command that runs until its input ends. Its `descriptors` are closed here."""

        async def run() -> None:
            with suppress(GooseLikeError):  # whoever asks the command gets no answer
                await self._run(argv, descriptors=descriptors)

        def close(_: object) -> None:
            for descriptor in descriptors.values():
                os.close(descriptor)

        self._start(run()).add_done_callback(close)

    def _start(self, work: Coroutine[Any, Any, _T]) -> "Future[_T]":
        return asyncio.run_coroutine_threadsafe(work, self._loop)
