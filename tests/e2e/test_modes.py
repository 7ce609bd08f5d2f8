"""Approval and sandbox modes in a terminal: the status line, /mode, and resumed sessions."""

import pytest

from tests.e2e.command import shell

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
