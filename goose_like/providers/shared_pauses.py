"""Pauses that hold for many processes: a server that refuses one worker for its rate refuses the others, too."""

from contextvars import ContextVar
from typing import Protocol


class SharedPauses(Protocol):
    """Pauses by model, which all workers of a batch keep."""

    async def wait(self, model: str) -> None:
        """Wait until requests to this model are allowed again."""

    async def hold(self, model: str, pause_s: float) -> None:
        """Let all workers wait, since the server asked one of them to wait for so many seconds."""


shared_pauses: ContextVar[SharedPauses | None] = ContextVar("shared_pauses", default=None)
"""The pauses that hold in this process; None outside a batch."""
