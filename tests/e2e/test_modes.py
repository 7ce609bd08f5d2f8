"""Approval and sandbox modes in a terminal: the status line, /mode, and resumed sessions."""

import os

import pytest

from tests.e2e.command import shell
from tests.e2e.screen import ScreenTerminal

WRITE = {"tool": "write_file", "arguments": {"path": "made.txt", "content": "x\n"}}


@pytest.mark.parametrize("columns", [20, 30, 60, 120])
def test_the_mode_is_first_on_the_status_line_at_any_width(session, columns):
    terminal = session("hi", words=("--sandbox", "workspace+network"), columns=columns)
    terminal.see_status("auto · workspace+network")


def test_plan_ask_and_auto_without_a_question(session, place):
    terminal = session({"calls": [shell("touch made.txt")]}, "a plan", {"calls": [WRITE]}, "done")
    terminal.see_status("auto · workspace")
    terminal.type("/mode plan\r")
    terminal.see_status("plan · read-only")
    terminal.type("go\r")
    terminal.see("a plan")
    terminal.idle()
    assert not (place.work / "made.txt").exists()
    terminal.type("/mode ask\r")
    terminal.see_status("ask · workspace")
    terminal.type("/mode auto\r")
    terminal.see_status("auto · workspace")
    terminal.type("/mode sometimes\r")
    terminal.see("no mode 'sometimes'")
    assert terminal.leave() == 0
    assert "\nauto · workspace · session" in terminal.text


@pytest.mark.parametrize("words", ["yolo", "full", "workspace+network"])
def test_leaving_the_sandbox_and_yolo_ask_first(session, words):
    terminal = session("hi")
    terminal.type(f"/mode {words}\r")
    terminal.see("[y]es  [N]o")
    terminal.type("\r")
    terminal.see_status("auto · workspace")
    terminal.type(f"/mode {words}\r")
    terminal.see(f"> /mode {words}", times=2)
    terminal.see("[y]es  [N]o")
    terminal.type("y\r")
    terminal.see_status("yolo · workspace" if words == "yolo" else f"auto · {words}")


PUSH = {"calls": [shell("git push origin main")]}
ASKS = "mine: {processor: 'scripted:none', permissions: {ask: [git push]}}\n"


def open_question(session, place, *steps: object) -> ScreenTerminal:
    """Open a session at the question about `git push`, with more steps of the model after it."""
    config = place.home / "config"
    config.mkdir()
    (config / "profiles.yaml").write_text(ASKS)
    terminal = session(PUSH, *steps, words=("--profile", "mine"))
    terminal.type("go\r")
    terminal.see("[N] no:")
    return terminal


@pytest.mark.parametrize(
    ("words", "status"), [("plan", "plan · read-only"), ("read-only", "auto · read-only"), ("ask", "ask · workspace")]
)
def test_a_stricter_mode_holds_at_once_at_a_question(session, place, words, status):
    terminal = open_question(session, place, {"calls": [WRITE, shell("touch made2.txt")]}, "as you say")
    terminal.type(f"/mode {words}\r")
    terminal.see_status(status)
    # The first call and the change are asked about in the new mode. After the failed change the last call does not run.
    for number in range(2 if words == "ask" else 0):
        terminal.see("? ", times=number + 2)
        terminal.see("[N] no:")
        terminal.type("n\r")
    terminal.see("as you say")
    terminal.see(f"{status} · session talk")
    assert terminal.leave() == 0
    assert list(place.work.iterdir()) == []
    assert place.list_messages() == ["go"]
    modes = [event for event in place.events() if event["type"] in ("session_started", "mode_restricted")]
    assert modes[-1]["approval"] == status.split()[0]


@pytest.mark.parametrize("end", ["leave", "kill"])
def test_a_stricter_mode_of_a_running_turn_holds_after_any_end(session, open_screen, place, end):
    os.mkfifo(place.work / "wait")
    terminal = session({"calls": [shell("echo working; read < wait")]}, "done")
    terminal.type("go\r")
    terminal.see("│ working")
    terminal.type("/mode plan\r")
    terminal.see_status("plan · read-only")
    if end == "kill":
        terminal.process.kill()
        terminal.process.wait()
    else:
        terminal.type("\x03")
        terminal.see("■ cancelled")
        assert terminal.leave() == 0
    again = open_screen("session", "resume", "talk")
    again.see_status("plan · read-only")
    assert again.leave() == 0


@pytest.mark.parametrize(("keys", "status"), [(1, "plan · read-only"), (2, "ask · workspace")])
def test_a_mode_chosen_by_key_before_leaving_holds_at_the_resume(session, open_screen, keys, status):
    terminal = session("an answer")
    terminal.type("go\r")
    terminal.see("an answer")
    terminal.idle()
    for _ in range(keys):
        terminal.type("\x1b[Z")
    terminal.see_status(status)
    assert terminal.leave() == 0
    again = open_screen("session", "resume", "talk")
    again.see_status(status)
    assert again.leave() == 0


def test_a_looser_mode_and_other_commands_wait_at_a_question(session, place):
    terminal = open_question(session, place, {"text": "as you say", "expect": "the person said no"})
    for line, shown in (
        ("/mode yolo", "a looser mode waits for the end of the turn"),
        ("/mode full", "a looser mode waits for the end of the turn"),
        ("/undo", "/undo waits for the end of the turn"),
        ("!touch x", "!COMMAND waits for the end of the turn"),
        ("/nonsense", "no command /nonsense"),
        ("/plan", "there is no plan"),
        ("s", "'s' is no answer; type y, p, a or n"),
    ):
        terminal.type(f"{line}\r")
        terminal.see(shown)
        terminal.see("[N] no:")
    terminal.type("n\r")
    terminal.see("as you say")
    terminal.see_status("auto · workspace")
    assert terminal.leave() == 0
    assert place.list_messages() == ["go"]
    assert place.list_answers() == [("deny", "person")]


def test_a_stricter_mode_during_a_turn_takes_waiting_messages_along(session, place):
    os.mkfifo(place.work / "wait")
    terminal = session({"calls": [shell("echo working; read < wait")]}, {"calls": [WRITE]}, "second", "third")
    terminal.type("go\r")
    terminal.see("│ working")
    terminal.type("/mode plan\r")
    terminal.see_status("plan · read-only")
    terminal.type("/mode auto\r")
    terminal.see("a looser mode waits")
    (place.work / "wait").write_text("\n")
    terminal.see("plan · read-only · session talk")
    assert not (place.work / "made.txt").exists()
    terminal.type("next\r")
    terminal.see("> next")
    assert terminal.leave() == 0


@pytest.mark.parametrize("sandbox", ["workspace", "workspace+network", "full"])
def test_plan_hides_no_wider_sandbox(session, open_screen, place, sandbox):
    terminal = session("a plan", words=("--approval", "plan"))
    terminal.type("go\r")
    terminal.see("[N] keep planning")
    for times, words in enumerate((sandbox, f"plan {sandbox}"), 1):
        terminal.type(f"/mode {words}\r")
        terminal.see(f"plan only reads; to leave it too: /mode auto {sandbox}", times)
    assert terminal.leave() == 0
    place.run("run", "--session", "wide", "--model", place.script("x"), "--approval", "plan", "--sandbox", sandbox, "x")
    for name in ("talk", "wide"):
        terminal = open_screen("session", "resume", name, "--approval", "auto")
        terminal.see_status("auto · workspace ")
        assert terminal.leave() == 0


@pytest.mark.parametrize("words", [("--approval", "plan"), ("--approval", "ask"), ("--sandbox", "read-only")])
@pytest.mark.parametrize("how", ["run", "fork"])
def test_a_resumed_run_is_as_restricted_as_before(place, words, how):
    place.run("run", "--session", "p", *words, "--model", place.script("first"), "x")
    if how == "fork":
        place.run("session", "fork", "p", "--name", "q")
    name = "q" if how == "fork" else "p"
    model = place.script("skipped, for one answer was given", {"calls": [WRITE, shell("touch made.txt")]}, "done")
    done = place.run("run", "--session", name, "--resume", "--model", model, "x")
    assert (done.returncode, done.stdout) in ((0, "done\n"), (6, "done\n")), done.stderr
    assert not (place.work / "made.txt").exists()


def test_a_resumed_session_and_one_that_is_switched_to_keep_their_modes(session, open_screen, place):
    terminal = session({"calls": [shell("true")]}, "a plan", words=("--approval", "plan"))
    terminal.type("go\r")
    terminal.see("a plan")
    assert terminal.leave() == 0
    terminal = open_screen("session", "resume", "talk")
    terminal.see_status("plan · read-only")
    assert terminal.leave() == 0
    place.run("run", "--session", "other", "--model", place.script("first"), "--approval", "yolo", "x")
    terminal = open_screen("session", "resume", "talk")
    terminal.see_status("plan · read-only")
    terminal.type("/resume talk\r")
    terminal.see("'talk' is this session")
    terminal.type("/resume other\r")
    terminal.see("continue in yolo · workspace? [y]es  [N]o")
    terminal.type("n\r")
    terminal.idle()
    assert terminal.leave() == 0
    terminal = open_screen("session", "start", "third", "--model", place.script("hi"))
    terminal.see_status("auto · workspace")
    terminal.type("/resume talk\r")
    terminal.see_status("plan · read-only")
    assert terminal.leave() == 0


def test_another_profile_keeps_the_stricter_mode(session, place):
    config = place.home / "config"
    config.mkdir()
    (config / "profiles.yaml").write_text("bold: {approval: yolo, processor: 'scripted:none', sandbox: read-only}\n")
    terminal = session("hi", words=("--approval", "ask"))
    terminal.see_status("ask · workspace")
    (config / "profiles.yaml").write_text(f"bold: {{approval: yolo, processor: '{place.script('x')}'}}\n")
    terminal.type("/profile bold\r")
    terminal.see("the stricter mode stays: ask · workspace")
