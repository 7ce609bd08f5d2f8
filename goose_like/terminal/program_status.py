"""The state of the program for the terminal: its title, and OSC 7501, which terminals and multiplexers show in tabs."""

import os
import sys
from base64 import b64encode
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Literal

from typing_extensions import override

from goose_like.core import events
from goose_like.core.notifier import EventNotifier

from .escape import escape_controls, to_one_line

State = Literal["idle", "working", "blocked", "done", "error"]

CLEAR = "\x1b]7501;state=clear:app=goose-like\x1b\\"
_SAVE_TITLE = "\x1b[22;2t"
_RESTORE_TITLE = "\x1b[23;2t"
_MAX_MESSAGE_CHARS = 200
_MARKS: dict[State, str] = {"idle": "", "working": "… ", "blocked": "? ", "done": "✓ ", "error": "✗ "}
_PLAIN_TERMINALS = ("", "dumb", "linux")
"""Values of TERM for terminals without titles. The console of Linux would print the text."""


def has_status() -> bool:
    """Return whether error output is a terminal that takes titles."""
    is_terminal = sys.stderr is not None and sys.stderr.isatty()
    return is_terminal and os.environ.get("TERM", "") not in _PLAIN_TERMINALS


def write_to_stderr(text: str) -> None:
    """Write a sequence at once: in the buffer of standard error it could get between two halves of another one."""
    os.write(2, text.encode())


class ProgramStatus(EventNotifier):
    """A notifier that reports what the program does to the terminal. `close` clears that."""

    def __init__(self, write: Callable[[str], object], folder: Path) -> None:
        self._write = write
        self._folder = escape_controls(folder.name)
        self._state: State | None = None
        self._state_before_question: State = "idle"

    @override
    def notify(self, event: events.Event) -> None:
        match event:
            case events.SessionStarted():
                self._report("idle")
            case events.TurnStarted():
                self._report("working")
            case events.Asked(question=question):
                self._state_before_question = self._state or "idle"
                kind = "question" if question.kind == "text" else "permission"
                self._report("blocked", kind, question.text)
            case events.Answered():
                self._report(self._state_before_question)
            case events.TurnFinished(reason="error", detail=detail):
                self._report("error", "", detail)
            case events.TurnFinished(reason="cancelled"):
                self._report("idle")
            case events.TurnFinished():
                self._report("done")

    def _report(self, state: State, kind: str = "", message: str = "") -> None:
        fields = [f"state={state}"]
        if kind:
            fields.append(f"kind={kind}")
        fields.append("app=goose-like")
        if message:
            text = to_one_line(message, _MAX_MESSAGE_CHARS)
            fields.append(f"msg={b64encode(text.encode()).decode()}")
        start = _SAVE_TITLE if self._state is None else ""
        self._state = state
        status = f"\x1b]7501;{':'.join(fields)}\x1b\\"
        title = f"\x1b]2;{_MARKS[state]}goose-like · {self._folder}\x1b\\"
        self._put(f"{start}{status}{title}")

    def _put(self, sequences: str) -> None:
        with suppress(OSError):  # the terminal was closed
            self._write(sequences)

    def close(self) -> None:
        """Clear the state, and restore the title of before."""
        if self._state is not None:
            self._put(CLEAR + _RESTORE_TITLE)
        self._state = None
