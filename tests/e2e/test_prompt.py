"""The prompt when something comes between: keys behind an answer, an open editor, the end, no standard output."""

import os
import time

import pytest

from tests.e2e.command import shell

NETWORK = shell("echo got through", access="network")


def write_editor(place, *commands: str) -> str:
    editor = place.home / "editor"
    editor.write_text("\n".join(("#!/bin/sh", *commands)))
    editor.chmod(0o755)
    return str(editor)


def test_keys_behind_an_answer_go_to_the_input(session, place):
    terminal = session({"calls": [NETWORK]}, "as you say", "second")
    terminal.type("go\r")
    terminal.see("[N] no:")
    terminal.type("what\rand")  # one that is no answer, and then one that is
    terminal.see("⏎ what")
    terminal.type("n\r then")
    terminal.see("as you say")
    terminal.see("goose> and then")
    terminal.idle()
    terminal.type("\r")
    terminal.see("second")
    assert place.list_messages() == ["go", "what", "and then"]
    assert place.list_answers() == [("deny", "person")]


def test_keys_behind_an_answer_are_no_answer_to_the_next_question(session, place):
    terminal = session({"calls": [NETWORK | {"id": "a"}, NETWORK | {"id": "b"}]}, "as you say")
    terminal.type("go\r")
    terminal.see("[N] no:")
    terminal.type("n\ry")
    terminal.see("network denied")
    terminal.type("\r")
    terminal.see("as you say")
    terminal.see("goose> y")
    assert place.list_answers() == [("deny", "person")] * 2


def test_keys_behind_an_answer_by_lines_are_the_next_line(session, place):
    terminal = session({"calls": [NETWORK]}, "as you say", "second", TERM="dumb")
    terminal.type("go\r")
    terminal.see("[N] no:")
    assert terminal.text.count("goose>") == 1, "no line is read beside the question"
    terminal.type("n\rand then")
    terminal.see("as you say")
    terminal.type("\r")
    terminal.see("second")
    assert place.list_messages() == ["go", "and then"]


def test_a_question_waits_for_the_editor(session, place):
    os.mkfifo(place.home / "close")
    os.mkfifo(place.work / "wait")
    editor = write_editor(place, "echo it is open", f"read x < {place.home}/close", 'echo "by the editor" >> "$1"')
    waits = {"calls": [shell("echo working; read < wait")]}
    terminal = session(waits, {"calls": [NETWORK | {"id": "b"}]}, "as you say", EDITOR=editor)
    terminal.type("hi\r")
    terminal.see("│ working")
    terminal.type("\x18\x05")
    terminal.see("it is open")
    (place.work / "wait").write_text("\n")
    while not [event for event in place.events() if event["type"] == "asked"]:
        time.sleep(0.05)
    (place.home / "close").write_text("\n")
    terminal.see("[N] no:")
    assert "by the editor" not in terminal.text
    terminal.type("n\r")
    terminal.see("as you say")
    terminal.see("goose> by the editor")
    assert place.list_answers() == [("deny", "person")]


def test_output_after_the_prompt_closed_is_shown(session, place):
    terminal = session({"text": "one two three " * 100, "delta_delay_s": 0.05})
    terminal.type("hi\r")
    terminal.see("three one")
    terminal.type("\x04\x04")
    assert terminal.wait_exit() == 0
    assert "(cut off)\n■ cancelled\n\nresume with: goose-like session resume talk" in terminal.text
    assert "goose>" not in terminal.text
    assert place.list_turn_ends() == ["cancelled"]


@pytest.mark.parametrize("redirected", ['exec "$@" >&-', '"$@" | true'])
def test_a_session_needs_no_standard_output(session, redirected):
    terminal = session("hello you", shell=redirected)
    terminal.type("!echo mine\r")
    terminal.see("\nmine")
    terminal.type("hi\r")
    terminal.see("hello you")
    assert terminal.leave() == 0
    assert "resume with: goose-like session resume talk" in terminal.text
