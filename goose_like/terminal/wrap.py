"""Text in rows that fit a terminal, and lines of text on a terminal."""

import os

from rich import get_console
from rich.console import Console
from rich.status import Status
from rich.text import Text
from typing_extensions import override

from goose_like.core.message import ToolResult

from .escape import to_one_line
from .lines import MAX_LINE, LineWriter, RichText, StyledText
from .picture import encode_picture, find_protocol, read_pictures

_MIN_COLUMNS = 10


def open_console() -> Console:
    """Return a console on standard error."""
    return Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)


def wrap_words(text: Text, width: int) -> list[Text]:
    """Split a text into rows of at most `width` columns, at spaces where possible and at each line end."""
    if text.cell_len <= width and "\n" not in text.plain:
        return [text.copy()] if text else []
    rows = list(text.wrap(get_console(), width, overflow="fold"))
    for row in rows:
        row.rstrip()
    return rows


def indent_rows(rows: list[Text], first: Text, other: Text) -> list[Text]:
    """Put one mark before the first row and another before the others."""
    indented = []
    mark = first
    for row in rows:
        if row or mark.plain.strip():
            row = Text.assemble(mark, row)
        indented.append(row)
        mark = other
    return indented


class ConsoleLines(LineWriter):
    """Lines on a console of Rich, wrapped to the width of a terminal. Without a terminal they are those of a log."""

    def __init__(self, console: Console) -> None:
        super().__init__(console.file)
        self.console = console
        self.is_terminal = console.is_terminal  # Rich would read the environment each time
        self._spinner: Status | None = None

    @override
    def write_line(self, text: str | StyledText | RichText, style: str = "") -> None:
        if not self.is_terminal:
            super().write_line(text, style)
            return
        self.end_line()
        if isinstance(text, str):
            rows = self.wrap(text, 0)
            text = [("\n".join(rows), style)]
        if isinstance(text, list):
            text = Text.assemble(*text)
        self.console.print(text)

    @override
    def write_text(self, text: str, style: str = "") -> None:
        self.console.print(Text(text, style), end="")
        self.is_mid_line = not text.endswith("\n")

    @override
    def write_pictures(self, result: ToolResult) -> None:
        if not self.is_terminal:
            return
        protocol = find_protocol(os.environ)
        if protocol is None:
            return
        for data in read_pictures(result):
            sequence = encode_picture(data, protocol, self.get_room(4))
            if not sequence:
                continue
            self.end_line()
            self.stop_spinner()
            self.console.file.write(f"    {sequence}\n")  # Rich would take it apart
            self.console.file.flush()

    @override
    def spin(self, text: str) -> None:
        if not self.is_terminal or self.is_mid_line or not text:
            return
        label = Text(to_one_line(text, self.get_room(4)), "dim")
        if self._spinner is None:
            self._spinner = self.console.status(label, spinner="dots")
            self._spinner.start()
        else:
            self._spinner.update(label)

    @override
    def stop_spinner(self) -> None:
        if self._spinner:
            self._spinner.stop()
            self._spinner = None

    @override
    def wrap(self, text: str, indent: int) -> list[str]:
        if not self.is_terminal:
            return super().wrap(text, indent)
        rows = wrap_words(Text(text.expandtabs()), self.get_room(indent))
        return [row.plain.rstrip() for row in rows] or [""]

    @override
    def get_room(self, indent: int) -> int:
        if not self.is_terminal:
            return MAX_LINE
        return max(self.console.width - indent, _MIN_COLUMNS)
