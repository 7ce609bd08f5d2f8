"""Tables as rows of a terminal of any width."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain, zip_longest

from .rows import BOLD, DIM, Piece, encode, get_plain, join_styles, measure_cells, strip_end, wrap_pieces

MIN_COLUMN_WIDTH = 4
"""The smallest width of a column, unless its text is shorter; in a narrower terminal `render_table` lists cells."""

_BORDER, _CROSS = (" │ ", DIM), "─┼─"
Cell = tuple[Piece, ...]


def render_table(head: Sequence[Cell], body: Sequence[Sequence[Cell]], sides: Sequence[str], width: int) -> list[str]:
    """Return cells in columns, or, if these do not fit, each row as lines of the form `head: cell`."""
    head = [tuple((text, join_styles(BOLD, style)) for text, style in cell) for cell in head]
    natural = [max(map(_measure, column)) for column in zip(head, *body, strict=True)]
    room = width - len(_CROSS) * (len(head) - 1)
    if sum(min(size, MIN_COLUMN_WIDTH) for size in natural) > room:
        return _list_cells(head, body, width)
    # The widest columns shrink first.
    cap = next(cap for cap in range(max(room, 1), 0, -1) if sum(min(size, cap) for size in natural) <= room)
    sizes = tuple(max(min(size, cap), 1) for size in natural)
    rule = encode([(_CROSS.join("─" * size for size in sizes), DIM)])
    sides = tuple(sides)
    first, *others = (_render_row(tuple(cells), sizes, sides) for cells in (head, *body))
    return [*first, rule, *chain.from_iterable(others)]


def _measure(cell: Sequence[Piece]) -> int:
    return measure_cells(get_plain(cell))


@lru_cache(maxsize=128)
def _render_row(cells: tuple[Cell, ...], sizes: tuple[int, ...], sides: tuple[str, ...]) -> list[str]:
    """Return one row of the table, with as many lines as its highest cell."""
    lines = []
    for line in zip_longest(*map(wrap_pieces, cells, sizes), fillvalue=()):
        row: list[Piece] = []
        for part, size, side in zip(line, sizes, sides, strict=True):
            gap = size - _measure(part)
            before = gap if side == "right" else gap // 2 if side == "center" else 0
            row += [(" " * before, ""), *part, (" " * (gap - before), ""), _BORDER]
        lines.append(encode(strip_end(row[:-1])))
    return lines


def _list_cells(head: Sequence[Cell], body: Sequence[Sequence[Cell]], width: int) -> list[str]:
    rows: list[str] = []
    for cells in body:
        rows += [""] * bool(rows)
        for name, cell in zip(head, cells, strict=True):
            rows += map(encode, wrap_pieces([*name, (": ", ""), *cell], width))
    return rows or [encode(row) for name in head for row in wrap_pieces(name, width)]
