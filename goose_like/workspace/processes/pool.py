"""The spawners of a workspace: one for each access and scope."""

import asyncio
import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from goose_like.core.errors import GooseLikeError
from goose_like.workspace.permissions.policy import Access
from goose_like.workspace.sandbox.scope import SandboxScope

from .process import SpawnerClient

StartSpawner = Callable[[Access, SandboxScope | None], Coroutine[Any, Any, SpawnerClient]]
SpawnerTask = asyncio.Task[SpawnerClient]


class SpawnerPool:
    """Starts a spawner when it is first needed, and ends all of them together."""

    def __init__(self, start: StartSpawner) -> None:
        self._start = start
        self._tasks: dict[tuple[Access, SandboxScope | None], SpawnerTask] = {}
        self._others: list[SpawnerTask] = []  # those that get no further commands
        self._timer: asyncio.TimerHandle | None = None
        self._losses = 0

    def request_later(self, delay_s: float, access: Access) -> None:
        """Start a spawner after some time."""
        self._timer = asyncio.get_running_loop().call_later(delay_s, self.request, access)

    def request(
        self, access: Access, scope: SandboxScope | None = None, *, mount_losses: int = 0, is_apart: bool = False
    ) -> SpawnerTask:
        """Return the task that starts the spawner. A spawner that died or failed to start is started again.

        If mounts were lost, a new one is started too. The old one keeps its processes. A spawner with network gets a
        single command, and so does one that stands apart.
        """
        if self._losses < mount_losses:
            self._losses = mount_losses
            self.retire()
        if access == "network" or is_apart:
            single = asyncio.create_task(self._start(access, scope))
            self._others.append(single)
            return single
        task = self._tasks.get((access, scope))
        if task is None or _has_ended(task):
            task = asyncio.create_task(self._start(access, scope))
            task.add_done_callback(_take_exception)
            self._tasks[access, scope] = task
        return task

    def retire(self) -> None:
        """Start new spawners for later commands. The old ones keep their processes."""
        self._others += self._tasks.values()
        self._tasks = {}

    async def has_processes(self) -> bool:
        """Return whether a process of any command may still run. Without subreapers, as on macOS, nobody knows."""
        if sys.platform != "linux":
            return True
        for task in (*self._others, *self._tasks.values()):
            with suppress(GooseLikeError, OSError):  # it did not start, or it ended with all its processes
                client = await task
                if client.is_alive and await client.count_processes():
                    return True
        return False

    async def close(self) -> None:
        """End all spawners and their processes."""
        if self._timer:
            self._timer.cancel()
        tasks = [*self._others, *self._tasks.values()]
        self._tasks = {}
        self._others = []
        for task in tasks:
            task.cancel()  # nobody needs a spawner that is still starting, and its start may never end
        for client in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(client, SpawnerClient):
                await client.close()


def _has_ended(task: SpawnerTask) -> bool:
    """Check whether a spawner died, or failed to start."""
    if not task.done():
        return False
    if task.cancelled() or task.exception():
        return True
    return not task.result().is_alive


def _take_exception(task: SpawnerTask) -> None:
    """Take the exception of a task, which is reported to whoever awaits it, and to nobody else."""
    if not task.cancelled():
        task.exception()
