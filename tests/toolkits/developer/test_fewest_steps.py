"""A model that follows the prompt to the letter takes the fewest steps: look, change and check, answer."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from goose_like.agent.build import build_exchange
from goose_like.config.profile import Profile
from goose_like.core.events import MessageCompleted, PlanUpdated, Question, Reminded, Retrying, ToolFinished
from goose_like.core.notifier import Recorder

CHECK = f"{sys.executable} -B -m unittest -q"
FILES = {
    "shop.py": "def total(prices):\n    return sum(prices)\n",
    "report.py": "from shop import total\n\n\ndef report(prices):\n    return f'{total(prices)} EUR'\n",
    "test_shop.py": (
        "import unittest\n\nfrom report import report\nfrom shop import total\n\n\nclass TestShop(unittest.TestCase):\n"
        "    def test_total(self):\n        self.assertEqual(total([1, 2]), 3)\n\n"
        "    def test_report(self):\n        self.assertEqual(report([1, 2]), '3 EUR')\n"
    ),
}
PLAN = ("find all uses", "rename", "run the tests")


def plan(done_count: int) -> dict[str, Any]:
    tasks = []
    for number, description in enumerate(PLAN):
        status = "complete" if number < done_count else "planned"
        tasks.append({"description": description, "status": status})
    return {"tool": "update_plan", "arguments": {"tasks": tasks}}


def shell(command: str) -> dict[str, Any]:
    return {"tool": "shell", "arguments": {"command": command}}


def rename(path: str) -> dict[str, Any]:
    """Patch each line of a file that has the name, as the model saw it in the output of rg."""
    patches = []
    for line in FILES[path].splitlines():
        after = re.sub(r"\btotal\b", "sum_up", line)
        if after != line:
            patches.append({"before": line, "after": after})
    return {"tool": "patch_file", "arguments": {"path": path, "patches": patches}}


@pytest.mark.parametrize("verify", ["", CHECK])
async def test_a_task_in_three_files_takes_three_steps(
    verify: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "shop"
    root.mkdir()
    for name, text in FILES.items():
        (root / name).write_text(text)
    steps = [
        {"text": "I look first.", "calls": [plan(0), shell("rg -n total")]},
        {"expect": "report.py:5:", "calls": [*map(rename, FILES), shell(CHECK), plan(2)]},
        {"expect": "Ran 2 tests.*OK", "text": "total is sum_up now; the 2 tests pass.", "calls": [plan(3)]},
    ]
    script = tmp_path / "script.yaml"
    script.write_text(json.dumps(steps))
    monkeypatch.chdir(root)
    profile = Profile(processor=f"scripted:{script}", sandbox="full", approval="yolo", verify=verify or None)
    recorder = Recorder()
    async with build_exchange(profile, recorder) as exchange:
        finished = await exchange.reply("rename total to sum_up everywhere")
    assert finished.reason == "stop", finished.detail
    # A step more would fail: the script has no fourth one. Nothing came between the steps, either.
    assert sum(isinstance(event, MessageCompleted) for event in recorder.events) == len(steps)
    assert not any(isinstance(event, Retrying | Question) for event in recorder.events)
    first = next(n for n, event in enumerate(recorder.events) if isinstance(event, MessageCompleted))
    assert not any(isinstance(event, Reminded) for event in recorder.events[first:])
    assert not any(isinstance(event, ToolFinished) and event.result.is_error for event in recorder.events)
    plans = [event for event in recorder.events if isinstance(event, PlanUpdated)]
    assert all(task.status == "complete" for task in plans[-1].tasks)
    assert "def sum_up(prices)" in (root / "shop.py").read_text()
    assert "{sum_up(prices)}" in (root / "report.py").read_text()
