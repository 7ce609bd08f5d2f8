"""A table as rows of a terminal, however narrow it is."""

from collections.abc import Sequence

from rich.segment import Segment

from .markdown_inline import BOLD, DIM
from .wrap import Row, row_width, wrapped

LEAST_COLUMN = 4
"""Columns of the terminal that a column is given at least, if it has that many; with less there is no table."""

_LINE, _CROSS = " │ ", "─┼─"


def table(head: Sequence[Row], body: Sequence[Sequence[Row]], sides: Sequence[str], width: int) -> list[Row]:
    """The cells in columns; where they do not fit, each row as lines of the form `head: cell`.

    `sides` says of each column whether it is set `left`, `right` or `center`.
    """
    head = [[Segment(run.text, BOLD + run.style if run.style else BOLD) for run in cell] for cell in head]
    natural = [max(map(row_width, column)) for column in zip(head, *body, strict=True)]
    room = width - len(_LINE) * (len(head) - 1)
    if sum(min(size, LEAST_COLUMN) for size in natural) > room:
        return _listed(head, body, width)
    # The widest columns give way first.
    cap = next(cap for cap in range(max(room, 1), 0, -1) if sum(min(size, cap) for size in natural) <= room)
    sizes = [max(min(size, cap), 1) for size in natural]
    rule = [Segment(_CROSS.join("─" * size for size in sizes), DIM)]
    below = [row for cells in body for row in _lines(cells, sizes, sides)]
    return [*_lines(head, sizes, sides), rule, *below]


def _lines(cells: Sequence[Row], sizes: Sequence[int], sides: Sequence[str]) -> list[Row]:
    """One row of the table, of as many lines as its highest cell."""
    columns = [wrapped(cell, size) for cell, size in zip(cells, sizes, strict=True)]
    made: list[Row] = []
    for number in range(max(map(len, columns))):
        row: Row = []
        for column, size, side in zip(columns, sizes, sides, strict=True):
            cell = column[number] if number < len(column) else []
            free = size - row_width(cell)
            before = {"right": free, "center": free // 2}.get(side, 0)
            row += [Segment(_LINE, DIM)] * bool(row)
            row += [Segment(" " * before), *cell, Segment(" " * (free - before))]
        made.append(_without_end(row))
    return made


def _without_end(row: Row) -> Row:
    """The row without the blanks at its end."""
    while row and not row[-1].text.strip():
        row = row[:-1]
    return row


def _listed(head: Sequence[Row], body: Sequence[Sequence[Row]], width: int) -> list[Row]:
    made: list[Row] = []
    for cells in body:
        made += [[]] * bool(made)
        for name, cell in zip(head, cells, strict=True):
            made += wrapped([*name, Segment(": "), *cell], width)
    return made or [row for name in head for row in wrapped(name, width)]
