"""Progress of a transfer: said only where it takes long."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field

Tell = Callable[[str], None]

_EVERY_S = 2.0


@dataclass(slots=True)
class Progress:
    """Tells how far one file is, every two seconds; one that is there sooner is not mentioned.

    `told_at_s` is when it was last told, by the clock `time.monotonic`.
    """

    what: str
    tell: Tell
    total_bytes: int | None = None
    done_bytes: int = 0
    told_at_s: float = field(default_factory=time.monotonic)

    def moved(self, count: int) -> None:
        """Takes note of `count` more bytes."""
        self.done_bytes += count
        if time.monotonic() - self.told_at_s < _EVERY_S:
            return
        self.told_at_s = time.monotonic()
        whole = f" of {_megabytes(self.total_bytes)}" if self.total_bytes else ""
        self.tell(f"{self.what}: {_megabytes(self.done_bytes)}{whole}")


@contextmanager
def slow(what: str, tell: Tell) -> Iterator[None]:
    """Tells what goes on in the block, from another thread, if that isn't over after two seconds.

    It is told as part of the tool's call that the block is part of, if any.
    """
    timer = threading.Timer(_EVERY_S, copy_context().run, [tell, what])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
