"""A worker of a batch in this process: a check decides about work that a model has ended, and about nothing else."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from goose_like.jobs.batch.job import BatchInput, Job, JobResult, Scripts
from goose_like.jobs.batch.pauses import FilePauses
from goose_like.jobs.batch.worker import run_job
from goose_like.recipes.recipe import load_recipe
from goose_like.recipes.trust import digest_texts

RECIPE = "title: A task\ndescription: A task\nprompt: Do it.\n"
DONE = """
- calls: [{tool: shell, arguments: {command: echo done > out.txt}}]
  usage: {input: 900, output: 50}
- {text: Done., usage: {input: 900, output: 50}}
"""
PASSES = (sys.executable, "-c", "print('fine')")
FAILS = (sys.executable, "-c", "exit('not solved')")


@pytest.fixture
def make_job(tmp_path: Path) -> Callable[..., Job]:
    def make(script: str, check: tuple[str, ...], limits: dict[str, float] | None = None) -> Job:
        (tmp_path / "suite").mkdir(exist_ok=True)
        (tmp_path / "script.yaml").write_text(script)
        texts = {"r.yaml": RECIPE}
        recipe = tmp_path / "suite/r.yaml"
        scripts = Scripts(folder=str(tmp_path / "suite"), check=check)
        return Job(
            batch="b",
            number=1,
            attempt=1,
            recipe=str(recipe),
            texts=texts,
            digest=digest_texts(load_recipe(recipe, texts).fill({})),
            folder=str(tmp_path / "batch"),
            input=BatchInput(row={}, place="copy", source="", scripts=scripts),
            limits=limits or {},
            options={"model": f"scripted:{tmp_path / 'script.yaml'}"},
        )

    return make


async def run(job: Job) -> JobResult:
    return await run_job(job, FilePauses(Path(job.folder) / "pauses"))


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("- error: {status: 402, text: no credit}", 75),
        ("- error: {status: 401, text: wrong key}", 76),
        ("- error: {status: 404, text: no such model}", 77),
        ("- error: {status: 400, text: a wrong request}", 1),
    ],
)
async def test_a_check_does_not_run_after_an_outage(make_job: Callable[..., Job], script: str, code: int) -> None:
    outcome = (await run(make_job(script, PASSES))).outcome
    assert (outcome.status, outcome.exit_code) == ("failed", code)
    assert "the check" not in outcome.reason


@pytest.mark.parametrize(
    ("check", "limits", "status", "code"),
    [
        (PASSES, {}, "done", 0),
        (PASSES, {"steps": 1}, "done", 0),
        (FAILS, {}, "failed", 8),
        (FAILS, {"steps": 1}, "failed", 3),
    ],
)
async def test_a_check_decides_about_work_that_a_model_has_ended(
    make_job: Callable[..., Job], check: tuple[str, ...], limits: dict[str, float], status: str, code: int
) -> None:
    outcome = (await run(make_job(DONE, check, limits))).outcome
    assert (outcome.status, outcome.exit_code) == (status, code)
    assert ("not solved" in outcome.reason) == (status == "failed")


async def test_a_check_that_cannot_start_keeps_the_work(make_job: Callable[..., Job], tmp_path: Path) -> None:
    result = await run(make_job(DONE, (str(tmp_path / "suite/missing"),)))
    outcome = result.outcome
    assert (outcome.status, outcome.exit_code, outcome.usage.total_tokens) == ("failed", 1, 1900)
    assert "missing" in outcome.reason
    assert outcome.session == "b-0001"
    assert b"+done" in result.patch
    assert result.receipt


@pytest.mark.parametrize("setup", ["echo no; exit 3", "git init -q && rm -r .git/HEAD"])
async def test_a_place_whose_setup_fails_is_removed(make_job: Callable[..., Job], tmp_path: Path, setup: str) -> None:
    job = make_job(DONE, PASSES)
    scripts = Scripts(folder=str(tmp_path / "suite"), setup=("bash", "-euc", setup), check=PASSES)
    outcome = (await run(job.model_copy(update={"input": job.input.model_copy(update={"scripts": scripts})}))).outcome
    assert (outcome.status, outcome.exit_code) == ("failed", 1)
    assert list((tmp_path / "batch/places").iterdir()) == []
