"""Tests of the fake Workspace against openbb-ai's own models."""

import json

import pytest
from openbb_ai.models import QueryRequest

from tests.loopback import Loopback, Response
from tests.serve.workspace_client import ESTIMATES, PRICES, Parser, Sent, Workspace

STREAM = {"content-type": "text/event-stream"}
CHUNK = b'event: copilotMessageChunk\ndata: {"delta": "caf\xc3\xa9"}\n\n'


def asks(dialect: str) -> bytes:
    sources = [
        {"widget_uuid": PRICES, "origin": "Sample data", "id": "prices", "input_args": {"symbol": "OTHR"}},
        {"widget_uuid": "x", "origin": "", "id": "", "input_args": {}},
    ]
    arguments = {"data_sources": sources} if dialect == "workspace" else {"widget_uuid": ESTIMATES}
    call = {"function": "get_widget_data", "input_arguments": arguments, "extra_state": {"mine": "kept"}}
    return b"event: copilotFunctionCall\ndata: %s\n\n" % json.dumps(call).encode()


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_a_stream_is_read_wherever_it_is_cut(size):
    stream = (
        b": ping\r\n\r\n" + CHUNK + b"data: 1\ndata: 2\n: x\n\n".replace(b"1\ndata: 2", b"[1,\ndata:2]") + b"data: 3\n"
    )
    parser = Parser()
    read = [sent for at in range(0, len(stream), size) for sent in parser.feed(stream[at : at + size])]
    assert read == [Sent("copilotMessageChunk", {"delta": "café"}), Sent("message", [1, 2])]


@pytest.mark.parametrize("calls_as", ["text", "twice", "object"])
async def test_today_s_client_gives_each_data_source(calls_as):
    answers = [Response(headers=STREAM, pieces=[CHUNK + asks("workspace")]), Response(headers=STREAM, pieces=[CHUNK])]
    async with (
        Loopback(answers) as server,
        Workspace(f"http://127.0.0.1:{server.port}", calls_as=calls_as, tools={"add": lambda given: 1}) as workspace,
    ):
        turn = await workspace.ask("what is the price?")
    assert (turn.text, len(turn.calls)) == ("cafécafé", 1)
    first, second = (QueryRequest.model_validate(asked.json) for asked in server.requests)
    assert [widget.name for widget in first.widgets.primary] == ["Historical Prices"]
    _, words, call, given = second.messages
    assert words.content == "café"
    assert call.content.function == "get_widget_data"
    rows = json.loads(given.data[0].items[0].content)
    assert [row["symbol"] for row in rows] == ["OTHR"] * 5
    assert given.data[1].error_type == "not_found"
    assert given.extra_state == {"mine": "kept"}


async def test_the_client_of_2024_gives_text():
    answers = [Response(headers=STREAM, pieces=[asks("copilot")]), Response(headers=STREAM, pieces=[CHUNK])]
    async with (
        Loopback(answers) as server,
        Workspace(f"http://127.0.0.1:{server.port}", dialect="copilot") as workspace,
    ):
        await workspace.ask("what do analysts expect?")
    body = server.requests[1].json
    assert isinstance(body["widgets"], list)
    assert json.loads(body["messages"][1]["content"])["input_arguments"] == {"widget_uuid": ESTIMATES}
    assert json.loads(body["messages"][2]["data"]["content"])[0]["eps"] == 1.5
    assert workspace.messages[-1] == {"role": "ai", "content": "café"}


async def test_an_event_after_a_call_is_against_the_protocol():
    answers = [Response(headers=STREAM, pieces=[asks("workspace") + CHUNK])]
    async with Loopback(answers) as server, Workspace(f"http://127.0.0.1:{server.port}") as workspace:
        with pytest.raises(AssertionError, match="came after a call"):
            await workspace.ask("x")
