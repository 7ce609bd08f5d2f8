"""Workers as tasks of a Ray cluster, by the extra `ray`. A cluster of one machine needs no preparation."""

import asyncio
import logging
import os
import random
import socket
import time
from typing import Any

from typing_extensions import override

from goose_like import __version__
from goose_like.core.errors import GooseLikeError, UsageError
from goose_like.providers.shared_pauses import SharedPauses

from .engine import Engine
from .job import Job, JobResult
from .pauses import SPREAD_S
from .worker import run_job

_START_S = 120.0
"""The longest wait for the first worker: Ray would wait for ever for an environment that cannot be built."""


_CONNECT_S = 10.0
"""The longest wait for the address of a cluster: Ray alone would try for minutes."""


class RayPauses(SharedPauses):
    """Pauses in an actor of the cluster, which has the times in seconds since 1970 at which requests are allowed."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor

    @override
    async def wait(self, model: str) -> None:
        while (left_s := await self._actor.read_end.remote(model) - time.time()) > 0:  # noqa: ASYNC110
            await asyncio.sleep(left_s + random.uniform(0, SPREAD_S))

    @override
    async def hold(self, model: str, pause_s: float) -> None:
        await self._actor.hold.remote(model, time.time() + pause_s)


class PauseBoard:
    """The actor behind `RayPauses`."""

    def __init__(self) -> None:
        self._ends: dict[str, float] = {}

    def read_end(self, model: str) -> float:
        """Return the time at which requests to a model are allowed again."""
        return self._ends.get(model, 0.0)

    def hold(self, model: str, end: float) -> None:
        """Let all workers wait until a time."""
        self._ends[model] = max(end, self.read_end(model))


def run_remotely(text: str, actor: Any) -> str:
    """Run a job, both as JSON, in a process of the cluster."""
    job = Job.model_validate_json(text)
    return asyncio.run(run_job(job, RayPauses(actor))).model_dump_json()


def read_version() -> str:
    """Return the version of goose-like in a process of the cluster."""
    return __version__


def _check_address(address: str) -> None:
    """Connect to an address such as `10.0.0.1:6379` or `ray://10.0.0.1:10001`. Other forms, such as `auto`, are Ray's.

    Raises:
        UsageError: nothing answers there.
    """
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_S).close()
    except (OSError, OverflowError) as error:
        text = f"no Ray cluster at {address}: {error}; see `ray status` on its first machine"
        raise UsageError(text) from error


class RayEngine(Engine):
    """One task of the cluster for each input. Lost tasks come back to the driver, which alone retries."""

    def __init__(self, address: str | None, cpus: float) -> None:
        """Connect to a cluster, or start one on this machine.

        Raises:
            UsageError: Ray is not installed, or no cluster answers.
            GooseLikeError: no worker becomes ready, or it has another version of goose-like.
        """
        try:
            import ray  # imported here: it takes a second
        except ModuleNotFoundError as error:
            raise UsageError("ray is not installed; install it: pip install 'goose-like[ray]'") from error
        self._ray = ray
        _check_address(address or os.environ.get("RAY_ADDRESS", ""))
        try:
            ray.init(address=address, log_to_driver=False, include_dashboard=False, logging_level=logging.ERROR)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise UsageError(f"no Ray cluster at {address or 'this machine'}: {error}") from error
        self._board = self._start_board()
        self._task = ray.remote(num_cpus=cpus, max_retries=0)(run_remotely)
        self._running: dict[asyncio.Future[str], tuple[Job, Any]] = {}
        self._check_worker(cpus)

    def _start_board(self) -> Any:
        """Start the board on the driver's machine if Ray can. A board that is lost starts again elsewhere, empty."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        here: Any = NodeAffinitySchedulingStrategy(self._ray.get_runtime_context().get_node_id(), soft=True)
        options = self._ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1, scheduling_strategy=here)
        return options(PauseBoard).remote()

    def _check_worker(self, cpus: float) -> None:
        check = self._ray.remote(num_cpus=cpus)(read_version)
        try:
            version = self._ray.get(check.remote(), timeout=_START_S)
        except (self._ray.exceptions.RayError, TimeoutError) as error:
            self._ray.shutdown()
            text = f"no worker of the cluster became ready within {_START_S:g} s; is goose-like installed there?"
            raise GooseLikeError(text) from error
        if version != __version__:
            self._ray.shutdown()
            raise GooseLikeError(f"the cluster has goose-like {version}, and this is {__version__}; install the same")

    @override
    async def start(self, job: Job) -> None:
        reference = self._task.remote(job.model_dump_json(), self._board)
        self._running[asyncio.wrap_future(reference.future())] = (job, reference)

    @override
    async def wait(self) -> tuple[Job, JobResult | None]:
        done, _ = await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)
        future = done.pop()
        job, _ = self._running.pop(future)
        if future.exception() is not None:
            return job, None
        return job, JobResult.model_validate_json(future.result())

    @override
    async def close(self) -> None:
        for future, (_, reference) in self._running.items():
            future.cancel()
            self._ray.cancel(reference, force=True)
        self._running.clear()
        self._ray.shutdown()
