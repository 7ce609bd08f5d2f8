"""Tests of a turn's events in both dialects."""

import json
import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from openbb_ai import models
from openbb_ai.testing import CopilotResponse, capture_stream_response

from goose_like.core.events import (
    Answer,
    Answered,
    Artifact,
    ArtifactShown,
    FileChanged,
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
from goose_like.serve.openbb.citations import HIDDEN_DETAILS
from goose_like.serve.openbb.query import DataItem, Outcome
from goose_like.serve.openbb.response import encode_frame
from tests.serve.openbb.streams import COPILOT, PRICE, SIGNER, WORKSPACE, call, create_writer, stream, words
from tests.serve.sse_reader import read_events

DONE = MessageCompleted(message=Message.assistant(""))
PRICE_CALL = call("get_widget_data", widget_uuid=PRICE)
HANDED_OFF = TurnFinished(reason="handed_off")
CITED = [(PRICE_CALL, Outcome(items=(DataItem(content="5"),)))]


def statuses(events: list[tuple[str, Any]]) -> list[str]:
    return [data["message"] for name, data in events if name == "copilotStatusUpdate"]


def kinds(events: list[tuple[str, Any]]) -> list[str]:
    return [name.removeprefix("copilot") for name, _ in events]


def text_deltas(*texts: str) -> list[TextDelta]:
    return [TextDelta(text=text) for text in texts]


def thinking_deltas(*texts: str) -> list[ThinkingDelta]:
    return [ThinkingDelta(text=text) for text in texts]


def result(is_error: bool = False) -> ToolFinished:
    return ToolFinished(result=ToolResult(call_id="call_1", output="password=hunter2", is_error=is_error))


# --- words


def test_words_go_out_as_they_come():
    events = stream(COPILOT, text_deltas("The", " current"), text_deltas(" price"))
    assert events == [("copilotMessageChunk", {"delta": text}) for text in ("The", " current", " price")]


@pytest.mark.parametrize("query", [WORKSPACE, COPILOT])
def test_no_event_comes_before_the_answer(query):
    assert create_writer(query).start() == b"e"
    assert kinds(stream(query, text_deltas("2"))) == ["MessageChunk"]


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


def test_attempts_of_one_request_are_one_warning():
    retries = [Retrying(text=f"attempt {number}", wait_s=1) for number in range(5)]
    events = stream(WORKSPACE, retries, text_deltas("5"), [DONE, *retries], text_deltas("6"))
    assert statuses(events) == ["attempt 0"] * 2


# --- statuses


def test_thinking_is_told_by_paragraph():
    events = stream(
        WORKSPACE,
        thinking_deltas("The person", " asks.\n", "\nSo I"),
        thinking_deltas(" look it", " up."),
        text_deltas("It is 5."),
    )
    assert statuses(events) == ["The person asks.", "So I look it up."]
    assert kinds(events) == ["StatusUpdate", "StatusUpdate", "MessageChunk"]


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
        FileChanged(call_id="1", path="/w/a", diff="+x"),
        FileChanged(call_id="1", path="/w/b"),
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
    assert statuses(events) == ["Using delegate", "Using shell", "found it", "+x"]


def test_the_older_client_is_sent_words_and_calls_only():
    events = stream(
        COPILOT,
        thinking_deltas("Hm.\n\nSo."),
        [Status(text="busy"), Logged(text="a"), ToolStarted(call=call()), result(is_error=True)],
        [UsageRecorded(model="m", usage=Usage(), purpose="p"), PromptsSuggested(prompts=("More?",))],
        [Retrying(text="again", wait_s=0)],
        text_deltas("5"),
        outcomes=CITED,
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
        outcomes=CITED,
    )
    assert kinds(events) == ["StatusUpdate", "MessageChunk", "StatusUpdate", "MessageChunk"]
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
        outcomes=CITED,
    )
    assert kinds(events) == ["MessageChunk", "CitationCollection", "PromptSuggestions"]
    assert events[-1][1] == {"suggestions": ["And TSLA?", "Why?"]}


def test_a_call_is_the_last_thing_and_brings_what_was_sealed():
    [(name, data)] = stream(COPILOT, end=HANDED_OFF, calls=[PRICE_CALL])
    state = data.pop("goose_like")
    assert (name, data) == (
        "copilotFunctionCall",
        {"function": "get_widget_data", "input_arguments": {"widget_uuid": PRICE}},
    )
    assert SIGNER.verify(state, "hi")["requested_calls"] == 1
    events = stream(
        WORKSPACE, thinking_deltas("Hm"), text_deltas("Let me look."), [DONE], end=HANDED_OFF, calls=[PRICE_CALL]
    )
    assert kinds(events) == ["StatusUpdate", "MessageChunk", "FunctionCall"]
    assert SIGNER.verify(events[-1][1]["extra_state"]["goose_like"], "hi")


# --- signs of life


@pytest.mark.parametrize("ticks", [0, 1, 5, 14, 15, 40])
def test_signs_of_life_ahead_of_the_first_frame_are_its_own_letters(ticks):
    writer = create_writer(COPILOT)
    ahead = [writer.keep_alive() for _ in range(ticks)]
    assert all(len(letter) == 1 for letter in ahead[:14])
    events = text_deltas("Hi")
    assert b"".join(ahead) + writer.write(events) == create_writer(COPILOT).write(events)


def test_signs_of_life_after_a_frame_are_comments():
    writer = create_writer(COPILOT)
    sent = writer.start() + writer.write(text_deltas("a")) + writer.keep_alive() + writer.keep_alive()
    sent += writer.write(text_deltas("b")) + writer.keep_alive()
    assert read_events(sent) == [("copilotMessageChunk", {"delta": letter}) for letter in "ab"]
    assert sent.count(b"\n:") == 3
    assert CopilotResponse(sent.decode()).text == "ab"
    assert capture_stream_response(sent.decode()) == ("copilotMessageChunk", "ab")


# --- artifacts


def test_an_artifact_is_an_answer():
    events = stream(WORKSPACE, [ArtifactShown(call_id="call_1", artifact=Artifact(kind="text", name="a", text="b"))])
    assert kinds(events) == ["MessageArtifact"]


# --- bytes

WORDS = ("data:", "event:", "data", "\\u0041", "copilotFunctionCall", "copilotMessageChunk", "\r\n")
NASTY = st.text() | st.lists(
    st.sampled_from([*WORDS, *":\n\r \u2028\u2029\x85\x00\x1e\x7f\"'\\{}\ufeff\ud83d😀"]),
).map("".join)


def chunk(text: str) -> bytes:
    return encode_frame(("copilotMessageChunk", {"delta": text}))


def utf8(text: str) -> str:
    """Replace surrogates, which UTF-8 cannot encode."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def test_a_frame_is_written_as_the_protocol_shows_it():
    assert chunk("H") == b'event: copilotMessageChunk\ndata: {"delta":"H"}\n\n'
    asked = {"function": "get_widget_data", "input_arguments": {"widget_uuid": "c276369e"}}
    assert encode_frame(("copilotFunctionCall", asked)) == (
        b"event: copilotFunctionCall\n"
        b'data: {"function":"get_widget_data","input_arguments":{"widget_uuid":"c276369e"}}\n\n'
    )


@given(st.lists(NASTY, min_size=1))
@example(["data", ":", "event: x\n\ndata: {}\n\n"])
@example(["copilotFunctionCall", "a\u2028b"])
def test_any_text_in_any_pieces_is_the_same_for_every_reader(pieces):
    stream = b"".join(map(chunk, pieces))
    said = "".join(map(utf8, pieces))
    assert "".join(data["delta"] for _, data in read_events(stream)) == said
    assert CopilotResponse(stream.decode()).text == said
    assert capture_stream_response(stream.decode()) == ("copilotMessageChunk", said)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | NASTY,
    lambda inner: st.lists(inner) | st.dictionaries(NASTY, inner),
    max_leaves=20,
)


@given(st.dictionaries(NASTY, JSON))
def test_any_data_stands_on_one_line_without_nulls(data):
    stream = encode_frame(("copilotStatusUpdate", data))
    lines = stream.decode().split("\n")
    assert len(stream.decode().splitlines()) == 3  # nor a line's end as Unicode has them
    assert lines[0] == "event: copilotStatusUpdate"
    assert lines[2:] == ["", ""]
    assert lines[1].startswith("data: {")
    assert lines[1].count("data:") == 1
    assert "event:" not in lines[1]
    ((_, read),) = read_events(stream)
    assert not holds_null(read)


def holds_null(value: object) -> bool:
    if isinstance(value, dict):
        return any(map(holds_null, value.values()))
    return value is None or (isinstance(value, list) and any(map(holds_null, value)))


def test_what_is_null_is_left_out_at_any_depth():
    ((_, read),) = read_events(
        encode_frame(("copilotFunctionCall", {"a": None, "b": {"c": [None, {"d": None}, 0, ""]}}))
    )
    assert read == {"b": {"c": [{}, 0, ""]}}


def test_a_call_is_read_by_the_old_test_client_where_it_has_no_truth_values():
    asked = {"function": "get_widget_data", "input_arguments": {"widget_uuid": "a", "of": ["data: x", 1, None]}}
    stream = encode_frame(("copilotFunctionCall", asked)).decode()
    name, payload = capture_stream_response(stream)
    assert (name, json.loads(payload)["input_arguments"]["of"]) == ("copilotFunctionCall", ["data: x", 1])
    CopilotResponse(stream).starts("copilotFunctionCall").with_({"function": "get_widget_data"})


def test_truth_values_stay_json_which_every_client_but_the_test_client_reads():
    """The test client reads data as Python literals; openbb-ai sends such calls in the same way."""
    stream = encode_frame(("copilotFunctionCall", {"function": "f", "input_arguments": {"is_raw": True}}))
    assert read_events(stream) == [("copilotFunctionCall", {"function": "f", "input_arguments": {"is_raw": True}})]
    with pytest.raises(ValueError, match="malformed"):
        CopilotResponse(stream.decode())
