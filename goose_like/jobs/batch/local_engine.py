"""Workers as processes of this machine, each for one job after the other."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from contextlib import suppress
from pathlib import Path

from typing_extensions import override

from .engine import Engine
from .job import Job, JobResult

_MAX_RESULT_BYTES = 256 * 1024 * 1024
_COMMAND = (sys.executable, "-P", "-m", "goose_like.jobs.batch.worker")  # -P: no module of the current folder
_STOP_S = 10.0


class LocalEngine(Engine):
    """Worker processes that start when they are first needed. Their messages go to a log file in the batch's folder."""

    def __init__(self, folder: Path) -> None:
        self._log = folder / "workers.log"
        self._idle: list[Process] = []
        self._running: dict[asyncio.Task[JobResult | None], Job] = {}

    @override
    async def start(self, job: Job) -> None:
        task = asyncio.create_task(self._run(job))
        self._running[task] = job

    @override
    async def wait(self) -> tuple[Job, JobResult | None]:
        done, _ = await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)
        task = done.pop()
        return self._running.pop(task), task.result()

    @override
    async def close(self) -> None:
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        await asyncio.gather(*map(_stop, self._idle))

    async def _run(self, job: Job) -> JobResult | None:
        worker = self._idle.pop() if self._idle else await self._start_worker()
        assert worker.stdin
        assert worker.stdout
        try:
            worker.stdin.write(job.model_dump_json().encode() + b"\n")
            line = await worker.stdout.readline()
        except ConnectionError:
            line = b""
        except BaseException:
            await asyncio.shield(_stop(worker))
            raise
        if not line.endswith(b"\n"):
            await _stop(worker)
            return None
        self._idle.append(worker)
        return JobResult.model_validate_json(line)

    async def _start_worker(self) -> Process:
        """Start a worker in a session of its own, so that Ctrl-C reaches only the driver."""
        descriptor = os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            return await asyncio.create_subprocess_exec(
                *_COMMAND, stdin=PIPE, stdout=PIPE, stderr=descriptor, limit=_MAX_RESULT_BYTES, start_new_session=True
            )
        finally:
            os.close(descriptor)


async def _stop(worker: Process) -> None:
    """Close the input of a worker, which then ends its job. Kill what is left of its processes."""
    assert worker.stdin
    worker.stdin.close()
    with suppress(TimeoutError):
        async with asyncio.timeout(_STOP_S):
            await worker.wait()
    with suppress(ProcessLookupError):
        os.killpg(worker.pid, signal.SIGKILL)
    await worker.wait()
