"""Lines of text in a log. Without a terminal nothing loads Rich, which takes a twentieth of the time of a start."""

import os
from collections.abc import Sequence
from typing import IO, Protocol

from goose_like.core.message import ToolResult

MAX_LINE = 1_000
_CONTROLS = dict.fromkeys((7, 8, 11, 12, 13))  # which Rich removes too
StyledText = list[tuple[str, str]]
"""Pieces of text, each with a style of Rich or an empty string."""


class RichText(Protocol):
    """A text of Rich."""

    @property
    def plain(self) -> str:
        """The text without styles."""


class LineWriter:
    """A log that keeps lines as they are and knows about an unfinished line. Styles are left out."""

    is_terminal = False

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self.is_mid_line = False

    def write_line(self, text: str | StyledText | RichText, style: str = "") -> None:
        """Print whole lines."""
        self.end_line()
        if isinstance(text, list):
            text = "".join(part for part, _ in text)
        if not isinstance(text, str):
            text = text.plain
        self._write_plain(f"{text}\n")

    def write_text(self, text: str, style: str = "") -> None:
        """Print text that may end within a line."""
        self._write_plain(text)
        self.is_mid_line = not text.endswith("\n")

    def end_line(self) -> None:
        """Finish a line that `write_text` left open."""
        if self.is_mid_line:
            self.is_mid_line = False
            self._write_plain("\n")

    def write_pictures(self, result: ToolResult) -> None:
        """Show the pictures of a result, where a terminal can show them."""

    def spin(self, text: str) -> None:
        """Show text behind a spinner, where a terminal can show one."""

    def stop_spinner(self) -> None:
        """Remove the spinner, so that something else can use the terminal."""

    def wrap(self, text: str, indent: int) -> list[str]:
        """Split text into rows that fit beside an indent of so many columns."""
        return text.split("\n")

    def fold(self, text: str, indent: int) -> list[str]:
        """Split text into rows, before spaces where possible. No space is lost between two rows."""
        room = self.get_room(indent)
        rows: list[str] = []
        for line in text.expandtabs(4).split("\n"):
            rows += _fold_line(line, room)
        return rows

    def get_room(self, indent: int) -> int:
        """Return the columns left beside an indent. Lines of a log may be long."""
        return MAX_LINE

    def _write_plain(self, text: str) -> None:
        try:
            self._file.write(text.translate(_CONTROLS).expandtabs())
            self._file.flush()
        except OSError:  # the reader is gone or the disk is full: work goes on without progress
            # The rest of the buffer must not cause an error at exit.
            sink = os.open(os.devnull, os.O_WRONLY)
            os.dup2(sink, self._file.fileno())


def join_rows(rows: Sequence[str], indent: int) -> str:
    """Join rows of which all but the first begin with an indent of so many columns."""
    return f"\n{' ' * indent}".join(rows)


def _fold_line(line: str, room: int) -> list[str]:
    from rich.cells import chop_cells

    rows = []
    start = 0
    while start < len(line):
        piece = line[start : start + room + 1]
        pieces = chop_cells(piece, room)
        row = pieces[0] if pieces else piece  # letters without a width are no row of their own
        end = start + len(row)
        before, _, _ = row.rpartition(" ")
        words = before.rstrip(" ")
        is_at_line_end = end == len(line)
        is_at_word_end = is_at_line_end or (line[end] == " " and row[-1] != " ")
        if words and not is_at_word_end:
            end = start + len(words)
        rows.append(line[start:end])
        start = end
    return rows or [""]
