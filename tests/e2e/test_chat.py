"""A session in a terminal: start, screen and input."""

import os
import re
import signal
import time

import pytest

from tests.e2e.command import shell

NETWORK = shell("echo got through", access="network")
SLOW = {"text": "one two three " * 100, "delta_delay_s": 0.05}


# --- coming and going


def test_the_command_alone_begins_a_session(place, open_screen, monkeypatch):
    model = place.script("hello you")
    config = place.home / "config"
    config.mkdir(exist_ok=True)
    (config / "profiles.yaml").write_text(f"default: {{extends: default, processor: '{model}'}}\n")
    terminal = open_screen()
    terminal.see("goose>")
    terminal.type("hi\r")
    terminal.see("hello you")
    assert terminal.leave() == 0
    (config / "profiles.yaml").write_text("default: {extends: default, procesor: x}\n")
    terminal = open_screen()
    assert terminal.wait_exit() == 2
    assert "did you mean 'processor'?" in terminal.text
    assert "goose>" not in terminal.text


def test_leaving_says_how_to_resume(session, place):
    terminal = session("hello you")
    terminal.type("hi\r")
    terminal.see("hello you")
    assert terminal.leave() == 0
    assert "> hi\n\nhello you\n" in terminal.text
    assert "resume with: goose-like session resume talk" in terminal.text
    assert "goose>" not in terminal.text, "the prompt is taken away"


def test_a_resumed_session_shows_what_was_said(session, place, open_screen):
    plan = {"tool": "update_plan", "arguments": {"tasks": [{"description": "look", "status": "in-progress"}]}}
    terminal = session({"calls": [plan, shell("echo one; exit 3") | {"id": "b"}]}, "that failed")
    terminal.type("hi\r")
    terminal.see("that failed")
    assert terminal.leave() == 0
    terminal = open_screen("session", "resume", "talk")
    terminal.see("goose>")
    terminal.see("▶ look")
    assert "> hi\n▸1 shell  echo one; exit 3\n  │ one\n  ✗ exit code 3\n\nthat failed\n" in terminal.text
    assert terminal.leave() == 0


def test_a_resumed_session_shows_each_change_below_its_call(session, place, open_screen):
    def write(path: str) -> dict:
        return {"tool": "write_file", "arguments": {"path": path, "content": "x\n"}}

    run = {"tool": "shell", "arguments": {"command": "echo hi"}}
    terminal = session({"calls": [write("one.txt"), run, write("two.txt")]}, "all done")
    terminal.type("go\r")
    terminal.see("all done")
    terminal.idle()
    live = [row for row in terminal.text.split("\n") if row.startswith(("▸", "  +++"))]
    assert live == ["▸1 write_file  one.txt · 2 bytes", "  +++ b/one.txt", "▸2 shell  echo hi", *live[3:]]
    assert live[3:] == ["▸3 write_file  two.txt · 2 bytes", "  +++ b/two.txt"]
    assert terminal.leave() == 0
    terminal = open_screen("session", "resume", "talk")
    terminal.see("goose>")
    terminal.see("all done")
    assert [row for row in terminal.text.split("\n") if row.startswith(("▸", "  +++"))] == live


def test_resume_draws_artifacts_again(session, place, open_screen):
    """A chart, a page in a file, and what may be asked next; in a terminal that has become narrower."""
    rows = [{"day": day, "price": price} for day, price in zip("abcd", (1, 4, 2, 8), strict=True)]
    chart = {"tool": "show_chart", "arguments": {"name": "P", "kind": "bar", "x": "day", "y": ["price"], "rows": rows}}
    page = {"tool": "show_html", "arguments": {"name": "a page", "html": "<p>hello</p>"}}
    asked = {"tool": "suggest_prompts", "arguments": {"prompts": ["Why?"]}}
    words = ("--profile", "openbb", "--sandbox", "full")
    terminal = session({"calls": [chart, page, asked]}, "hello you", words=words)
    terminal.type("hi\r")
    terminal.see("→ Why?")
    bars = [row.rstrip() for row in terminal.text.split("\n") if "█" in row]
    assert [row.split()[0] for row in bars] == ["a", "b", "c", "d"]
    (saved,) = (place.home / "state/sessions").glob("*/outputs/*.html")
    assert (saved.read_text(), saved.name) == ("<p>hello</p>", "call_1_2-a-page.html")
    assert saved.name in terminal.text.replace("\n", "")
    assert terminal.leave() == 0
    terminal = open_screen("session", "resume", "talk", *words, columns=60)
    terminal.see("goose>")
    terminal.see("→ Why?")
    again = [row.rstrip() for row in terminal.text.split("\n") if "█" in row]
    assert [row.split()[0] for row in again] == ["a", "b", "c", "d"]
    assert max(map(len, again)) <= 60 < max(map(len, bars))
    assert terminal.leave() == 0


@pytest.mark.parametrize("keys", ["exit\r", ":q\r", "/exit\r", "\x04"])
def test_ways_to_leave(session, keys):
    terminal = session("hello you")
    terminal.type(keys)
    assert terminal.wait_exit() == 0


def test_a_second_ctrl_c_leaves(session):
    terminal = session("hello you")
    terminal.see_status("auto · workspace")  # until the session is open, Ctrl-C stops its start, with another exit code
    terminal.type("\x03")
    terminal.see("(press Ctrl-C again to leave)")
    terminal.type("\x03")
    assert terminal.wait_exit() == 0


def test_a_session_that_is_told_to_end_closes(session, place):
    terminal = session("hello you")
    terminal.type("hi\r")
    terminal.see("hello you")
    terminal.idle()
    terminal.signal(signal.SIGTERM)
    assert terminal.wait_exit() == 143
    assert "resume with: goose-like session resume talk" in terminal.text


def test_a_session_whose_terminal_is_gone_is_closed(session, place):
    terminal = session(SLOW)
    terminal.type("hi\r")
    terminal.see("one two three")
    assert terminal.hang_up() == 129
    assert place.list_turn_ends() == ["cancelled"]


# --- what is drawn


def test_a_turn_is_drawn(session, place):
    write = {"tool": "write_file", "arguments": {"path": "a.py", "content": "print(1)\n"}}
    lines = shell("for i in $(seq 30); do echo line $i; done")
    terminal = session({"text": "I look first.", "calls": [lines]}, {"calls": [write]}, "All is **done**.")
    terminal.type("go\r")
    terminal.see("All is done.")
    assert terminal.leave() == 0
    drawn = terminal.text.partition("> go\n")[2]
    for part in (
        "I look first.\n",
        "▸1 shell  for i in $(seq 30); do echo line $i; done\n  │ line 1\n",
        "  │ line 12\n  │ … 15 more lines · /show 1\n  │ line 28\n  │ line 29\n  │ line 30\n  ✓ ",
        "▸2 write_file  a.py · 9 bytes\n  --- /dev/null\n  +++ b/a.py\n  @@ -0,0 +1 @@\n     1 +print(1)\n",
        "  ✓ created a.py",
    ):
        assert part in drawn
        drawn = drawn.partition(part)[2]


@pytest.mark.parametrize(
    ("last", "gap", "first_of_tail"), [(15, "", 4), (16, "… 1 more line · /show 1\n  │ ", 5), (300, "… 285 more", 289)]
)
def test_a_failed_command_shows_its_end(session, last, gap, first_of_tail):
    terminal = session({"calls": [shell(f"seq {last}; false")]}, "an answer")
    terminal.type("go\r")
    terminal.see("an answer")
    drawn = terminal.text.partition("▸1 shell")[2].replace(" lines · /show 1\n  │ ", "")
    assert f"\n  │ 3\n  │ {gap}{first_of_tail}\n" in drawn
    assert f"\n  │ {last}\n  ✗ exit code 1 · " in drawn


def test_folded_output_can_be_shown(session):
    terminal = session({"calls": [shell("seq 100 130")]}, "done")
    terminal.type("go\r")
    terminal.see("/show 1")
    terminal.idle()
    assert "120" not in terminal.text
    terminal.type("/show 1\r")
    terminal.see("120\n121\n")
    terminal.type("/show 2\r")
    terminal.see("no call '2'; choose a number from 1 to 1")


def test_a_delegate_is_seen_at_work_and_asks_under_its_name(session, place):
    (place.home / "config").mkdir()
    (place.home / "config/profiles.yaml").write_text("default: {extends: default, toolkits: [developer, delegate]}\n")
    terminal = session(
        {"calls": [{"tool": "delegate", "arguments": {"task": "look around"}}]},
        {"calls": [shell("until test -e seen; do sleep 0.01; done")]},
        {"calls": [NETWORK]},
        "I looked.",
        "Fine.",
    )
    terminal.type("go\r")
    terminal.see("▸1 delegate  look around")
    terminal.see("1 call · ▸ shell until test -e seen")  # above the prompt, while it runs
    (place.work / "seen").touch()
    terminal.see("? a delegate asks: network access for: echo got through")
    terminal.type("y\r")
    terminal.see("Fine.")
    terminal.see("took 3 steps, 2 calls")
    assert terminal.text.count("▸1 delegate  look around") == 1
    assert place.list_answers() == [("allow", "person")]
    assert terminal.leave() == 0


def test_the_plan_is_kept_in_view(session, place):
    def plan(*states: str) -> dict:
        tasks = [{"description": f"task {number}", "status": state} for number, state in enumerate(states, 1)]
        return {"tool": "update_plan", "arguments": {"tasks": tasks}}

    os.mkfifo(place.work / "wait")
    waits = shell("seq 60; read < wait") | {"id": "w"}
    terminal = session(
        {"calls": [plan("in-progress", "planned"), waits]}, {"calls": [plan("complete", "complete")]}, "ok"
    )
    terminal.type("go\r")
    terminal.see("▶ task 1")
    terminal.see("60")
    assert [row for row in terminal.rows if row.endswith(("task 1", "task 2"))] == ["  ▶ task 1", "  ☐ task 2"]
    (place.work / "wait").write_text("\n")
    terminal.see("ok")
    terminal.idle()
    assert terminal.text.count("☑ task 1") == 1


def test_escapes_are_shown_and_not_obeyed(session):
    terminal = session(
        {"text": "see \x1b[2J\x1b]0;title\x07this \u202etxet", "calls": [shell(r"printf '\033[31mred\a\n'")]}, "end"
    )
    terminal.type("go\r")
    terminal.see("│ red\\x07")  # colours are left out
    assert "see \\x1b[2J\\x1b]0;title\\x07this \\u202etxet" in terminal.text


def test_without_colour_nothing_is_coloured(session):
    terminal = session({"text": "**bold** and `code`", "calls": [shell("false")]}, "end", NO_COLOR="1")
    terminal.type("go\r")
    terminal.see("end")
    assert terminal.leave() == 0
    assert not re.findall(rb"\x1b\[(?:\d+;)*[349][0-7](?:;\d+)*m", terminal.raw)


@pytest.mark.parametrize("columns", [20, 40, 200])
def test_width_and_resizing(session, columns):
    words = "the quick brown fox jumps over the lazy dog " * 5
    terminal = session(words, words, columns=columns)
    terminal.type("go\r")
    terminal.see("dog")
    terminal.idle()
    terminal.resize(60, 20)
    terminal.signal(signal.SIGWINCH)
    terminal.type("again\r")
    terminal.see("> again")
    terminal.idle()
    assert terminal.leave() == 0


# --- the input


def test_pasted_lines_are_one_input(session, place):
    terminal = session("got it", "got that")
    terminal.type("\x1b[200~first\nsecond\nthird\x1b[201~")
    terminal.see("third")
    terminal.type("\r")
    terminal.see("got it")
    terminal.idle()
    terminal.type("one\x1b\rtwo")
    terminal.see("two")
    terminal.type("\r")
    terminal.see("got that")
    assert place.list_messages() == ["first\nsecond\nthird", "one\ntwo"]


def test_nothing_is_refused_quietly(session, place):
    terminal = session("hello")
    terminal.type("\r  \r\r")
    terminal.type("hi\r")
    terminal.see("hello")
    assert place.list_messages() == ["hi"] or place.list_messages() == ["  hi"]


def test_an_unknown_command_is_not_sent_to_the_model(session, place):
    terminal = session("hello")
    terminal.type("/hlep\r")
    terminal.see("no command /hlep (to send it as a message, put a space before the /); did you mean 'help'?")
    terminal.type("/help\r")
    terminal.see("Alt-Enter")
    terminal.type(" /usr is a folder\r")
    terminal.see("hello")
    assert place.list_messages() == [" /usr is a folder"]


def test_commands_are_completed(session):
    terminal = session("hello")
    terminal.type("/con")
    terminal.see("Draw what fills the model's context window")
    terminal.type("\t")
    terminal.see("goose> /context")
    terminal.type("\r")
    terminal.see("system prompt")


def test_a_completion_ends_with_a_blank(session):
    terminal = session("hello")
    terminal.type("/mod")
    terminal.see("Switch to another model")
    terminal.type("\x1b[B")  # Down
    terminal.see("goose> /mode")
    terminal.type("plan\r")
    terminal.see_status("plan · read-only")
    assert terminal.leave() == 0


def test_input_history_can_be_searched(session, open_screen, place):
    terminal = session("one", "two")
    terminal.type("find the needle\r")
    terminal.see("one")
    assert terminal.leave() == 0
    terminal = open_screen("session", "resume", "talk")
    terminal.see("goose>")
    terminal.type("\x12needle")
    terminal.see("goose> find the needle")
    terminal.type("\r\r")
    terminal.see("> find the needle", times=2)


def test_an_editor_can_be_used(session, place):
    editor = place.home / "editor"
    editor.write_text('#!/bin/sh\necho "from the editor" >> "$1"\n')
    editor.chmod(0o755)
    terminal = session("hello", EDITOR=str(editor))
    terminal.type("\x18\x05")
    terminal.see("from the editor")
    terminal.type("\r")
    terminal.see("hello")
    assert place.list_messages() == ["from the editor"]


def test_vi_keys(session, place, open_screen):
    config = place.home / "config"
    config.mkdir(exist_ok=True)
    (config / "profiles.yaml").write_text("default: {extends: default, session: {keys: vi}}\n")
    terminal = session("hello")
    terminal.see("default")
    terminal.type("abc\x1b")
    time.sleep(1)  # an Esc is one when nothing follows
    terminal.type("0xiz\x1b")
    time.sleep(1)
    terminal.type("\r")
    terminal.see("hello")
    assert place.list_messages() == ["zbc"]


def test_a_command_of_one_s_own_is_shown_to_the_model(session, place):
    terminal = session("I saw it")
    terminal.type("!echo hello from me; exit 4\r")
    terminal.see("[exit code 4]")
    terminal.idle()
    terminal.type("look\r")
    terminal.see("I saw it")
    kinds = [event["type"] for event in place.events()]
    assert kinds.index("reminded") < kinds.index("turn_started")
    assert "reminder to the model" not in terminal.text
    (report,) = [event["text"] for event in place.events() if event.get("reason") == "shown"]
    assert report == "The person ran `echo hello from me; exit 4`:\nhello from me\n\n[exit code 4]"


def test_the_files_of_a_session_are_private_and_its_input_history_holds_no_key(session, place):
    key = "sk-ant-api03-" + "x1Y2z3" * 8
    state = place.home / "state"
    state.mkdir(mode=0o755)
    (state / "history").touch(0o644)
    terminal = session("hello you", {"calls": [shell("seq 1 20000")]}, "done", MY_TOKEN="hunter2hunter2")
    terminal.type(f"my key is {key} and hunter2hunter2\r")
    terminal.see("hello you")
    terminal.type("go\r")
    terminal.see("done")
    assert terminal.leave() == 0
    text = (state / "history").read_text()
    assert "my key is [masked:" in text
    assert key not in text
    assert "hunter2" not in text
    modes = {str(path): path.stat().st_mode & 0o777 for path in (state, *state.rglob("*"))}
    assert {path: mode for path, mode in modes.items() if mode not in (0o700, 0o600)} == {}
    assert any("outputs" in path for path in modes)


def test_words_in_brackets_are_no_markup_in_a_session_by_lines(place):
    lines = "hello [/b] and [red]x[/red]\n/rewind\n/resume\n/undo conversation\n"
    done = place.run("session", "start", "talk", "--model", place.script("answer [/b]"), input=lines)
    assert done.returncode == 0
    assert done.stderr.count("hello [/b] and [red]x[/red]") >= 3
    assert "failed" not in done.stderr
