"""The lists to choose from in a session, with a real terminal."""

import signal
import time

import pytest

from tests.e2e.command import Place, shell
from tests.loopback import listed, threaded

UP, DOWN, ESC = "\x1b[A", "\x1b[B", "\x1b"


def write(path: str, content: str) -> dict:
    return {"calls": [{"tool": "write_file", "arguments": {"path": path, "content": content}}]}


def test_rewind_shows_the_files_of_each_message(session, place: Place):
    terminal = session(write("a.txt", "one\n"), "first", write("b.txt", "two\n"), "second", columns=80, rows=24)
    for words, answer in (("begin", "first"), ("go on", "second")):
        terminal.type(f"{words}\r")
        terminal.see(f"\n{answer}")
        terminal.idle()
    terminal.type("/rewind\r")
    terminal.see("changed files: b.txt")
    terminal.type(UP)
    terminal.see("changed files: a.txt")
    terminal.type("go on")
    terminal.see("1 of 2")
    terminal.type("\r")
    terminal.see("b.txt is removed")
    terminal.see("[N]o:")
    terminal.type("b\r")
    terminal.see("goose> go on")
    assert [file.name for file in place.work.iterdir()] == ["a.txt"]


def test_esc_leaves_a_list_and_changes_nothing(session):
    terminal = session("first")
    terminal.type("hi\r")
    terminal.see("first")
    terminal.idle()
    terminal.type("/profile\r")
    terminal.see("▸ default")
    terminal.resize(80, 24)
    time.sleep(1)  # the hidden prompt must not notice the new size and erase the list
    terminal.type("review")
    terminal.see("> review")
    assert terminal.rows[-1].startswith("↑↓ move")
    terminal.type(ESC)
    terminal.wait_gone("Choose a profile")
    terminal.see_status("auto · workspace")
    terminal.type("/profile\r")
    terminal.until(lambda: "▸ default" in "\n".join(terminal.rows), "no list")
    terminal.type("reviewer\r")
    terminal.see_status("auto · read-only")
    assert terminal.leave() == 0


def test_a_mode_is_chosen_from_a_list(session):
    terminal = session("first", columns=80, rows=24)
    terminal.idle()
    terminal.type("/mode\r")
    terminal.see("▸ auto")
    terminal.see("sandbox: this folder, and the whole network\n")
    terminal.type("plan\r")
    terminal.see_status("plan · read-only")
    terminal.type("/mode\r")
    terminal.see("▸ plan")
    terminal.type(ESC)
    terminal.wait_gone("Choose a mode")
    terminal.see_status("plan · read-only")
    assert terminal.leave() == 0


def test_a_list_counts_the_rows_below(session):
    terminal = session("first", columns=80, rows=8)
    terminal.idle()
    terminal.type("/profile\r")
    terminal.see("▸ default")
    terminal.see("more below · ↑↓ move")
    terminal.type("review")
    terminal.see("> review")
    terminal.until(lambda: terminal.rows[-1].startswith("↑↓ move"), "rows below are still counted")
    terminal.type(ESC)
    terminal.wait_gone("Choose a profile")
    terminal.see_status("auto · workspace")
    assert terminal.leave() == 0


def test_a_model_of_the_servers_list(session, place: Place):
    with threaded([listed("house-7b", "house-9b")]) as server:
        env = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": server.base_url}
        terminal = session("first", columns=120, **env)
        terminal.type("/model\r")
        terminal.see("openai:gpt-")
        terminal.see("openai:house-9b")
        terminal.type("house 9\r")
        terminal.wait_gone("Choose a model")
        terminal.see("· openai:house-9b ·")
        assert terminal.leave() == 0
    terminal = session("first", words=("--model", place.script("again")), **env)
    terminal.type("/model house")
    terminal.see("openai:house-7b")
    terminal.type("\x15/model openai:house-9")
    terminal.see("\n openai:house-9b")


def test_a_list_without_a_key_says_how_to_get_more_models(session):
    terminal = session("first", columns=80)
    terminal.type("/model\r")
    terminal.see("Choose a model (others need a key: goose-like setup)")
    terminal.type(ESC)
    terminal.wait_gone("Choose a model")
    terminal.see_status("auto · workspace")
    assert terminal.leave() == 0


def test_resume_another_session(session, open_screen, place: Place):
    for name, words in (("parser", "mend the parser"), ("lexer", "test the lexer")):
        done = place.run("run", "--session", name, "--model", place.script(f"answer of {name}"), words)
        assert done.returncode == 0, done.stderr
    terminal = session("first")
    terminal.type("/resume pars")
    terminal.see("mend the parser")
    terminal.type("\x15/resume\r")
    terminal.see("answer of lexer")
    terminal.type("pars")
    terminal.see("answer of parser")
    terminal.type("\r")
    terminal.see("> mend the parser")
    assert terminal.leave() == 0


@pytest.mark.parametrize("columns", [80, 120])
def test_resume_without_a_name_before_the_session(open_screen, place: Place, columns):
    for name, words in (("parser", "mend the parser"), ("lexer", "test the lexer")):
        assert place.run("run", "--session", name, "--model", place.script("done"), words).returncode == 0
    terminal = open_screen("session", "resume", "--model", place.script("again"), columns=columns, rows=24)
    terminal.see("> test the lexer")
    terminal.type(DOWN)
    terminal.see("parser · ")
    terminal.type("\r")
    terminal.see("goose>")
    terminal.see("> mend the parser")
    assert terminal.leave() == 0
    terminal = open_screen("session", "resume", "--model", place.script("again"), columns=columns, rows=24)
    terminal.see("Resume a session")
    terminal.type(ESC)
    assert terminal.wait_exit() == 0


def test_a_rule_that_is_added_and_removed_in_the_list(session):
    terminal = session({"calls": [shell("echo hi")]}, "one", {"calls": [shell("echo hi")]}, "two", rows=40)
    terminal.type("/permissions\r")
    terminal.see("▸ allow …")
    terminal.type("deny\r")
    terminal.see("deny, such as git push")
    terminal.type("echo\r")
    terminal.see("▸ deny echo")
    terminal.type(ESC)
    terminal.wait_gone("▸ deny echo")
    terminal.see("from now on in this folder, refused: echo")
    terminal.type("go\r")
    terminal.see("a rule forbids it")
    terminal.see("\none")
    terminal.idle()
    terminal.type("/permissions\r")
    terminal.see("a rule for this folder")
    terminal.type("\r")
    terminal.see("remove deny echo?")
    terminal.type("y\r")
    terminal.see("▸ allow …")
    terminal.type(ESC)
    terminal.wait_gone("▸ allow …")
    terminal.type("go\r")
    terminal.see("│ hi")
    terminal.see("\ntwo")


def test_without_a_terminal_the_newest_session_is_resumed(place: Place):
    assert place.run("run", "--session", "old", "--model", place.script("done"), "hi").returncode == 0
    lines = "/rewind\n/profile\n/model\n/resume\n/permissions deny git push\n/permissions\n"
    done = place.run("session", "resume", "--model", place.script("again"), input=lines)
    assert done.returncode == 0, done.stderr
    for text in ("1  hi", "> default", "processor    scripted:", "old  ", "1  folder, rule  deny git push"):
        assert text in done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_session_that_shows_a_list(session, number):
    terminal = session("first")
    terminal.type("/profile\r")
    terminal.see("▸ default")
    terminal.signal(number)
    assert terminal.wait_exit() == 128 + number


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("words", [("-r",), ("session", "resume"), ("setup",)], ids=" ".join)
def test_a_signal_at_a_list_before_a_session_restores_the_terminal(open_screen, place: Place, words, number):
    assert place.run("run", "--session", "old", "--model", place.script("done"), "hi").returncode == 0
    terminal = open_screen(*words, columns=80, rows=24)
    terminal.see("↑↓ move")
    assert terminal.is_raw
    terminal.signal(number)
    assert terminal.wait_exit() == 128 + number
    assert not terminal.is_raw
    assert "Traceback" not in terminal.text


def test_a_window_that_closes_at_a_list_ends_the_command(open_screen, place: Place):
    terminal = open_screen("setup", columns=80, rows=24)
    terminal.see("↑↓ move")
    assert terminal.hang_up() == 129


def test_nohup_keeps_a_list_open(open_screen, place: Place):
    terminal = open_screen("setup", columns=80, rows=24, shell="trap '' HUP; exec \"$@\"")
    terminal.see("↑↓ move")
    terminal.signal(signal.SIGHUP)
    terminal.type("anthropic")
    terminal.see("> anthropic")
    terminal.type(ESC)
    assert terminal.wait_exit() == 0
