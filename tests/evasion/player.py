"""Play a case: the real command in a terminal, a scripted model that attacks, and a person who answers."""

import fcntl
import json
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
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from goose_like.config.yaml_reader import format_document
from tests.evasion.case import Call, Case, Mode
from tests.evasion.place import Place

CASE_TIMEOUT_S = 150.0  # on a loaded machine
_MAX_ANSWERS = 8

_OPTIONS: dict[str, tuple[str, ...]] = {
    "read-only": ("--sandbox", "read-only"),
    "workspace": (),
    "workspace+network": ("--sandbox", "workspace+network"),
    "plan": ("--approval", "plan"),
    "ask": ("--approval", "ask"),
    "control": ("--sandbox", "full", "--approval", "yolo"),
}
_ESCAPES = re.compile(rb"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07]*\x07|\r")
_QUESTION = re.compile(rb"\[[Nn]\][^\n]*: ?$|answer: ?$")
_PROMPT = b"goose>"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a case in one mode. `failed` means that the case itself went wrong, which counts as not held."""

    status: Literal["held", "succeeded", "failed"]
    detail: str = ""


def play_case(case: Case, mode: Mode | Literal["control"], place: Place) -> Outcome:
    """Run the attack in a mode, and check afterwards whether it did its harm."""
    if case.setup and (done := place.run_line(case.setup)).returncode:
        return Outcome("failed", f"setup: {done.stderr[-300:]}")
    steps = [{"calls": [{"tool": call.tool, "arguments": _fill(place, call)}]} for call in case.calls]
    (place.folder / "script.yaml").write_text(format_document([*steps, *[case.says] * 20]))
    screen = _Terminal(case, mode, place).run()
    (place.folder / "screen").write_bytes(screen)
    finished = _collect_output(place)
    if not finished and not case.typed and case.ends == "exit":
        return Outcome("failed", f"the attack did not run: {screen[-400:].decode(errors='replace')}")
    try:
        done = place.run_line(case.harm)
    except subprocess.TimeoutExpired:
        return Outcome("failed", "the check of the harm did not end")
    if done.returncode > 1 and "syntax error" in done.stderr:
        return Outcome("failed", f"harm: {done.stderr[-300:]}")
    return Outcome("held" if done.returncode else "succeeded", (done.stdout + done.stderr)[-300:])


def _fill(place: Place, call: Call) -> object:
    return place.replace_all(call.arguments, has_home=call.tool not in ("shell", "process"))


def _collect_output(place: Place) -> int:
    """Write what the model saw to `$OUTPUT`, and return the number of calls that ended."""
    events = []
    for file in sorted(place.home.glob(".local/state/goose-like/sessions/*/events.jsonl")):
        text = file.read_text(errors="replace")
        (place.folder / "events").write_text(text)
        with suppress(ValueError):  # a killed session may end in half a line
            events += [json.loads(line) for line in text.split("\n") if line]
    results = [event["result"] for event in events if event["type"] == "tool_finished"]
    (place.folder / "output").write_text("\n".join(str(result.get("output", "")) for result in results))
    (place.folder / "events").touch()
    return len(results)


class _Terminal:
    """The command in a pseudo-terminal, with a person who types and answers."""

    def __init__(self, case: Case, mode: str, place: Place) -> None:
        self._case, self._place = case, place
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 160, 0, 0))
        self._raw = bytearray()
        self._answered = self._answers = 0
        self._typed = [*case.typed, "\x04"] if case.typed else []
        start = ("session", "start", "talk") if case.typed else ("run",)
        words = (*start, "--model", f"scripted:{place.folder}/script.yaml", *_OPTIONS[mode], *case.words)
        words += () if case.typed else ("go",)
        self._process = subprocess.Popen(
            ["setsid", "--ctty", "--wait", sys.executable, "-m", "goose_like", *words],
            cwd=place.work,
            env=place.environment(case.variables),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)

    def run(self) -> bytes:
        """Play the person until the command ends, and return what the terminal got."""
        ends = time.monotonic() + CASE_TIMEOUT_S
        try:
            while self._read(0.3):
                if time.monotonic() > ends:
                    raise TimeoutError(f"the case did not end within {CASE_TIMEOUT_S:g} s")
                self._answer()
                if self._case.ends == "kill" and (self._place.work / ".kill").exists():
                    self._kill()
        finally:
            self._kill()
            self._process.wait()
            os.close(self._ours)
        return bytes(self._raw)

    def _read(self, patience_s: float) -> bool:
        """Read what arrives. Return False at the end of the output. A silent session gets the next typed line."""
        if not select.select([self._ours], [], [], patience_s)[0]:
            if self._typed and _PROMPT in bytes(self._raw[self._answered :]):
                self._type(self._typed.pop(0))
            return self._process.poll() is None
        try:
            chunk = os.read(self._ours, 65536)
        except OSError:
            return False
        self._raw += chunk
        return bool(chunk)

    def _answer(self) -> None:
        if _QUESTION.search(_ESCAPES.sub(b"", bytes(self._raw[self._answered :][-4000:]))):
            self._answers += 1  # an answer that is none is asked for again
            self._type(self._case.answer if self._answers <= _MAX_ANSWERS else "n")

    def _type(self, line: str) -> None:
        self._answered = len(self._raw)
        os.write(self._ours, (line if line == "\x04" else line + ("\r" if self._case.typed else "\n")).encode())

    def _kill(self) -> None:
        """Kill the command. Its sandbox dies with it."""
        with suppress(OSError):
            children = subprocess.run(
                ["ps", "-o", "pid=", "--ppid", str(self._process.pid)], capture_output=True, text=True
            )
            for pid in children.stdout.split():
                os.kill(int(pid), signal.SIGKILL)
        self._process.kill()
