"""Measure a call that none of 20 hooks matches. `python bench/hooks.py`. `skills.py` measures the start with hooks."""

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from goose_like_toolkits.hooks.toolkit import HooksToolkit

from goose_like.sdk.testing import trial
from goose_like.toolkit import AfterCall, BeforeCall

HOOKS = 20
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


async def measure_call_us(folder: Path) -> float:
    """Return the processor time that the hooks take of a call that none of them matches, in microseconds."""
    group = {"matcher": "Write", "hooks": [{"command": "exit 2"}]}
    config = {"PreToolUse": [group] * (HOOKS // 2), "PostToolUse": [group] * (HOOKS // 2)}
    async with trial(HooksToolkit, folder, config=config) as opened:
        toolkit = opened.toolkit
        before = BeforeCall("c", "shell", {"command": "ls"})
        after = AfterCall("c", "shell", {"command": "ls"}, "a file", is_error=False)
        started_s = time.process_time()
        for _ in range(CALLS):
            assert await toolkit.before_call(before) is None
            assert await toolkit.after_call(after) is None
        return (time.process_time() - started_s) / CALLS * 1e6


async def main() -> None:
    with tempfile.TemporaryDirectory(prefix="goose-like-bench-") as folder:
        call_us = await measure_call_us(Path(folder))
    print(f"{HOOKS} hooks add {call_us:.1f} µs to a call that none of them matches")


if __name__ == "__main__":
    asyncio.run(main())
