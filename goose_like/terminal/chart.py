"""Charts as rows of a terminal: bars, or Braille dots on a grid."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, cycle, pairwise
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
_LEGEND_COLUMNS = 24
_MAX_VALUE = 1e300
_EIGHTHS = ("", *"▏▎▍▌▋▊▉")
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""The bits of a Braille character's dots, by row and column."""

_COLOURS = tuple(map(Style.parse, ("cyan", "magenta", "yellow", "green", "blue", "red")))

Data = Sequence[Mapping[str, Any]]


def render_chart(rows: Data, chart: Chart, width: int) -> list[Text]:
    """Return the chart in at most `width` columns, with a legend if it has several series."""
    width = min(width, _MAX_COLUMNS)
    if chart.kind in ("line", "scatter"):
        lines = _render_grid(rows, chart, width)
    else:
        lines = _render_bars(rows, chart, width)
    if len(chart.y) > 1:
        lines.append(_make_legend(chart))
    return lines


def _make_legend(chart: Chart) -> Text:
    entries = []
    for key, colour in zip(chart.y, cycle(_COLOURS), strict=False):
        name = to_one_line(key, _LEGEND_COLUMNS)
        entries.append(Text.assemble(("■ ", colour), name))
    return Text("  ").join(entries)


def to_number(value: Any) -> float | None:
    """Return the value if it is a number that can be drawn, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if -_MAX_VALUE < value < _MAX_VALUE else None


def _format_number(value: float) -> str:
    if 1e5 <= abs(value) < 1e12:
        return f"{value:,.0f}"
    return f"{value:,.6g}"


# --- bars


@dataclass(frozen=True, slots=True)
class _Bar:
    """A number of a row, with a label before its bar and a text after it."""

    label: str
    value: float
    end: str
    colour: Style


def _render_bars(rows: Data, chart: Chart, width: int) -> list[Text]:
    """Return a bar for each number, for a pie or donut with its share; bars of negative numbers are dim."""
    bars = _make_bars(rows, chart)
    label_columns = max((cell_len(bar.label) for bar in bars), default=0)
    end_columns = max((len(bar.end) for bar in bars), default=0)
    room = max(width - label_columns - end_columns - 4, 4)
    largest = max((abs(bar.value) for bar in bars), default=0) or 1
    lines = []
    for bar in bars:
        share = abs(bar.value) / largest
        whole, part = divmod(round(share * room * 8), 8)
        blocks = "█" * whole + _EIGHTHS[part]
        style = Style(dim=bar.value < 0) + bar.colour
        gap_columns = label_columns - cell_len(bar.label) + 2
        line = Text(bar.label + " " * gap_columns)
        line.append(blocks, style)
        line.append(f" {bar.end}", "dim")
        lines.append(line)
    if len(rows) > _MAX_BARS:
        lines.append(Text(f"… {len(rows) - _MAX_BARS:,} more", "dim"))
    return lines


def _make_bars(rows: Data, chart: Chart) -> list[_Bar]:
    """Return the bars of the first rows. Those of one row stand together behind one label."""
    total: float = 0
    if chart.kind in ("pie", "donut"):
        total = _add_numbers(rows, chart)
    bars = []
    for row in rows[:_MAX_BARS]:
        label = to_one_line(str(row.get(chart.x, "")), _LABEL_COLUMNS)
        for key, colour in zip(chart.y, cycle(_COLOURS), strict=False):
            value = to_number(row.get(key))
            end = _format_end(value, total)
            bars.append(_Bar(label, value or 0, end, colour))
            label = ""
    return bars


def _add_numbers(rows: Data, chart: Chart) -> float:
    total: float = 0
    for row in rows:
        for key in chart.y:
            total += to_number(row.get(key)) or 0
    return total


def _format_end(value: float | None, total: float) -> str:
    if value is None:
        return "-"
    number = _format_number(value)
    return f"{number} ({value / total:.0%})" if total else number


# --- lines and points

_Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class _Axis:
    """The values from one end of the grid to the other, and the dots between them."""

    low: float
    high: float
    dot_count: int

    def place(self, value: float) -> int:
        """Return the index of the dot for a value; the middle one if all values are equal."""
        if self.low >= self.high:
            return self.dot_count // 2
        return round((value - self.low) / (self.high - self.low) * (self.dot_count - 1))


class _Grid:
    """Dots in characters: each has the bits of its dots, and the colour of the series that came last."""

    def __init__(self, x_axis: _Axis, y_axis: _Axis) -> None:
        self._x_axis = x_axis
        self._y_axis = y_axis
        self._characters: dict[tuple[int, int], tuple[int, Style]] = {}

    def draw(self, points: Sequence[_Point], colour: Style, *, is_line: bool) -> None:
        """Draw the points, also those between neighbours on a line."""
        dots = [(self._x_axis.place(x), self._y_axis.place(y)) for x, y in points]
        if is_line:
            dots = list(_join_points(dots))
        for x, y in dots:
            place = (x // 2, y // 4)
            bits, _ = self._characters.get(place, (0, colour))
            bits |= _DOTS[y % 4][x % 2]
            self._characters[place] = (bits, colour)

    def append_row(self, line: Text, row: int, dot: str | None) -> None:
        """Append a row of the grid to a line. With `dot` each character that has dots looks like it."""
        for column in range(self._x_axis.dot_count // 2):
            bits, colour = self._characters.get((column, row), (0, Style.null()))
            character = " "
            if bits:
                character = dot or chr(0x2800 + bits)
            line.append(character, colour)


def _render_grid(rows: Data, chart: Chart, width: int) -> list[Text]:
    """Return dots over two axes that name their ends. Points of a line are placed by their order, not by `x`."""
    is_line = chart.kind == "line"
    x_key = None if is_line else chart.x
    series = [list(_get_points(rows, key, x_key)) for key in chart.y]
    points = list(chain.from_iterable(series))
    if not points:
        return []
    across = [x for x, _ in points]
    down = [y for _, y in points]
    top = _format_number(-min(down))
    bottom = _format_number(-max(down))
    label_columns = max(len(top), len(bottom))
    columns = max(width - label_columns - 2, 4)
    x_axis = _Axis(min(across), max(across), columns * 2)
    y_axis = _Axis(min(down), max(down), _GRID_ROWS * 4)
    grid = _Grid(x_axis, y_axis)
    for line, colour in zip(series, cycle(_COLOURS), strict=False):
        grid.draw(line, colour, is_line=is_line)
    dot = None if is_line else "•"  # in a scatter chart a Braille dot is hard to see
    labels = [top, *[""] * (_GRID_ROWS - 2), bottom]
    lines = []
    for row, label in enumerate(labels):
        text = Text.assemble((f"{label:>{label_columns}} │", "dim"))
        grid.append_row(text, row, dot)
        lines.append(text)
    if is_line:
        ends = [str(row.get(chart.x, "")) for row in (rows[0], rows[-1])]
    else:
        ends = [_format_number(x_axis.low), _format_number(x_axis.high)]
    scale = _format_ends(ends, columns)
    lines.append(Text(" " * (label_columns + 2) + scale, "dim"))
    return lines


def _format_ends(ends: Sequence[str], columns: int) -> str:
    """Return the texts at both ends of so many columns."""
    first, last = (to_one_line(end, columns // 2 - 1) for end in ends)
    gap = max(columns - cell_len(first) - cell_len(last), 1)
    return first + " " * gap + last


def _get_points(rows: Data, key: str, x_key: str | None) -> Iterator[_Point]:
    """Yield the points that have both numbers, counted from the left and from the top.

    Without `x_key` the index of the row is its `x`.
    """
    for index, row in enumerate(rows):
        x: float | None = index
        if x_key is not None:
            x = to_number(row.get(x_key))
        y = to_number(row.get(key))
        if x is not None and y is not None:
            yield x, -y


def _join_points(points: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the points and the dots between neighbours."""
    yield from points[:1]
    for (x, y), (next_x, next_y) in pairwise(points):
        width = next_x - x
        height = next_y - y
        steps = max(abs(width), abs(height), 1)
        for step in range(1, steps + 1):
            across = round(width * step / steps)
            down = round(height * step / steps)
            yield x + across, y + down
