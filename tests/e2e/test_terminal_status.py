"""OSC 7501 and the title in real terminals, cleared however the command ends."""

import re
import signal

import pytest

from tests.e2e.command import shell

STATE = re.compile(rb"\x1b]7501;state=(\w+)")


def list_states(raw: bytes) -> list[str]:
    return [state.decode() for state in STATE.findall(raw)]


def test_a_run_reports_its_state_and_clears_it(place, open_screen):
    terminal = open_screen("run", "go", "--model", place.script({"calls": [shell("true", access="network")]}, "ok"))
    terminal.see("[N] no")
    terminal.type("n\r")
    assert terminal.wait_exit() == 0
    assert list_states(terminal.raw) == ["idle", "working", "blocked", "working", "done", "clear"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_stopped_run_clears_it(place, open_screen, number):
    terminal = open_screen("run", "go", "--model", place.script({"calls": [shell("echo started; sleep 60")]}))
    terminal.see("│ started")
    terminal.signal(number)
    assert terminal.wait_exit() == 128 + number
    assert list_states(terminal.raw)[-1] == "clear"


def test_a_session_is_idle_then_works_then_is_done(session):
    terminal = session("hi")
    terminal.type("hello\r")
    terminal.see("hi")
    assert terminal.leave() == 0
    assert list_states(terminal.raw) == ["idle", "working", "done", "clear"]


def test_no_terminal_no_status(place, open_screen):
    (place.home / "config").mkdir()
    (place.home / "config" / "profiles.yaml").write_text("default: {extends: default, session: {status: false}}\n")
    done = place.run("run", "go", "--model", place.script("ok"))
    assert "\x1b" not in done.stderr + done.stdout
    terminal = open_screen("run", "go", "--model", place.script("ok"))
    assert terminal.wait_exit() == 0
    assert list_states(terminal.raw) == []
