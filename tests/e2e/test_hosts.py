"""Questions about hosts, while a command waits for the connection."""

import time

import pytest

from tests.e2e.command import shell
from tests.e2e.serving import wait_until
from tests.workspace.workspace_harness import needs_sandbox

pytestmark = needs_sandbox
CALL = shell("curl -sS http://one.invalid/; echo end")
"""The name is known to no server: RFC 2606."""


@pytest.mark.parametrize(
    ("key", "verdict", "answer", "output"),
    [
        ("y", "domain allowed", ("allow", "person"), "no address is known for the host 'one.invalid'"),
        ("p", "domain allowed until the session ends", ("allow_prefix", "person"), "no address is known"),
        ("a", "domain allowed from now on", ("allow_always", "person"), "no address is known"),
        ("n", "domain denied", ("deny", "person"), "not allowed: connect to one.invalid"),
    ],
)
def test_a_command_waits_for_the_answer(session, place, key, verdict, answer, output):
    terminal = session({"calls": [CALL]}, {"calls": [CALL | {"id": "b"}]}, "as you say")
    terminal.type("go\r")
    terminal.see("connect to one.invalid for: curl")
    terminal.see("[N] no:")
    terminal.type(f"{key}\r")
    terminal.see(verdict)
    if key in "yn":
        terminal.see("[N] no:")
        head = "shell  curl -sS http://one.invalid/; echo end\n? connect to one.invalid for: curl"
        assert f"▸1 {head}" in terminal.text
        assert f"▸2 {head}" in terminal.text
        terminal.type("n\r")
    terminal.see("as you say")
    terminal.idle()
    assert terminal.leave() == 0
    assert place.list_answers()[0] == answer
    results = [event["result"]["output"] for event in place.events() if event["type"] == "tool_finished"]
    assert output in results[0]
    assert "end" in results[0]


def test_the_time_limit_stands_still_during_the_question(session, place):
    terminal = session({"calls": [shell("curl -sS http://one.invalid/; echo end", timeout_s=1)]}, "as you say")
    terminal.type("go\r")
    terminal.see("[N] no:")
    time.sleep(1.5)
    terminal.type("n\r")
    terminal.see("as you say")
    assert "end" in next(event["result"]["output"] for event in place.events() if event["type"] == "tool_finished")


def test_ctrl_c_ends_command_and_question(session, place):
    terminal = session({"calls": [CALL]}, "second")
    terminal.type("go\r")
    terminal.see("[N] no:")
    terminal.type("\x03")
    terminal.see("cancelled")
    terminal.idle()
    terminal.type("again\r")
    terminal.see("second")
    assert terminal.leave() == 0


def test_a_background_process_asks_nothing_after_the_turn(session, place):
    waiting = "until test -e go; do sleep 0.05; done"
    command = f"{waiting}; curl -sS http://one.invalid/ >log 2>&1"
    start = {"tool": "process", "arguments": {"action": "start", "command": command}}
    terminal = session({"calls": [start]}, "started")
    terminal.type("go\r")
    terminal.see("started")
    terminal.idle()
    (place.work / "go").touch()
    log = place.work / "log"
    wait_until(lambda: log.exists() and "nobody is there to allow it" in log.read_text())
    assert terminal.leave() == 0
    assert place.list_answers() == []


def test_a_run_without_a_person_refuses_and_says_what_to_list(place):
    done = place.run("run", "--model", place.script({"calls": [CALL]}, "done"), "go")
    assert done.returncode == 6
    assert "domain: one.invalid" in done.stderr
    result = next(event["result"]["output"] for event in place.events() if event["type"] == "tool_finished")
    assert "network: {allow: [HOST]}" in result
