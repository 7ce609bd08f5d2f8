"""The driver of a batch: give each input to a worker, and write one line for each that is finished."""

import time
from collections import Counter, deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from goose_like.core.dataclass import dataclass
from goose_like.core.errors import ModelUnavailableError, RateLimitError
from goose_like.core.message import FrozenModel
from goose_like.core.spelling import format_count
from goose_like.workspace.files import write_file

from .engine import Engine
from .job import BatchInput, Job, JobResult, Outcome, ResultLine
from .jsonl_file import JsonlFile
from .spending import Attempt, Spending, TotalReachedError, Totals

_RETRIED_CODES = (RateLimitError.exit_code, ModelUnavailableError.exit_code)


class BatchPlan(FrozenModel):
    """All that a resume must know.

    `options` are fields of `ProfileOptions`. `limits` are those of each input, by fields of `Limits`.
    """

    format: Literal[1] = 1
    name: str
    recipe: str
    texts: dict[str, str]
    digest: str
    inputs: tuple[BatchInput, ...]
    limits: dict[str, float]
    totals: Totals
    workers: int
    retries: int
    engine: str
    address: str | None
    cpus: float
    options: dict[str, Any]
    is_comparison: bool = False
    """The inputs are trials of tasks, by profiles or models that the report compares."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a batch is."""

    total: int
    running: int
    done: int
    failed: int
    tokens: int
    cost_usd: float


class Driver:
    """The only writer of the results. What a lost worker had done is done again by the next one."""

    def __init__(
        self,
        plan: BatchPlan,
        folder: Path,
        results: JsonlFile[ResultLine],
        spending: Spending,
        engine: Engine,
        show: Callable[[Progress], object],
    ) -> None:
        self._plan = plan
        self._folder = folder
        self._results = results
        self._spending = spending
        self._engine = engine
        self._show = show
        finished = {line.number for line in results.records}
        numbers = range(1, len(plan.inputs) + 1)
        self._waiting = deque(number for number in numbers if number not in finished)
        self._started: dict[int, float] = {}
        """The running inputs by number, with the time of their start."""
        self._attempts = Counter[int]()
        """The attempts that this process has seen, by number."""

    async def run(self) -> None:
        """Work until each input has its line.

        Raises:
            TotalReachedError: the totals leave too little for some inputs, which have no line.
            GooseLikeError: a line cannot be written, or no worker can be had.
        """
        self._report()
        while self._waiting or self._started:
            await self._start_some()
            self._report()
            job, result = await self._engine.wait()
            self._end(job, result)
            self._report()

    async def _start_some(self) -> None:
        """Start inputs until all workers work."""
        while self._waiting and len(self._started) < self._plan.workers:
            try:
                limits = self._spending.share(self._plan.limits, len(self._waiting))
            except TotalReachedError:
                if not self._started:
                    raise
                return  # a running input may leave some
            await self._start(self._waiting.popleft(), limits)

    async def _start(self, number: int, limits: dict[str, float]) -> None:
        attempt = self._spending.count_attempts(number) + 1
        reserved = Attempt(
            number=number,
            attempt=attempt,
            cost_usd=limits.get("cost_usd", 0.0),
            tokens=int(limits.get("tokens", 0)),
        )
        self._spending.record(reserved)
        given = self._plan.inputs[number - 1]
        job = Job(
            batch=self._plan.name,
            number=number,
            attempt=attempt,
            recipe=self._plan.recipe,
            texts=self._plan.texts,
            digest=self._plan.digest,
            folder=str(self._folder),
            input=given,
            limits={**given.limits, **limits},
            options={**self._plan.options, **given.options},
        )
        self._started[number] = time.monotonic()
        await self._engine.start(job)

    def _end(self, job: Job, result: JobResult | None) -> None:
        """Write the line of an input, or let it wait for another attempt."""
        started = self._started.pop(job.number)
        self._attempts[job.number] += 1
        if result is not None:
            outcome = result.outcome
            tokens = outcome.usage.total_tokens
            cost_usd = outcome.cost_usd or 0.0
            self._spending.record(Attempt(number=job.number, attempt=job.attempt, cost_usd=cost_usd, tokens=tokens))
        is_transient = result is None or result.outcome.exit_code in _RETRIED_CODES
        if is_transient and self._attempts[job.number] <= self._plan.retries:
            self._waiting.append(job.number)
            return
        if result is None:
            count = format_count(self._attempts[job.number], "time")
            lost = Outcome(status="failed", exit_code=1, reason=f"its worker was lost {count}")
            result = JobResult(outcome=lost)
        line = ResultLine(
            number=job.number,
            input=job.input.row,
            attempts=job.attempt,
            seconds=round(time.monotonic() - started, 3),
            patch=self._write(f"{job.name}.patch", result.patch),
            receipt=self._write(f"{job.name}.json", result.receipt.encode()),
            **result.outcome.model_dump(),
        )
        self._results.append(line)

    def _write(self, name: str, data: bytes) -> str:
        """Write a file into the folder of the batch, and return its path. Without data there is no file."""
        if not data:
            return ""
        file = self._folder / name
        write_file(file, data)
        return str(file)

    def _report(self) -> None:
        lines = self._results.records
        failed = sum(line.status == "failed" for line in lines)
        progress = Progress(
            total=len(self._plan.inputs),
            running=len(self._started),
            done=len(lines) - failed,
            failed=failed,
            tokens=sum(line.usage.total_tokens for line in lines),
            cost_usd=sum(line.cost_usd or 0.0 for line in lines),
        )
        self._show(progress)
