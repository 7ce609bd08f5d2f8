"""Approval mode `unattended` at a terminal where nobody types anything."""

import json
import subprocess

import pytest

from tests.e2e.command import shell

ASK = {"tool": "ask_user", "arguments": {"question": "Which database?"}}
OUTSIDE = {"tool": "write_file", "arguments": {"path": "/outside-of-everything.txt", "content": "x\n"}}
CALLS = [
    ASK,
    OUTSIDE,
    shell("python3 --version", access="network"),
    shell("curl -sS http://example.org/"),
    shell("git init -q && git config alias.st '!make'"),
]
DENIED = ["outside", "network", "domain", "repository"]


@pytest.fixture
def untrusted(place):
    folder = place.work / ".goose-like" / "commands"
    folder.mkdir(parents=True)
    (folder / "hi.md").write_text("Say hi.\n")


@pytest.mark.usefixtures("untrusted")
def test_a_run_at_a_terminal_never_waits(place, open_screen):
    model = place.script(*[{"calls": [call]} for call in CALLS], "done")
    terminal = open_screen("run", "--approval", "unattended", "go", "--model", model)
    terminal.see("skipped untrusted files")
    assert terminal.wait_exit() == 6
    assert "(allowed by: the rule domain:example.org)" in " ".join(terminal.text.split())
    asked = [event["question"]["kind"] for event in place.events() if event["type"] == "asked"]
    assert [kind for kind in DENIED if kind not in asked] == []
    assert set(place.list_answers()) == {("deny", "nobody")}


def test_without_a_terminal_a_run_is_unattended_and_lists_what_was_denied(place):
    subprocess.run(["git", "init", "-q"], cwd=place.work, check=True)
    model = place.script({"calls": [OUTSIDE]}, "done")
    done = place.run("run", "--output-format", "json", "--model", model, "go")
    assert done.returncode == 6
    assert "unattended · workspace" in done.stderr
    (denied,) = json.loads(done.stdout)["denied"]
    assert denied["allowed_by"] == "the rule path:/outside-of-everything.txt"
    (output,) = [event["result"]["output"] for event in place.events() if event["type"] == "tool_finished"]
    assert output.endswith("(allowed by: the rule path:/outside-of-everything.txt)")
    allowed = place.script({"calls": [shell("true", access="network")]}, "done")
    assert place.run("run", "--model", allowed, "--sandbox", "workspace+network", "go").returncode == 0


def test_a_session_in_this_mode_answers_its_own_questions(session, place):
    subprocess.run(["git", "init", "-q"], cwd=place.work, check=True)
    (place.work / "a.txt").write_text("x\n")
    terminal = session("hi", words=("--approval", "unattended"))
    terminal.see_status("unattended · workspace")
    terminal.type("/commit\r")
    terminal.see("no, as the mode is unattended")
    terminal.type("/mode full\r")
    terminal.see("no, as the mode is unattended", times=2)
    terminal.see_status("unattended · workspace")
    assert terminal.leave() == 0
