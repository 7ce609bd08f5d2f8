"""A session in a terminal while a turn runs: queued messages, questions, Ctrl-C."""

import os
import signal
import time

import pytest

from goose_like.core.history import INTERRUPTED
from tests.e2e.command import Place, shell
from tests.e2e.screen import ScreenTerminal

NETWORK = shell("echo got through", access="network")
SLOW = {"text": "one two three " * 100, "delta_delay_s": 0.05}


def results(place: Place) -> list[str]:
    return [event["result"]["output"] for event in place.events() if event["type"] == "tool_finished"]


# --- while it works


def test_words_wait_for_the_next_step(session, place):
    os.mkfifo(place.work / "wait")
    terminal = session({"calls": [shell("echo working; read < wait")]}, "first")
    terminal.type("hi\r")
    terminal.see("│ working")
    terminal.type("and mind the cat\r")
    terminal.see("⏎ and mind the cat")
    (place.work / "wait").write_text("\n")
    terminal.see("first")
    terminal.idle()
    assert "> and mind the cat\n\nfirst" in terminal.text
    assert place.list_messages() == ["hi", "and mind the cat"]
    assert place.list_turn_ends() == ["stop"]


def test_words_can_be_said_now(session, place):
    terminal = session({"calls": [shell("echo working; sleep 300")]}, "as you wish")
    terminal.type("hi\r")
    terminal.see("│ working")
    terminal.type("leave that\x13")
    terminal.see("as you wish")
    terminal.idle()
    assert place.list_messages() == ["hi", "leave that"]
    assert results(place) == []
    assert INTERRUPTED.partition(":")[0] not in terminal.text


def test_unfinished_input_stays(session, place):
    terminal = session("done and done", "second")
    terminal.type("hi\rhalf a thou")
    terminal.see("done and done")
    terminal.idle()
    terminal.type("ght\r")
    terminal.see("second")
    assert place.list_messages() == ["hi", "half a thought"]


# --- questions


@pytest.mark.parametrize(
    ("key", "verdict", "answer"),
    [
        ("y\r", "network allowed", ("allow", "person")),
        ("p\r", "network allowed until the session ends: echo got", ("allow_prefix", "person")),
        ("a\r", "network allowed from now on", ("allow_always", "person")),
        ("n\r", "network denied", ("deny", "person")),
        ("\r", "network denied", ("deny", "person")),
        ("\x04", "network denied", ("deny", "person")),
    ],
)
def test_a_question_is_answered(session, place, key, verdict, answer):
    terminal = session({"calls": [NETWORK]}, "as you say")
    terminal.type("go\r")
    terminal.see("[N] no:")
    terminal.see("waiting for your answer")
    terminal.type(key)
    terminal.see(f"\n  {verdict}")
    terminal.see("as you say")
    assert terminal.leave() == 0
    assert place.list_answers() == [answer]


def test_a_resumed_session_shows_a_refusal_once(session, open_screen, place):
    terminal = session({"calls": [NETWORK]}, "as you say")
    terminal.type("go\r")
    terminal.see("[N] no:")
    terminal.type("n\r")
    terminal.see("as you say")
    assert terminal.leave() == 0
    again = open_screen("session", "resume", "talk", "--model", place.script("never"))
    again.see("as you say")
    assert again.text.count("the person said no") == 1


def test_invalid_answers_are_asked_again(session, place):
    terminal = session({"calls": [NETWORK]}, "as you say")
    terminal.type("go\r")
    terminal.see("[N] no:")
    terminal.type("yep, do\r")
    terminal.see("⏎ yep, do")
    terminal.type("n\r")
    terminal.see("as you say")
    assert place.list_answers() == [("deny", "person")]
    assert "> yep, do" in terminal.text


def test_without_a_command_a_session_takes_its_options(place, open_screen):
    terminal = open_screen("--model", place.script("hello you"))
    terminal.see("goose>")
    terminal.type("hi\r")
    terminal.see("hello you")
    assert terminal.leave() == 0


def test_options_before_a_command_are_not_lost_silently(place):
    done = place.run("--model", "scripted:x.yaml", "session", "list")
    assert done.returncode == 2
    assert "put options after the command" in " ".join(done.stderr.split())


def test_no_with_a_reason_denies_and_tells_the_model(session, place):
    terminal = session({"calls": [NETWORK]}, {"text": "as you say", "expect": "the person said no: use the file"})
    terminal.type("go\r")
    terminal.see("[N] no:")
    terminal.type("No, use the file\r")
    terminal.see("as you say")
    assert place.list_answers() == [("deny", "person")]
    assert "network denied: use the file" in terminal.text


def test_unfinished_input_is_no_answer(session, place):
    os.mkfifo(place.work / "wait")
    waits = {"calls": [shell("echo first; read < wait")]}
    terminal = session(waits, {"calls": [NETWORK | {"id": "later"}]}, "as you say")
    terminal.type("go\r")
    terminal.see("first")
    terminal.type("yes, and")
    terminal.see("yes, and")
    (place.work / "wait").write_text("\n")
    terminal.see("[N] no:")
    terminal.wait_gone("yes, and")
    terminal.type("\r")
    terminal.see("as you say")
    terminal.see("goose> yes, and")
    assert place.list_answers() == [("deny", "person")]


# --- Ctrl-C


def test_ctrl_c_while_the_model_is_awaited(session, place):
    terminal = session({"text": "late", "delay_s": 300}, "second answer")
    terminal.type("hi\r")
    terminal.see("thinking")
    stop_and_go_on(terminal, place)
    assert place.list_messages() == ["hi", "next"]


def test_ctrl_c_while_the_model_speaks(session, place):
    terminal = session(SLOW, "second answer")
    terminal.type("hi\r")
    terminal.see("three one")
    stop_and_go_on(terminal, place)
    assert "(cut off)\n■ cancelled" in terminal.text
    (cut,) = [event for event in place.events() if event.get("is_cut")]
    assert cut["message"]["parts"][0]["text"].startswith("one two three")


def test_ctrl_c_in_a_tool(session, place):
    slow = shell("echo running; trap '' TERM; sleep 300 & wait; echo never > never.txt")
    terminal = session({"calls": [slow]}, "second answer")
    terminal.type("hi\r")
    terminal.see("│ running")
    stop_and_go_on(terminal, place)
    assert not (place.work / "never.txt").exists()


def test_ctrl_c_in_the_first_of_two_calls(session, place):
    slow = [shell("echo one runs; sleep 300") | {"id": "a"}, shell("touch never.txt") | {"id": "b"}]
    terminal = session({"calls": slow}, "second answer")
    terminal.type("hi\r")
    terminal.see("│1 one runs")
    stop_and_go_on(terminal, place)
    assert not (place.work / "never.txt").exists()


def test_ctrl_c_at_a_question(session, place):
    terminal = session({"calls": [NETWORK]}, "second answer")
    terminal.type("go\r")
    terminal.see("[N] no:")
    stop_and_go_on(terminal, place)
    assert place.list_answers() == []


def test_ctrl_c_in_a_command_of_one_s_own(session, place):
    terminal = session("second answer")
    terminal.type("!echo mine; sleep 300\r")
    terminal.see("mine")
    terminal.type("\x03")
    terminal.see("[interrupted]")
    terminal.type("next\r")
    terminal.see("second answer")


def stop_and_go_on(terminal: ScreenTerminal, place: Place) -> None:
    """One Ctrl-C ends the turn and nothing else; the next one works."""
    terminal.type("\x03")
    terminal.see("■ cancelled")
    terminal.idle()
    terminal.type("next\r")
    terminal.see("second answer")
    assert terminal.leave() == 0
    assert place.list_turn_ends() == ["cancelled", "stop"]


def test_words_that_waited_when_the_turn_was_stopped_come_back(session, place):
    terminal = session({"calls": [shell("echo working; sleep 300")]}, "second")
    terminal.type("hi\r")
    terminal.see("│ working")
    terminal.type("wait for me\r")
    terminal.see("⏎ wait for me")
    terminal.type("\x03")
    terminal.see("■ cancelled")
    terminal.see("goose> wait for me")
    terminal.type("\r")
    terminal.see("second")
    assert place.list_messages() == ["hi", "wait for me"]


def test_ctrl_c_clears_what_is_typed(session, place):
    terminal = session("hello you")
    terminal.type("half a thought\x03")
    terminal.wait_gone("half a thought")
    time.sleep(2.1)  # else a second one leaves
    terminal.type("hi\r")
    terminal.see("hello you")
    assert place.list_messages() == ["hi"]


# --- what must not happen


def test_a_command_of_one_s_own_waits_for_the_turn(session, place):
    terminal = session({"calls": [shell("echo working; sleep 300")]}, "second answer")
    terminal.type("hi\r")
    terminal.see("│ working")
    terminal.type("!echo mine\r")
    terminal.see("waits for the end of the turn")
    stop_and_go_on(terminal, place)


def test_input_during_a_shell_escape_is_sent_after_it(session, place):
    os.mkfifo(place.work / "wait")
    terminal = session("first")
    terminal.type("!read < wait; echo over\r")
    terminal.see("! read")
    terminal.type("next\r")
    terminal.wait_gone("goose> next")
    (place.work / "wait").write_text("\n")
    terminal.see("first")
    assert "over\n" in terminal.text.partition("> next")[0]
    assert place.list_messages() == ["next"]


def test_ctrl_c_stops_a_command(session, place):
    terminal = session("a long answer " * 200, {"text": "late", "delay_s": 300}, "second answer", columns=200)
    terminal.type("hi\r")
    terminal.see("a long answer")
    terminal.idle()
    terminal.type("/compact\r")
    terminal.see("shortening the conversation")
    terminal.type("\x03")
    terminal.type("next\r")
    terminal.see("> next")
    assert not [event for event in place.events() if event["type"] == "compacted"]


def test_escapes_of_one_s_own_command_and_of_the_repository_are_shown(session, place):
    terminal = session("hello", columns=250)
    terminal.type("!printf '\\033]0;title\\007\\n'; mkdir .git; printf 'ref: refs/heads/a\\033[31mb' > .git/HEAD\r")
    terminal.see("\\x1b]0;title\\x07")
    terminal.see("a\\x1b[31mb")


def test_a_pipe_in_the_place_of_the_branch_holds_nothing_up(session, place):
    terminal = session("hello")
    terminal.type("!mkdir .git; mkfifo .git/HEAD; echo made\r")
    terminal.see("\nmade")
    terminal.type("hi\r")
    terminal.see("hello")
    assert terminal.leave() == 0


def test_a_profile_that_can_not_be_opened_leaves_the_one_before(session, place):
    config = place.home / "config"
    config.mkdir(exist_ok=True)
    (config / "profiles.yaml").write_text("broken: {extends: default, processor: 'scripted:gone.yaml'}\n")
    terminal = session("hello")
    terminal.type("/profile broken\r")
    terminal.see("gone.yaml")
    terminal.type("hi\r")
    terminal.see("hello")


def test_an_answer_is_not_remembered_as_something_typed(session, place):
    terminal = session({"calls": [NETWORK]}, "as you say")
    terminal.type("go\r")
    terminal.see("[N] no:")
    terminal.type("y\r")
    terminal.see("as you say")
    assert terminal.leave() == 0
    assert "+y" not in (place.home / "state/history").read_text()


def test_a_session_that_is_told_to_end_at_a_question_ends(session, place):
    terminal = session({"calls": [shell("echo two > a.txt")]}, "done")
    terminal.type("go\r")
    terminal.see("done")
    terminal.idle()
    terminal.type("/undo\r")
    terminal.see("[N]o:")
    terminal.signal(signal.SIGTERM)
    assert terminal.wait_exit() == 143
    assert (place.work / "a.txt").exists()


def test_an_answer_for_the_session_outlasts_another_model_but_widens_no_stricter_profile(session, place):
    config = place.home / "config"
    config.mkdir(exist_ok=True)
    second = {"calls": [NETWORK | {"id": "b"}]}
    again = place.script("was said", "was said", second, "quietly", {"calls": [NETWORK | {"id": "c"}]}, "asked anew")
    strict = f"strict: {{extends: default, sandbox: read-only, processor: '{again}'}}\n"
    (config / "profiles.yaml").write_text(strict)
    terminal = session({"calls": [NETWORK]}, "as you say", rows=60)
    terminal.type("go\r")
    terminal.see("[N] no:")
    terminal.type("p\r")
    terminal.see("as you say")
    terminal.idle()
    terminal.type(f"/model {again}\r")
    terminal.see("session talk", times=2)
    terminal.type("again\r")
    terminal.see("quietly")
    terminal.idle()
    terminal.type("/profile strict\r")
    terminal.see("profile strict")
    terminal.type("and here\r")
    terminal.see("[N] no:")
    terminal.type("n\r")
    terminal.see("asked anew")
    assert place.list_answers() == [("allow_prefix", "person"), ("deny", "person")]


def test_tab_takes_the_only_completion_however_fast_it_comes(session):
    terminal = session("hello")
    terminal.type("/expo\t")
    terminal.see("goose> /export")
    terminal.type("\x03")
    terminal.wait_gone("/export")
    terminal.idle()
    assert "press Ctrl-C again to leave" not in terminal.text, "that was for the input"
    terminal.type("\x03")
    terminal.see("(press Ctrl-C again to leave)")
