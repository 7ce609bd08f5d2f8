"""The spawner processes of one workspace."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from goose_like.core.errors import GooseLikeError

from .policy import Access
from .process import SpawnerClient
from .scope import SandboxScope


class SpawnerPool:
    """One spawner for each access and scope, started with the first command that needs it."""

    def __init__(self, start: Callable[[Access, SandboxScope | None], Coroutine[Any, Any, SpawnerClient]]) -> None:
        self._start = start
        self._tasks: dict[tuple[Access, SandboxScope | None], asyncio.Task[SpawnerClient]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def request(self, access: Access, scope: SandboxScope | None = None) -> "asyncio.Task[SpawnerClient]":
        """Return the task that starts the spawner. A spawner that died or failed to start is started again."""
        task = self._tasks.get((access, scope))
        if task is None or (task.done() and (task.cancelled() or task.exception() or not task.result().is_alive)):
            task = self._tasks[access, scope] = asyncio.create_task(self._start(access, scope))
            task.add_done_callback(lambda done: done.cancelled() or done.exception())  # reported to whoever awaits it
        return task

    def request_later(self, access: Access, delay_s: float) -> None:
        """Start the spawner after a delay, so that the first command finds it running."""
        self._timer = asyncio.get_running_loop().call_later(delay_s, self.request, access)

    async def close(self) -> None:
        """End all spawners and everything that they started."""
        if self._timer:
            self._timer.cancel()
        tasks, self._tasks = list(self._tasks.values()), {}
        for task in tasks:
            with suppress(GooseLikeError, OSError):
                await (await task).close()
