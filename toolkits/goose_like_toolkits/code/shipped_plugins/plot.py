"""Plugin `plot`: draw a chart of a data frame with sensible defaults, as an artifact and a file."""

from pathlib import Path
from typing import Any

from taskweaver.plugin import Plugin, register_plugin, test_plugin

from ._errors import check_column, import_library

KINDS = ("line", "bar", "hist", "scatter", "box")


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
        if kind == "bar" and by and x in (None, by):
            x, by = by, None
        x = x or (index if index and kind in ("line", "bar") and index != by else _choose_x(frame, kind, [*wanted, by]))
        numbers = wanted or [name for name in _list_numeric(frame) if name not in (x, by)][:6]
        if kind == "hist" and x in _list_numeric(frame) and not wanted:
            x, numbers = None, [str(x)]
        _check_values(frame, kind, x, numbers)
        figure = figure_class(self.config.get("size", (9, 5)), int(self.config.get("dpi", 110)), layout="constrained")
        axes = figure.subplots()
        if kind in ("bar", "box"):
            draw = {"bar": _draw_bars, "box": _draw_boxes}[kind]
            description = draw(axes, frame, x, numbers, by, int(self.config.get("most", 30)))
        else:
            description = _draw_points(axes, frame, kind, x, numbers, by)
        title = title or description
        axes.set_title(title)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", alpha=0.3)
        if kind != "box" and (by or len(numbers) > 1):
            axes.legend(title=by)
        file = Path(file_name).expanduser()
        if file_name:
            file = file if file.suffix else file.with_suffix(".png")
            if file.suffix[1:].lower() not in figure.canvas.get_supported_filetypes():
                raise ValueError(f"a chart can't be saved as {file.suffix}; use .png, .svg or .pdf")
            figure.savefig(file)
        name = "".join(letter if letter.isalnum() or letter in "._-" else "_" for letter in file.stem or title)[:80]
        _, path = self.ctx.create_artifact_path(name=name, file_name=f"{name}.png", type="image", desc=title)
        figure.savefig(path)
        return str(file if file_name else path)


def _prepare_frame(df: Any) -> tuple[Any, str | None]:
    """Return a data frame with its named index as a column, and the name of the index."""
    frame = df.to_frame() if hasattr(df, "to_frame") and not hasattr(df, "columns") else df
    if not hasattr(frame, "columns"):
        raise ValueError(f"plot draws a data frame, and this is a {type(df).__name__}")
    if not len(frame):
        raise ValueError("the data frame is empty; there is nothing to draw")
    frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
    names = [name for name in frame.index.names if isinstance(name, str) and name not in frame.columns]
    frame = frame.reset_index(names) if names else frame
    if not frame.columns.is_unique:
        raise ValueError(f"{frame.columns[frame.columns.duplicated()][0]!r} is the name of two columns; rename one")
    return frame, names[0] if names else None


def _check_values(frame: Any, kind: str, x: str | None, numbers: list[str]) -> None:
    if text := [name for name in numbers if frame[name].dtype.kind not in "iufb"]:
        raise ValueError(f"{text[0]!r} has no numbers ({frame[text[0]].dtype}); try pd.to_numeric first")
    if (kind == "scatter" and x is None) or (not numbers and (kind != "bar" or x is None)):
        raise ValueError(f"too few columns of numbers for {kind}; the columns are: {', '.join(map(str, frame))}")
    if numbers and not frame[numbers].notna().any(axis=None):
        raise ValueError(f"there is no value in {', '.join(map(repr, numbers))}; there is nothing to draw")


def _list_numeric(frame: Any) -> list[str]:
    return [name for name in frame.columns if frame[name].dtype.kind in "iuf"]


def _choose_x(frame: Any, kind: str, taken: list[str | None]) -> str | None:
    """Choose the x axis: the first time, the first text for bars, or the first number for points."""
    if kind in ("hist", "box"):
        return None
    times = [name for name in frame.columns if frame[name].dtype.kind == "M"]
    texts = [name for name in frame.columns if name not in (*times, *_list_numeric(frame))]
    others = [name for name in _list_numeric(frame) if name not in taken]
    first = {"line": times, "bar": [*texts, *times], "scatter": [*times, *others]}[kind]
    return next((name for name in first if name not in taken), None)


def _split(frame: Any, by: str | None) -> list[tuple[str, Any]]:
    """Return the whole frame, or its part for each of the ten most frequent values of a column."""
    if by is None:
        return [("", frame)]
    return [(str(value), frame[frame[by] == value]) for value in frame[by].value_counts().index[:10]]


def _draw_points(axes: Any, frame: Any, kind: str, x: str | None, numbers: list[str], by: str | None) -> str:
    for value, part in _split(frame, by):
        for name in numbers:
            label = value if len(numbers) == 1 and by else f"{name} {value}".strip()
            if kind == "hist":
                axes.hist(part[name].dropna(), bins=40, alpha=0.6, label=label)
                continue
            rows = part.dropna(subset=[name] if x is None else [x, name])
            if kind == "line":
                rows = rows if x is None else rows.sort_values(x)
                axes.plot(rows.index if x is None else rows[x], rows[name], label=label, linewidth=1.3)
            else:
                axes.scatter(rows[x], rows[name], label=label, s=14, alpha=0.7 if len(rows) < 1000 else 0.25)
    names = ", ".join(numbers)
    axes.set_xlabel(names if kind == "hist" else x or "")
    axes.set_ylabel("how many" if kind == "hist" else names)
    return f"{names}{f' over {x}' if x else ''}{f' by {by}' if by else ''}"


def _draw_bars(axes: Any, frame: Any, x: str | None, numbers: list[str], by: str | None, most: int) -> str:
    """Draw the sum of the rows with the same x, or their count if there are no numbers."""
    if x is None:
        x = "row"
        frame = frame.assign(row=frame.index.astype(str))
    keys = [x] if by is None else [x, by]
    frame = frame if by is None else frame[frame[by].isin(frame[by].value_counts().index[:10])]
    is_ordered = frame[x].dtype.kind in "iufM"
    groups = frame.groupby(keys, observed=True, sort=is_ordered)
    heights = groups[numbers if by is None else numbers[0]].sum() if numbers else groups.size()
    heights = heights.unstack(by).fillna(0) if by else heights.to_frame() if not numbers else heights
    left_out = len(heights) - most
    if left_out > 0:
        largest = heights.loc[heights.sum(axis=1).nlargest(most).index]
        heights = largest.sort_index() if is_ordered else largest
    width = 0.8 / len(heights.columns)
    for at, name in enumerate(heights.columns):
        places = [place + (at - (len(heights.columns) - 1) / 2) * width for place in range(len(heights))]
        axes.bar(places, heights[name], width, label=str(name))
    labels = [str(value).removesuffix(" 00:00:00") for value in heights.index]
    is_long = sum(map(len, labels)) > 90
    axes.set_xticks(range(len(labels)), labels, rotation=60 if is_long else 0, ha="right" if is_long else "center")
    axes.set_xlabel(x)
    is_sum = bool(numbers) and int(groups.size().max()) > 1
    names = ", ".join(numbers if by is None else numbers[:1])
    label = f"{'sum of ' if is_sum else ''}{names}" if numbers else "how many"
    axes.set_ylabel(label)
    return f"{label} by {' and '.join(keys)}" + (f" (the {most} largest of {left_out + most})" if left_out > 0 else "")


def _draw_boxes(axes: Any, frame: Any, x: str | None, numbers: list[str], by: str | None, most: int) -> str:
    by = by or x
    if by is None:
        boxes = {name: frame[name].dropna() for name in numbers}
    else:
        boxes = {name: part[numbers[0]].dropna() for name, part in _split(frame, by)[:most]}
    axes.boxplot(list(boxes.values()), tick_labels=list(boxes), flierprops={"markersize": 3})
    names = ", ".join(numbers if by is None else numbers[:1])
    axes.set_ylabel(names)
    return f"{names}{f' by {by}' if by else ''}"


@test_plugin(name="a picture")
def test_a_picture(call: Any) -> None:
    """A chart is a PNG file."""
    import pandas

    path = call(pandas.DataFrame({"town": ["Kiel", "Bonn", "Kiel"], "sold": [1, 2, 3]}), kind="bar")
    with open(path, "rb") as file:
        assert file.read(8) == b"\x89PNG\r\n\x1a\n"
