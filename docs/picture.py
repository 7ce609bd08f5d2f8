"""A picture of a real run: `python docs/picture.py MODEL OUT.svg "task"`.

MODEL is a script (a .yaml file), `provider:model`, or `-` for what this machine uses by itself. The command runs in a
pseudo-terminal of 100 columns, in a folder and a home of its own.
"""

import fcntl
import io
import os
import pty
import re
import shlex
import struct
import sys
import tempfile
import termios
from itertools import groupby
from pathlib import Path

from rich.console import Console
from rich.text import Text

COLUMNS, ROWS = 100, 50
_TOKEN = re.compile(r"\x1b\[([?\d;]*)([A-Za-z])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[=>78]|([\s\S])")


def main() -> None:
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    model, out, task = sys.argv[1:]
    file = Path(model).resolve()
    chosen = [] if model == "-" else ["--model", f"scripted:{file}" if file.is_file() else model]
    seen = run([sys.executable, "-m", "goose_like", "run", *chosen, task])
    words = f"$ goose-like run {shlex.quote(task)}\n"
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text(words, "bold"), Text.from_ansi(screen(seen)), sep="", soft_wrap=True)
    drawn = console.export_svg(title="goose-like", unique_id="run")
    # Fonts from a far server are for browsers that would load them; the reader's own will do.
    Path(out).write_text(re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL), encoding="utf-8")


def run(command: list[str]) -> str:
    """All that the command sends to its terminal."""
    with tempfile.TemporaryDirectory() as home, tempfile.TemporaryDirectory() as work:
        child, terminal = pty.fork()
        if child == 0:
            os.chdir(work)
            env = os.environ | {"HOME": home, "GOOSE_LIKE_HOME": f"{home}/.goose-like", "TERM": "xterm-256color"}
            os.execvpe(command[0], command, env)
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        seen = b""
        while chunk := _read(terminal):
            seen += chunk
        os.waitpid(child, 0)
    return seen.decode(errors="replace")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux says so when the last process has left
        return b""


def screen(seen: str) -> str:
    """What stands on the terminal afterwards, scrolled-off lines too; colours are the only control sequences left."""
    rows: list[list[tuple[str, str]]] = [[]]  # each character with the colour codes before it
    y = x = 0
    colour = ""
    for arguments, letter, character in _TOKEN.findall(seen):
        number = int(arguments) if arguments.isdigit() else 0
        match letter or character:
            case "m" if letter:
                colour = "" if arguments in ("", "0") else f"{colour}\x1b[{arguments}m"
            case "K" if letter:
                rows[y] = [] if number == 2 else rows[y][:x] if number == 0 else rows[y]
            case "A" if letter:
                y = max(0, y - max(1, number))
            case "\r":
                x = 0
            case "\n":
                y, x = y + 1, 0
            case _ if character.isprintable() and character:
                if x == COLUMNS:
                    y, x = y + 1, 0
                while len(rows) <= y:
                    rows.append([])
                rows[y] += [("", " ")] * (x - len(rows[y]))
                rows[y][x : x + 1] = [(colour, character)]
                x += 1
        while len(rows) <= y:
            rows.append([])
    return "\n".join(map(_as_text, rows)).rstrip("\n")


def _as_text(row: list[tuple[str, str]]) -> str:
    runs = ((colour, "".join(one for _, one in run)) for colour, run in groupby(row, key=lambda cell: cell[0]))
    return "".join(f"{colour}{text}\x1b[0m" if colour else text for colour, text in runs)


if __name__ == "__main__":
    main()
