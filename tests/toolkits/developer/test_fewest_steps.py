"""A model that follows the prompt to the letter takes the fewest steps: look, change and check, answer."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from goose_like.agent.build import build_exchange
from goose_like.config.profile import ModelChoice, Profile
from goose_like.config.profile_loader import load_profile
from goose_like.core.events import MessageCompleted, PlanUpdated, Question, Reminded, Retrying, ToolFinished
from goose_like.core.notifier import Recorder
from tests.bench.test_tasks import TASKS, suite

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


def rename(path: str, text: str, before: str, after: str) -> dict[str, Any]:
    """Patch each line of a file that has the name, as the model saw it in the output of rg."""
    patches = []
    for line in text.splitlines():
        changed = re.sub(before, after, line)
        if changed != line:
            patches.append({"before": line, "after": changed})
    return {"tool": "patch_file", "arguments": {"path": path, "patches": patches}}


def write_script(steps: list[dict[str, Any]], folder: Path) -> ModelChoice:
    script = folder / "script.yaml"
    script.write_text(json.dumps(steps))
    return ModelChoice(model=f"scripted:{script}")


async def work(profile: Profile, model: ModelChoice, task: str, step_count: int) -> None:
    """Let a scripted model work. A step more than planned fails, and so does anything that comes between the steps."""
    choices = {"processor": model, "sandbox": "full", "approval": "yolo"}
    recorder = Recorder()
    async with build_exchange(profile.model_copy(update=choices), recorder) as exchange:
        finished = await exchange.reply(task)
    assert finished.reason == "stop", finished.detail
    assert sum(isinstance(event, MessageCompleted) for event in recorder.events) == step_count
    assert not any(isinstance(event, Retrying | Question) for event in recorder.events)
    first = next(n for n, event in enumerate(recorder.events) if isinstance(event, MessageCompleted))
    assert not any(isinstance(event, Reminded) for event in recorder.events[first:])
    assert not any(isinstance(event, ToolFinished) and event.result.is_error for event in recorder.events)
    plans = [event for event in recorder.events if isinstance(event, PlanUpdated)]
    assert all(task.status == "complete" for task in plans[-1].tasks)


@pytest.mark.parametrize("verify", ["", CHECK])
async def test_a_task_in_three_files_takes_three_steps(
    verify: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "shop"
    root.mkdir()
    for name, text in FILES.items():
        (root / name).write_text(text)
    changes = [rename(path, text, r"\btotal\b", "sum_up") for path, text in FILES.items()]
    steps = [
        {"text": "I look first.", "calls": [plan(0), shell("rg -n total")]},
        {"expect": "report.py:5:", "calls": [*changes, shell(CHECK), plan(2)]},
        {"expect": "Ran 2 tests.*OK", "text": "total is sum_up now; the 2 tests pass.", "calls": [plan(3)]},
    ]
    monkeypatch.chdir(root)
    model = write_script(steps, tmp_path)
    await work(Profile(verify=verify or None), model, "rename total to sum_up everywhere", len(steps))
    assert "def sum_up(prices)" in (root / "shop.py").read_text()
    assert "{sum_up(prices)}" in (root / "report.py").read_text()


async def test_a_task_of_the_suite_takes_three_steps_with_the_shipped_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = TASKS["rename_field"]
    root = tmp_path / "work"
    suite.prepare(task, root)
    changes = []
    for path in ("billing/invoice.py", "billing/export.py", "tests/test_billing.py", "README.md"):
        text = (root / path).read_text()
        # The argument of `pay` has the same name, and keeps it.
        changes.append(rename(path, text, r"(?<!pay\(invoice, )\bamount\b", "net_total"))
    run_tests = shell(f"{sys.executable} -B -m pytest -q -p no:cacheprovider")
    answer = "The field is net_total now, in the code, tests and README; the 3 tests pass."
    steps = [
        {"text": "I look first.", "calls": [plan(0), shell("rg -n amount"), shell("cat billing/*.py")]},
        {"expect": "billing/export.py", "calls": [*changes, run_tests, plan(2)]},
        {"expect": "3 passed", "text": answer, "calls": [plan(3)]},
    ]
    monkeypatch.chdir(root)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    profile, _ = load_profile("default")
    await work(profile, write_script(steps, tmp_path), task.prompt, len(steps))
    written = tmp_path / "answer.txt"
    written.write_text(answer)
    assert suite.check(task, root, written) == ""
