"""A real terminal emulator around the command: what is drawn is read as it would be seen."""

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


class ScreenTerminal:
    """A command on a pseudo-terminal whose screen is emulated. `see` and `gone` wait for what they say.

    `shell` starts the words "$@", with other redirections if need be.
    """

    def __init__(
        self, place: Place, *words: str, columns: int = 100, rows: int = 40, shell: str = 'exec "$@"', **env: str
    ) -> None:
        self._ours, theirs = pty.openpty()
        self._screen = pyte.HistoryScreen(columns, rows, history=5000, ratio=1)
        self._stream = pyte.ByteStream(self._screen)
        self.raw = b""
        self.resize(columns, rows)
        self.process = subprocess.Popen(
            ["setsid", "--ctty", "--wait", "sh", "-c", shell, "sh", sys.executable, "-m", "goose_like", *words],
            cwd=place.work,
            env=place.env(**{"TERM": "xterm-256color", **env}),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self._screen.resize(rows, columns)

    def type(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    @property
    def rows(self) -> list[str]:
        """The rows that are seen, without blanks at their ends and without empty ones below."""
        return "\n".join(row.rstrip() for row in self._screen.display).rstrip("\n").split("\n")

    @property
    def text(self) -> str:
        """All that stands on the screen and what scrolled away above it."""
        gone = ["".join(row[x].data for x in range(self._screen.columns)) for row in self._screen.history.top]
        return "\n".join([*(row.rstrip() for row in gone), *self.rows])

    def see(self, text: str, times: int = 1) -> None:
        """Waits until the text stands there, so many times."""
        self._until(lambda: self.text.count(text) >= times, f"{text!r} did not come")

    def gone(self, text: str) -> None:
        """Waits until the text is no longer on the screen."""
        self._until(lambda: text not in "\n".join(self.rows), f"{text!r} did not go away")

    def idle(self) -> None:
        """Waits until nothing goes on above the prompt."""
        self._until(lambda: not any(row[:1] and row[0] in SPINNER for row in self.rows), "it does not end")

    def _until(self, is_so, otherwise: str) -> None:
        ends = time.monotonic() + PATIENCE_S
        while not is_so():
            if time.monotonic() > ends or not self._read(ends - time.monotonic()):
                if is_so():
                    return
                raise AssertionError(f"{otherwise}; the screen:\n{self.text}")

    def leave(self) -> int:
        """The exit code of a session that is left once nothing goes on."""
        self.idle()
        self.type("\x04")
        return self.ended()

    def ended(self) -> int:
        """The exit code, when everything that was shown has been read."""
        while self._read(PATIENCE_S):
            pass
        return self.process.wait(PATIENCE_S)

    def signal(self, number: signal.Signals) -> None:
        """To the command itself, not to its process group: `setsid` has become it."""
        self.process.send_signal(number)

    def hang_up(self) -> int:
        """Closes the terminal, as a window that is closed, and gives the exit code."""
        os.close(self._ours)
        return self.process.wait(PATIENCE_S)

    def close(self) -> None:
        with suppress(OSError):  # it may be closed
            os.close(self._ours)
        self.process.kill()
        self.process.wait()

    def _read(self, patience_s: float) -> bool:
        if not select.select([self._ours], [], [], max(patience_s, 0))[0]:
            return False
        try:
            chunk = os.read(self._ours, 65536)
        except OSError:  # the last process has left
            return False
        self.raw += chunk
        self._stream.feed(chunk)
        return bool(chunk)
