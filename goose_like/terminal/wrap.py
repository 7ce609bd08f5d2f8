"""Rows of coloured text, cut to the width of a terminal."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rich.cells import cell_len, chop_cells
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.style import Style

Row = list[Segment]

_WIDE = "\u2e80-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff00-\uff60\U00020000-\U0003fffd"
# A row can end at a space, and next to any character of a script that is written without spaces.
_WORD = re.compile(rf"[^ \n{_WIDE}]+|[{_WIDE}]|\n| +")


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows that fit already: Rich prints them as they are."""

    rows: tuple[Row, ...]

    def __len__(self) -> int:
        return len(self.rows)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for row in self.rows:
            yield from row
            yield Segment.line()


def wrap_words(segments: Iterable[Segment], width: int) -> list[Row]:
    """Split segments into rows of at most `width` columns, at spaces where possible and at each line end."""
    segments = list(segments)
    return list(_cut(segments, _find_spans("".join(segment.text for segment in segments), width)))


def fold_columns(segments: Iterable[Segment], width: int) -> list[Row]:
    """Split segments into rows of `width` columns anywhere, so that no space is lost; return at least one row."""
    segments = list(segments)
    text = "".join(segment.text for segment in segments)
    return list(_cut(segments, _chop(text, 0, width))) if cell_len(text) > width else [segments]


def indent_rows(rows: list[Row], first: Segment, other: Segment) -> list[Row]:
    """Put one mark before the first row and another before the others."""
    marks = [first, *[other] * (len(rows) - 1)]
    return [[mark, *row] if row or mark.text.strip() else row for mark, row in zip(marks, rows, strict=False)]


def measure_row(row: Row) -> int:
    """Return the number of columns of a row."""
    return sum(cell_len(segment.text) for segment in row)


def merge_segments(segments: Iterable[Segment]) -> Row:
    """Join neighbouring segments of the same style."""
    row: Row = []
    for segment in segments:
        if row and row[-1].style == segment.style:
            row[-1] = Segment(row[-1].text + segment.text, segment.style)
        else:
            row.append(segment)
    return row


def make_row(text: str, style: Style | None = None) -> Row:
    """Return a row of one segment, or of none for an empty text."""
    return [Segment(text, style)] if text else []


def find_last_row(text: str, width: int) -> int:
    """Return where the last row begins when `wrap_words` splits a text."""
    return [0, *(start for start, _ in _find_spans(text, width))][-1]


def find_last_fold(text: str, width: int) -> int:
    """Return where the last row begins when `fold_columns` splits a text."""
    return [start for start, _ in _chop(text, 0, width)][-1]


def _find_spans(text: str, width: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of each row, without the spaces around the row."""
    start = end = column = 0
    for match in _WORD.finditer(text):
        word = match[0]
        if word == "\n":
            yield start, end
            start = end = match.end()
            column = 0
        elif word[0] == " ":
            if column:
                column += len(word)
            else:
                start = end = match.end()
        else:
            size = cell_len(word)
            if column and column + size > width:
                yield start, end
                start, column = match.start(), 0
            if size > width:
                *full, (start, end) = _chop(word, match.start(), width)
                yield from full
                column = cell_len(text[start:end])
            else:
                end = match.end()
                column += size
    if end > start:
        yield start, end


def _chop(text: str, offset: int, width: int) -> Iterator[tuple[int, int]]:
    for piece in chop_cells(text, width) or [text]:  # a text without width has no pieces
        yield offset, offset + len(piece)
        offset += len(piece)


def _cut(segments: list[Segment], spans: Iterable[tuple[int, int]]) -> Iterator[Row]:
    """Yield a row for each span, in one pass over the segments."""
    index, begin = 0, 0  # of the current segment, and of its first character in the whole text
    for start, end in spans:
        row: Row = []
        while index < len(segments):
            text, style, _ = segments[index]
            if begin + len(text) > start:
                row += make_row(text[max(start - begin, 0) : end - begin] if end > begin else "", style)
            if begin + len(text) > end:
                break
            begin += len(text)
            index += 1
        yield row
