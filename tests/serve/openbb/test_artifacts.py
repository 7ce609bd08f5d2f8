"""Tests of artifacts in both dialects."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from goose_like.core.events import Artifact, ArtifactShown, Chart, TextDelta
from goose_like.serve.openbb.query import Query
from tests.serve.openbb.streams import COPILOT, WORKSPACE, stream, words

ROWS: tuple[dict[str, Any], ...] = (
    {"date": "2024-10-15", "close": 233.85, "volume": 61901688},
    {"date": "2024-10-14", "close": None, "tags": ["a", {"b": 1}]},
    {"close": float("nan"), "volume": 2**60, "is_final": True, "note": "a | b\nc"},
)


def encode(query: Query, artifact: Artifact, call_id: str = "call_1") -> Any:
    events = stream(query, [ArtifactShown(call_id=call_id, artifact=artifact)], [TextDelta(text="There.")])
    return (
        words(events) if query is COPILOT else next(data for name, data in events if name == "copilotMessageArtifact")
    )


def test_a_table_has_every_column_in_every_row_and_nothing_that_can_not_be_shown():
    events = encode(WORKSPACE, Artifact(kind="table", name="Prices", rows=ROWS))
    assert (events["type"], events["name"], events["description"]) == ("table", "Prices", "")
    first, second, third = events["content"]
    columns = ["date", "close", "volume", "tags", "is_final", "note"]
    assert [list(row) for row in events["content"]] == [columns] * 3
    assert first["close"] == 233.85
    assert (second["close"], second["tags"], third["close"]) == ("", '["a", {"b": 1}]', "")
    assert (third["volume"], third["is_final"]) == (str(2**60), True)


def test_a_chart_says_how_it_is_drawn_and_what_is_missing_is_a_gap():
    for kind in ("line", "bar", "scatter"):
        chart = Chart(kind=kind, x="date", y=("close", "volume"))
        events = encode(WORKSPACE, Artifact(kind="chart", name="Prices", rows=ROWS, chart=chart))
        assert events["chart_params"] == {"chartType": kind, "xKey": "date", "yKey": ["close", "volume"]}
        assert "close" not in events["content"][1]
    for kind in ("pie", "donut"):
        events = encode(
            WORKSPACE, Artifact(kind="chart", name="P", rows=ROWS, chart=Chart(kind=kind, x="date", y=("close",)))
        )
        assert events["chart_params"] == {"chartType": kind, "angleKey": "close", "calloutLabelKey": "date"}
    assert encode(WORKSPACE, Artifact(kind="chart", name="P", rows=ROWS))["type"] == "table"


def test_pages_and_texts_are_sent_as_they_are():
    for kind in ("html", "text"):
        events = encode(WORKSPACE, Artifact(kind=kind, name="Page", description="d", text="<b>Hi</b> & data: x"))
        assert (events["type"], events["content"], events["description"]) == (kind, "<b>Hi</b> & data: x", "d")


def test_an_artifacts_uuid_is_its_calls_and_contents():
    table = Artifact(kind="table", name="Prices", rows=ROWS)
    uuids = [
        encode(WORKSPACE, table)["uuid"],
        encode(WORKSPACE, table)["uuid"],
        encode(WORKSPACE, table, "call_2")["uuid"],
        encode(WORKSPACE, table.model_copy(update={"rows": ROWS[:1]}))["uuid"],
    ]
    assert uuids[0] == uuids[1]
    assert len(set(uuids)) == 3


ANY_TEXT = st.text() | st.sampled_from(["\ud83d", "\ude00", "data: ", "|"])  # also halves of surrogate pairs
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=5,
)


@given(st.lists(st.dictionaries(ANY_TEXT, JSON, max_size=4), max_size=4))
def test_any_rows_are_a_table_and_a_chart_for_both(rows):
    for query in (WORKSPACE, COPILOT):
        encode(query, Artifact(kind="table", name="t", rows=tuple(rows)))
        encode(query, Artifact(kind="chart", name="c", rows=tuple(rows), chart=Chart(kind="pie", x="a", y=("b",))))


def test_for_the_older_client_a_table_is_markdown():
    assert encode(COPILOT, Artifact(kind="table", name="Prices", description="Of AAPL.", rows=ROWS)) == (
        "**Prices**\n\nOf AAPL.\n\n"
        "| date | close | volume | tags | is_final | note |\n"
        "| --- | --- | --- | --- | --- | --- |\n"
        "| 2024-10-15 | 233.85 | 61901688 |  |  |  |\n"
        '| 2024-10-14 |  |  | ["a", {"b": 1}] |  |  |\n'
        f"|  |  | {2**60} |  | true | a \\| b c |\n\n"
        "There."
    )


def test_a_long_table_says_how_much_of_it_is_left_out():
    rows = tuple({f"k{column}": "x" * 999 for column in range(14)} for _ in range(1_051))
    text = encode(COPILOT, Artifact(kind="table", name="Long", rows=rows))
    assert text.count("\n|") == 52
    assert "\n\n(1,001 more rows and 2 more columns not shown)\n\n" in text
    assert len(text) < 150_000
    assert "(1 more row not shown)" in encode(COPILOT, Artifact(kind="table", name="L", rows=({"a": 1},) * 51))
    assert "(no rows)" in encode(COPILOT, Artifact(kind="table", name="Empty"))


def test_for_the_older_client_a_chart_is_its_figures_and_a_page_its_text():
    chart, rows = Chart(kind="line", x="date", y=("close",)), ({"date": "2024-10-15", "close": 233.85},)
    assert encode(COPILOT, Artifact(kind="chart", name="Prices", rows=rows, chart=chart)) == (
        "**Prices**\n\nA line chart of close by date:\n\n| date | close |\n| --- | --- |\n| 2024-10-15 | 233.85 |\n\n"
        "There."
    )
    page = (
        "<html><head><title>T</title><style>p {}</style></head><body><h1>A &amp; B</h1>\n<p>One <b>two</b>\nthree</p>"
        "<table><tr><td>1</td><td>2</td></tr></table><script>var x = '</p>';</script>end"
    )
    assert encode(COPILOT, Artifact(kind="html", name="Page", text=page)) == (
        "**Page**\n\n# A & B\n\nOne **two** three\n\n| 1 | 2 |\n| --- | --- |\n\nend\n\nThere."
    )
    text = encode(COPILOT, Artifact(kind="text", name="Note", text="x" * 30_000))
    assert text.endswith("x…\n\n(10,000 more characters not shown)\n\nThere.")


TAGS = [
    "<!",
    "[",
    "]",
    "CDATA",
    "<",
    ">",
    "/",
    "script",
    "table",
    "td",
    " ",
    "=",
    "'",
    '"',
    "&",
    "#",
    "--",
    "\x00",
    "a",
    "😀",
]


@given(st.lists(st.sampled_from(TAGS)).map("".join))
def test_any_page_is_words(page):
    assert encode(COPILOT, Artifact(kind="html", name="Page", text=page)).startswith("**Page**\n\n")
