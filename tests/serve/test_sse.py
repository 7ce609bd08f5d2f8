"""Tests of encoded frames with a standard reader and with both parsers of the protocol's own test clients."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from openbb_ai.testing import CopilotResponse, capture_stream_response

from goose_like.serve.openbb.events import FRAME_PREFIX, MASKED_WORDS
from goose_like.serve.sse import Frame, StreamEncoder, encode_frame
from tests.serve.sse_reader import read_events

WORDS = ("data:", "event:", "data", "\\u0041", "copilotFunctionCall", "copilotMessageChunk", "\r\n")
NASTY = st.text() | st.lists(
    st.sampled_from([*WORDS, *":\n\r \u2028\u2029\x85\x00\x1e\x7f\"'\\{}\ufeff\ud83d😀"]),
).map("".join)


def encode(frame: Frame) -> bytes:
    return encode_frame(frame, MASKED_WORDS)


def chunk(text: str) -> bytes:
    return encode(("copilotMessageChunk", {"delta": text}))


def utf8(text: str) -> str:
    """Replace surrogates, which UTF-8 cannot encode."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def test_a_frame_is_written_as_the_protocol_shows_it():
    assert chunk("H") == b'event: copilotMessageChunk\ndata: {"delta":"H"}\n\n'
    asked = {"function": "get_widget_data", "input_arguments": {"widget_uuid": "c276369e"}}
    assert encode(("copilotFunctionCall", asked)) == (
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
    stream = encode(("copilotStatusUpdate", data))
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
    ((_, read),) = read_events(encode(("copilotFunctionCall", {"a": None, "b": {"c": [None, {"d": None}, 0, ""]}})))
    assert read == {"b": {"c": [{}, 0, ""]}}


def test_a_call_is_read_by_the_old_test_client_where_it_has_no_truth_values():
    asked = {"function": "get_widget_data", "input_arguments": {"widget_uuid": "a", "of": ["data: x", 1, None]}}
    stream = encode(("copilotFunctionCall", asked)).decode()
    name, payload = capture_stream_response(stream)
    assert (name, json.loads(payload)["input_arguments"]["of"]) == ("copilotFunctionCall", ["data: x", 1])
    CopilotResponse(stream).starts("copilotFunctionCall").with_({"function": "get_widget_data"})


def test_truth_values_stay_json_which_every_client_but_the_test_client_reads():
    """The test client reads data as Python literals; openbb-ai sends such calls in the same way."""
    stream = encode(("copilotFunctionCall", {"function": "f", "input_arguments": {"is_raw": True}}))
    assert read_events(stream) == [("copilotFunctionCall", {"function": "f", "input_arguments": {"is_raw": True}})]
    with pytest.raises(ValueError, match="malformed"):
        CopilotResponse(stream.decode())


@pytest.mark.parametrize("ticks", [0, 1, 5, 14, 15, 40])
def test_signs_of_life_ahead_of_the_first_frame_are_its_own_letters(ticks):
    for frame in (("copilotMessageChunk", {"delta": "Hi"}), ("copilotFunctionCall", {"function": "f"})):
        encoder = StreamEncoder(FRAME_PREFIX, MASKED_WORDS)
        ahead = [encoder.keep_alive() for _ in range(ticks)]
        assert all(len(letter) == 1 for letter in ahead[:14])
        assert b"".join(ahead) + encoder.encode([frame]) == encode(frame)


def test_signs_of_life_after_a_frame_are_comments():
    encoder = StreamEncoder(FRAME_PREFIX, MASKED_WORDS)
    stream = (
        encoder.keep_alive()
        + encoder.encode([("copilotMessageChunk", {"delta": "a"})])
        + encoder.keep_alive()
        + encoder.keep_alive()
    )
    stream += encoder.encode([("copilotMessageChunk", {"delta": "b"})]) + encoder.keep_alive()
    assert read_events(stream) == [("copilotMessageChunk", {"delta": letter}) for letter in "ab"]
    assert stream.count(b"\n:") == 3
    assert CopilotResponse(stream.decode()).text == "ab"
    assert capture_stream_response(stream.decode()) == ("copilotMessageChunk", "ab")
