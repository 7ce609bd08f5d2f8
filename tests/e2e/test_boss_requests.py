"""The requests of a boss for a small goal, compared with those of `run`, as a strong model would send them."""

import json
from typing import Any

import pytest

from tests.e2e.command import Place
from tests.loopback import Loopback, called, said, sse, threaded

GOAL = "test_calc.py fails. Repair calc.py."
PLAN = "- [ ] Find out why test_calc.py fails\n- [ ] Repair `mean` in calc.py\n- [ ] Run test_calc.py\n"
REPORT = "`mean` divided by one too many; the test passes now."
TESTS = "python3 -m unittest 2>&1"
LOOK = ("shell", {"command": f"cat *.py; {TESTS}"})
PATCH = (
    "patch_file",
    {
        "path": "calc.py",
        "patches": [{"before": "    return sum(xs) / (len(xs) + 1)", "after": "    return sum(xs) / len(xs)"}],
    },
)
TRY = ("shell", {"command": TESTS})
Call = tuple[str, dict[str, Any]]


@pytest.fixture
def project(place: Place) -> Place:
    (place.work / "calc.py").write_text("def mean(xs):\n    return sum(xs) / (len(xs) + 1)\n")
    (place.work / "test_calc.py").write_text(
        "import unittest\n\nfrom calc import mean\n\n\nclass TestMean(unittest.TestCase):\n"
        "    def test_mean(self):\n        self.assertEqual(mean([1, 3]), 2)\n"
    )
    return place


def send(*calls: Call, **done: list[int]) -> Any:
    return sse(called(*(("", name, json.dumps({**arguments, **done})) for name, arguments in calls)))


def play(place: Place, server: Loopback, *words: str) -> None:
    env = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": server.base_url}
    ended = place.run(*words, "--model", "openai:m", "--sandbox", "full", GOAL, env=env)
    assert (ended.returncode, ended.stdout.strip()) == (0, REPORT), ended.stderr
    assert "len(xs) + 1" not in (place.work / "calc.py").read_text()


def test_small_goal_takes_five_requests_where_run_takes_four(project):
    finish = ("finish", {"result": REPORT, "summary": "repaired mean"})
    with threaded([send(LOOK), send(PATCH), send(TRY), sse(said(REPORT))]) as server:
        play(project, server, "run")
        assert len(server.requests) == 4
    (project.work / "calc.py").write_text("def mean(xs):\n    return sum(xs) / (len(xs) + 1)\n")
    answers = [sse(said(PLAN)), send(LOOK), send(PATCH, done=[1]), send(TRY, done=[2]), send(finish, done=[3])]
    with threaded(answers) as server:
        play(project, server, "boss", "--memory", "plan=plan.md", "--memory", "logs=logs.md")
        assert len(server.requests) == 5
    question = server.requests[0].json["messages"][-1]["content"]
    assert all(text in question for text in ("\ncalc.py\n", "\ntest_calc.py\n", "- shell: ", "- patch_file: ")), (
        question
    )
    assert (project.work / "plan.md").read_text() == PLAN.replace("[ ]", "[x]")
    log = (project.work / "logs.md").read_text().splitlines()
    assert log[1].endswith("FAILED (failures=1) [exit code 1]")
    assert log[3].endswith(": OK")


def test_several_calls_of_one_round(project):
    finish = ("finish", {"result": REPORT, "summary": "repaired mean"})
    with threaded([sse(said(PLAN)), send(LOOK), send(PATCH, TRY, done=[1]), send(finish, done=[2, 3])]) as server:
        play(project, server, "boss", "--memory", "plan=plan.md")
        assert len(server.requests) == 4
    assert (project.work / "plan.md").read_text() == PLAN.replace("[ ]", "[x]")
