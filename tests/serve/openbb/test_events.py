"""Tests of a turn's events in both dialects, checked with openbb-ai's own models and parsers."""

import json
import re
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openbb_ai import models
from openbb_ai.testing import CopilotResponse, capture_stream_response

from goose_like.core.events import (
    Answer,
    Answered,
    Artifact,
    ArtifactShown,
    Chart,
    Event,
    Logged,
    MessageCompleted,
    PromptsSuggested,
    Question,
    Retrying,
    Status,
    SubagentEvent,
    TextDelta,
    ThinkingDelta,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnFinished,
    UsageRecorded,
)
from goose_like.core.message import Message, ToolCall, ToolResult, Usage
from goose_like.serve.openbb.client_tools import ClientCall
from goose_like.serve.openbb.events import FRAME_PREFIX, HIDDEN_DETAILS, MASKED_WORDS, EventTranslator, build_citations
from goose_like.serve.openbb.query import DataSource, Query, UserMessage
from goose_like.serve.sse import Frame, StreamEncoder
from tests.serve.sse_reader import read_events

WORKSPACE = Query(dialect="workspace", messages=(UserMessage(text="hi"),))
COPILOT = Query(dialect="copilot", messages=(UserMessage(text="hi"),))
PRICE = "123e4567-e89b-12d3-a456-426614174000"
STOP = TurnFinished(reason="stop")
DONE = MessageCompleted(message=Message.assistant(""))

MODELS = {
    "copilotMessageChunk": models.MessageChunkSSEData,
    "copilotStatusUpdate": models.StatusUpdateSSEData,
    "copilotMessageArtifact": models.ClientArtifact,
    "copilotCitationCollection": models.CitationCollection,
    "copilotPromptSuggestions": models.PromptSuggestionsSSEData,
    "copilotFunctionCall": models.FunctionCallSSEData,
}


def stream(
    query: Query,
    *batches: Sequence[Event],
    end: TurnFinished | ClientCall = STOP,
    sources: Sequence[DataSource] = (),
) -> list[tuple[str, Any]]:
    """Return everything a client reads of one turn, after checks with openbb-ai."""
    translator = EventTranslator(query, sources)
    frames: list[Frame] = [*translator.opening_frames()]
    for batch in batches:
        frames += translator.translate(batch)
    frames += (
        [translator.function_call_frame(end, "sealed")]
        if isinstance(end, ClientCall)
        else translator.closing_frames(end)
    )
    sent = StreamEncoder(FRAME_PREFIX, MASKED_WORDS).encode(frames)
    events = read_events(sent)
    for name, data in events:
        read = MODELS[name].model_validate_json(json.dumps(data))
        if query.dialect == "workspace":  # nothing is sent that upstream does not know or would leave out
            assert json.loads(read.model_dump_json(exclude_none=True, exclude_unset=True)) == data
    if events:
        parsed = CopilotResponse(sent.decode())
        assert parsed.text == words(events)
        if "copilotFunctionCall" not in dict(events):
            assert capture_stream_response(sent.decode())[1] == words(events)
    return events


def words(events: list[tuple[str, Any]]) -> str:
    return "".join(data["delta"] for name, data in events if name == "copilotMessageChunk")


def statuses(events: list[tuple[str, Any]]) -> list[str]:
    return [data["message"] for name, data in events if name == "copilotStatusUpdate"][1:]


def kinds(events: list[tuple[str, Any]]) -> list[str]:
    return [name.removeprefix("copilot") for name, _ in events]


def text_deltas(*texts: str) -> list[TextDelta]:
    return [TextDelta(text=text) for text in texts]


def thinking_deltas(*texts: str) -> list[ThinkingDelta]:
    return [ThinkingDelta(text=text) for text in texts]


def call(name: str = "read_file", **arguments: Any) -> ToolCall:
    return ToolCall(id="call_1", name=name, arguments=json.dumps(arguments))


def result(is_error: bool = False) -> ToolFinished:
    return ToolFinished(result=ToolResult(call_id="call_1", output="password=hunter2", is_error=is_error))


# --- words


def test_words_go_out_as_they_come_and_what_is_there_at_once_goes_together():
    events = stream(COPILOT, text_deltas("The", " current"), text_deltas(" price"))
    assert events == [
        ("copilotMessageChunk", {"delta": "The current"}),
        ("copilotMessageChunk", {"delta": " price"}),
    ]


def test_the_workspace_is_told_something_at_once_and_the_older_client_nothing():
    assert kinds(list(EventTranslator(WORKSPACE).opening_frames())) == ["StatusUpdate"]
    assert list(EventTranslator(COPILOT).opening_frames()) == []


TEXTS = st.text() | st.lists(st.sampled_from(["data", "event", "id", "retry", ":", "\n", " ", "a"])).map("".join)


@given(st.lists(st.lists(TEXTS)))
def test_any_words_arrive_and_no_delta_has_what_looks_like_a_field(batches):
    events = stream(COPILOT, *(text_deltas(*batch) for batch in batches))
    expected = "".join(event.text for batch in batches for event in text_deltas(*batch))
    assert words(events) == (expected or "The model gave no answer.")
    for _, data in events:
        assert not re.search(r"data:|event:|^id:|^retry:", data["delta"], re.MULTILINE)


def test_the_words_of_two_messages_are_two_paragraphs():
    events = stream(
        COPILOT, text_deltas("Let me look."), [DONE, ToolStarted(call=call()), result(), *text_deltas("It is 5.")]
    )
    assert words(events) == "Let me look.\n\nIt is 5."
    assert words(stream(COPILOT, [DONE], text_deltas("It is 5."))) == "It is 5."


def test_a_retry_takes_nothing_back_and_says_so():
    retry = Retrying(text="the stream broke off; asking again", wait_s=1)
    events = stream(WORKSPACE, text_deltas("The pri"), [retry], text_deltas("The price is 5."))
    assert words(events) == "The pri\n\n(The answer broke off here and begins again.)\n\nThe price is 5."
    assert ("the stream broke off; asking again", "WARNING") in [
        (data.get("message"), data.get("eventType")) for _, data in events
    ]
    assert words(stream(COPILOT, [retry, DONE, retry], text_deltas("5"))) == "5"
    assert words(stream(COPILOT, text_deltas("Look."), [DONE, retry], text_deltas("5"))) == "Look.\n\n5"


# --- statuses


def test_thinking_is_told_by_paragraph():
    events = stream(
        WORKSPACE,
        thinking_deltas("The person", " asks.\n", "\nSo I"),
        thinking_deltas(" look it", " up."),
        text_deltas("It is", " 5."),
    )
    assert statuses(events) == ["The person asks.", "So I look it up."]
    assert kinds(events) == ["StatusUpdate", "StatusUpdate", "StatusUpdate", "MessageChunk"]


def test_long_thinking_is_told_in_pieces_and_none_is_lost():
    text = "word " * 1000
    events = statuses(stream(WORKSPACE, *([event] for event in thinking_deltas(*re.findall(".{1,7}", text)))))
    assert 5 <= len(events) <= 10
    assert " ".join(events).split() == text.split()
    letters = statuses(stream(WORKSPACE, thinking_deltas("x" * 5000)))
    assert "".join(letters) == "x" * 5000


@given(st.lists(st.text(alphabet="ab \n")))
def test_all_that_was_thought_is_told_in_its_order(pieces):
    events = statuses(stream(WORKSPACE, *([event] for event in thinking_deltas(*pieces)), text_deltas("done")))
    assert " ".join(events).split() == "".join(pieces).split()


def test_what_goes_on_is_told():
    question = Question(kind="command", subject="rm -r x", text="May it?")
    wondered = Question(kind="text", subject="wonder", text="Which?")
    fetch = call("fetch", path="a", url="u", UUID="1", rows=[{"é": None}], long="x" * 999)
    events = stream(
        WORKSPACE,
        [Status(text=""), Status(text="choosing files"), Logged(text="3 files")],
        [ToolStarted(call=fetch), result(), result(is_error=True)],
        [Answered(question=question, answer=Answer()), Answered(question=question, answer=Answer(choice="allow"))],
        [Answered(question=wondered, answer=Answer())],
        text_deltas("done"),
    )
    assert statuses(events) == ["choosing files", "3 files", "Using fetch", "fetch failed", "Not allowed here: rm -r x"]
    details = next(data["details"] for _, data in events if data.get("details"))
    assert details == [{"path": "a", "rows": '[{"é":null}]', "long": "x" * 200 + "…"}]
    assert "hunter2" not in json.dumps(events)
    untold = HIDDEN_DETAILS | {"url"}
    assert untold == {*models.EXCLUDE_STATUS_UPDATE_DETAILS_FIELDS} | {*models.EXCLUDE_CITATION_DETAILS_FIELDS}


def test_a_status_whose_figures_only_change_is_told_once():
    texts = [*(f"the model reads {'█' * n} {n}%" for n in range(100)), "the model writes", "the model reads 1%"]
    events = stream(WORKSPACE, *([Status(text=text)] for text in texts), text_deltas("done"))
    assert statuses(events) == ["the model reads  0%", "the model writes", "the model reads 1%"]


def test_progress_is_not_told_and_of_nested_work_its_steps_only():
    nested = [
        ToolStarted(call=ToolCall(id="1", name="shell", arguments="{}")),
        Logged(text="found it"),
        TextDelta(text="secret thoughts"),
        Status(text="busy"),
    ]
    events = stream(
        WORKSPACE,
        [ToolStarted(call=call("delegate"))],
        [ToolProgress(call_id="call_1", text=f"{line}\n") for line in range(999)],
        [SubagentEvent(call_id="call_1", event=event) for event in nested],
        text_deltas("done"),
    )
    assert statuses(events) == ["Using delegate", "Using shell", "found it"]


def test_the_older_client_is_sent_words_and_calls_only():
    events = stream(
        COPILOT,
        thinking_deltas("Hm.\n\nSo."),
        [Status(text="busy"), Logged(text="a"), ToolStarted(call=call()), result(is_error=True)],
        [UsageRecorded(model="m", usage=Usage(), purpose="p"), PromptsSuggested(prompts=("More?",))],
        [Retrying(text="again", wait_s=0)],
        text_deltas("5"),
        sources=[DataSource(uuid=PRICE, name="Price")],
    )
    assert events == [("copilotMessageChunk", {"delta": "5"})]


# --- ends


@pytest.mark.parametrize(
    ("finished", "sentence"),
    [
        (TurnFinished(reason="error", detail="no key; set KEY"), "The answer failed: no key; set KEY"),
        (TurnFinished(reason="error"), "The answer failed: the reason is unknown"),
        (TurnFinished(reason="step_limit", detail="the limit of 25 steps"), "Stopped: the limit of 25 steps"),
        (TurnFinished(reason="budget", detail="$1 of $1 are spent"), "Stopped: $1 of $1 are spent"),
        (TurnFinished(reason="cancelled"), "Stopped before the end"),
    ],
)
def test_an_end_that_nobody_wished_for_is_told_in_words(finished, sentence):
    assert words(stream(COPILOT, end=finished)) == f"{sentence}."
    assert words(stream(COPILOT, text_deltas("The price"), end=finished)) == f"The price\n\n{sentence}."
    events = stream(
        WORKSPACE,
        thinking_deltas("Hm"),
        text_deltas("The price"),
        end=finished,
        sources=[DataSource(uuid=PRICE, name="Price")],
    )
    assert kinds(events) == ["StatusUpdate", "StatusUpdate", "MessageChunk", "StatusUpdate", "MessageChunk"]
    assert (events[-2][1]["eventType"], events[-2][1]["message"]) == ("ERROR", sentence)
    assert words(events) == f"The price\n\n{sentence}."


@pytest.mark.parametrize("query", [COPILOT, WORKSPACE])
def test_a_turn_without_words_is_said_to_be_one(query):
    assert words(stream(query, [DONE])) == "The model gave no answer."


def test_sources_and_suggestions_come_last():
    events = stream(
        WORKSPACE,
        [PromptsSuggested(prompts=("Old?",)), PromptsSuggested(prompts=("And TSLA?", "Why?"))],
        text_deltas("It is 5."),
        sources=[DataSource(uuid=PRICE, name="Price")],
    )
    assert kinds(events) == ["StatusUpdate", "MessageChunk", "CitationCollection", "PromptSuggestions"]
    assert events[-1][1] == {"suggestions": ["And TSLA?", "Why?"]}


def test_a_call_is_the_last_thing_and_brings_what_was_sealed():
    asked = ClientCall(function="get_widget_data", arguments={"widget_uuid": PRICE})
    assert stream(COPILOT, end=asked) == [
        (
            "copilotFunctionCall",
            {"function": "get_widget_data", "input_arguments": {"widget_uuid": PRICE}, "goose_like": "sealed"},
        )
    ]
    events = stream(WORKSPACE, thinking_deltas("Hm"), text_deltas("Let me look."), [DONE], end=asked)
    assert kinds(events) == ["StatusUpdate", "StatusUpdate", "MessageChunk", "FunctionCall"]
    assert events[-1][1]["extra_state"] == {"goose_like": "sealed"}
    for query in (COPILOT, WORKSPACE):
        _, data = EventTranslator(query).function_call_frame(asked, "")
        assert data == {"function": "get_widget_data", "input_arguments": {"widget_uuid": PRICE}}
    assert list(EventTranslator(COPILOT).closing_frames(TurnFinished(reason="handed_off"))) == []


# --- citations


def test_what_was_given_is_cited_once_with_what_it_was_asked_for():
    price = DataSource(
        uuid=PRICE,
        origin="openbb",
        widget_id="price",
        name="Price",
        description="Prices",
        arguments={"symbol": "AAPL", "source": "FMP", "limit": None},
    )
    other = price.model_copy(update={"arguments": {"symbol": "TSLA"}})
    first, second = build_citations([price, other, price, price.model_copy(update={"is_citable": False}), DataSource()])
    assert first["source_info"] == {
        "type": "widget",
        "uuid": PRICE,
        "origin": "openbb",
        "widget_id": "price",
        "name": "Price",
        "description": "Prices",
        "metadata": {"input_args": {"symbol": "AAPL", "source": "FMP", "limit": None}},
        "citable": True,
    }
    assert first["details"] == [{"Name": "Price", "symbol": "AAPL", "limit": None}]
    assert second["source_info"]["metadata"] == {"input_args": {"symbol": "TSLA"}}
    assert first["id"] != second["id"]
    assert [first, second] == build_citations([price, other])
    assert models.Citation.model_validate(first).details == first["details"]
    assert "uuid" not in build_citations([DataSource(uuid="not a uuid", name="a")])[0]["source_info"]


def test_the_clients_own_citations_go_back_as_far_as_they_are_ones():
    box = {"text": "Yes", "page": 1, "x0": 1, "top": 2, "x1": 3, "bottom": 4}
    whole = {
        "id": PRICE,
        "source_info": {"type": "web", "name": "A page", "metadata": {"url": "https://a.example"}, "new": 1},
        "details": [{"Page": 3, "lastUpdated": 7}, {"id": 1}],
        "quote_bounding_boxes": [[box]],
    }
    bare = {"source_info": {"type": "artifact"}, "details": None}
    broken: list[dict[str, Any]] = [
        {},
        {"source_info": None},
        {"source_info": {"type": "rumour"}},
        {"source_info": {"type": "web", "uuid": "x"}},
        {"source_info": {"type": "web", "citable": False}},
        {"source_info": {"type": "web"}, "details": "x"},
        {"source_info": {"type": "web"}, "quote_bounding_boxes": [box]},
    ]
    events = build_citations([DataSource(citations=(whole, bare, *broken, whole))])
    assert [entry["source_info"]["type"] for entry in events] == ["web", "artifact"]
    assert events[0]["id"] == PRICE
    assert events[0]["details"] == [{"Page": 3}]
    assert events[0]["quote_bounding_boxes"] == [[box]]
    assert UUID(events[1]["id"])
    stream(WORKSPACE, text_deltas("a"), sources=[DataSource(citations=(whole, bare))])


# --- artifacts

ROWS: tuple[dict[str, Any], ...] = (
    {"date": "2024-10-15", "close": 233.85, "volume": 61901688},
    {"date": "2024-10-14", "close": None, "tags": ["a", {"b": 1}]},
    {"close": float("nan"), "volume": 2**60, "is_final": True, "note": "a | b\nc"},
)


def encode(query: Query, artifact: Artifact, call_id: str = "call_1") -> Any:
    events = stream(query, [ArtifactShown(call_id=call_id, artifact=artifact)], text_deltas("There."))
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
    chart = Chart(kind="line", x="date", y=("close",))
    assert encode(COPILOT, Artifact(kind="chart", name="Prices", rows=ROWS[:1], chart=chart)) == (
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


def test_an_artifact_is_an_answer():
    events = stream(WORKSPACE, [ArtifactShown(call_id="call_1", artifact=Artifact(kind="text", name="a", text="b"))])
    assert kinds(events) == ["StatusUpdate", "MessageArtifact"]
