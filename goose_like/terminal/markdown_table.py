"""Tables as rows of a terminal of any width."""

from collections.abc import Sequence
from itertools import zip_longest

from rich.align import AlignMethod
from rich.text import Text

from .markdown_inline import BOLD, DIM
from .wrap import wrap_words

MIN_COLUMN_WIDTH = 4
"""The smallest width of a column, unless its text is shorter; in a narrower terminal `render_table` lists cells."""

_BORDER, _CROSS = Text.assemble((" │ ", DIM)), "─┼─"


def render_table(
    head: Sequence[Text], body: Sequence[Sequence[Text]], sides: Sequence[AlignMethod], width: int
) -> list[Text]:
    """Return cells in columns, or, if these do not fit, each row as lines of the form `head: cell`."""
    head = [cell.copy() for cell in head]
    for cell in head:
        cell.stylize_before(BOLD)
    natural = [max(cell.cell_len for cell in column) for column in zip(head, *body, strict=True)]
    room = width - len(_BORDER) * (len(head) - 1)
    if sum(min(size, MIN_COLUMN_WIDTH) for size in natural) > room:
        return _list_cells(head, body, width)
    # The widest columns shrink first.
    cap = next(cap for cap in range(max(room, 1), 0, -1) if sum(min(size, cap) for size in natural) <= room)
    sizes = [max(min(size, cap), 1) for size in natural]
    rule = Text(_CROSS.join("─" * size for size in sizes), DIM)
    rows = [row for cells in body for row in _render_row(cells, sizes, sides)]
    return [*_render_row(head, sizes, sides), rule, *rows]


def _render_row(cells: Sequence[Text], sizes: Sequence[int], sides: Sequence[AlignMethod]) -> list[Text]:
    """Return one row of the table, with as many lines as its highest cell."""
    rows: list[Text] = []
    for line in zip_longest(*map(wrap_words, cells, sizes)):
        parts = [part or Text() for part in line]
        for part, size, side in zip(parts, sizes, sides, strict=True):
            part.align(side, size)
        rows.append(_BORDER.join(parts))
        rows[-1].rstrip()
    return rows


def _list_cells(head: Sequence[Text], body: Sequence[Sequence[Text]], width: int) -> list[Text]:
    rows: list[Text] = []
    for cells in body:
        rows += [Text()] * bool(rows)
        for name, cell in zip(head, cells, strict=True):
            rows += wrap_words(Text.assemble(name, ": ", cell), width)
    return rows or [row for name in head for row in wrap_words(name, width)]
