"""The real command in a terminal emulator: tests read its screen as a person would."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from contextlib import suppress

import pyte

from tests.e2e.command import Place

PATIENCE_S = 60.0
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
PRESS_AGAIN_S = 5.0


class ScreenTerminal:
    """A command in an emulated terminal.

    `shell` starts the words "$@", for example with other redirections.
    """

    def __init__(
        self, place: Place, *words: str, columns: int = 100, rows: int = 40, shell: str = "", **env: str
    ) -> None:
        self._ours, theirs = pty.openpty()
        self._screen = pyte.HistoryScreen(columns, rows, history=5000, ratio=1)
        self._stream = pyte.ByteStream(self._screen)
        self.raw = b""
        self._has_exited = False
        self.resize(columns, rows)
        env = {"TERM": "xterm-256color", **env}
        streams = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
        if shell:
            opening = ["setsid", "--ctty", "--wait", "sh", "-c", shell, "sh"]
            line = [*opening, sys.executable, "-m", "goose_like", *words]
            self.process = subprocess.Popen(line, cwd=place.work, env=place.env(**env), text=True, **streams)
        else:
            self.process = place.start(*words, env=env, has_terminal=True, **streams)
        os.close(theirs)

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self._screen.resize(rows, columns)

    def type(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    @property
    def rows(self) -> list[str]:
        """The visible rows, without spaces at their ends and without empty rows at the bottom."""
        return "\n".join(row.rstrip() for row in self._screen.display).rstrip("\n").split("\n")

    @property
    def text(self) -> str:
        """The text of the screen, with the rows that scrolled away."""
        gone = ["".join(row[x].data for x in range(self._screen.columns)) for row in self._screen.history.top]
        return "\n".join([*(row.rstrip() for row in gone), *self.rows])

    def see(self, text: str, times: int = 1) -> None:
        """Wait until the text is there, so many times."""
        self.until(lambda: self.text.count(text) >= times, f"{text!r} did not come")

    def see_status(self, text: str) -> None:
        """Wait until the status line, which may take two rows, begins with the text."""
        row_count = -(-len(text) // self._screen.columns)
        self.until(
            lambda: "".join(row.ljust(self._screen.columns) for row in self.rows[-row_count:]).startswith(text),
            f"the status line does not begin with {text!r}",
        )

    def wait_gone(self, text: str) -> None:
        """Wait until the text is no longer on the screen."""
        self.until(lambda: text not in "\n".join(self.rows), f"{text!r} did not go away")

    def idle(self) -> None:
        """Wait until no work is in progress above the prompt."""
        self.until(lambda: not any(row[:1] and row[0] in SPINNER for row in self.rows), "it does not end")

    def until(self, is_so, otherwise: str) -> None:
        """Read output until `is_so` returns true."""
        ends = time.monotonic() + PATIENCE_S
        while not is_so():
            if time.monotonic() > ends or not self._read_output(ends - time.monotonic()):
                if is_so():
                    return
                raise AssertionError(f"{otherwise}; the screen:\n{self.text}")

    def leave(self) -> int:
        """Leave the session as soon as it is idle and return its exit code.

        Ctrl-D may have to come twice: a command that has shown its text may still be ending, and while a list closes,
        the terminal takes Ctrl-D as the end of a line. `test_leaving.py` tests the key itself.
        """
        ends = time.monotonic() + PATIENCE_S
        self.idle()
        self.type("\x04")
        again = time.monotonic() + PRESS_AGAIN_S
        while not self._has_exited and time.monotonic() < ends:
            self._read_output(again - time.monotonic())
            if time.monotonic() > again:
                with suppress(OSError):  # it has just exited
                    self.type("\x04")
                again = time.monotonic() + PRESS_AGAIN_S
        return self.wait_exit()

    def wait_exit(self) -> int:
        """Read the rest of the output and return the exit code."""
        self.until(lambda: self._has_exited, "the command did not exit")
        return self.process.wait(PATIENCE_S)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the command, not to its process group."""
        self.process.send_signal(number)

    @property
    def is_raw(self) -> bool:
        """True if the terminal hides typed keys, or passes them on before the line is complete."""
        return termios.tcgetattr(self._ours)[3] & (termios.ICANON | termios.ECHO) != termios.ICANON | termios.ECHO

    def hang_up(self) -> int:
        """Close the terminal like a window and return the exit code."""
        os.close(self._ours)
        return self.process.wait(PATIENCE_S)

    def close(self) -> None:
        with suppress(OSError):  # it may be closed
            os.close(self._ours)
        self.process.kill()
        self.process.wait()

    def _read_output(self, patience_s: float) -> bool:
        if not select.select([self._ours], [], [], max(patience_s, 0))[0]:
            return False
        try:
            chunk = os.read(self._ours, 65536)
        except OSError:  # the last process has left
            chunk = b""
        self._keep(chunk)
        self._has_exited = not chunk
        return bool(chunk)

    def _keep(self, chunk: bytes) -> None:
        self.raw += chunk
        self._stream.feed(chunk)
