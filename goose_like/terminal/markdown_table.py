"""Tables as rows of a terminal of any width."""

from collections.abc import Sequence

from rich.segment import Segment

from .markdown_inline import BOLD, DIM
from .wrap import Row, measure_row, wrap_words

MIN_COLUMN_WIDTH = 4
"""The smallest width of a column, unless its text is shorter; in a narrower terminal `render_table` lists cells."""

_BORDER, _CROSS = " │ ", "─┼─"


def render_table(head: Sequence[Row], body: Sequence[Sequence[Row]], sides: Sequence[str], width: int) -> list[Row]:
    """Return cells in columns, or, if these do not fit, each row as lines of the form `head: cell`.

    `sides` has `left`, `right` or `center` for each column.
    """
    head = [[Segment(run.text, BOLD + run.style if run.style else BOLD) for run in cell] for cell in head]
    natural = [max(map(measure_row, column)) for column in zip(head, *body, strict=True)]
    room = width - len(_BORDER) * (len(head) - 1)
    if sum(min(size, MIN_COLUMN_WIDTH) for size in natural) > room:
        return _list_cells(head, body, width)
    # The widest columns shrink first.
    cap = next(cap for cap in range(max(room, 1), 0, -1) if sum(min(size, cap) for size in natural) <= room)
    sizes = [max(min(size, cap), 1) for size in natural]
    rule = [Segment(_CROSS.join("─" * size for size in sizes), DIM)]
    rows = [row for cells in body for row in _render_row(cells, sizes, sides)]
    return [*_render_row(head, sizes, sides), rule, *rows]


def _render_row(cells: Sequence[Row], sizes: Sequence[int], sides: Sequence[str]) -> list[Row]:
    """Return one row of the table, with as many lines as its highest cell."""
    columns = [wrap_words(cell, size) for cell, size in zip(cells, sizes, strict=True)]
    rows: list[Row] = []
    for number in range(max(map(len, columns))):
        row: Row = []
        for column, size, side in zip(columns, sizes, sides, strict=True):
            cell = column[number] if number < len(column) else []
            free = size - measure_row(cell)
            before = {"right": free, "center": free // 2}.get(side, 0)
            row += [Segment(_BORDER, DIM)] * bool(row)
            row += [Segment(" " * before), *cell, Segment(" " * (free - before))]
        rows.append(_strip_end(row))
    return rows


def _strip_end(row: Row) -> Row:
    """Return the row without the spaces at its end."""
    while row and not row[-1].text.strip():
        row = row[:-1]
    return row


def _list_cells(head: Sequence[Row], body: Sequence[Sequence[Row]], width: int) -> list[Row]:
    rows: list[Row] = []
    for cells in body:
        rows += [[]] * bool(rows)
        for name, cell in zip(head, cells, strict=True):
            rows += wrap_words([*name, Segment(": "), *cell], width)
    return rows or [row for name in head for row in wrap_words(name, width)]
