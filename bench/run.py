"""Prints goose_like's figures beside bare scripts' measured in the same run. `python bench/run.py [--rounds N]`."""

import argparse
import asyncio
import itertools
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from server import Recording, record

HERE = Path(__file__).parent
STEPS = 200
STARTS = 5  # a round
EARLY, LATE = slice(0, 20), slice(179, 199)


def agent(sandbox: str, steps: int) -> list[str]:
    return [
        sys.executable,
        "-m",
        "goose_like",
        "run",
        "--model",
        "openai:bench",
        "--sandbox",
        sandbox,
        "--max-turns",
        str(steps + 1),
        "go",
    ]


def script(name: str, *words: str) -> list[str]:
    return [sys.executable, str(HERE / name), *words]


def median_ms(gaps: list[float], part: slice) -> float:
    return statistics.median(gaps[part]) * 1000


def is_append_only(recording: Recording) -> bool:
    """Whether each request's body begins with the former one's, but for what closes its list of messages."""
    bodies = [body.removesuffix(b"]}") for body in recording.bodies]
    return all(later.startswith(earlier) for earlier, later in itertools.pairwise(bodies))


def start_ms(command: list[str]) -> float:
    started = time.monotonic()
    subprocess.run(command, check=True, capture_output=True)
    return (time.monotonic() - started) * 1000


async def main(rounds: int) -> None:
    folder = Path(tempfile.mkdtemp(prefix="goose-like-bench-"))
    (folder / "work").mkdir()
    env = {**os.environ, "GOOSE_LIKE_HOME": str(folder / "home")}

    async def play(command: list[str], steps: int) -> tuple[Recording, float]:
        return await record(command, env, steps, str(folder / "work"))

    subjects = {
        "bare httpx loop": lambda steps: script("floor_httpx.py"),
        "bare httpx, no shell": lambda steps: script("floor_httpx.py", "--no-shell"),
        "bare openai loop": lambda steps: script("floor_openai.py"),
        "goose-like, full": lambda steps: agent("full", steps),
        "goose-like, sandboxed": lambda steps: agent("workspace", steps),
    }
    starts: dict[str, list[float]] = {name: [] for name in subjects}
    early: dict[str, list[float]] = {name: [] for name in subjects}
    late: dict[str, list[float]] = {name: [] for name in subjects}
    recording = Recording(0)
    for count in range(rounds + 1):  # the first round warms the caches up
        # In turn, so that a slow moment of the machine hits all alike.
        for _, (name, command) in itertools.product(range(STARTS if count else 1), subjects.items()):
            _, start = await play(command(2), 2)
            if count:
                starts[name].append(start * 1000)
        for name, command in subjects.items():
            recording, _ = await play(command(STEPS), STEPS)
            if count:
                early[name].append(median_ms(recording.gaps_s, EARLY))
                late[name].append(median_ms(recording.gaps_s, LATE))

    def table(title: str, figures: dict[str, list[float]], floor: str) -> None:
        base = statistics.median(figures[floor])
        print(f"\n{title}; ratio to: {floor}")
        for name, values in figures.items():
            print(f"  {name:24} {statistics.median(values):8.1f} ms {statistics.median(values) / base:6.2f}x")

    table("process start to first request", starts, "bare openai loop")
    table(f"gap between answer and request, steps 1-20 of {STEPS}", early, "bare httpx loop")
    table(f"gap between answer and request, steps 180-199 of {STEPS}", late, "bare httpx loop")
    print(f"\nfirst request's body: {len(recording.bodies[0]):,} bytes (at most 7,000)")
    print(f"append-only over {STEPS} requests: {is_append_only(recording)}")

    python = [sys.executable, "-c", "pass"]
    begins = {
        "python -c pass": python,
        "--version": [*agent("full", 1)[:3], "--version"],
        "--help": [*agent("full", 1)[:3], "--help"],
    }
    times = {name: statistics.median(start_ms(command) for _ in range(5 * rounds)) for name, command in begins.items()}
    print("\nwhole process, more than python -c pass")
    for name, value in times.items():
        print(f"  {name:24} {value:8.1f} ms {value - times['python -c pass']:+8.1f} ms")
    shutil.rmtree(folder)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    asyncio.run(main(parser.parse_args().rounds))
