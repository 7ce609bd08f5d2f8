"""Styled text as rows with escape codes: text that is drawn at every frame, where Rich's `Text` takes too long."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise

from rich import get_console
from rich.cells import cell_len, chop_cells
from rich.console import Console, ConsoleOptions
from rich.segment import ControlType, Segment
from rich.text import Text

Piece = tuple[str, str]
"""A text without control characters, and its style: an empty string or codes such as `1;36`, a colour last."""

BOLD = "1"
DIM = "2"
ITALIC = "3"
UNDERLINE = "4"
STRIKE = "9"
RED = "31"
GREEN = "32"
MAGENTA = "35"
CYAN = "36"

_CODES = re.compile(r"\x1b\[[\d;]*m")
_COLOURS = re.compile(r"\x1b\[3[0-7]m|;3[0-7](?=m)")
# Letters, punctuation and lines of one column each. Rich measures all others.
_NARROW = re.compile("[ -~\xa1-\xac\xae-\u02b7\u2010-\u2027\u2500-\u257f]*")


class Rows(list[str]):
    """Rows with escape codes, to print on a Rich console that is as wide as they are or wider."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        if not self:
            return
        text = "\n".join(self) + "\n"
        if console.color_system is None or not console.is_terminal:
            yield Segment(_CODES.sub("", text))
            return
        if console.no_color:
            text = _COLOURS.sub("", text)
        # Rich neither measures nor crops a segment with a control type.
        yield Segment(text, None, [(ControlType.HOME,)])


def join_styles(*styles: str) -> str:
    """Return one style with the codes of all."""
    return ";".join(filter(None, styles))


def get_plain(pieces: Iterable[Piece]) -> str:
    """Return the text without styles."""
    return "".join([text for text, _ in pieces])


def measure_cells(text: str) -> int:
    """Return the columns that a text takes."""
    return len(text) if _NARROW.fullmatch(text) else cell_len(text)


def encode(pieces: Iterable[Piece]) -> str:
    """Return the text with escape codes."""
    parts = []
    for text, style in pieces:
        if style:
            text = f"\x1b[{style}m{text}\x1b[0m"
        parts.append(text)
    return "".join(parts)


def strip_end(pieces: Sequence[Piece]) -> Sequence[Piece]:
    """Return the pieces without blanks at the end."""
    kept = list(pieces)
    while kept:
        text, style = kept.pop()
        stripped = text.rstrip()
        if stripped:
            return [*kept, (stripped, style)]
    return []


def wrap_pieces(pieces: Sequence[Piece], width: int) -> list[Sequence[Piece]]:
    """Split a text into rows of at most `width` columns, at spaces where possible and at each line end."""
    plain = get_plain(pieces)
    is_one_row = len(plain) <= width and "\n" not in plain and measure_cells(plain) <= width
    if is_one_row:
        return [pieces] if plain else []
    return list(_cut(pieces, _find_rows(plain, width)))


def wrap_encoded(pieces: Sequence[Piece], width: int) -> list[str]:
    """Split a text like `wrap_pieces`, and return the rows with escape codes."""
    return list(map(encode, wrap_pieces(pieces, width)))


def fold_pieces(pieces: Sequence[Piece], width: int) -> list[Sequence[Piece]]:
    """Split a line into rows of `width` columns anywhere, so that no space is lost; return at least one row."""
    plain = get_plain(pieces)
    if len(plain) <= width and measure_cells(plain) <= width:
        return [pieces]
    lengths = map(len, chop_cells(plain, width))
    edges = accumulate(lengths, initial=0)
    return list(_cut(pieces, pairwise(edges)))


def _find_rows(text: str, width: int) -> Iterator[tuple[int, int]]:
    """Yield the start of each row and its end, without the blanks there."""
    line_start = 0
    for line in text.split("\n"):
        rows = list(_find_rows_of_line(line, width))
        for start, end in rows or [(0, 0)]:
            yield line_start + start, line_start + end
        line_start += len(line) + 1


def _find_rows_of_line(line: str, width: int) -> Iterator[tuple[int, int]]:
    if not line[:1].isspace() and _NARROW.fullmatch(line):
        for match in _get_row_pattern(width).finditer(line):
            start = match.start()
            yield start, start + len(match[0].rstrip())
        return
    end = 0
    for row in Text(line).wrap(get_console(), width, overflow="fold"):
        row_text = row.plain.rstrip()
        start = line.index(row_text, end)
        end = start + len(row_text)
        yield start, end


@lru_cache(maxsize=64)
def _get_row_pattern(width: int) -> re.Pattern[str]:
    """Return a pattern for one row: as many words as fit with the blanks after them, or a part of a longer word."""
    return re.compile(rf"(?=.)(?:.{{0,{width}}}(?!\S)\s*|.{{{width}}})")


def _cut(pieces: Sequence[Piece], spans: Iterable[tuple[int, int]]) -> Iterator[Sequence[Piece]]:
    """Yield the pieces between each start and end; the spans are in order."""
    first = 0
    first_at = 0
    for start, end in spans:
        while first < len(pieces) and first_at + len(pieces[first][0]) <= start:
            first_at += len(pieces[first][0])
            first += 1
        row = []
        index = first
        at = first_at
        while index < len(pieces) and at < end:
            text, style = pieces[index]
            shown = text[max(start - at, 0) : end - at]
            row.append((shown, style))
            at += len(text)
            index += 1
        yield row
