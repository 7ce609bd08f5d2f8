"""The driver with an engine that loses workers and refuses requests at random: each input has one line."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goose_like.core.message import Usage
from goose_like.jobs.batch.driver import BatchPlan, Driver, Progress
from goose_like.jobs.batch.job import BatchInput, Job, JobResult, Outcome, ResultLine
from goose_like.jobs.batch.jsonl_file import JsonlFile
from goose_like.jobs.batch.spending import Attempt, Spending, TotalReachedError, Totals

ENDS = {"done": 0, "failed": 8, "refused": 75, "unavailable": 77, "lost": None}


class ScriptedEngine:
    """An engine whose jobs end in a drawn order and way."""

    def __init__(self, choose: Callable[[Sequence[Any]], Any], ends: list[str]) -> None:
        self._choose = choose
        self._ends = ends
        self.running: list[Job] = []
        self.most_at_once = 0

    async def start(self, job: Job) -> None:
        self.running.append(job)
        self.most_at_once = max(self.most_at_once, len(self.running))

    async def wait(self) -> tuple[Job, JobResult | None]:
        job = self._choose(self.running)
        self.running.remove(job)
        code = ENDS[self._choose(self._ends)]
        if code is None:
            return job, None
        usage = Usage(input_tokens=int(job.limits.get("tokens", 100)))
        outcome = Outcome(status="failed" if code else "done", exit_code=code, reason="no" * bool(code), usage=usage)
        return job, JobResult(outcome=outcome, patch=b"diff", receipt="{}")

    async def close(self) -> None:
        self.running.clear()


def make_choice(data: st.DataObject) -> Callable[[Sequence[Any]], Any]:
    return lambda items: data.draw(st.sampled_from(list(items)))


def make_plan(count: int, **changes: object) -> BatchPlan:
    plan = BatchPlan(
        name="b",
        recipe="/r.yaml",
        texts={},
        digest="",
        inputs=tuple(BatchInput(row={"n": n}, parameters={"n": n}, place="copy", source="/") for n in range(count)),
        limits={},
        totals=Totals(),
        workers=3,
        retries=2,
        engine="local",
        address=None,
        cpus=1.0,
        options={},
    )
    return plan.model_copy(update=changes)


async def drive(plan: BatchPlan, folder: Path, engine: ScriptedEngine) -> list[Progress]:
    shown: list[Progress] = []
    with JsonlFile(folder / "r.jsonl", ResultLine) as results, JsonlFile(folder / "a.jsonl", Attempt) as attempts:
        spending = Spending(plan.totals, attempts)
        await Driver(plan, folder, results, spending, engine, shown.append).run()
    return shown


def read_lines(folder: Path) -> list[ResultLine]:
    file = JsonlFile(folder / "r.jsonl", ResultLine)
    file.read()
    return file.records


@given(st.data(), st.integers(1, 12), st.lists(st.sampled_from(sorted(ENDS)), min_size=1, max_size=5))
async def test_each_input_has_one_line(tmp_path_factory, data, count, ends):
    folder = tmp_path_factory.mktemp("batch")
    engine = ScriptedEngine(make_choice(data), ends)
    shown = await drive(make_plan(count), folder, engine)
    lines = read_lines(folder)
    assert sorted(line.number for line in lines) == list(range(1, count + 1))
    assert max(line.attempts for line in lines) <= 3
    assert engine.most_at_once <= 3
    assert shown[-1].done + shown[-1].failed == count == shown[-1].total
    assert all(line.input == {"n": line.number - 1} for line in lines)
    patches = {line.patch for line in lines if line.status == "done"}
    assert {str(path) for path in folder.glob("*.patch")} >= patches


async def test_only_what_may_pass_is_tried_again(tmp_path: Path) -> None:
    for end, attempts in (("failed", 1), ("lost", 3), ("refused", 3)):
        folder = tmp_path / end
        folder.mkdir()
        await drive(make_plan(1), folder, ScriptedEngine(lambda items: items[0], [end]))
        (line,) = read_lines(folder)
        assert (line.status, line.attempts) == ("failed", attempts)
    assert "lost 3 times" in read_lines(tmp_path / "lost")[0].reason


@given(st.data())
async def test_a_batch_stops_at_its_total_and_a_resume_goes_on(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("batch")
    engine = ScriptedEngine(make_choice(data), ["done"])
    plan = make_plan(10, limits={"tokens": 100.0}, totals=Totals(tokens=350))
    with pytest.raises(TotalReachedError):
        await drive(plan, folder, engine)
    assert [line.number for line in sorted(read_lines(folder), key=lambda line: line.number)] == [1, 2, 3]
    await drive(plan.model_copy(update={"totals": Totals(tokens=1_000)}), folder, engine)
    assert sorted(line.number for line in read_lines(folder)) == list(range(1, 11))
    assert sum(line.usage.total_tokens for line in read_lines(folder)) == 1_000
