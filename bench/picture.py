"""Draw SVG pictures of the terminal: all of docs/, one of a run, or one of a scripted session.

    python bench/picture.py all
    python bench/picture.py run MODEL OUT.svg "task"
    python bench/picture.py session FILE.yaml OUT.svg

`all` runs the embedded model too (the extra `local`). tests/bench/test_picture.py draws the scripted ones and fails if
the screen has changed.

MODEL is a script (a .yaml file), `provider:model`, or `-` for the default model of this machine. FILE has `model` (the
steps of a script), `files` by name, `keys` (text to `type`, text to wait for with `see`), and optionally `command`
instead of `session start`. The command runs on an emulated terminal, in a folder and a home of its own.
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

from goose_like.config.yaml_reader import format_document, parse_document

COLUMNS, ROWS = 100, 50
DOCS = Path(__file__).parent.parent / "docs"
SESSIONS = {"terminal.svg": "terminal.yaml", "boss.svg": "boss/picture.yaml"}
LOCAL_TASK = "Create primes.py that prints the first 10 primes, then run it."
_COLOURS = {"brown": "yellow"}  # names that differ in pyte


class Terminal:
    """A command on an emulated terminal with scrollback."""

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
        """Read until the screen shows the text."""
        while text not in "\n".join(self.screen.display):
            if not self.read():
                sys.exit(f"the command ended before {text!r} appeared")

    def read(self) -> bool:
        try:
            chunk = os.read(self._terminal, 65536)
        except OSError:  # Linux raises this when the last process has closed the terminal
            return False
        self._stream.feed(chunk)
        return bool(chunk)


def main() -> None:
    match sys.argv[1:]:
        case ["all"]:
            for name, file in SESSIONS.items():
                draw_session(DOCS / file, DOCS / name)
            draw_run(["--profile", "local"], DOCS / "run.svg", LOCAL_TASK)
        case ["run", model, out, task]:
            file = Path(model).resolve()
            chosen = [] if model == "-" else ["--model", f"scripted:{file}" if file.is_file() else model]
            draw_run(chosen, Path(out), task)
        case ["session", name, out]:
            draw_session(Path(name), Path(out))
        case _:
            sys.exit(__doc__)


def draw_run(options: list[str], out: Path, task: str) -> None:
    """Draw a run from its start to its end."""
    terminal = start_command(["run", *options, task], {}, ROWS)
    while terminal.read():
        pass
    save_picture(out, f"$ goose-like run {shlex.quote(task)}", terminal.screen)


def draw_session(file: Path, out: Path) -> None:
    """Draw the screen of a session at the end of its keys."""
    data, _ = parse_document(file.read_text())
    files = {"model.yaml": format_document(data["model"]), **data.get("files", {})}
    command = data.get("command", [])
    words = [*(command or ["session", "start"]), "--model", "scripted:model.yaml"]
    terminal = start_command(words, files, data.get("rows", ROWS))
    for step in data["keys"]:
        for act, text in step.items():
            getattr(terminal, act)(text)
    save_picture(out, " ".join(["$ goose-like", *map(shlex.quote, command)]), terminal.screen)


def start_command(words: list[str], files: dict[str, str], rows: int) -> Terminal:
    """Start a command in a folder with these files. The folders stay, because the command may outlive the picture."""
    home, work = tempfile.mkdtemp(), tempfile.mkdtemp()
    for name, text in files.items():
        (Path(work) / name).write_text(text)
    return Terminal([sys.executable, "-m", "goose_like", *words], home, work, rows)


def save_picture(out: Path, title: str, screen: pyte.HistoryScreen) -> None:
    """Write the scrollback and the screen as an SVG picture."""
    rows = [_convert_row(row) for row in [*screen.history.top, *(screen.buffer[y] for y in range(screen.lines))]]
    while rows and not rows[-1].plain.strip():
        rows.pop()
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text("\n").join([Text(title, "bold"), *rows]), soft_wrap=True)
    drawn = console.export_svg(title="goose-like", unique_id="run")
    # Drop web fonts, so that the picture loads nothing.
    out.write_text(re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL), encoding="utf-8")


def _convert_row(cells: Any) -> Text:
    text = Text()
    for style, run in groupby((cells[x] for x in range(COLUMNS)), _convert_style):
        text.append("".join(cell.data for cell in run), style)
    text.rstrip()
    return text


def _convert_style(cell: Any) -> Style:
    return Style(
        color=_convert_colour(cell.fg),
        bgcolor=_convert_colour(cell.bg),
        bold=cell.bold,
        italic=cell.italics,
        reverse=cell.reverse,
    )


def _convert_colour(name: str) -> str | None:
    """Translate a colour of pyte to Rich."""
    if name == "default":
        return None
    if re.fullmatch(r"[0-9a-f]{6}", name):
        return f"#{name}"
    return re.sub("^bright", "bright_", _COLOURS.get(name, name))


if __name__ == "__main__":
    main()
