"""The engines: both pass the same tests. Each starts real workers, which run real sessions."""

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from goose_like.core.errors import UsageError
from goose_like.jobs.batch.engine import Engine
from goose_like.jobs.batch.job import BatchInput, Job
from goose_like.jobs.batch.local_engine import LocalEngine
from goose_like.jobs.batch.ray_engine import RayEngine
from goose_like.recipes.recipe import load_recipe
from goose_like.recipes.trust import digest_texts
from tests.processes import is_alive

RECIPE = """
version: 1.0.0
title: Write
description: Writes a word
prompt: "Write {{ word }} into out.txt."
parameters:
  - {key: word, input_type: string, requirement: required, description: the word}
"""
WRITE = """
- calls: [{tool: shell, arguments: {command: echo done > out.txt}}]
- Done.
"""
HANG = """
- calls: [{tool: shell, arguments: {command: echo $$ > %s; exec sleep 1000}}]
- never
"""


@pytest.fixture(params=["local", pytest.param("ray", marks=pytest.mark.slow)])
async def engine(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Engine]:
    (tmp_path / "batch").mkdir()
    (tmp_path / "work").mkdir()
    made = LocalEngine(tmp_path / "batch") if request.param == "local" else RayEngine(None, 0.1)
    yield made
    await made.close()


@pytest.fixture
def make_job(tmp_path: Path) -> Callable[..., Job]:
    def make(number: int, script: str, attempt: int = 1) -> Job:
        file = tmp_path / f"{number}.yaml"
        file.write_text(script)
        return Job(
            batch="b",
            number=number,
            attempt=attempt,
            recipe=str(tmp_path / "r.yaml"),
            texts={"r.yaml": RECIPE},
            digest=digest_texts(load_recipe(tmp_path / "r.yaml", {"r.yaml": RECIPE}).fill({"word": "x"})),
            folder=str(tmp_path / "batch"),
            input=BatchInput(row={}, parameters={"word": "x"}, place="copy", source=str(tmp_path / "work")),
            limits={},
            options={"model": f"scripted:{file}"},
        )

    return make


async def test_jobs_end_with_results_and_lost_workers_with_none(
    engine: Engine, make_job: Callable[..., Job], tmp_path: Path
) -> None:
    for number in (1, 2):
        await engine.start(make_job(number, WRITE))
    await engine.start(make_job(3, "- error: {status: 401, text: wrong key}"))
    ends = {}
    for _ in range(3):
        job, result = await engine.wait()
        assert result is not None
        ends[job.number] = result
    assert [ends[number].outcome.status for number in (1, 2, 3)] == ["done", "done", "failed"]
    assert b"+done" in ends[1].patch
    assert '"is_tree_equal": false' in ends[2].receipt
    assert (ends[3].outcome.exit_code, ends[3].patch) == (76, b"")

    pid_file = tmp_path / "work" / "pid"
    await engine.start(make_job(4, HANG % "pid"))
    worker, command = await find_worker(tmp_path, "b-0004")
    os.kill(worker, signal.SIGKILL)
    job, result = await engine.wait()
    assert (job.number, result) == (4, None)
    assert not pid_file.exists()
    await wait_for_end(command)

    if isinstance(engine, RayEngine):
        lose_board(engine)
    await engine.start(make_job(4, WRITE, attempt=2))
    job, result = await engine.wait()
    assert result is not None
    assert result.outcome.status == "done"

    await engine.start(make_job(5, HANG % "pid"))
    _, command = await find_worker(tmp_path, "b-0005")
    await engine.close()
    await wait_for_end(command)


def lose_board(engine: RayEngine) -> None:
    """End the actor of the pauses, as if its machine were lost."""
    import ray

    ray.kill(engine._board, no_restart=False)


async def find_worker(folder: Path, session: str) -> tuple[int, int]:
    """Wait until the command of a session hangs, and return the process of its worker and that of the command."""
    place = folder / "batch" / "places" / session.rpartition("-")[2]
    while not (found := find_command(str(place))):  # noqa: ASYNC110
        await asyncio.sleep(0.1)
    return find_ancestor(found), found


def find_command(place: str) -> int:
    for command in list_processes("sleep 1000"):
        if os.path.realpath(f"/proc/{command}/cwd") == place:
            return command
    return 0


def list_processes(line: str) -> list[int]:
    found = subprocess.run(["pgrep", "-fx", line], capture_output=True, text=True, check=False)
    return [int(pid) for pid in found.stdout.split()]


def find_ancestor(pid: int) -> int:
    """Return the process of goose-like's worker or of Ray's that started a command."""
    while True:
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        name = Path(f"/proc/{pid}/cmdline").read_bytes()
        if b"jobs.batch.worker" in name or name.startswith(b"ray::"):
            return pid


async def wait_for_end(pid: int) -> None:
    while is_alive(pid):  # noqa: ASYNC110
        await asyncio.sleep(0.05)


@pytest.mark.parametrize("address", ["127.0.0.1:9", "ray://127.0.0.1:9", "127.0.0.1:99999", "no.host.invalid:6379"])
def test_an_address_without_a_cluster_is_an_error_at_once(address: str, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(UsageError, match=f"no Ray cluster at {address}"):
        RayEngine(address, 0.1)
    monkeypatch.setenv("RAY_ADDRESS", address)
    with pytest.raises(UsageError, match=f"no Ray cluster at {address}"):
        RayEngine(None, 0.1)
