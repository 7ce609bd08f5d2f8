"""Measure commands in large repositories. `python bench/large.py [--rounds N] [--million] [--folder FOLDER]`.

Each session is a process of its own, with three turns of three commands. Sessions and calls of `git status` alternate.
The model answers after two seconds, as models do: the sandbox has started by then. `--folder` keeps the repositories.
"""

import argparse
import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from goose_like.agent.build import build_exchange
from goose_like.config.profile import Profile
from goose_like.core.events import Event, ToolFinished, ToolStarted
from goose_like.core.notifier import EventNotifier
from goose_like.sessions.session import Session

SIZES = (2_000, 100_000)
MILLION = 1_000_000
FILES_PER_FOLDER = 50
FOLDERS_PER_FOLDER = 50
TURNS = 3
COMMANDS = 3
MODEL_S = 2.0
FIRST_TARGET = 2.0
LATER_TARGET = 1.2
MEMORY_TARGET_MB = 90


class Clock(EventNotifier):
    """A front-end that measures how long each call takes."""

    def __init__(self) -> None:
        self.calls_ms: list[float] = []
        self._started_s = 0.0

    def notify(self, event: Event) -> None:
        if isinstance(event, ToolStarted):
            self._started_s = time.perf_counter()
        elif isinstance(event, ToolFinished):
            self.calls_ms.append((time.perf_counter() - self._started_s) * 1000)


def create_repository(folder: Path, count: int) -> None:
    """Create a repository with committed files, unless it is there already. A pack takes less time than `git add`."""
    if (folder / ".git/index").exists():
        return
    subprocess.run(["git", "init", "-q", "-b", "main", str(folder)], check=True)
    git = ["git", "-C", str(folder)]
    with subprocess.Popen([*git, "fast-import", "--quiet"], stdin=subprocess.PIPE, text=True) as importer:
        assert importer.stdin
        importer.stdin.write("commit refs/heads/main\ncommitter n <e> 1700000000 +0000\ndata 3\nall\n")
        for number in range(count):
            place = number // FILES_PER_FOLDER
            name = f"area_{place // FOLDERS_PER_FOLDER}/part_{place}/file_{number}.py"
            text = f"number = {number}\n"
            importer.stdin.write(f"M 100644 inline {name}\ndata {len(text)}\n{text}\n")
        importer.stdin.write("done\n")
    subprocess.run([*git, "checkout", "-q", "-f", "main"], check=True)


def run_session(folder: Path) -> None:
    """Run a session, and print what its calls took in milliseconds, and the peak of its memory in MB."""
    clock = Clock()
    with tempfile.TemporaryDirectory(prefix="goose-like-bench-") as name:
        os.environ["GOOSE_LIKE_HOME"] = f"{name}/home"
        script = Path(name, "script.json")
        call = {"tool": "shell", "arguments": {"command": "true"}}
        turn = [{"calls": [call], "delay_s": MODEL_S}] * COMMANDS + [{"text": "Done.", "delay_s": MODEL_S}]
        script.write_text(json.dumps(turn * TURNS))
        profile = Profile.model_validate({"processor": f"scripted:{script}", "sandbox": "workspace"})
        asyncio.run(run_turns(profile, folder, clock))
    memory_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"calls_ms": clock.calls_ms, "memory_mb": memory_mb}))


async def run_turns(profile: Profile, folder: Path, clock: Clock) -> None:
    async with build_exchange(profile, clock, session=Session.create(), folder=folder) as exchange:
        for _ in range(TURNS):
            await exchange.reply("go")


def measure(folder: Path, rounds: int) -> dict[str, list[float]]:
    """Return the times of `git status` and of calls in milliseconds, and the memory of sessions in MB."""
    found: dict[str, list[float]] = {"status": [], "first": [], "later": [], "next": [], "memory": []}
    for _ in range(rounds):
        for _ in range(3):
            started_s = time.perf_counter()
            subprocess.run(["git", "-C", str(folder), "status", "--porcelain"], check=True, capture_output=True)
            found["status"].append((time.perf_counter() - started_s) * 1000)
        line = [sys.executable, __file__, "--session", str(folder)]
        output = subprocess.run(line, check=True, stdout=subprocess.PIPE, text=True).stdout
        session = json.loads(output.splitlines()[-1])
        turns = [session["calls_ms"][start : start + COMMANDS] for start in range(0, TURNS * COMMANDS, COMMANDS)]
        found["first"].append(turns[0][0])
        found["later"] += [turn[0] for turn in turns[1:]]
        for turn in turns:
            found["next"] += turn[1:]
        found["memory"].append(session["memory_mb"])
    return found


def print_row(name: str, values: Iterable[float], target: str = "") -> None:
    values = list(values)
    print(f"  {name:44s} {statistics.median(values):8.1f} {min(values):8.1f}  {target}")


def main(rounds: int, sizes: Iterable[int], place: str) -> None:
    with tempfile.TemporaryDirectory(prefix="goose-like-bench-") as name:
        for size in sizes:
            folder = Path(place or name, str(size))
            create_repository(folder, size)
            found = measure(folder, rounds)
            status_ms = statistics.median(found["status"])
            print(f"{size:,} files, medians and minima of {rounds} sessions in ms")
            print_row("git status", found["status"])
            print_row("first command of a session", found["first"], f"target {FIRST_TARGET * status_ms:.0f}")
            print_row("first command of later turns", found["later"], f"target {LATER_TARGET * status_ms:.0f}")
            print_row("other commands", found["next"])
            print_row("memory in MB", found["memory"], f"target {MEMORY_TARGET_MB}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--million", action="store_true")
    parser.add_argument("--folder", default="")
    parser.add_argument("--session", type=Path)
    arguments = parser.parse_args()
    if arguments.session:
        run_session(arguments.session)
    else:
        main(arguments.rounds, (*SIZES, *[MILLION] * arguments.million), arguments.folder)
