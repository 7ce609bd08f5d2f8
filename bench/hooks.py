"""Measure the start with 20 hooks, and a call that none of them matches. `python bench/hooks.py [--rounds N]`."""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from goose_like_toolkits.hooks.toolkit import HooksToolkit
from server import read_processor_s, record

from goose_like.sdk.testing import trial
from goose_like.toolkit import AfterCall, BeforeCall

HOOKS = 20
TARGET_MS = 15
CALLS = 2_000


def write_settings(folder: Path) -> None:
    """Write a project with hooks for calls of `Write`, which the model never makes."""
    group = {"matcher": "Write", "hooks": [{"type": "command", "command": "exit 2"}]}
    hooks = {"PreToolUse": [group] * (HOOKS // 2), "PostToolUse": [group] * (HOOKS // 2)}
    (folder / ".claude").mkdir(parents=True)
    (folder / ".claude/settings.json").write_text(json.dumps({"hooks": hooks}))


def trust(folder: Path, env: dict[str, str]) -> None:
    """Trust the project, as a person would."""
    command = [sys.executable, "-m", "goose_like", "trust", "add", str(folder)]
    subprocess.run(command, env=env, check=True, capture_output=True)


async def measure_starts(folder: Path, rounds: int) -> dict[str, list[float]]:
    """Return the medians of a session with one answer, without and with hooks.

    They are the time from the start of the process to the first request, and the processor time of the whole process.
    """
    starts: dict[str, list[float]] = {"none": [], "hooks": []}
    work: dict[str, list[float]] = {"none": [], "hooks": []}
    env = {**os.environ, "GOOSE_LIKE_HOME": str(folder / "home")}
    write_settings(folder / "hooks")
    (folder / "none").mkdir()
    trust(folder / "hooks", env)
    command = [sys.executable, "-m", "goose_like", "run", "--model", "openai:bench", "--sandbox", "full", "go"]
    for count in range(rounds + 1):  # the first round warms the caches
        for subject in starts:
            before_s = read_processor_s()
            _, start_s = await record(command, env, 1, str(folder / subject))
            if count:
                starts[subject].append(start_s * 1000)
                work[subject].append((read_processor_s() - before_s) * 1000)
    medians: dict[str, list[float]] = {}
    for subject in starts:
        medians[subject] = [statistics.median(starts[subject]), statistics.median(work[subject])]
    return medians


async def measure_call_us(folder: Path) -> float:
    """Return the time that the hooks take of a call that none of them matches, in microseconds."""
    group = {"matcher": "Write", "hooks": [{"command": "exit 2"}]}
    config = {"PreToolUse": [group] * (HOOKS // 2), "PostToolUse": [group] * (HOOKS // 2)}
    async with trial(HooksToolkit, folder, config=config) as opened:
        toolkit = opened.toolkit
        before = BeforeCall("c", "shell", {"command": "ls"})
        after = AfterCall("c", "shell", {"command": "ls"}, "a file", is_error=False)
        started = time.perf_counter()
        for _ in range(CALLS):
            assert await toolkit.before_call(before) is None
            assert await toolkit.after_call(after) is None
        return (time.perf_counter() - started) / CALLS * 1e6


async def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory(prefix="goose-like-bench-") as name:
        folder = Path(name)
        medians = await measure_starts(folder, rounds)
        call_us = await measure_call_us(folder / "work")
    print(f"medians of {rounds} interleaved runs; {HOOKS} hooks should add at most {TARGET_MS} ms to the start")
    for at, title in enumerate(("start to first request", "processor time")):
        without = medians["none"][at]
        added_ms = medians["hooks"][at] - without
        print(f"  {title:24} {without:8.1f} ms, with {HOOKS} hooks {added_ms:+.1f} ms")
    print(f"  a call that no hook matches {call_us:6.1f} µs")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    asyncio.run(main(parser.parse_args().rounds))
