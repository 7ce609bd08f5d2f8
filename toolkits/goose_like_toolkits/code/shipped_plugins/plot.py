"""Plugin `plot`: draw a chart of a data frame with sensible defaults, as an artifact and a file."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from taskweaver.plugin import Plugin, register_plugin, test_plugin

from ._errors import check_column, import_library

KINDS = ("line", "bar", "hist", "scatter", "box")
NUMBERS = "iuf"
TIMES = "M"


@dataclass(frozen=True)
class _Chart:
    """The columns that a chart shows: one for the x axis, those with the numbers, and one that splits the rows."""

    kind: str
    x: str | None
    numbers: list[str]
    by: str | None


@register_plugin
class Plot(Plugin):
    """A chart on its own figure, which leaves the figures of the code in pyplot alone."""

    def __call__(
        self, df: Any, kind: str = "line", x: str | None = None, y: str | list[str] | None = None,
        by: str | None = None, title: str = "", file_name: str = "",
    ) -> str:  # fmt: skip
        """Draw a chart and return the path of its file: `file_name` if given, else that of a PNG artifact.

        Raises:
            ValueError: The kind or a column does not exist, or there is nothing to draw.
            OSError: The file cannot be written.
        """
        figure_class = import_library("matplotlib.figure", "plot").Figure
        if kind not in KINDS:
            raise ValueError(f"no kind {kind!r} of chart; the kinds are: {', '.join(KINDS)}")
        frame, index = _prepare_frame(df)
        wanted = [y] if isinstance(y, str) else list(y or ())
        for name in filter(None, [x, by, *wanted]):
            check_column(name, frame.columns)
        chart = _choose_columns(frame, index, _Chart(kind, x, wanted, by))
        _check_values(frame, chart)
        size = self.config.get("size", (9, 5))
        figure = figure_class(size, int(self.config.get("dpi", 110)), layout="constrained")
        axes = figure.subplots()
        most = int(self.config.get("most", 30))
        if kind == "bar":
            description = _draw_bars(axes, frame, chart, most)
        elif kind == "box":
            description = _draw_boxes(axes, frame, chart, most)
        else:
            description = _draw_points(axes, frame, chart)
        title = title or description
        axes.set_title(title)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", alpha=0.3)
        has_groups = chart.by or len(chart.numbers) > 1
        if kind != "box" and has_groups:
            axes.legend(title=chart.by)
        return self._save(figure, file_name, title)

    def _save(self, figure: Any, file_name: str, title: str) -> str:
        """Save a chart as an artifact, and as a file if it has a name; return the path of the file or the artifact."""
        file = Path(file_name).expanduser()
        if file_name:
            if not file.suffix:
                file = file.with_suffix(".png")
            if file.suffix[1:].lower() not in figure.canvas.get_supported_filetypes():
                raise ValueError(f"a chart can't be saved as {file.suffix}; use .png, .svg or .pdf")
            figure.savefig(file)
        name = _make_safe(file.stem or title)
        _, path = self.ctx.create_artifact_path(name=name, file_name=f"{name}.png", type="image", desc=title)
        figure.savefig(path)
        return str(file) if file_name else str(path)


def _make_safe(name: str) -> str:
    """Return a name of a file: letters, digits and few signs, at most 80 characters."""
    return re.sub(r"[^\w.-]", "_", name)[:80]


def _prepare_frame(df: Any) -> tuple[Any, str | None]:
    """Return a data frame with its named index as a column, and the name of the index."""
    frame = df
    if hasattr(df, "to_frame") and not hasattr(df, "columns"):
        frame = df.to_frame()
    if not hasattr(frame, "columns"):
        raise ValueError(f"plot draws a data frame, and this is a {type(df).__name__}")
    if not len(frame):
        raise ValueError("the data frame is empty; there is nothing to draw")
    frame = frame.set_axis(list(map(str, frame.columns)), axis=1)
    names = []
    for name in frame.index.names:
        if isinstance(name, str) and name not in frame.columns:
            names.append(name)
    if names:
        frame = frame.reset_index(names)
    if not frame.columns.is_unique:
        repeated = frame.columns[frame.columns.duplicated()][0]
        raise ValueError(f"{repeated!r} is the name of two columns; rename one")
    return frame, names[0] if names else None


def _choose_columns(frame: Any, index: str | None, wanted: _Chart) -> _Chart:
    """Choose the columns that are left open. `index` is the column that was the index."""
    kind = wanted.kind
    x = wanted.x
    by = wanted.by
    if kind == "bar" and by and x in (None, by):
        x = by  # each value has its own bar anyway
        by = None
    if not x and index and index != by and kind in ("line", "bar"):
        x = index
    if not x:
        x = _choose_x(frame, kind, {*wanted.numbers, by})
    numeric = _list_columns(frame, NUMBERS)
    if kind == "hist" and x in numeric and not wanted.numbers:
        return _Chart(kind, None, [str(x)], by)
    numbers = wanted.numbers
    if not numbers:
        numbers = [name for name in numeric if name not in (x, by)][:6]
    return _Chart(kind, x, numbers, by)


def _check_values(frame: Any, chart: _Chart) -> None:
    numbers = chart.numbers
    for name in numbers:
        if frame[name].dtype.kind not in "iufb":
            raise ValueError(f"{name!r} has no numbers ({frame[name].dtype}); try pd.to_numeric first")
    needs_x = chart.kind == "scatter" or (chart.kind == "bar" and not numbers)
    needs_numbers = chart.kind != "bar"
    if (needs_x and chart.x is None) or (needs_numbers and not numbers):
        columns = ", ".join(map(str, frame))
        raise ValueError(f"too few columns of numbers for {chart.kind}; the columns are: {columns}")
    if numbers and not frame[numbers].notna().any(axis=None):
        raise ValueError(f"there is no value in {', '.join(map(repr, numbers))}; there is nothing to draw")


def _list_columns(frame: Any, kinds: str) -> list[str]:
    """List the columns with one of NumPy's kinds of types, each a letter."""
    return [name for name in frame.columns if frame[name].dtype.kind in kinds]


def _choose_x(frame: Any, kind: str, taken: set[str | None]) -> str | None:
    """Choose the x axis: the first time, the first text for bars, or the first number for points."""
    if kind in ("hist", "box"):
        return None
    numbers = _list_columns(frame, NUMBERS)
    times = _list_columns(frame, TIMES)
    texts = [name for name in frame.columns if name not in times and name not in numbers]
    candidates: dict[str, list[str]] = {
        "line": times,
        "bar": [*texts, *times],
        "scatter": [*times, *numbers],
    }
    for name in candidates[kind]:
        if name not in taken:
            return name
    return None


def _split(frame: Any, by: str | None) -> list[tuple[str, Any]]:
    """Return the whole frame, or its part for each of the ten most frequent values of a column."""
    if by is None:
        return [("", frame)]
    parts = []
    for value in _list_frequent(frame[by]):
        part = frame[frame[by] == value]
        parts.append((str(value), part))
    return parts


def _list_frequent(column: Any) -> Any:
    return column.value_counts().index[:10]


def _draw_points(axes: Any, frame: Any, chart: _Chart) -> str:
    """Draw lines, points or a histogram; return a title."""
    for value, part in _split(frame, chart.by):
        for name in chart.numbers:
            label = f"{name} {value}".strip()
            if chart.by and len(chart.numbers) == 1:
                label = value
            _draw_column(axes, part, chart, name, label)
    names = ", ".join(chart.numbers)
    if chart.kind == "hist":
        axes.set_xlabel(names)
        axes.set_ylabel("how many")
    else:
        axes.set_xlabel(chart.x or "")
        axes.set_ylabel(names)
    title = names
    if chart.x:
        title += f" over {chart.x}"
    if chart.by:
        title += f" by {chart.by}"
    return title


def _draw_column(axes: Any, frame: Any, chart: _Chart, name: str, label: str) -> None:
    if chart.kind == "hist":
        axes.hist(frame[name].dropna(), bins=40, alpha=0.6, label=label)
        return
    needed = [name] if chart.x is None else [chart.x, name]
    rows = frame.dropna(subset=needed)
    if chart.kind == "scatter":
        alpha = 0.7 if len(rows) < 1000 else 0.25
        axes.scatter(rows[chart.x], rows[name], label=label, s=14, alpha=alpha)
        return
    places = rows.index
    if chart.x is not None:
        rows = rows.sort_values(chart.x)
        places = rows[chart.x]
    axes.plot(places, rows[name], label=label, linewidth=1.3)


def _draw_bars(axes: Any, frame: Any, chart: _Chart, most: int) -> str:
    """Draw the sum of the rows with the same x, or their count if there are no numbers; return a title."""
    x = chart.x
    numbers = chart.numbers
    if x is None:
        x = "row"
        frame = frame.assign(row=frame.index.astype(str))
    keys = [x]
    if chart.by is not None:
        keys.append(chart.by)
        numbers = numbers[:1]
        groups = frame[chart.by]
        frame = frame[groups.isin(_list_frequent(groups))]
    is_ordered = frame[x].dtype.kind in NUMBERS + TIMES
    bars = frame.groupby(keys, observed=True, sort=is_ordered)
    heights = _measure_bars(bars, numbers, chart.by)
    total_count = len(heights)
    if total_count > most:
        totals = heights.sum(axis=1)
        heights = heights.loc[totals.nlargest(most).index]
        if is_ordered:
            heights = heights.sort_index()
    width = 0.8 / len(heights.columns)
    for at, name in enumerate(heights.columns):
        offset = (at - (len(heights.columns) - 1) / 2) * width
        places = [place + offset for place in range(len(heights))]
        axes.bar(places, heights[name], width, label=str(name))
    _label_bars(axes, heights.index)
    axes.set_xlabel(x)
    label = "how many"
    if numbers:
        label = ", ".join(numbers)
        if int(bars.size().max()) > 1:
            label = f"sum of {label}"
    axes.set_ylabel(label)
    title = f"{label} by {' and '.join(keys)}"
    if total_count > most:
        title += f" (the {most} largest of {total_count})"
    return title


def _measure_bars(bars: Any, numbers: list[str], by: str | None) -> Any:
    """Return the heights of the bars: a row for each place on the x axis, a column for each colour."""
    if by is not None:
        heights = bars[numbers[0]].sum() if numbers else bars.size()
        return heights.unstack(by).fillna(0)
    if numbers:
        return bars[numbers].sum()
    return bars.size().to_frame()


def _label_bars(axes: Any, values: Any) -> None:
    """Write the values below the bars, at an angle if they are long."""
    labels = [str(value).removesuffix(" 00:00:00") for value in values]
    places = range(len(labels))
    if sum(map(len, labels)) > 90:
        axes.set_xticks(places, labels, rotation=60, ha="right")
    else:
        axes.set_xticks(places, labels, rotation=0, ha="center")


def _draw_boxes(axes: Any, frame: Any, chart: _Chart, most: int) -> str:
    """Draw a box for each column of numbers, or for each value of a column; return a title."""
    by = chart.by or chart.x
    numbers = chart.numbers
    if by is None:
        title = ", ".join(numbers)
        boxes = {name: frame[name].dropna() for name in numbers}
    else:
        title = numbers[0]
        parts = _split(frame, by)[:most]
        boxes = {name: part[title].dropna() for name, part in parts}
    axes.boxplot(list(boxes.values()), tick_labels=list(boxes), flierprops={"markersize": 3})
    axes.set_ylabel(title)
    if by:
        title += f" by {by}"
    return title


@test_plugin(name="a picture")
def test_a_picture(call: Any) -> None:
    """A chart is a PNG file."""
    import pandas

    path = call(pandas.DataFrame({"town": ["Kiel", "Bonn", "Kiel"], "sold": [1, 2, 3]}), kind="bar")
    with open(path, "rb") as file:
        assert file.read(8) == b"\x89PNG\r\n\x1a\n"
