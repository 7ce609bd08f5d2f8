"""Tests of the decoder of event streams."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goose_like.core.errors import BrokenStreamError
from goose_like.providers.event_stream import DONE, EventDecoder, StreamEvent


def decode(*pieces: bytes) -> list[StreamEvent]:
    decoder = EventDecoder()
    return [event for piece in pieces for event in decoder.feed(piece)] + list(decoder.finish())


def values(*pieces: bytes) -> list[object]:
    return [event.value for event in decode(*pieces)]


BODY = 'event: a\ndata: {"x": "grüße 😀"}\n\n: ping\n\ndata: {"y":\ndata: 1}\nid: 7\n\ndata: [DONE]\n\n'.encode()
EVENTS = [StreamEvent("a", {"x": "grüße 😀"}), StreamEvent("", {"y": 1}), StreamEvent("", DONE)]


@given(st.lists(st.integers(0, len(BODY) + 20)), st.sampled_from([b"\n", b"\r\n", b"\r"]), st.booleans())
def test_any_split_and_line_end_gives_the_same_events(places: list[int], line_end: bytes, has_bom: bool) -> None:
    body = (b"\xef\xbb\xbf" if has_bom else b"") + BODY.replace(b"\n", line_end)
    ends = [*sorted(min(place, len(body)) for place in places), len(body)]
    assert decode(*(body[start:end] for start, end in zip([0, *ends], ends, strict=False))) == EVENTS


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"])
def test_any_two_pieces_single_bytes_and_empty_pieces_give_the_same_events(line_end: bytes) -> None:
    body = BODY.replace(b"\n", line_end)
    assert decode(*(body[at : at + 1] for at in range(len(body)))) == EVENTS
    assert all(decode(body[:at], body[at:]) == EVENTS for at in range(len(body)))
    assert decode(*(piece for at in range(len(body)) for piece in (body[at : at + 1], b""))) == EVENTS


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(b'data:{"a":1}\n\n', [{"a": 1}], id="no space"),
        pytest.param(b'data: {"a":1}', [{"a": 1}], id="no end of the last line"),
        pytest.param(b'data: {"a":1}\ndata: {"b":2}\ndata: [DONE]\n', [{"a": 1}, {"b": 2}, DONE], id="no empty lines"),
        pytest.param(b'data\ndata: {"a":1}\n\ndata:\n\n', [{"a": 1}], id="empty data"),
        pytest.param(b'\xef\xbb\xbf\n {\n"a":\n1}\n', [{"a": 1}], id="a JSON document"),
        pytest.param(b"<html>\n\n<p>data: 1</p>", [], id="a web page"),
        pytest.param(b"", [], id="nothing"),
    ],
)
def test_sloppy_streams(body: bytes, expected: list[object]) -> None:
    assert values(body) == expected
    assert values(*(bytes([byte]) for byte in body)) == expected


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'data: {"a": 1\n\n', "no valid JSON"),
        (b'data: {"a": "\xff"}\n\n', "no valid JSON"),
        (b'data: {"a": 1', "within an event"),
        (b'{"a": 1', "within an event"),
        (b'event: a\x00data: {"a": 1}\n\ndata: {"b": 2}\n\n', "no line of an event stream"),
        (b'da\xff\x00ta: {"a": 1}\n\ndata: {"b": 2}\n\n', "no line of an event stream"),
    ],
)
def test_broken_streams(body: bytes, said: str) -> None:
    with pytest.raises(BrokenStreamError, match=said):
        decode(body)


def test_events_before_a_broken_one_are_kept() -> None:
    events = EventDecoder().feed(b"data: [DONE]\n\ndata: {broken\n\n")
    assert next(events).value == DONE


@given(st.binary())
def test_any_bytes_are_events_or_our_error(body: bytes) -> None:
    with suppress(BrokenStreamError):
        json.dumps(values(body))
