"""A scripted boss that writes code, saves it in its library and runs it."""

import json
from pathlib import Path

import pytest
from goose_like_toolkits.boss.flow.boss import Boss
from goose_like_toolkits.boss.flow.setup import open_boss
from goose_like_toolkits.boss.spec import BossSpec

from goose_like.config.profile import Profile
from goose_like.core.notifier import Recorder
from goose_like.sessions.session import Session

LIBRARY = '''import math


def mean(xs):
    """The mean."""
    return math.fsum(xs) / len(xs)


def twice(xs):
    return 2 * mean(xs)
'''
MEAN = f"{LIBRARY.partition('def twice')[0].strip()}\n"
TWICE = "from library import mean\n\n\ndef twice(xs):\n    return 2 * mean(xs)\n"

ROUNDS = (
    ("write_code", {"code": MEAN, "tests": "assert mean([1, 3]) == 3"}),
    ("save_code", {}),
    ("write_code", {"code": MEAN, "tests": "assert mean([1, 3]) == 2"}),
    ("save_code", {}),
    ("write_code", {"code": MEAN.replace("math.fsum(xs)", "0"), "tests": ""}),
    ("save_code", {"replace": True}),
    ("update_plan", {"done": [1], "current": 2}),
    ("write_code", {"code": TWICE, "tests": "assert twice([1, 3]) == 4"}),
    ("save_code", {}),
    ("run_code", {"code": "from library import twice\nprint(twice([1, 3]))"}),
    ("finish", {"result": "4.0", "summary": "it is 4"}),
)
LOG = """# A mean
- 1 · write_code (def mean(xs):, assert mean([1, 3]) == 3): failed: \
assert mean([1, 3]) == 3 · AssertionError [exit code 1]
- 2 · save_code: failed: there is no draft that passed its tests; make one with `write_code`
- 3 · write_code: a draft of mean passes its tests
- 4 · save_code: saved in the library: mean
- 5 · write_code (def mean(xs):): failed: assert mean([1, 3]) == 2 · AssertionError [exit code 1]
- 6 · save_code: failed: there is no draft that passed its tests; make one with `write_code`
- 7 · update_plan: 1 of 2 steps done
- 8 · write_code: a draft of twice passes its tests
- 9 · save_code: saved in the library: twice
- 10 · run_code (print(twice([1, 3]))): 4.0
- 11 · finish: it is 4
"""


@pytest.mark.parametrize("files", [{}, {"plan": "plan.md", "logs": "logs.md", "code_library": "library.py"}])
async def test_code_is_tested_saved_and_run(
    files: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, script = tmp_path / "work", tmp_path / "script.yaml"
    work.mkdir()
    monkeypatch.chdir(work)
    rounds = [{"calls": [{"tool": tool, "arguments": arguments}]} for tool, arguments in ROUNDS]
    script.write_text(json.dumps(["```\n1. write mean\n2. use it\n```", *rounds]))
    profile = Profile.model_validate(
        {"processor": f"scripted:{script}", "accelerator": f"scripted:{script}", "toolkits": []}
    )
    branches = dict.fromkeys(("write_code", "save_code", "run_code", "update_plan"))
    spec = BossSpec.model_validate({"memory_files": files, "branches": branches})
    session = Session.create()
    async with open_boss(Boss(spec), profile, Recorder(), session=session) as run:
        outcome = await run.work("A mean\nand its double")
    folder = work if files else session.folder / "memory"
    assert (outcome.result, outcome.summary, outcome.status) == ("4.0", "it is 4", "finished")
    assert (folder / "plan.md").read_text() == "1. [x] write mean\n2. [~] use it\n"
    assert (folder / "library.py").read_text() == LIBRARY
    assert (folder / "logs.md").read_text() == LOG
    assert sorted(path.name for path in work.iterdir()) == sorted(
        [*files.values(), "test_library.py"][: 4 * bool(files)]
    )
    session.close()


async def test_a_draft_that_cannot_be_imported_never_reaches_the_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    steps = (
        ("write_code", {"code": "import nosuchmod\n\n\ndef one():\n    return 1"}),
        ("save_code", {}),
        ("write_code", {"code": "def two():\n    return 2\n\n\nTWO = three()"}),
        ("save_code", {}),
        ("write_code", {"code": "def one():\n    return 1"}),
        ("save_code", {}),
        ("write_code", {"code": "def twice(xs):\n    return 2 * one()", "tests": "assert twice([]) == 2"}),
        ("finish", {"result": "ok", "summary": "ok"}),
    )
    rounds = [{"calls": [{"tool": tool, "arguments": arguments}]} for tool, arguments in steps]
    script = tmp_path / "script.yaml"
    script.write_text(json.dumps(["```\n1. do it\n```", *rounds]))
    profile = Profile.model_validate(
        {"processor": f"scripted:{script}", "accelerator": f"scripted:{script}", "toolkits": []}
    )
    spec = BossSpec.model_validate({"branches": dict.fromkeys(("write_code", "save_code"))})
    session = Session.create()
    async with open_boss(Boss(spec), profile, Recorder(), session=session) as run:
        await run.work("one")
    outputs = [part.output for message in session.history.messages for part in message.tool_results]
    assert "the library can't be imported with this draft" in outputs[0]
    assert "No module named 'nosuchmod'" in outputs[0]
    assert "name 'three' is not defined" in outputs[2]
    assert outputs[1] == outputs[3] == "there is no draft that passed its tests; make one with `write_code`"
    assert outputs[4].startswith("the draft of one can be imported; it was not tested")
    assert "passes its tests" in outputs[6]
    session.close()
