"""Background work in a session: `/tasks`, and the count on the status line."""

import re
import subprocess

import pytest

START = {"tool": "start_process", "arguments": {"command": "echo ready; sleep 600"}}
WAIT = {"tool": "shell", "arguments": {"command": "sleep 600"}}


@pytest.fixture
def repository(place):
    """A commit, without which delegates that may write run in order."""
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "one"]):
        subprocess.run(["git", *words], cwd=place.work, check=True)


def delegate(task):
    return {"tool": "delegate", "arguments": {"task": task}}


def test_a_process_is_counted_listed_and_stopped(session):
    terminal = session({"calls": [START]}, "started", "It stays up.", "bye")
    terminal.type("go\r")
    terminal.see("started")
    terminal.see("It stays up.")
    terminal.idle()
    terminal.see_status("auto · workspace · 1 running (/tasks)")
    terminal.type("/tasks\r")
    terminal.see("/tasks NAME shows more")
    assert "  echo ready; sleep 600" in terminal.text
    assert "  │ ready" in terminal.text
    terminal.type("/tasks stop p2\r")
    terminal.see("nothing named 'p2' runs; there are: p1")
    terminal.type("/tasks stop p1\r")
    terminal.see("stopped p1: echo ready; sleep 600")
    terminal.type("/tasks\r")
    terminal.see("nothing runs in the background")
    terminal.wait_gone("running (/tasks)")
    assert terminal.leave() == 0


def test_the_time_of_a_call_is_beside_that_of_the_turn(session):
    terminal = session({"calls": [WAIT], "delay_s": 2.5})
    terminal.type("go\r")
    terminal.see("running: shell")
    times = re.compile(r"running: shell · ([1-9]) s · turn (\d+) s")
    terminal.until(lambda: times.search(terminal.text) is not None, "no times")
    found = times.search(terminal.text)
    assert found is not None
    assert int(found[2]) - int(found[1]) >= 2
    terminal.type("\x03")
    terminal.see("■ stopped")
    assert terminal.leave() == 0


def test_a_delegate_is_stopped_while_others_work(session, place, repository):
    steps = [{"calls": [delegate("one"), delegate("two")]}, {"calls": [WAIT]}, {"calls": [WAIT]}, "both are stopped"]
    terminal = session(*steps)
    terminal.type("go\r")
    terminal.see_status("auto · workspace · 2 running (/tasks)")
    terminal.see("shell sleep 600", times=2)
    terminal.type("/tasks stop d1\r")
    terminal.see("stopped d1: delegate: one")
    terminal.see_status("auto · workspace · 1 running (/tasks)")
    terminal.type("/tasks stop d2\r")
    terminal.see("both are stopped")
    assert len(re.findall(r"■. the person stopped this delegate", terminal.text)) == 2
    assert terminal.leave() == 0
    assert place.list_turn_ends() == ["stop"]


def test_each_delegate_is_a_line_that_unfolds(session, repository):
    steps = [{"calls": [delegate("one"), delegate("two")]}, {"calls": [WAIT]}, {"calls": [WAIT]}]
    terminal = session(*steps)
    terminal.type("go\r")
    for letter, task in (("a", "one"), ("b", "two")):
        terminal.see(f"▸{letter} delegate  {task} · 1 call · ▸ shell sleep 600")
    terminal.type("\x0f")  # Ctrl-O unfolds them
    terminal.see("  │b ▸ shell sleep 600")
    terminal.type("\x0f")
    terminal.wait_gone("  │b ▸ shell sleep 600")
    terminal.type("\x03")
    terminal.idle()
    assert terminal.leave() == 0
