"""The tasks of this folder: read one, write its files, and check what an agent left."""

import contextlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from goose_like.jobs.eval.suite import GIT_DATES, GIT_VARIABLES, load_suite

SUITE = Path(__file__).resolve().parent

LIMITS_S = {"file": 120.0, "files": 300.0, "repository": 600.0}
"""The seconds that a task of each size may take on a quiet machine."""

CORES = 2
"""The cores of that quiet machine."""

PATIENCE = 10
"""How many times longer a task may take on a busy machine."""

CHECK_S = 300.0


@dataclass(frozen=True, slots=True)
class Task:
    folder: Path
    prompt: str
    size: str
    is_held_out: bool
    setup: str
    """A bash script that runs in the work folder before the agent does."""

    @property
    def name(self) -> str:
        return self.folder.name


@dataclass(frozen=True, slots=True)
class Ended:
    exit_code: int | None
    """None if the process was killed because of the time."""
    took_s: float
    processor_s: float


def load_tasks() -> dict[str, Task]:
    """Read all tasks, the small ones first."""
    tasks = []
    for each in load_suite(SUITE):
        content = each.content
        tasks.append(Task(each.folder, content.prompt.strip(), content.size, content.held_out, content.setup))
    sizes = list(LIMITS_S)
    tasks.sort(key=lambda task: (sizes.index(task.size), task.name))
    return {task.name: task for task in tasks}


def build_environment() -> dict[str, str]:
    """Return what agents and checks see: Python and pytest of this program, and an author for git."""
    programs = os.path.dirname(sys.executable)
    path = os.pathsep.join([programs, os.environ.get("PATH", os.defpath)])
    # A start of pytest with all plugins of a developer takes five times as long.
    settings = {"PATH": path, "PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return {**os.environ, **GIT_VARIABLES, **settings}


def prepare(task: Task, work: Path) -> None:
    """Write the files of the task into the new folder `work`."""
    files = task.folder / "files"
    if files.is_dir():
        shutil.copytree(files, work)
    else:
        work.mkdir()
    if task.setup:
        environment = build_environment() | GIT_DATES
        command = ["bash", "-euc", task.setup]
        subprocess.run(command, cwd=work, env=environment, check=True, stdout=subprocess.DEVNULL)


def check(task: Task, work: Path, answer: Path) -> str:
    """Return why the task is not solved, or an empty text if it is. The agent could not see or change the check."""
    for cache in work.rglob("__pycache__"):
        shutil.rmtree(cache, ignore_errors=True)
    environment = build_environment() | {"ANSWER": str(answer), "PYTHONPATH": str(SUITE)}
    command = [sys.executable, "-P", str(task.folder / "check.py")]
    report = answer.with_name("check.txt")
    with report.open("w") as out:
        ended = run_limited(command, work, environment, out, out, wall_s=CHECK_S)
    if ended.exit_code is None:
        return "the check took too long"
    if ended.exit_code == 0:
        return ""
    lines = report.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"exit code {ended.exit_code}"


def run_limited(
    command: list[str],
    work: Path,
    environment: dict[str, str],
    out: IO[Any],
    err: IO[Any],
    *,
    wall_s: float,
    processor_s: float | None = None,
) -> Ended:
    """Run a command until it ends or a limit is reached. Then end everything that it started.

    Each process may use `processor_s`. With a model inside the process this limit is fair on a busy machine, which
    delays the model; a model elsewhere uses no processor time here, so `wall_s` limits it.
    """
    if processor_s is not None:
        command = ["bash", "-c", f'ulimit -t {processor_s:.0f} && exec "$@"', "bash", *command]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.monotonic()
    process = subprocess.Popen(
        command, cwd=work, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
    )
    exit_code: int | None
    try:
        exit_code = process.wait(wall_s)
    except subprocess.TimeoutExpired:
        exit_code = None
    finally:
        _kill_group(process.pid)
        process.wait()
    if exit_code in (-signal.SIGXCPU, -signal.SIGKILL):
        exit_code = None
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Ended(exit_code, time.monotonic() - started, used_s)


def _kill_group(leader: int) -> None:
    with contextlib.suppress(ProcessLookupError):  # nothing is left of it
        os.killpg(leader, signal.SIGKILL)
