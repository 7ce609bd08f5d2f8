"""Text in rows that fit a terminal, and lines of text on a terminal or in a log."""

from rich import get_console
from rich.cells import chop_cells
from rich.console import Console, RenderableType
from rich.text import Text

from .tool_call import MAX_LINE

_MIN_COLUMNS = 10


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
    marks = [first, *[other] * (len(rows) - 1)]
    return [
        Text.assemble(mark, row) if row or mark.plain.strip() else row for mark, row in zip(marks, rows, strict=False)
    ]


class LineWriter:
    """A console that wraps text to its width and knows about an unfinished line.

    Without a terminal nothing is wrapped: a log keeps lines as they are.
    """

    def __init__(self, console: Console) -> None:
        self.console = console
        self.is_terminal = console.is_terminal  # Rich would read the environment each time
        self.is_mid_line = False

    def write_line(self, text: str | RenderableType, style: str = "") -> None:
        """Print whole lines: a string is wrapped and styled, a renderable is printed as it is."""
        self.end_line()
        shown = Text("\n".join(self.wrap(text, 0)), style) if isinstance(text, str) else text
        if isinstance(shown, Text) and not self.is_terminal:
            self._write_plain(shown.plain)
        else:
            self.console.print(shown)

    def _write_plain(self, text: str) -> None:
        """Write lines to a log, where Rich would take forty times as long for the same bytes."""
        try:
            self.console.file.write(f"{text.expandtabs()}\n")
            self.console.file.flush()
        except BrokenPipeError:
            self.console.on_broken_pipe()

    def write_text(self, text: str, style: str = "") -> None:
        """Print text that may end within a line."""
        self.console.print(Text(text, style), end="")
        self.is_mid_line = not text.endswith("\n")

    def end_line(self) -> None:
        """Finish a line that `write_text` left open."""
        if self.is_mid_line:
            self.is_mid_line = False
            self.console.print()

    def wrap(self, text: str, indent: int) -> list[str]:
        """Split text into rows that fit beside an indent of so many columns."""
        if not self.is_terminal:
            return text.split("\n")
        return [row.plain.rstrip() for row in wrap_words(Text(text.expandtabs()), self.get_room(indent))] or [""]

    def fold(self, text: str, indent: int) -> list[str]:
        """Split text into rows anywhere, so that no space is lost between two rows."""
        room = self.get_room(indent)
        return [row for line in text.expandtabs(4).split("\n") for row in chop_cells(line, room) or [""]]

    def get_room(self, indent: int) -> int:
        """Return the columns left beside an indent; without a terminal lines may be long."""
        return max(self.console.width - indent, _MIN_COLUMNS) if self.is_terminal else MAX_LINE
