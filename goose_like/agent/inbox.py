"""What a person says while a turn runs: it waits for the next step, or cuts the running one short."""

import asyncio
from collections import deque
from types import TracebackType


class Inbox:
    """Words that wait for the next step. As a context it stands around a step, which `steer` cuts short.

    The step that was cut short ends its block quietly; `is_steered` says so. Any other cancelling passes.
    """

    def __init__(self) -> None:
        self.words: deque[str] = deque()
        self.is_steered = False
        self._step: asyncio.Task[object] | None = None

    def put(self, words: str) -> None:
        """Leaves words for the next step."""
        self.words.append(words)

    def take(self) -> list[str]:
        """All that waits, in its order; afterwards nothing does."""
        taken = list(self.words)
        self.words.clear()
        return taken

    def steer(self) -> bool:
        """Ends the running step, so that what waits is said now; whether there was a step, and words that wait."""
        if not self.words or self._step is None or self.is_steered:
            return False
        self.is_steered = True
        self._step.cancel()
        return True

    def __enter__(self) -> "Inbox":
        self._step, self.is_steered = asyncio.current_task(), False
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        step, self._step = self._step, None
        if step is None or not self.is_steered:
            return False
        # As `asyncio.timeout` does: whoever else wants the task cancelled is obeyed.
        is_ours_alone = step.uncancel() == 0
        return kind is not None and issubclass(kind, asyncio.CancelledError) and is_ours_alone
