"""Charts as rows of a terminal: bars, or Braille dots on a grid."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle, pairwise, product
from typing import Any

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text

from goose_like.core.events import Chart

from .escape import to_one_line

_MAX_COLUMNS = 76
_GRID_ROWS = 8
_MAX_BARS = 20
_LABEL_COLUMNS = 20
_MAX_VALUE = 1e300
_EIGHTHS = ("", *"▏▎▍▌▋▊▉")
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""The bits of a Braille character's dots, by row and column."""

_COLOURS = tuple(Style(color=name) for name in ("cyan", "magenta", "yellow", "green", "blue", "red"))

Data = Sequence[Mapping[str, Any]]


def render_chart(rows: Data, chart: Chart, width: int) -> list[Text]:
    """Return the chart in at most `width` columns, with a legend if it has several series."""
    width = min(width, _MAX_COLUMNS)
    is_grid = chart.kind in ("line", "scatter")
    lines = _render_grid(rows, chart, width) if is_grid else list(_render_bars(rows, chart, width))
    if len(chart.y) > 1:
        series = zip(chart.y, cycle(_COLOURS), strict=False)
        lines.append(Text("  ").join(Text.assemble(("■ ", colour), to_one_line(key, 24)) for key, colour in series))
    return lines


def to_number(value: Any) -> float | None:
    """Return the value if it is a number that can be drawn, else None."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number and -_MAX_VALUE < value < _MAX_VALUE else None


def _format_number(value: float) -> str:
    return f"{value:,.0f}" if 1e5 <= abs(value) < 1e12 else f"{value:,.6g}"


# --- bars


def _render_bars(rows: Data, chart: Chart, width: int) -> Iterator[Text]:
    """Yield a bar for each number, for a pie or donut with its share; bars of negative numbers are dim."""
    values = [to_number(row.get(key)) for row in rows for key in chart.y]
    total = sum(filter(None, values)) if chart.kind in ("pie", "donut") else 0
    values = values[: _MAX_BARS * len(chart.y)]
    largest = max((abs(value) for value in values if value is not None), default=0) or 1
    ends = [_format_end(value, total) for value in values]
    names = [to_one_line(str(row.get(chart.x, "")), _LABEL_COLUMNS) for row in rows[:_MAX_BARS]]
    names = [name if series == 0 else "" for name in names for series in range(len(chart.y))]
    label = max(map(cell_len, names), default=0)
    room = max(width - label - max(map(len, ends), default=0) - 4, 4)
    colours = cycle(_COLOURS[: len(chart.y)])
    for name, value, end, colour in zip(names, values, ends, colours, strict=False):
        whole, part = divmod(round(abs(value or 0) / largest * room * 8), 8)
        bar = ("█" * whole + _EIGHTHS[part], Style(dim=(value or 0) < 0) + colour)
        yield Text.assemble(f"{name}{' ' * (label - cell_len(name))}  ", bar, (f" {end}", "dim"))
    if len(rows) > _MAX_BARS:
        yield Text(f"… {len(rows) - _MAX_BARS:,} more", "dim")


def _format_end(value: float | None, total: float) -> str:
    if value is None:
        return "-"
    return f"{_format_number(value)} ({value / total:.0%})" if total else _format_number(value)


# --- lines and points


def _render_grid(rows: Data, chart: Chart, width: int) -> list[Text]:
    """Return dots over two axes that name their ends. Points of a line are placed by their order, not by `x`."""
    is_line = chart.kind == "line"
    series = [list(_get_points(rows, key, None if is_line else chart.x)) for key in chart.y]
    across, up = ([point[axis] for points in series for point in points] for axis in (0, 1))
    if not across:
        return []
    left, right, low, high = min(across), max(across), min(up), max(up)
    label = max(len(_format_number(low)), len(_format_number(high)))
    columns = max(width - label - 2, 4)
    grid: dict[tuple[int, int], tuple[int, Style]] = {}  # Braille bits and style, by column and line
    for points, colour in zip(series, cycle(_COLOURS), strict=False):
        placed = [(_place(x, left, right, columns * 2), _place(-y, -high, -low, _GRID_ROWS * 4)) for x, y in points]
        for x, y in _join_points(placed) if is_line else placed:
            bits = grid.get((x // 2, y // 4), (0, None))[0]
            grid[x // 2, y // 4] = bits | _DOTS[y % 4][x % 2], colour
    marks = {0: _format_number(high), _GRID_ROWS - 1: _format_number(low)}
    lines = [Text.assemble((f"{marks.get(line, ''):>{label}} │", "dim")) for line in range(_GRID_ROWS)]
    for line, column in product(range(_GRID_ROWS), range(columns)):
        bits, colour = grid.get((column, line), (0, Style.null()))
        dots = chr(0x2800 + bits) if is_line else "•"  # in a scatter chart a Braille dot is hard to see
        lines[line].append(dots if bits else " ", colour)
    if is_line:
        ends = [str(row.get(chart.x, "")) for row in (rows[0], rows[-1])]
    else:
        ends = [_format_number(left), _format_number(right)]
    first, last = (to_one_line(end, columns // 2 - 1) for end in ends)
    gap = " " * max(columns - cell_len(first) - cell_len(last), 1)
    return [*lines, Text(f"{' ' * (label + 2)}{first}{gap}{last}", "dim")]


def _get_points(rows: Data, key: str, x_key: str | None) -> Iterator[tuple[float, float]]:
    """Yield the points that have both numbers; without `x_key` the index of the row is its `x`."""
    for index, row in enumerate(rows):
        x, y = float(index) if x_key is None else to_number(row.get(x_key)), to_number(row.get(key))
        if x is not None and y is not None:
            yield x, y


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
