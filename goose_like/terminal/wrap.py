"""Rows of a terminal: coloured text cut to a width, and drawn as it stands."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rich.cells import cell_len, chop_cells
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.style import Style

Row = list[Segment]

_WIDE = "\u2e80-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff00-\uff60\U00020000-\U0003fffd"
# A row may end at a blank, and on either side of a character of the scripts that are written without them.
_WORD = re.compile(rf"[^ \n{_WIDE}]+|[{_WIDE}]|\n| +")


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows that fit already: Rich prints them one below the other."""

    rows: tuple[Row, ...]

    def __len__(self) -> int:
        return len(self.rows)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for row in self.rows:
            yield from row
            yield Segment.line()


def wrapped(runs: Iterable[Segment], width: int) -> list[Row]:
    """The runs as rows of at most `width` columns, cut at blanks where that is possible and at each line end."""
    runs = list(runs)
    return list(_cut(runs, _spans("".join(run.text for run in runs), width)))


def folded(runs: Iterable[Segment], width: int) -> list[Row]:
    """The runs as rows of `width` columns, cut anywhere, so that no blank is lost; at least one row."""
    runs = list(runs)
    text = "".join(run.text for run in runs)
    return list(_cut(runs, _chopped(text, 0, width))) if cell_len(text) > width else [runs]


def indented(rows: list[Row], first: Segment, other: Segment) -> list[Row]:
    """The rows behind what stands before the first and before each other."""
    marks = [first, *[other] * (len(rows) - 1)]
    return [[mark, *row] if row or mark.text.strip() else row for mark, row in zip(marks, rows, strict=False)]


def row_width(row: Row) -> int:
    """The columns that a row takes."""
    return sum(cell_len(run.text) for run in row)


def merged(runs: Iterable[Segment]) -> Row:
    """The runs with neighbours of one style made one."""
    made: Row = []
    for run in runs:
        if made and made[-1].style == run.style:
            made[-1] = Segment(made[-1].text + run.text, run.style)
        else:
            made.append(run)
    return made


def written(text: str, style: Style | None = None) -> Row:
    """A text as one run, or as none if it is empty."""
    return [Segment(text, style)] if text else []


def last_row_start(text: str, width: int) -> int:
    """Where in a text the last of its rows begins."""
    return [0, *(start for start, _ in _spans(text, width))][-1]


def last_fold_start(text: str, width: int) -> int:
    """The same for rows that may be cut anywhere."""
    return [start for start, _ in _chopped(text, 0, width)][-1]


def _spans(text: str, width: int) -> Iterator[tuple[int, int]]:
    """Where each row begins and ends; blanks around it are left out."""
    start = end = column = 0
    for found in _WORD.finditer(text):
        word = found[0]
        if word == "\n":
            yield start, end
            start = end = found.end()
            column = 0
        elif word[0] == " ":
            if column:
                column += len(word)
            else:
                start = end = found.end()
        else:
            size = cell_len(word)
            if column and column + size > width:
                yield start, end
                start, column = found.start(), 0
            if size > width:
                *full, (start, end) = _chopped(word, found.start(), width)
                yield from full
                column = cell_len(text[start:end])
            else:
                end = found.end()
                column += size
    if end > start:
        yield start, end


def _chopped(text: str, offset: int, width: int) -> Iterator[tuple[int, int]]:
    for piece in chop_cells(text, width) or [text]:  # it gives none for a text without width
        yield offset, offset + len(piece)
        offset += len(piece)


def _cut(runs: list[Segment], spans: Iterable[tuple[int, int]]) -> Iterator[Row]:
    """A row for each span, in one walk over the runs."""
    number, begin = 0, 0  # of the run that is looked at, and of its first character
    for start, end in spans:
        row: Row = []
        while number < len(runs):
            text, style, _ = runs[number]
            if begin + len(text) > start:
                row += written(text[max(start - begin, 0) : end - begin] if end > begin else "", style)
            if begin + len(text) > end:
                break
            begin += len(text)
            number += 1
        yield row
