"""Artifacts as rows: tables, charts and text."""

import pytest

from goose_like.core.events import Artifact, ArtifactShown, Chart
from goose_like.terminal.chart import render_chart
from tests.terminal.test_renderer import draw, last


def draw_artifact(what: str, rows: object = (), /, text: str = "", width: int = 100, **chart: object) -> str:
    made = {"kind": what, "name": "Prices", "rows": rows, "text": text, "chart": chart or None}
    event = ArtifactShown(call_id="c1", artifact=Artifact.model_validate(made))
    return "\n".join(row.rstrip() for row in draw(event, width=width, is_terminal=True).strip("\n").split("\n"))


def test_a_table_is_drawn_and_cut():
    rows = [{"day": "Mon", "price": 2.5, "open": True}, {"day": "a\nb\x1b[31m", "price": None}]
    assert draw_artifact("table", rows) == (
        "    Prices\n    day         │ price │ open\n    ────────────┼───────┼─────\n"
        "    Mon         │   2.5 │ true\n    a b\\x1b[31m │       │"
    )
    many = [{f"c{column}": row for column in range(14)} for row in range(23)]
    assert last(draw_artifact("table", many, width=120)) == "    … 3 more rows, 2 more columns"
    assert "more" not in draw_artifact("table", many[:21]).replace("2 more columns", "")
    narrow = draw_artifact("table", many, width=30).split("\n")
    assert len(narrow) == 62
    assert narrow[-1].startswith("    … 3 more rows, 2 more columns")


def test_bars():
    rows = [{"who": "Ada", "n": 4, "m": 2}, {"who": "Grace", "n": -2, "m": None}]
    bars = draw_artifact("chart", rows, kind="bar", x="who", y=["n", "m"], width=34).split("\n")
    assert bars[1:6] == [
        "    Ada    ███████████████████ 4",
        "           █████████▌ 2",
        "    Grace  █████████▌ -2",
        "            -",
        "    ■ n  ■ m",
    ]
    assert "█ 4 (100%)" in draw_artifact("chart", rows[:1], kind="pie", x="who", y=["n"])
    many = [{"who": n, "n": n} for n in range(50)]
    assert "    … 30 more\n" in draw_artifact("chart", many, kind="bar", x="who", y=["n"])


def test_each_bar_has_the_colour_of_its_series_in_the_legend():
    keys = [f"n{number}" for number in range(7)]  # more than there are colours
    rows = [dict.fromkeys(keys, 1)] * 2
    *bars, legend = render_chart(rows, Chart(kind="bar", x="who", y=keys), 40)
    bar_colours = [bar.spans[0].style.color.name for bar in bars]
    legend_colours = [span.style.color.name for span in legend.spans]
    assert bar_colours == legend_colours * 2


def test_lines_and_points():
    rows = [{"t": 10 * x, "v": x} for x in range(8)]
    line = draw_artifact("chart", rows, kind="line", x="t", y=["v"], width=26).split("\n")
    assert line[1] == "    7 │                ⢀⠤⠊"
    assert line[8:10] == ["    0 │⡠⠒⠁", "       0                70"]
    points = draw_artifact(
        "chart", [{"t": 1, "v": 5}, {"t": 3, "v": 7}], kind="scatter", x="t", y=["v"], width=26
    ).split("\n")
    assert [row.index("•") for row in points if "•" in row] == [25, 7]
    assert points[9] == "       1                 3"


@pytest.mark.parametrize("kind", ["line", "bar", "scatter", "pie", "donut"])
@pytest.mark.parametrize("value", [None, "x", True, pytest.param(10**400, id="huge"), 1e308, float("nan"), 0, [1], 7])
def test_any_chart_is_drawn(kind, value):
    rows = [{"t": value, "v": value}, {"v": value}]
    assert "Prices" in draw_artifact("chart", rows, kind=kind, x="t", y=["v"], width=30)
    assert "Prices" in draw_artifact("chart", [], kind=kind, x="t", y=["v"])


def test_a_page_and_a_text_are_told():
    assert last(draw_artifact("html", text="<p>hello</p>")) == "    an HTML page of 12 bytes, for a browser"
    assert draw_artifact("text", text="one\n" * 20).split("\n")[-2:] == ["    one", "    … 8 more lines"]
