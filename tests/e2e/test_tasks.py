"""Background work in a session: `/tasks`, and the count on the status line."""

import re
import subprocess

import pytest

START = {"tool": "process", "arguments": {"action": "start", "command": "echo ready; sleep 600"}}
WAIT = {"tool": "shell", "arguments": {"command": "sleep 600"}}


@pytest.fixture
def repository(place):
    """A commit, without which delegates that may write run in order."""
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "one"]):
        subprocess.run(["git", *words], cwd=place.work, check=True)


def delegate(task):
    return {"tool": "delegate", "arguments": {"task": task}}


def test_a_process_is_counted_listed_and_stopped(session):
    terminal = session({"calls": [START]}, "It started and stays up.")
    terminal.type("go\r")
    terminal.see("It started and stays up.")
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
    assert len(re.findall(r"■\d the person stopped this delegate", terminal.text)) == 2
    assert terminal.leave() == 0
    assert place.list_turn_ends() == ["stop"]


def test_each_delegate_is_a_line_that_unfolds(session, repository):
    steps = [{"calls": [delegate("one"), delegate("two")]}, {"calls": [WAIT]}, {"calls": [WAIT]}]
    terminal = session(*steps)
    terminal.type("go\r")
    for number, task in ((1, "one"), (2, "two")):
        terminal.see(f"▸{number} delegate  {task} · 1 call · ▸ shell sleep 600")
    terminal.type("\x0f")  # Ctrl-O unfolds them
    terminal.see("  │2 ▸ shell sleep 600")
    terminal.type("\x0f")
    terminal.wait_gone("  │2 ▸ shell sleep 600")
    terminal.type("\x03")
    terminal.idle()
    assert terminal.leave() == 0


VIEW = {"tool": "process", "arguments": {"action": "view", "id": "p1"}}


@pytest.mark.parametrize(
    ("keys", "status"),
    [
        ("/model {model}\r", "auto · workspace"),
        ("/mode ask\r", "ask · workspace"),
        ("\x1b[Z\x1b[Zgo on\r", "ask · workspace"),  # Shift-Tab twice, and a message
        ("/mode ask\r/mode auto\r", "auto · workspace"),
    ],
)
def test_a_process_survives_another_model_or_approval(session, place, keys, status):
    steps = [{"calls": [START]}, "It stays up.", {"calls": [VIEW]}, "seen"]
    terminal = session(*steps)
    terminal.type("go\r")
    terminal.see("It stays up.")
    terminal.idle()
    terminal.type(keys.format(model=place.script(*steps)))
    terminal.see_status(f"{status} · 1 running (/tasks)")
    if "go on" not in keys:
        terminal.type("look\r")
    terminal.see("seen")
    assert terminal.leave() == 0
    assert "ended by this change" not in terminal.text
    results = [event["result"]["output"] for event in place.events() if event["type"] == "tool_finished"]
    assert "p1: running for" in results[-1]


@pytest.mark.parametrize("line", ["/mode plan", "/mode read-only", "/mode yolo", "/profile reviewer", "/fork copy"])
def test_a_change_says_which_processes_it_ends(session, place, line):
    start = {"action": "start", "command": "sleep 600 & echo $! > pid; wait"}
    terminal = session({"calls": [{**START, "arguments": start}]}, "up")
    terminal.type("go\r")
    terminal.see_status("auto · workspace · 1 running (/tasks)")
    terminal.idle()
    terminal.type(f"{line}\r")
    if line == "/mode yolo":
        terminal.see("[y]es  [N]o")
        terminal.type("y\r")
    terminal.see("ended by this change: p1 (sleep 600 & echo $! > pid; wait)")
    terminal.wait_gone("1 running")
    assert terminal.leave() == 0
    told = [event["text"] for event in place.events() if event["type"] == "reminded"]
    assert line == "/fork copy" or any("ended: p1 (sleep 600" in text for text in told)
