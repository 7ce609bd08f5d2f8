"""The port to what runs the workers of a batch."""

from typing import Protocol

from .job import Job, JobResult


class Engine(Protocol):
    """Workers, on this machine or on others. The driver starts at most as many jobs as there are workers."""

    async def start(self, job: Job) -> None:
        """Give a job to a free worker. Raise GooseLikeError if no worker can be had."""

    async def wait(self) -> tuple[Job, JobResult | None]:
        """Wait for the next job that ends, and return it with its result. None: its worker was lost."""

    async def close(self) -> None:
        """Stop all jobs and workers. Nothing that they started is left."""
