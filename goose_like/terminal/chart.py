"""Charts as rows of a terminal: bars, or Braille dots on a grid."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from goose_like.core.events import Chart

from .escape import to_one_line
from .markdown_inline import DIM
from .wrap import Row, make_row, merge_segments

_MAX_COLUMNS = 76
_GRID_ROWS = 8
_MAX_BARS = 20
_LABEL_COLUMNS = 20
_MAX_VALUE = 1e300
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""The bits of a Braille character's dots, by row and column."""

_COLOURS = tuple(Style(color=name) for name in ("cyan", "magenta", "yellow", "green", "blue", "red"))

Data = Sequence[Mapping[str, Any]]


def render_chart(rows: Data, chart: Chart, width: int) -> list[Row]:
    """Return the chart in at most `width` columns, with a legend if it has several series."""
    width = min(width, _MAX_COLUMNS)
    is_grid = chart.kind in ("line", "scatter")
    lines = _render_grid(rows, chart, width) if is_grid else list(_render_bars(rows, chart, width))
    return [*lines, *(_render_legend(chart.y) if len(chart.y) > 1 else ())]


def to_number(value: Any) -> float | None:
    """Return the value if it is a number that can be drawn, else None."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number and -_MAX_VALUE < value < _MAX_VALUE else None


def _render_legend(keys: Sequence[str]) -> Iterator[Row]:
    row: Row = []
    for index, key in enumerate(keys):
        row += [Segment(f"{'  ' * bool(index)}■ ", _get_colour(index)), Segment(to_one_line(key, 24))]
    yield row


def _get_colour(index: int) -> Style:
    return _COLOURS[index % len(_COLOURS)]


def _format_number(value: float) -> str:
    return f"{value:,.0f}" if 1e5 <= abs(value) < 1e12 else f"{value:,.6g}"


# --- bars


def _render_bars(rows: Data, chart: Chart, width: int) -> Iterator[Row]:
    """Yield a bar for each number, for a pie or donut with its share; bars of negative numbers are dim."""
    values = [to_number(row.get(key)) for row in rows for key in chart.y]
    largest = max((abs(value) for value in values if value is not None), default=0) or 1
    total = sum(filter(None, values)) if chart.kind in ("pie", "donut") else 0
    names = [to_one_line(str(row.get(chart.x, "")), _LABEL_COLUMNS) for row in rows]
    label = max(map(cell_len, names[:_MAX_BARS]), default=0)
    ends = [_format_end(value, total) for value in values]
    room = max(width - label - max(map(len, ends), default=0) - 4, 4)
    for row_index, row_name in enumerate(names[:_MAX_BARS]):
        for series_index in range(len(chart.y)):
            index = row_index * len(chart.y) + series_index
            name = row_name if series_index == 0 else ""
            value = values[index] or 0
            colour = _get_colour(series_index)
            style = Style(dim=True) + colour if value < 0 else colour
            bar = make_row(_draw_bar(abs(value) / largest * room), style)
            yield [Segment(f"{name}{' ' * (label - cell_len(name))}  "), *bar, Segment(f" {ends[index]}", DIM)]
    if len(rows) > _MAX_BARS:
        yield make_row(f"… {len(rows) - _MAX_BARS:,} more", DIM)


def _format_end(value: float | None, total: float) -> str:
    if value is None:
        return "-"
    return f"{_format_number(value)} ({value / total:.0%})" if total else _format_number(value)


def _draw_bar(cells: float) -> str:
    whole, part = divmod(round(cells * 8), 8)
    return "█" * whole + (_EIGHTHS[part] if part else "")


# --- lines and points


def _render_grid(rows: Data, chart: Chart, width: int) -> list[Row]:
    """Return dots over two axes that name their ends. Points of a line are placed by their order, not by `x`."""
    is_line = chart.kind == "line"
    series = [list(_get_points(rows, key, None if is_line else chart.x)) for key in chart.y]
    across, up = ([point[axis] for points in series for point in points] for axis in (0, 1))
    if not across:
        return []
    left, right, low, high = min(across), max(across), min(up), max(up)
    label = max(len(_format_number(low)), len(_format_number(high)))
    columns = max(width - label - 2, 4)
    grid: dict[tuple[int, int], tuple[int, Style]] = {}
    for series_index, points in enumerate(series):
        placed = [(_place(x, left, right, columns * 2), _place(-y, -high, -low, _GRID_ROWS * 4)) for x, y in points]
        for x, y in _join_points(placed) if is_line else placed:
            bits = grid.get((x // 2, y // 4), (0, None))[0]
            grid[x // 2, y // 4] = bits | _DOTS[y % 4][x % 2], _get_colour(series_index)
    marks = {0: _format_number(high), _GRID_ROWS - 1: _format_number(low)}
    lines = [
        [Segment(f"{marks.get(line, ''):>{label}} │", DIM), *merge_segments(_draw_dots(grid, line, columns, is_line))]
        for line in range(_GRID_ROWS)
    ]
    if is_line:
        ends = [str(row.get(chart.x, "")) for row in (rows[0], rows[-1])]
    else:
        ends = [_format_number(left), _format_number(right)]
    first, last = (to_one_line(end, columns // 2 - 1) for end in ends)
    gap = " " * max(columns - cell_len(first) - cell_len(last), 1)
    return [*lines, make_row(f"{' ' * (label + 2)}{first}{gap}{last}", DIM)]


def _get_points(rows: Data, key: str, x_key: str | None) -> Iterator[tuple[float, float]]:
    """Yield the points that have both numbers; without `x_key` the index of the row is its `x`."""
    for index, row in enumerate(rows):
        x, y = float(index) if x_key is None else to_number(row.get(x_key)), to_number(row.get(key))
        if x is not None and y is not None:
            yield x, y


def _draw_dots(
    grid: Mapping[tuple[int, int], tuple[int, Style]], line: int, columns: int, is_line: bool
) -> Iterator[Segment]:
    """Yield one row of the grid up to its last dot; a scatter chart uses • because a Braille dot is hard to see."""
    end = max((x for x, y in grid if y == line), default=-1) + 1
    for x in range(min(end, columns)):
        bits, style = grid.get((x, line), (0, None))
        mark = chr(0x2800 + bits) if is_line else "•"
        yield Segment(mark if bits else " ", style)


def _place(value: float, low: float, high: float, count: int) -> int:
    """Return the index of a value among `count` places from low to high; if these are equal, the middle place."""
    return round((value - low) / (high - low) * (count - 1)) if high > low else count // 2


def _join_points(points: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the points and the dots between neighbours."""
    yield from points[:1]
    for (x, y), (to_x, to_y) in pairwise(points):
        steps = max(abs(to_x - x), abs(to_y - y), 1)
        for step in range(1, steps + 1):
            yield x + round((to_x - x) * step / steps), y + round((to_y - y) * step / steps)
