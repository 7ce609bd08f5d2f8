"""Lines of text on a terminal or in a log."""

from rich.cells import chop_cells
from rich.console import Console, RenderableType
from rich.text import Text

from .tool_call import MAX_LINE

_MIN_COLUMNS = 10


class LineWriter:
    """A console that wraps text to its width and knows about an unfinished line.

    Without a terminal nothing is wrapped: a log keeps lines as they are.
    """

    def __init__(self, console: Console) -> None:
        self.console = console
        self.is_mid_line = False

    @property
    def is_terminal(self) -> bool:
        """Without a terminal the lines go to a file or a pipe."""
        return self.console.is_terminal

    def write_line(self, text: str | RenderableType, style: str = "") -> None:
        """Print whole lines: a string is wrapped and styled, a renderable is printed as it is."""
        self.end_line()
        self.console.print(Text("\n".join(self.wrap(text, 0)), style) if isinstance(text, str) else text)

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
        rows = Text(text).wrap(self.console, max(self.console.width - indent, _MIN_COLUMNS), overflow="fold")
        return [row.plain.rstrip() for row in rows]

    def fold(self, text: str, indent: int) -> list[str]:
        """Split text into rows anywhere, so that no space is lost between two rows."""
        lines = text.expandtabs(4).split("\n")
        if not self.is_terminal:
            return lines
        width = max(self.console.width - indent, _MIN_COLUMNS)
        return [row for line in lines for row in chop_cells(line, width) or [""]]

    def get_room(self, indent: int) -> int:
        """Return the columns left beside an indent; without a terminal lines may be long."""
        return max(self.console.width - indent, _MIN_COLUMNS) if self.is_terminal else MAX_LINE
