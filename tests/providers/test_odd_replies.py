"""Odd replies of servers, on all wires: each one is the right answer, whole and once, or a clear error."""

import gzip
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from goose_like.core.errors import ProviderError
from goose_like.core.events import MessageCompleted, TextDelta
from goose_like.core.message import Message
from tests.loopback import Loopback, block, chunk, ended, events, raw, said, started, usage, wish, words
from tests.providers.vendors import VENDORS, set_keys_only
from tests.responses_events import build_response, call, encode, speak, stream


class Failure(str):
    """A pattern of the text of an error."""


LS = '{"command": "ls"}'
PWD = '{"command": "pwd"}'


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    set_keys_only(monkeypatch)


def tool(**keys: Any) -> dict[str, Any]:
    """Return a delta of tool calls with one item. `name` and `arguments` belong to its function."""
    function = {key: keys.pop(key) for key in ("name", "arguments") if key in keys}
    return {"tool_calls": [{**keys, "function": function}]}


def chat(*deltas: Any, finish: str | None = "tool_calls") -> bytes:
    return events([*map(chunk, deltas), chunk(finish=finish)])


def lines(*texts: str) -> bytes:
    return "".join(f"{text}\n\n" for text in texts).encode()


def data(*values: Any) -> str:
    return "\n\n".join(f"data: {json.dumps(value)}" for value in values)


def messages(*groups: Sequence[Any]) -> bytes:
    entries = [entry for group in groups for entry in group]
    return "".join(f"event: {entry['type']}\ndata: {json.dumps(entry)}\n\n" for entry in entries).encode()


def document(value: Any) -> bytes:
    return json.dumps(value).encode()


CALL = ("shell", LS)
TWO = (CALL, ("shell", PWD))
SAID = data(*said("hello")[:-1])
ANSWER = [started(), *words(0, "hello"), *ended()]
DONE_CALL = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "c1",
    "name": "shell",
    "arguments": LS,
    "status": "completed",
}

CHAT: dict[str, tuple[bytes, Any]] = {
    "call without an index": (chat(tool(id="a", name="shell", arguments=LS)), [CALL]),
    "arguments as an object": (chat(tool(index=0, id="a", name="shell", arguments={"command": "ls"})), [CALL]),
    "two ids at one index": (
        chat(tool(index=0, id="a", name="shell", arguments=LS), tool(index=0, id="b", name="shell", arguments=PWD)),
        TWO,
    ),
    "ids that are numbers": (chat(tool(index=0, id=7, name="shell", arguments=LS)), [CALL]),
    "name in two pieces": (
        chat(tool(index=0, id="a", name="she"), tool(index=0, name="shell", arguments=LS)),
        [CALL],
    ),
    "call repeated at the end": (
        chat(tool(index=0, id="a", name="shell", arguments=LS), tool(index=0, id="a", name="shell", arguments=LS)),
        [CALL],
    ),
    "index as text": (chat(tool(index="0", id="a", name="shell"), tool(index="0", arguments=LS)), [CALL]),
    "calls of two choices": (
        events([{"choices": [{"index": 1, "delta": {"content": "no"}}, {"index": 0, "delta": {"content": "hello"}}]}])
        + events([chunk(finish="stop")]),
        "hello",
    ),
    "choices null": (lines(data({"choices": None}), SAID, "data: [DONE]"), "hello"),
    "usage in the middle": (
        events([chunk({"content": "hel"}), usage(3, 1), chunk({"content": "lo"}), chunk(finish="stop")]),
        "hello",
    ),
    "no reason, then [DONE]": (chat({"content": "hello"}, finish=None), "hello"),
    "[DONE] without a space": (lines(SAID, "data:[DONE]"), "hello"),
    "byte order mark": (b"\xef\xbb\xbf" + lines(SAID), "hello"),
    "CRLF": (lines(SAID, "data: [DONE]").replace(b"\n", b"\r\n"), "hello"),
    "CR alone": (lines(SAID, "data: [DONE]").replace(b"\n", b"\r"), "hello"),
    "comments between": (lines(": keep-alive", SAID, ": done", "data: [DONE]"), "hello"),
    "comment inside an event": (lines(": x\n" + SAID), "hello"),
    "event without data": (lines("event: ping", SAID, "event: done"), "hello"),
    "final chunk twice": (lines(SAID, data(chunk(finish="stop")), data(chunk(finish="stop"))), "hello"),
    "content as a list": (chat({"content": [{"type": "text", "text": "hello"}]}, finish="stop"), "hello"),
    "role in each delta": (
        chat(*({"role": "assistant", "content": piece} for piece in ("hel", "lo")), finish="stop"),
        "hello",
    ),
    "empty deltas": (chat({}, {"content": "hello"}, {}, None, finish="stop"), "hello"),
    "refusal": (
        chat({"content": None, "refusal": "I can't."}, finish="stop"),
        Failure("declined to answer: I can't"),
    ),
    "whole answer instead of a stream": (
        document({"choices": [{"message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}]}),
        "hello",
    ),
    "spaces before the JSON": (b"\n\n  " + document({"choices": [{"message": {"content": "hello"}}]}), "hello"),
    "error with its code as text": (
        lines(data({"error": {"message": "boom", "code": "server_error"}})),
        Failure("can't answer now.*boom"),
    ),
    "error as text": (lines(data({"error": "boom"})), Failure("broke off the answer: boom")),
    "error at status 200": (
        document({"error": {"message": "slow down", "code": 429}}),
        Failure("too many requests.*slow down"),
    ),
    "JSON error of FastAPI": (document({"detail": "Model not loaded"}), Failure("Model not loaded")),
    "error object without choices": (
        document({"object": "error", "message": "Model not loaded", "code": 404}),
        Failure("no model.*Model not loaded"),
    ),
    "web page": (b"<!doctype html><html>hi</html>", Failure("no event stream came but text/html")),
    "nothing": (b"", Failure("no event stream came")),
    "only keep-alives": (lines(": x", ": y"), Failure("no event stream came")),
    "call without a name": (chat(tool(index=0, id="a", arguments=LS)), Failure("without a name")),
    "no answer in it": (chat(finish="stop"), Failure("empty")),
}

RESPONSES: dict[str, tuple[bytes, Any]] = {
    "events without names": (lines(data(*stream(speak(0, "m", "hello")))), "hello"),
    "[DONE] at the end": (encode(stream(speak(0, "m", "hello"))) + b"data: [DONE]\n\n", "hello"),
    "last event twice": (encode([*(e := stream(speak(0, "m", "hello"))), e[-1]]), "hello"),
    "no item events": (
        encode([{"type": "response.completed", "response": build_response([DONE_CALL])}]),
        [CALL],
    ),
    "items without an index": (
        encode(
            [
                {"type": "response.output_item.done", "item": DONE_CALL},
                {"type": "response.completed", "response": build_response([])},
            ]
        ),
        [CALL],
    ),
    "unknown events": (
        encode([{"type": "response.sparkle", "x": 1}, *stream(speak(0, "m", "hello"))]),
        "hello",
    ),
    "whole answer instead of a stream": (
        document(build_response([e["item"] for e in speak(0, "m", "hello") if e["type"].endswith("item.done")])),
        "hello",
    ),
    "two calls": (encode(stream(call(0, "f1", "a", "shell", LS), call(1, "f2", "b", "shell", PWD))), TWO),
    "error without a code": (encode([{"type": "error", "message": "boom"}]), Failure("boom")),
    "failed without a reason": (
        encode([{"type": "response.failed", "response": build_response([], "failed", error=None)}]),
        Failure("gave no reason"),
    ),
    "JSON error at status 200": (document({"error": {"message": "boom", "code": "server_error"}}), Failure("boom")),
    "web page": (b"<html>hi</html>", Failure("no event stream came but text/html")),
}

MESSAGES: dict[str, tuple[bytes, Any]] = {
    "events without names": (lines(data(*ANSWER)), "hello"),
    "pings without end": (messages([{"type": "ping"}] * 3, ANSWER, [{"type": "ping"}]), "hello"),
    "unknown events": (messages(ANSWER[:1], [{"type": "sparkle"}], ANSWER[1:]), "hello"),
    "[DONE] at the end": (messages(ANSWER) + b"data: [DONE]\n\n", "hello"),
    "text in its start": (
        messages([started()], block(0, {"type": "text", "text": "hel"}, {"type": "text_delta", "text": "lo"}), ended()),
        "hello",
    ),
    "arguments without deltas": (
        messages(
            [started()],
            block(0, {"type": "tool_use", "id": "a", "name": "shell", "input": {"command": "ls"}}),
            ended("tool_use"),
        ),
        [CALL],
    ),
    "two calls": (
        messages([started()], wish(0, "a", "shell", LS), wish(1, "b", "shell", PWD), ended("tool_use")),
        TWO,
    ),
    "CRLF and comments": (b": hi\r\n\r\n" + messages(ANSWER).replace(b"\n", b"\r\n"), "hello"),
    "error of an overloaded server": (
        messages([started(), {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}]),
        Failure("busy"),
    ),
    "JSON error at status 200": (
        document({"type": "error", "error": {"type": "api_error", "message": "boom"}}),
        Failure("boom"),
    ),
    "web page": (b"<html>hi</html>", Failure("no event stream came but text/html")),
}

CASES = [
    pytest.param(wire, body, expected, id=f"{wire}: {name}")
    for wire, table in (("chat", CHAT), ("responses", RESPONSES), ("messages", MESSAGES))
    for name, (body, expected) in table.items()
]


@pytest.mark.parametrize("is_zipped", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize(("wire", "body", "expected"), CASES)
async def test_an_odd_reply(wire: str, body: bytes, expected: Any, is_zipped: bool) -> None:
    kind = "text/html" if body.startswith(b"<") else "text/event-stream"
    response = raw(body, kind=kind, broken="odd replies fit no type")
    if is_zipped:
        headers = {"content-type": kind, "content-encoding": "gzip"}
        response = replace(response, headers=headers, pieces=[gzip.compress(body)])
    async with Loopback([response]) as server:
        if isinstance(expected, Failure):
            with pytest.raises(ProviderError, match=expected):
                await VENDORS[wire].ask(server.base_url)
            return
        deltas = await VENDORS[wire].ask(server.base_url)
        assert len(server.requests) == 1
    done = deltas[-1]
    assert isinstance(done, MessageCompleted)
    assert "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)) == done.message.text
    assert read(done.message) == (expected if isinstance(expected, str) else [*expected])


def read(message: Message) -> Any:
    calls = [(call.name, json.dumps(call.parse_arguments())) for call in message.tool_calls]
    return calls or message.text
