"""Tests of the synopsis: one message with the current state of the work, then the newest step."""

import json
import subprocess

import pytest

from goose_like.agent.build import build_exchange
from goose_like.config.profile import ModelChoice
from goose_like.config.profile_loader import load_profile
from goose_like.core.events import Compacted, PlanUpdated, Reminded, Task
from goose_like.core.notifier import Recorder
from goose_like.sessions.session import Session


@pytest.fixture
def project(tmp_path, monkeypatch):
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("GOOSE_LIKE_HOME", str(tmp_path / "home"))
    (folder / "a.py").write_text("one = 1\n")
    return folder


def write_script(tmp_path, *steps):
    file = tmp_path / "script.yaml"
    file.write_text(json.dumps(list(steps)))
    return ModelChoice(model=f"scripted:{file}")


def call_tool(tool, **arguments):
    return {"calls": [{"tool": tool, "arguments": arguments}]}


async def test_files_in_use_are_shown_as_they_are_now(project, tmp_path):
    script = write_script(
        tmp_path,
        call_tool("read_file", path="a.py"),
        call_tool("shell", command="echo 'one = 2' > a.py"),
        call_tool("patch_file", path="a.py", patches=[{"before": "one = 1", "after": "one = 3"}]),
        call_tool("write_file", path="b.py", content="two = 2\n"),
        {"text": "done"},
    )
    profile = load_profile("synopsis")[0].model_copy(update={"processor": script, "sandbox": "full"})
    session = Session.create()
    async with build_exchange(profile, Recorder(), session=session) as exchange:
        exchange.journal.emit(PlanUpdated(tasks=(Task(description="count to three", status="complete"),)))
        assert (await exchange.reply("count")).reason == "stop"
        states = [event.summary for event in session.read_events() if isinstance(event, Compacted)]
        results = [r.output for m in exchange.history.messages for r in m.tool_results]
    assert "The state shows it from now on." in results[0]
    assert "File " in states[0]
    assert "one = 1" in states[0]
    assert "one = 2" in states[1]
    assert "a.py had changed since you read it" in results[2]
    assert "two = 2" in states[3]
    last = states[3]
    assert last.startswith("[The state of the work")
    assert "count" in last.split("# Asked for\n")[1]
    assert '- patch_file {"path": "a.py"' in last
    assert "failed: " in last
    assert "- [complete] count to three" in last
    assert "[no process was started]" in last


async def test_files_in_use_survive_a_resume(project, tmp_path):
    script = write_script(tmp_path, call_tool("read_file", path="a.py"), {"text": "seen"}, {"text": "again"})
    profile = load_profile("synopsis")[0].model_copy(update={"processor": script, "sandbox": "full"})
    session = Session.create("long")
    async with build_exchange(profile, Recorder(), session=session) as exchange:
        await exchange.reply("look")
    session.close()
    session = Session.resume("long")
    async with build_exchange(profile, Recorder(), session=session) as exchange:
        await exchange.reply("and now?")
        (*_, last) = [event.summary for event in session.read_events() if isinstance(event, Compacted)]
    session.close()
    assert "one = 1" in last


@pytest.fixture
def repository(project):
    subprocess.run(["git", "init", "-q", "-b", "trunk", "."], check=True)
    return project


async def test_context_updates_come_once(repository, tmp_path):
    script = write_script(
        tmp_path,
        call_tool("read_file", path="a.py"),
        call_tool("shell", command="sleep 0.01; echo 'one = 2' > a.py; git checkout -q -b other"),
        call_tool("shell", command="true"),
        {"text": "done"},
        {"text": "done again"},
    )
    profile = load_profile("default")[0].model_copy(update={"processor": script, "sandbox": "full"})
    async with build_exchange(profile, recorder := Recorder(), session=(session := Session.create())) as exchange:
        await exchange.reply("look")
        await exchange.reply("and?")
    session.close()
    first, second = [event.text for event in recorder.events if isinstance(event, Reminded)]
    assert first.startswith("folder: ")
    assert "\ndate: " in first
    assert first.endswith("\ngit branch: trunk")
    assert second.startswith("git branch: other\nno longer as you saw it: a.py (")
