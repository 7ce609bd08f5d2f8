"""Pictures of what is drawn, as SVG: of a run, or of a session that types by itself.

    python docs/picture.py run MODEL OUT.svg "task"
    python docs/picture.py session FILE.yaml OUT.svg

MODEL is a script (a .yaml file), `provider:model`, or `-` for what this machine uses by itself. FILE has `model`,
a script's steps; `files` by name; `keys`, what is typed (`type`) and waited for (`see`); and `command`, where it is
another one than `session start`. The command runs on an emulated terminal, in a folder and a home of its own.
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
from typing import Any

import pyte
from rich.console import Console
from rich.style import Style
from rich.text import Text
from ruamel.yaml import YAML

COLUMNS, ROWS = 100, 50
_COLOURS = {"brown": "yellow"}  # pyte's word for it


class Terminal:
    """A command on an emulated terminal; what scrolls away is kept."""

    def __init__(self, command: list[str], home: str, work: str, rows: int) -> None:
        self.screen = pyte.HistoryScreen(COLUMNS, rows, history=5000, ratio=1)
        self._stream = pyte.ByteStream(self.screen)
        child, self._terminal = pty.fork()
        if child == 0:
            os.chdir(work)
            env = os.environ | {"HOME": home, "GOOSE_LIKE_HOME": f"{home}/.goose-like", "TERM": "xterm-256color"}
            os.execvpe(command[0], command, env)
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, COLUMNS, 0, 0))

    def type(self, keys: str) -> None:
        os.write(self._terminal, keys.encode())

    def see(self, text: str) -> None:
        """Reads until the text stands on the screen."""
        while text not in "\n".join(self.screen.display):
            if not self.read():
                sys.exit(f"{text!r} did not come")

    def read(self) -> bool:
        try:
            chunk = os.read(self._terminal, 65536)
        except OSError:  # Linux says so when the last process has left
            return False
        self._stream.feed(chunk)
        return bool(chunk)


def main() -> None:
    match sys.argv[1:]:
        case ["run", model, out, task]:
            file = Path(model).resolve()
            chosen = [] if model == "-" else ["--model", f"scripted:{file}" if file.is_file() else model]
            terminal = started(["run", *chosen, task], {}, ROWS)
            while terminal.read():
                pass
            save(out, f"$ goose-like run {shlex.quote(task)}", terminal.screen)
        case ["session", name, out]:
            data: dict[str, Any] = YAML(typ="safe").load(Path(name).read_text())
            script = io.StringIO()
            YAML().dump(data["model"], script)
            files = {"model.yaml": script.getvalue(), **data.get("files", {})}
            command = data.get("command", [])
            words = [*(command or ["session", "start"]), "--model", "scripted:model.yaml"]
            terminal = started(words, files, data.get("rows", ROWS))
            for step in data["keys"]:
                for act, text in step.items():
                    getattr(terminal, act)(text)
            save(out, shlex.join(["$ goose-like", *command]).replace("'$ goose-like'", "$ goose-like"), terminal.screen)
        case _:
            sys.exit(__doc__)


def started(words: list[str], files: dict[str, str], rows: int) -> Terminal:
    """The command in a folder with these files. Both folders are left to the system, as it may still run."""
    home, work = tempfile.mkdtemp(), tempfile.mkdtemp()
    for name, text in files.items():
        (Path(work) / name).write_text(text)
    return Terminal([sys.executable, "-m", "goose_like", *words], home, work, rows)


def save(out: str, title: str, screen: pyte.HistoryScreen) -> None:
    rows = [_row(row) for row in [*screen.history.top, *(screen.buffer[y] for y in range(screen.lines))]]
    while rows and not rows[-1].plain.strip():
        rows.pop()
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text("\n").join([Text(title, "bold"), *rows]), soft_wrap=True)
    drawn = console.export_svg(title="goose-like", unique_id="run")
    # Fonts from a far server are for browsers that would load them; the reader's own will do.
    Path(out).write_text(re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL), encoding="utf-8")


def _row(cells: Any) -> Text:
    text = Text()
    for style, run in groupby((cells[x] for x in range(COLUMNS)), _style):
        text.append("".join(cell.data for cell in run), style)
    text.rstrip()
    return text


def _style(cell: Any) -> Style:
    return Style(
        color=_colour(cell.fg), bgcolor=_colour(cell.bg), bold=cell.bold, italic=cell.italics, reverse=cell.reverse
    )


def _colour(name: str) -> str | None:
    """Rich's word for a colour of pyte's."""
    if name == "default":
        return None
    if re.fullmatch(r"[0-9a-f]{6}", name):
        return f"#{name}"
    return re.sub("^bright", "bright_", _COLOURS.get(name, name))


if __name__ == "__main__":
    main()
