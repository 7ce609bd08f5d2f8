"""The keys of a session: modes and plan, stop, suspend, fold, and the list of keys."""

import os
import re
import signal
import subprocess
import time

import pytest

from tests.e2e.command import shell

WRITE = {"tool": "write_file", "arguments": {"path": "made.txt", "content": "x\n"}}
LONG = {"calls": [shell("seq 1 3000; sleep 300")]}
NETWORK = shell("echo got through", access="network")
UP = "\x1b[A"
MODE = "\x1b[Z"  # Shift-Tab
ESC = "\x1b"
OFFER = "[y] run it  [q] run it with questions  [N] keep planning, or type a change:"


# --- modes


def test_shift_tab_chooses_the_mode_of_the_next_message(session, place):
    terminal = session({"text": "the plan", "calls": [WRITE]}, "a plan", {"calls": [WRITE]}, "done")
    terminal.see_status("auto · workspace")
    for status in ("plan · read-only", "ask · workspace", "auto · workspace", "plan · read-only"):
        terminal.type(MODE)
        terminal.see_status(status)
    terminal.type("go\r")
    terminal.see(OFFER)
    assert not (place.work / "made.txt").exists()
    terminal.type("\r")
    for status in ("ask · workspace", "auto · workspace"):
        terminal.type(MODE)
        terminal.see_status(status)
    terminal.type("go on\r")
    terminal.see("done")
    assert terminal.leave() == 0
    assert (place.work / "made.txt").exists()
    assert place.list_messages() == ["go", "go on"]


def test_a_slash_command_leaves_the_question_about_the_plan_open(session, place):
    terminal = session("a plan", "done", words=("--approval", "plan"))
    terminal.type("go\r")
    terminal.see(OFFER)
    terminal.type("/tasks\r")
    terminal.see("nothing runs")
    terminal.see(OFFER)
    terminal.type("y\r")
    terminal.see("done")
    assert terminal.leave() == 0
    assert place.list_messages() == ["go", "Carry out the plan."]


def test_a_slash_command_at_a_question_runs_after_it(session, place):
    terminal = session("hi")
    terminal.type("/mode yolo\r")
    terminal.see("[y]es  [N]o")
    terminal.type("/mode plan\r")
    terminal.see_status("plan · read-only")
    assert terminal.leave() == 0


@pytest.mark.parametrize("text", ["/mode plan\r", "#1", "?", "bx", "ux"])
def test_escape_alone_eats_no_key(session, place, text):
    terminal = session("hi")
    terminal.see_status("auto · workspace")
    terminal.type(ESC)
    time.sleep(0.3)
    terminal.type(text)
    if text == "?":
        terminal.see("Ctrl-Z")
    elif text.startswith("/"):
        terminal.see_status("plan · read-only")
    else:
        terminal.see(f"goose> {text}")


def test_escape_and_enter_typed_apart_make_a_new_line(session, place):
    terminal = session({"text": "an answer", "expect": "one\ntwo"})
    terminal.type("one")
    terminal.see("goose> one")
    terminal.type(ESC)
    time.sleep(0.3)
    terminal.type("\r")
    terminal.type("two\r")
    terminal.see("an answer")
    assert terminal.leave() == 0
    assert place.list_messages() == ["one\ntwo"]


def test_a_review_in_plan_mode_offers_no_plan(session, place):
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "Start"]):
        subprocess.run(["git", *words], cwd=place.work, check=True)
    (place.work / "new.txt").write_text("new\n")
    terminal = session("findings", "a plan", words=("--approval", "plan"))
    terminal.type("/review\r")
    terminal.see("findings")
    terminal.type("go\r")
    terminal.see("a plan")
    terminal.see(OFFER)
    assert terminal.text.count(OFFER) == 1


def test_a_mode_chosen_during_a_turn_holds_for_the_message_queued_then(session, place):
    os.mkfifo(place.work / "wait")
    terminal = session({"calls": [shell("echo working; read < wait")]}, "first", {"calls": [WRITE]}, "second plan")
    terminal.type("go\r")
    terminal.see("│ working")
    terminal.type(MODE)
    terminal.see_status("auto · workspace · then plan")
    terminal.type("and write\r")
    terminal.see("(waits for the next mode)")
    (place.work / "wait").write_text("\n")
    terminal.see("second")
    terminal.see_status("plan · read-only")
    terminal.see(OFFER)
    assert not (place.work / "made.txt").exists()
    assert place.list_messages() == ["go", "and write"]
    assert place.list_turn_ends() == ["stop", "stop"]


@pytest.mark.parametrize(("key", "status"), [("y", "auto · workspace"), ("q", "ask · workspace")])
def test_a_plan_is_run_after_the_answer(session, place, key, status):
    run = {"calls": [WRITE], "expect": "Carry out the plan"}
    terminal = session("The plan: first I **write**", run, "done", words=("--approval", "plan"))
    terminal.type("go\r")
    terminal.see(OFFER)
    assert "The plan: first I write" in terminal.text
    terminal.type(f"{key}\r")
    terminal.see_status(status)
    if key == "q":
        terminal.see("[N] no:")
        terminal.type("y\r")
    terminal.see("done")
    assert terminal.leave() == 0
    assert (place.work / "made.txt").exists()
    assert place.list_messages() == ["go", "Carry out the plan."]


@pytest.mark.parametrize(
    ("answer", "is_plan"),
    [
        ("This file prints the answer. It has no tests.", False),
        ("It has one dependency:\n\n- httpx", False),
        ("1. Read `a.py`\n2. Add a test", True),
        ("I would do this:\n\n* change a.py\n* run the tests", True),
        ("I looked around.\n\n## Plan\n\nChange `a.py`.", True),
    ],
)
def test_only_a_plan_is_offered_to_run(session, answer, is_plan):
    terminal = session(answer, words=("--approval", "plan"))
    terminal.type("go\r")
    terminal.see(answer.split()[-1].strip("`."))
    if is_plan:
        terminal.see(OFFER)
    else:
        assert terminal.leave() == 0
        assert "[y] run it" not in terminal.text


def test_words_and_commands_at_the_offer_keep_planning(session, place):
    terminal = session("a plan", "a better plan", words=("--approval", "plan"))
    terminal.type("go\r")
    terminal.see(OFFER)
    terminal.type("use sqlite\r")
    terminal.see("a better plan")
    terminal.see(OFFER)
    terminal.type("/mode ask\r")
    terminal.see_status("ask · workspace")
    assert terminal.leave() == 0
    assert place.list_messages() == ["go", "use sqlite"]


def test_the_key_widens_no_sandbox_and_no_rule(session, place):
    config = place.home / "config"
    config.mkdir()
    rules = "{processor: 'scripted:none', sandbox: read-only, approval: ask, permissions: {deny: [git push]}}"
    (config / "profiles.yaml").write_text(f"mine: {rules}\n")
    forbidden = {"calls": [WRITE, shell("touch made2.txt"), shell("git push origin")]}
    terminal = session(forbidden, "as you say", words=("--profile", "mine"))
    terminal.see_status("ask · read-only")
    terminal.type(MODE)
    terminal.see_status("auto · read-only")
    terminal.type("go\r")
    terminal.see("as you say")
    assert "a rule forbids it" in terminal.text
    assert list(place.work.iterdir()) == []


def test_leaving_plan_for_a_wide_sandbox_asks(session, place):
    terminal = session("hi", words=("--approval", "plan", "--sandbox", "full"))
    terminal.see_status("plan · read-only")
    terminal.type(f"{MODE}go\r")
    terminal.see("continue in ask · full? [y]es  [N]o:")
    terminal.type("\r")
    terminal.see("goose> go")
    terminal.see_status("plan · read-only")
    assert place.events()[-1]["type"] == "session_started"


def test_a_mode_chosen_during_a_turn(session, place):
    """`ask` holds at once, `plan` after the turn."""
    os.mkfifo(place.work / "wait")
    terminal = session({"calls": [shell("echo working; read < wait")]}, {"calls": [WRITE]}, "done", "a plan")
    terminal.type("go\r")
    terminal.see("│ working")
    terminal.type(MODE)
    terminal.see_status("auto · workspace · then plan")
    terminal.type(MODE)
    terminal.see_status("ask · workspace")
    (place.work / "wait").write_text("\n")
    terminal.see("[N] no:")
    terminal.type(MODE * 2)
    terminal.see_status("ask · workspace · then plan")
    terminal.type("n\r")
    terminal.see("done")
    terminal.see_status("plan · read-only")
    terminal.type("next\r")
    terminal.see(OFFER)
    assert not (place.work / "made.txt").exists()


# --- stop


@pytest.mark.parametrize("step", [{"text": "late", "delay_s": 300}, LONG, {"calls": [NETWORK]}])
def test_esc_stops_a_turn(session, place, step):
    terminal = session(step, "second answer")
    terminal.type("hi\r")
    terminal.see("[N] no:" if "text" not in step and step is not LONG else "│ 3000" if step is LONG else "thinking")
    terminal.type("half a ")
    terminal.type(ESC)
    terminal.see("■ cancelled")
    terminal.idle()
    terminal.type("\x15next\r")
    terminal.see("second answer")
    assert terminal.leave() == 0
    assert place.list_turn_ends() == ["cancelled", "stop"]
    assert place.list_messages() == ["hi", "next"]


def test_alt_enter_during_a_turn_is_a_new_line(session, place):
    terminal = session(LONG, "second")
    terminal.type("hi\r")
    terminal.see("│ 3000")
    terminal.type("one\x1b\rtwo")
    terminal.see("two")
    terminal.type("\x13")
    terminal.see("second")
    assert place.list_messages() == ["hi", "one\ntwo"]


def test_up_at_an_empty_prompt_takes_back_the_newest_waiting_message(session, place):
    os.mkfifo(place.work / "wait")
    terminal = session({"calls": [shell("echo working; read < wait")]}, "done", columns=80, rows=24)
    terminal.type("go\r")
    terminal.see("│ working")
    for words in ("keep", "remove"):
        terminal.type(f"{words}\r")
        terminal.see(f"⏎ {words}")
    terminal.type(UP)
    terminal.wait_gone("⏎ remove")
    terminal.see("goose> remove")
    terminal.type(UP * 2)  # with text in the prompt it is the history
    terminal.see("goose> keep")
    assert "⏎ keep" in "\n".join(terminal.rows)
    terminal.type("\x15")
    terminal.type(UP)
    terminal.wait_gone("⏎ keep")
    terminal.type(" it\r")
    terminal.see("⏎ keep it")
    (place.work / "wait").write_text("\n")
    terminal.see("done")
    terminal.idle()
    terminal.type(UP)
    terminal.see("goose> keep it")
    terminal.type("\x15")
    assert terminal.leave() == 0
    assert place.list_messages() == ["go", "keep it"]


def test_esc_twice_goes_back_to_a_message(session):
    terminal = session("one", "two")
    terminal.type("first\r")
    terminal.see("one")
    terminal.idle()
    terminal.type("typed" + ESC + ESC)
    time.sleep(1.5)
    assert "/rewind" not in terminal.text
    terminal.type("\x15" + ESC + ESC)
    terminal.see("> /rewind")


@pytest.mark.parametrize("key", ["\x13", ESC])
def test_the_newest_output_of_a_stopped_call_is_kept(session, key):
    terminal = session({"calls": [shell("echo one; sleep 1.3; echo two; sleep 300")]}, "as you wish")
    terminal.type("hi\r")
    terminal.see("│ one")
    terminal.type("/show\r")
    terminal.see("this call has not ended yet; Ctrl-O unfolds it while it runs")
    terminal.see("│ two")
    terminal.type("leave that" * (key == "\x13") + key)
    terminal.see("as you wish" if key == "\x13" else "■ cancelled")
    terminal.idle()
    terminal.type("/show\r")
    terminal.see("\none\ntwo\n")
    assert terminal.leave() == 0


def test_ctrl_s_at_a_question_sends_the_text(session, place):
    terminal = session({"calls": [NETWORK]}, "as you wish")
    terminal.type("not so\r")
    terminal.see("[N] no:")
    terminal.type("no")
    terminal.see("[N] no: no")
    time.sleep(0.5)
    assert terminal.rows[-2].rstrip().endswith("[N] no: no")  # nothing of an earlier input is suggested
    terminal.type("t the network\x13")
    terminal.see("as you wish")
    assert "\x13" not in terminal.text
    assert "search" not in terminal.text
    assert place.list_messages() == ["not so", "not the network"]
    assert terminal.leave() == 0


@pytest.mark.parametrize("key", ["\x13", ESC, "\x03"])
def test_a_stopped_call_is_marked_before_what_follows(session, open_screen, key):
    terminal = session(LONG, "as you wish")
    terminal.type("hi\r")
    terminal.see("│ 3000")
    terminal.type("leave that" * (key == "\x13") + key)
    terminal.see("as you wish" if key == "\x13" else "■ cancelled")
    terminal.idle()
    drawn = terminal.text.partition("> hi\n")[2]
    end = r"\n> leave that\n\nas you wish" if key == "\x13" else "■ cancelled"
    tail = r"  │ 12\n  │ … 2,985 more lines · /show 1\n  │ 2998\n  │ 2999\n  │ 3000\n  ■ stopped · [\d.]+ s\n"
    assert re.search(tail + end, drawn), drawn
    terminal.type("/show\r")
    terminal.see("interrupted: this call was cut off")
    assert terminal.leave() == 0
    terminal = open_screen("session", "resume", "talk")
    terminal.see("goose>")
    terminal.see("│ 3000\n  ■ stopped\n")
    terminal.type("/show\r")
    terminal.see("interrupted: this call was cut off")


# --- suspend


def test_ctrl_z_suspends_and_fg_comes_back(session, place):
    job = 'set -m; "$@"; echo "it is suspended"; read line; fg; echo "it is over: $line"'
    terminal = session("one", shell=job)
    terminal.type("hi\r")
    terminal.see("one")
    terminal.type("half a thought\x1a")
    terminal.see("it is suspended")
    assert "goose>" not in "\n".join(terminal.rows)
    terminal.type("back\r")
    terminal.see("goose> half a thought")
    terminal.see_status("auto · workspace")
    terminal.type("\x15/exit\r")
    terminal.see("it is over: back")
    assert place.list_messages() == ["hi"]


# --- what is shown


def test_ctrl_o_unfolds_and_folds_the_last_output(session):
    terminal = session({"calls": [shell("seq 100 130")]}, LONG)
    terminal.type("go\r")
    terminal.see("… 2,992 more lines\n  │ 2996\n")
    assert "  │ 3\n  │ … " in terminal.text
    assert "120" not in "\n".join(terminal.rows)
    terminal.type("\x0f")
    terminal.see("output of shell · Ctrl-O folds it")
    terminal.see("  │ 2990\n")
    terminal.type(ESC)
    terminal.see("■ cancelled")
    terminal.wait_gone("2990")
    terminal.type("\x0f")
    terminal.see("> /show 2\n")
    terminal.see("\n2990\n")


def test_unfolded_output_of_an_ended_call_is_folded_again(session):
    terminal = session({"calls": [shell("seq 100 130")]}, "done")
    terminal.type("go\r")
    terminal.see("done")
    terminal.idle()
    assert "  │ 115\n" not in terminal.text
    for _ in range(2):
        terminal.type("\x0f")
        terminal.see("  │ 115\n")
        terminal.type("\x0f")
        terminal.wait_gone("  │ 115\n")
    terminal.type("\x0f")
    terminal.see("  │ 115\n")
    terminal.type("/cost\r")
    terminal.see("last turn")
    terminal.wait_gone("  │ 115\n")


def test_unfolded_output_fills_the_screen_and_is_folded_by_the_next_call(session, place):
    os.mkfifo(place.work / "wait")
    code = r"printf 'if x:\n    a  b\n\tc\n'; seq 4 40"
    steps = {"calls": [shell(f"{code}; read < wait; exit")]}, {"calls": [LONG["calls"][0] | {"id": "b"}]}
    terminal = session(*steps, columns=80, rows=24)
    terminal.type("go\r")
    indented = "  │ if x:\n  │     a  b\n  │         c\n"
    terminal.see(f"{indented}  │ … 32 more lines\n")
    terminal.type("\x0f")
    terminal.see(f"{indented}  │ 4\n  │ 5\n  │ … 23 more lines\n  │ 29\n")
    terminal.until(lambda: sum(row.startswith("  │ ") for row in terminal.rows) == 18, "18 rows are not shown")
    (place.work / "wait").write_text("\n")
    terminal.see("  │ … 2,992 more lines\n")
    assert "output of shell" not in "\n".join(terminal.rows)


def test_output_without_room_to_unfold_is_printed(session):
    terminal = session({"calls": [shell(f"seq 40; echo {'y' * 100}")]}, "done", columns=80, rows=24)
    terminal.type("go\r")
    terminal.see("done")
    terminal.idle()
    assert "  │ 12\n  │ … 26 more lines · /show 1\n  │ 39\n" in terminal.text
    terminal.type("\x0f")
    terminal.see("> /show 1\n1\n2\n")
    terminal.see("\n25\n26\n")
    terminal.see(f"\n40\n{'y' * 80}\n")


@pytest.mark.parametrize(
    ("columns", "rows"),
    [
        (100, "send; while the model works: queue the message for its next step"),
        (50, "send; while the model works:\n                  queue the message for its next"),
    ],
)
def test_a_question_mark_lists_the_keys(session, place, columns, rows):
    terminal = session("hello", columns=columns)
    terminal.see_status("auto · workspace")
    terminal.type("?")
    terminal.see(rows)
    assert "Shift-Tab" in terminal.text
    terminal.type("?")
    terminal.wait_gone("Shift-Tab")
    terminal.type("why?")
    terminal.see("goose> why?")
    assert "Shift-Tab" not in "\n".join(terminal.rows)
    terminal.type("\r")
    terminal.see("hello")
    assert place.list_messages() == ["why?"]


def test_an_attached_image_is_shown_by_its_name(session, place):
    (place.work / "shot.png").write_bytes(b"\x89PNG\r\n\x1a\n\x00shot")
    terminal = session("I see")
    terminal.type("look at shot.png\r")
    terminal.see("> look at shot.png\n  image attached: shot.png\n")


def test_a_terminal_that_ignores_suspension_keeps_the_prompt(session, place):
    """Without job control nothing could continue the process."""
    terminal = session("one")
    terminal.type("hi\x1a\r")
    terminal.see("one")
    assert terminal.process.poll() is None
    terminal.signal(signal.SIGTERM)
    assert terminal.wait_exit() == 143
    assert place.list_messages() == ["hi"]


def test_a_call_stands_before_its_question(session, open_screen):
    denied = {"calls": [shell("touch a.txt"), shell("touch b.txt") | {"id": "b"}]}
    terminal = session(denied, "as you say", words=("--approval", "ask"))
    terminal.type("go\r")
    for name in ("a.txt", "b.txt"):
        terminal.see(f"? run: touch {name}")
        terminal.see("[N] no:")
        terminal.type("n\r")
    terminal.see("as you say")
    assert terminal.leave() == 0
    terminal = open_screen("session", "resume", "talk")
    terminal.see("as you say")
    for number, letter in enumerate("ab", 1):
        name = f"{letter}.txt"
        assert f"▸{number} shell  touch {name}\n? run: touch {name}\n  command denied" in terminal.text


def test_colours_of_a_command_are_not_shown_as_codes(session, place):
    os.mkfifo(place.work / "wait")
    terminal = session({"calls": [shell(r"printf '\033[31mred\033[0m \001\n'; read < wait")]}, "done")
    terminal.type("go\r")
    terminal.see("│ red \\x01\n")
    (place.work / "wait").write_text("\n")
    terminal.see("done")
    assert "x1b" not in terminal.text
