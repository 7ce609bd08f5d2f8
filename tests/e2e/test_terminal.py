"""One-shot runs and simple sessions on a pseudo-terminal."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator

import pytest

from tests.e2e.command import Place, shell

PATIENCE_S = 60.0
COMMAND = [sys.executable, "-m", "goose_like"]
NETWORK = shell("echo got through", access="network")


class Terminal:
    """A command on a pseudo-terminal. `see` waits for a text after the last seen text."""

    def __init__(self, place: Place, command: list[str], columns: int = 100, term: str = "xterm-256color") -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        env = {"TERM": term, "PROMPT_TOOLKIT_NO_CPR": "1"}
        streams = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
        if command[:3] == COMMAND:
            self.process = place.start(*command[3:], env=env, has_terminal=True, **streams)
        else:
            line = ["setsid", "--ctty", "--wait", *command]
            self.process = subprocess.Popen(line, cwd=place.work, env=place.env(**env), text=True, **streams)
        os.close(theirs)
        self.text = ""
        self._at = 0

    def type(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def interrupt(self) -> None:
        """Press Ctrl-C until the command ends. Python may lose one that comes just before `input` waits for keys."""
        while self.process.poll() is None:
            self.type("\x03")
            time.sleep(1)

    def see(self, text: str) -> None:
        ends = time.monotonic() + PATIENCE_S
        while (found := self.text.find(text, self._at)) < 0:
            if time.monotonic() > ends or not self._read():
                raise AssertionError(f"{text!r} did not come after this:\n{self.text}")
        self._at = found + len(text)

    def wait_exit(self) -> int:
        """Read the rest of the output and return the exit code."""
        ends = time.monotonic() + PATIENCE_S
        while self._read():
            assert time.monotonic() < ends, f"the command does not exit:\n{self.text}"
        return self.process.wait(PATIENCE_S)

    def close(self) -> None:
        os.close(self._ours)  # a process that still holds the other end gets SIGHUP
        self.process.kill()
        self.process.wait()

    def _read(self) -> bool:
        if not select.select([self._ours], [], [], PATIENCE_S)[0]:
            return False
        try:
            chunk = os.read(self._ours, 65536).decode(errors="replace")
        except OSError:  # the last process has left
            return False
        self.text += re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", chunk)
        return bool(chunk)


@pytest.fixture
def open_terminal(place) -> Iterator[object]:
    opened: list[Terminal] = []

    def start(*words: str, program: str | None = None, term: str = "xterm-256color") -> Terminal:
        command = [sys.executable, "-c", program] if program else [*COMMAND, *words]
        opened.append(Terminal(place, command, term=term))
        return opened[-1]

    yield start
    for terminal in opened:
        terminal.close()


def test_an_answer_for_good_is_not_asked_again_until_it_is_forgotten(place, open_terminal):
    def run() -> Terminal:
        return open_terminal("run", "--model", place.script({"calls": [NETWORK]}, "done"), "x")

    terminal = run()
    terminal.see("[y] once  [p] session: echo got  [a] always  [N] no: ")
    terminal.type("a\n")
    assert terminal.wait_exit() == 0
    terminal = run()
    terminal.see("got through")
    assert terminal.wait_exit() == 0
    assert "always" not in terminal.text
    listed = place.run("trust", "list").stdout.splitlines()[1]
    assert listed.split() == ["1", str(place.work), "allow", "network:", "echo", "got", "through"]
    assert place.run("trust", "forget", "1").returncode == 0
    terminal = run()
    terminal.see("[a] always")
    terminal.type("n\n")
    assert terminal.wait_exit() == 0


def test_a_change_is_asked_about_with_what_it_does(place, open_terminal):
    write = {"tool": "write_file", "arguments": {"path": "new.txt", "content": "hidden\u200bword\n"}}
    model = place.script({"calls": [write]}, "done")
    terminal = open_terminal("run", "--approval", "ask", "--model", model, "x")
    terminal.see("? change /")
    terminal.see("┃ +hidden\\u200bword")
    terminal.see("[a] always")
    terminal.type("n\n")
    terminal.see("change denied")
    assert terminal.wait_exit() == 0
    assert not (place.work / "new.txt").exists()


def test_a_person_is_asked_about_what_a_project_brings(place, open_terminal):
    def run(*, waits_for: str) -> Terminal:
        terminal = open_terminal("run", "--model", place.script("done"), "x")
        terminal.see(waits_for)
        return terminal

    file = place.work / ".goose-like/profiles.yaml"
    file.parent.mkdir()
    file.write_text("default: {extends: default, limits: {steps: 7}}\n")
    terminal = run(waits_for="? this project brings settings:")
    terminal.see("[y] this time  [a] always  [t] text  [N] no: ")
    terminal.type("t\n")
    terminal.see("┃ default: {extends: default, limits: {steps: 7}}")
    terminal.see("[N] no: ")
    terminal.type("y\n")
    terminal.see("trust allowed")
    assert terminal.wait_exit() == 0
    terminal = run(waits_for="[N] no: ")
    terminal.type("a\n")
    assert terminal.wait_exit() == 0
    terminal = run(waits_for="done")
    assert terminal.wait_exit() == 0
    assert "its own settings" not in terminal.text
    file.write_text("default: {extends: default, limits: {steps: 8}}\n")
    terminal = run(waits_for="has changed files that you trusted")
    terminal.see("[N] no: ")
    terminal.type("t\n")
    terminal.see("-default: {extends: default, limits: {steps: 7}}")
    terminal.see("+default: {extends: default, limits: {steps: 8}}")
    terminal.see("[N] no: ")
    terminal.type("n\n")
    terminal.see("trust denied")
    assert terminal.wait_exit() == 0
    terminal = run(waits_for="skipped the files that you refused: /")
    terminal.see("done")
    assert terminal.wait_exit() == 0
    assert place.run("trust", "add").returncode == 0
    terminal = run(waits_for="done")
    assert terminal.wait_exit() == 0
    assert "refused" not in terminal.text


def test_a_run_asks_its_person(place, open_terminal):
    terminal = open_terminal("run", "--model", place.script({"calls": [NETWORK]}, "done"), "x")
    terminal.see("[N] no: ")
    terminal.type("n\n")
    terminal.see("network denied")
    assert terminal.wait_exit() == 0
    assert place.list_answers() == [("deny", "person")]


def test_ctrl_c_in_a_run_says_that_the_answer_is_cut_before_it_comes(place, open_terminal):
    model = place.script({"text": "one two three " * 100, "delta_delay_s": 0.05})
    terminal = open_terminal("run", "--model", model, "x")
    terminal.see("writing: one two three")
    terminal.type("\x03")
    terminal.see("■ cancelled · the answer is cut off")
    terminal.see("one two three")
    assert terminal.wait_exit() == 130
    assert "(cut off)" not in terminal.text


STUBBORN = """
import asyncio
from goose_like.terminal.interaction import handle_signals, set_echo

async def main():
    async def never():
        while True:
            try:
                print("working", flush=True)
                await asyncio.sleep(1000)
            except asyncio.CancelledError:
                pass
    turn = asyncio.create_task(never())
    with handle_signals(turn.cancel), set_echo(False):
        await asyncio.wait([turn])

asyncio.run(main())
"""


def test_the_third_ctrl_c_ends_what_can_not_be_cancelled(open_terminal):
    terminal = open_terminal(program=STUBBORN)
    terminal.see("working")
    terminal.type("\x03")
    terminal.see("working")
    terminal.type("\x03")
    terminal.see("press Ctrl-C once more to exit at once")
    terminal.see("working")
    assert not is_echo_on(terminal)
    terminal.type("\x03")
    assert terminal.wait_exit() == 130


SLOW_START = """
import asyncio, sys
from contextlib import asynccontextmanager
from goose_like.__main__ import main
from goose_like.launch import scheduler

@asynccontextmanager
async def build_slowly(*_, **__):
    print("sta" + "rting", file=sys.stderr)
    await asyncio.sleep(600)
    yield

scheduler.build_exchange = build_slowly
sys.argv[1:] = []
main()
"""


@pytest.mark.parametrize(("stop", "code"), [("\x03", 130), ("\x04", 130), (signal.SIGTERM, 143)])
def test_a_session_can_be_stopped_while_it_starts(place, open_terminal, stop, code):
    terminal = open_terminal(program=SLOW_START)
    terminal.see("starting")
    if isinstance(stop, str):
        terminal.type(stop)
    else:
        terminal.process.send_signal(stop)
    assert terminal.wait_exit() == code
    assert "Traceback" not in terminal.text


def is_echo_on(terminal: Terminal) -> bool:
    return bool(termios.tcgetattr(terminal._ours)[3] & termios.ECHO)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_session_that_waits_for_a_pipe_can_be_ended(place, number):
    model = place.script("hello")
    process = place.start("session", "start", "--model", model, stdin=subprocess.PIPE)
    process.stdin.write("hi\n")
    process.stdin.flush()
    assert process.stdout.readline() == "hello\n"
    process.send_signal(number)
    process.wait(PATIENCE_S)  # with its input still open
    _, err = process.communicate()
    assert process.returncode == 128 + number
    assert "Traceback" not in err


def test_a_dumb_terminal_is_asked_for_a_line_when_the_answer_is_there(place, open_terminal):
    script = place.script({"text": "the first"}, {"text": "the second"})
    terminal = open_terminal("session", "start", "--model", script, term="dumb")
    for number in ("first", "second"):
        terminal.see("goose> ")
        terminal.type("go\n")
        terminal.see(f"the {number}")
    terminal.see("goose> ")
    terminal.type("exit\n")
    terminal.see("resume with: ")


def test_the_input_of_a_session_may_be_a_file(place):
    (place.work / "said.txt").write_text("one\n/nonsense\ntwo")
    with (place.work / "said.txt").open() as said_there:
        process = place.start("session", "start", "--model", place.script("first", "second"), stdin=said_there)
        _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    assert "no command /nonsense" in err
    assert place.list_messages() == ["one", "two"]
