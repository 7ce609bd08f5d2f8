"""Tables as rows of a terminal of any width."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import zip_longest

from .rows import BOLD, DIM, Piece, encode, get_plain, join_styles, measure_cells, strip_end, wrap_encoded, wrap_pieces

MIN_COLUMN_WIDTH = 4
"""The smallest width of a column, unless its text is shorter; in a narrower terminal `render_table` lists cells."""

_BORDER = (" │ ", DIM)
_CROSS = "─┼─"
Cell = tuple[Piece, ...]


def render_table(head: Sequence[Cell], body: Sequence[Sequence[Cell]], sides: Sequence[str], width: int) -> list[str]:
    """Return cells in columns, or, if these do not fit, each row as lines of the form `head: cell`."""
    head = list(map(_make_bold, head))
    natural = [max(map(_measure, column)) for column in zip(head, *body, strict=True)]
    room = width - len(_CROSS) * (len(head) - 1)
    if _add_capped(natural, MIN_COLUMN_WIDTH) > room:
        return _list_cells(head, body, width)
    sizes = _fit_sizes(natural, room)
    sides = tuple(sides)
    rows = _render_row(tuple(head), sizes, sides).copy()
    rule = _CROSS.join("─" * size for size in sizes)
    rows.append(encode([(rule, DIM)]))
    for cells in body:
        rows += _render_row(tuple(cells), sizes, sides)
    return rows


def _make_bold(cell: Cell) -> Cell:
    return tuple((text, join_styles(BOLD, style)) for text, style in cell)


def _measure(cell: Sequence[Piece]) -> int:
    return measure_cells(get_plain(cell))


def _fit_sizes(natural: Sequence[int], room: int) -> tuple[int, ...]:
    """Return sizes that fit together. The widest columns shrink first."""
    cap = max(room, 1)
    while _add_capped(natural, cap) > room:
        cap -= 1
    return tuple(max(min(size, cap), 1) for size in natural)


def _add_capped(sizes: Iterable[int], cap: int) -> int:
    """Return the sum of sizes of which none counts more than `cap`."""
    return sum(min(size, cap) for size in sizes)


@lru_cache(maxsize=128)
def _render_row(
    cells: tuple[Cell, ...],
    sizes: tuple[int, ...],
    sides: tuple[str, ...],
) -> list[str]:
    """Return one row of the table, with as many lines as its highest cell."""
    columns = map(wrap_pieces, cells, sizes)
    lines = []
    for parts in zip_longest(*columns, fillvalue=()):
        row: list[Piece] = []
        for part, size, side in zip(parts, sizes, sides, strict=True):
            if row:
                row.append(_BORDER)
            row += _align(part, size, side)
        lines.append(encode(strip_end(row)))
    return lines


def _align(part: Sequence[Piece], size: int, side: str) -> list[Piece]:
    gap = size - _measure(part)
    before = 0
    if side == "right":
        before = gap
    elif side == "center":
        before = gap // 2
    return [(" " * before, ""), *part, (" " * (gap - before), "")]


def _list_cells(head: Sequence[Cell], body: Sequence[Sequence[Cell]], width: int) -> list[str]:
    rows: list[str] = []
    for cells in body:
        if rows:
            rows.append("")
        for name, cell in zip(head, cells, strict=True):
            rows += wrap_encoded([*name, (": ", ""), *cell], width)
    if not rows:
        for name in head:
            rows += wrap_encoded(name, width)
    return rows
