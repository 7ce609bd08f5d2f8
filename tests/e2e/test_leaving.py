"""Ctrl-C and Ctrl-D in any order: the first one stops work, text is cleared before the session ends."""

import pytest

from tests.e2e.command import shell

LONG = {"calls": [shell("seq 1 3000; sleep 300")]}
CTRL_C = "\x03"
CTRL_D = "\x04"
AGAIN = "(press Ctrl-C again to leave)"
GOES_ON = "(the work goes on; press Ctrl-D again to stop it and leave)"


@pytest.fixture
def working(session):
    """A session whose model works, and works again after the next message."""
    terminal = session(LONG, LONG, "an answer")
    terminal.type("go\r")
    terminal.see("│ 3000")
    return terminal


def leave_by_ctrl_c(terminal) -> None:
    terminal.type(CTRL_C)
    terminal.see(AGAIN)
    terminal.type(CTRL_C)
    assert terminal.wait_exit() == 0


@pytest.mark.parametrize("typed_first", [True, False])
def test_ctrl_c_after_a_stopped_turn_clears_the_text_first(working, typed_first):
    if typed_first:
        working.type("do this")
        working.see("goose> do this")
    working.type(CTRL_C)
    working.see("■ cancelled")
    if not typed_first:
        working.type("do this")
    working.see("goose> do this")
    working.type(CTRL_C)
    working.wait_gone("do this")
    assert AGAIN not in working.text
    leave_by_ctrl_c(working)


def test_ctrl_c_after_a_stopped_turn_clears_a_message_that_came_back(working, place):
    working.type("later\r")
    working.see("⏎ later")
    working.type(CTRL_C)
    working.see("goose> later")
    working.type(CTRL_C)
    working.wait_gone("goose> later")
    leave_by_ctrl_c(working)
    assert place.list_messages() == ["go"]


def test_ctrl_c_soon_after_another_stops_the_next_turn(working, place):
    working.type(CTRL_C)
    working.see("■ cancelled")
    working.type("next\r")
    working.see("shell  seq 1 3000", times=2)
    working.type(CTRL_C)
    working.see("■ cancelled", times=2)
    working.type("third\r")
    working.see("an answer")
    assert working.leave() == 0
    assert place.list_messages() == ["go", "next", "third"]


def test_ctrl_c_twice_during_a_turn_leaves(working, place):
    working.type(CTRL_C * 2)
    assert working.wait_exit() == 0
    assert place.list_turn_ends() == ["cancelled"]


def test_ctrl_d_during_a_turn_asks_first(working, place):
    working.type(CTRL_D)
    working.see(GOES_ON)
    working.type("half")
    working.see("goose> half")
    working.type("\x15")  # clear the line
    working.wait_gone("goose> half")
    working.type(CTRL_D)
    working.see(GOES_ON, times=2)
    assert place.list_turn_ends() == []
    working.type(CTRL_D)
    assert working.wait_exit() == 0
    assert place.list_turn_ends() == ["cancelled"]


@pytest.mark.parametrize("line", ["!seq 1 3000; sleep 300", "/mode yolo"])
def test_ctrl_c_stops_a_command_and_its_question(session, line):
    terminal = session("an answer")
    terminal.type(f"{line}\r")
    terminal.see("3000" if line[0] == "!" else "[y]es  [N]o")
    terminal.type(CTRL_C)
    terminal.see("[interrupted]" if line[0] == "!" else "goose>")
    terminal.idle()
    terminal.type(f"text{CTRL_C}")
    terminal.type("hi\r")
    terminal.see("an answer")
    assert terminal.leave() == 0
