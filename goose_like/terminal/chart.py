"""A chart as rows of a terminal: bars, or dots of Braille on a grid."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from goose_like.core.events import Chart

from .escape import one_line
from .markdown_inline import DIM
from .wrap import Row, merged, written

_WIDEST = 76
_HEIGHT = 8
_BARS = 20
_LABEL = 20
_MOST = 1e300
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""The bits of a Braille character's dots, by row and column."""

_COLOURS = tuple(Style(color=name) for name in ("cyan", "magenta", "yellow", "green", "blue", "red"))

Data = Sequence[Mapping[str, Any]]


def plot(rows: Data, chart: Chart, width: int) -> list[Row]:
    """The chart in at most `width` columns, and what its colours mean where there are several."""
    width = min(width, _WIDEST)
    drawn = _grid(rows, chart, width) if chart.kind in ("line", "scatter") else list(_bars(rows, chart, width))
    return [*drawn, *(_legend(chart.y) if len(chart.y) > 1 else ())]


def number(value: Any) -> float | None:
    """The value if it is a number that can be drawn."""
    is_one = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_one and -_MOST < value < _MOST else None


def _legend(keys: Sequence[str]) -> Iterator[Row]:
    named = ((Segment(f"{'  ' * bool(at)}■ ", _colour(at)), Segment(one_line(key, 24))) for at, key in enumerate(keys))
    yield [run for runs in named for run in runs]


def _colour(at: int) -> Style:
    return _COLOURS[at % len(_COLOURS)]


def _told(value: float) -> str:
    return f"{value:,.0f}" if 1e5 <= abs(value) < 1e12 else f"{value:,.6g}"


# --- bars


def _bars(rows: Data, chart: Chart, width: int) -> Iterator[Row]:
    """A bar for each number; of a pie or donut with its share. What is below 0 has a bar of its own shade."""
    values = [number(row.get(key)) for row in rows for key in chart.y]
    most = max((abs(value) for value in values if value is not None), default=0) or 1
    total = sum(filter(None, values)) if chart.kind in ("pie", "donut") else 0
    names = [one_line(str(row.get(chart.x, "")), _LABEL) for row in rows]
    label = max(map(cell_len, names[:_BARS]), default=0)
    ends = [_end(value, total) for value in values]
    room = max(width - label - max(map(len, ends), default=0) - 4, 4)
    for at, row_name in enumerate(names[:_BARS]):
        for nth in range(len(chart.y)):
            index = at * len(chart.y) + nth
            name = row_name if nth == 0 else ""
            value = values[index] or 0
            bar = written(_bar(abs(value) / most * room), Style(dim=True) + _colour(nth) if value < 0 else _colour(nth))
            yield [Segment(f"{name}{' ' * (label - cell_len(name))}  "), *bar, Segment(f" {ends[index]}", DIM)]
    if len(rows) > _BARS:
        yield written(f"… {len(rows) - _BARS:,} more", DIM)


def _end(value: float | None, total: float) -> str:
    if value is None:
        return "-"
    return f"{_told(value)} ({value / total:.0%})" if total else _told(value)


def _bar(cells: float) -> str:
    whole, part = divmod(round(cells * 8), 8)
    return "█" * whole + (_EIGHTHS[part] if part else "")


# --- lines and points


def _grid(rows: Data, chart: Chart, width: int) -> list[Row]:
    """Dots over axes of which the ends are told. A line's points stand side by side, in their order."""
    is_line = chart.kind == "line"
    series = [list(_points(rows, key, None if is_line else chart.x)) for key in chart.y]
    across, up = ([point[axis] for points in series for point in points] for axis in (0, 1))
    if not across:
        return []
    left, right, low, high = min(across), max(across), min(up), max(up)
    label = max(len(_told(low)), len(_told(high)))
    columns = max(width - label - 2, 4)
    grid: dict[tuple[int, int], tuple[int, Style]] = {}
    for nth, points in enumerate(series):
        placed = [(_place(x, left, right, columns * 2), _place(-y, -high, -low, _HEIGHT * 4)) for x, y in points]
        for x, y in _joined(placed) if is_line else placed:
            bits = grid.get((x // 2, y // 4), (0, None))[0]
            grid[x // 2, y // 4] = bits | _DOTS[y % 4][x % 2], _colour(nth)
    marks = {0: _told(high), _HEIGHT - 1: _told(low)}
    drawn = [
        [Segment(f"{marks.get(line, ''):>{label}} │", DIM), *merged(_dots(grid, line, columns, is_line))]
        for line in range(_HEIGHT)
    ]
    ends = [str(rows[0].get(chart.x, "")), str(rows[-1].get(chart.x, ""))] if is_line else [_told(left), _told(right)]
    first, last = (one_line(end, columns // 2 - 1) for end in ends)
    gap = " " * max(columns - cell_len(first) - cell_len(last), 1)
    return [*drawn, written(f"{' ' * (label + 2)}{first}{gap}{last}", DIM)]


def _points(rows: Data, key: str, x_key: str | None) -> Iterator[tuple[float, float]]:
    """The points that have both numbers; without a key for the first it is their place."""
    for at, row in enumerate(rows):
        x, y = float(at) if x_key is None else number(row.get(x_key)), number(row.get(key))
        if x is not None and y is not None:
            yield x, y


def _dots(
    grid: Mapping[tuple[int, int], tuple[int, Style]], line: int, columns: int, is_line: bool
) -> Iterator[Segment]:
    """One row of the grid up to its last dot; a single one of Braille's would hardly be seen."""
    end = max((x for x, y in grid if y == line), default=-1) + 1
    for x in range(min(end, columns)):
        bits, style = grid.get((x, line), (0, None))
        mark = chr(0x2800 + bits) if is_line else "•"
        yield Segment(mark if bits else " ", style)


def _place(value: float, low: float, high: float, count: int) -> int:
    """Which of `count` places from low to high it is; the middle one where all are the same."""
    return round((value - low) / (high - low) * (count - 1)) if high > low else count // 2


def _joined(points: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The points and the dots between each and the next."""
    yield from points[:1]
    for (x, y), (to_x, to_y) in pairwise(points):
        steps = max(abs(to_x - x), abs(to_y - y), 1)
        for step in range(1, steps + 1):
            yield x + round((to_x - x) * step / steps), y + round((to_y - y) * step / steps)
