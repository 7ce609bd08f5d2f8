"""A request that runs: its time limit, its progress, and its place in the session."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import Context, copy_context


class RunningCall:
    """A request to a server. Progress starts its time limit anew, and a question to the person stops it meanwhile."""

    def __init__(self, limit: asyncio.Timeout, limit_s: float, show: Callable[[str], None]) -> None:
        self.context: Context = copy_context()
        """The place in the session: questions of the server belong to the tool call that runs."""
        self._limit = limit
        self._limit_s = limit_s
        self._show = show
        self._open_questions = 0
        self.question_count = 0

    async def show_progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Show progress that the server reports."""
        if not self._open_questions:
            self._start_anew()
        shown = f"{progress:g}"
        if total:
            shown = f"{100 * progress / total:.0f} %"
        if message:
            shown = f"{shown} {message}"
        self.context.copy().run(self._show, f"{shown}\n")

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Let the time limit stand still."""
        self._open_questions += 1
        self.question_count += 1
        with suppress(RuntimeError):  # the call has ended
            self._limit.reschedule(None)
        try:
            yield
        finally:
            self._open_questions -= 1
            if not self._open_questions:
                self._start_anew()

    def _start_anew(self) -> None:
        with suppress(RuntimeError):  # the call has ended
            self._limit.reschedule(asyncio.get_running_loop().time() + self._limit_s)
