"""Tests of requests that are wrong, hostile or abandoned, over plain HTTP."""

import asyncio
import json
import re
from typing import Any

import httpx2
import pytest

pytest.importorskip("uvicorn")

from hypothesis import given
from hypothesis import strategies as st

from goose_like.core.events import TurnStarted
from goose_like.serve.openai.chat_body import ChatBody
from goose_like.serve.openai.history import build_turn
from goose_like.serve.openai.request import RequestError
from goose_like.serve.state import StateSigner
from tests.fakes import is_well_formed
from tests.loopback import chunk, events, raw, said, sse
from tests.serve.openai_server import serving_openai
from tests.serve.test_app import wait_until

SIGNER = StateSigner(b"k" * 32)
CALL = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
TOOL = {"type": "function", "function": {"name": "f"}}
USER = {"role": "user", "content": "x"}
ASKED = {"role": "assistant", "content": None, "tool_calls": [CALL]}


def build(**fields: Any) -> bytes:
    return json.dumps({"model": "openbb", "messages": [USER], **fields}).encode()


def result(call_id: str, content: Any = "1") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


REFUSED = {
    "not JSON": (b"{", None),
    "not an object": (b"[]", None),
    "deep": (b'{"messages": ' + b"[" * 3_000 + b"]" * 3_000 + b"}", None),
    "deep with a surrogate": (b'{"x": "\\ud800", "messages": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", None),
    "no model": (json.dumps({"messages": [USER]}).encode(), "model"),
    "no messages": (build(messages=[]), "messages"),
    "messages of another type": (build(messages={"role": "user"}), "messages"),
    "a message of another type": (build(messages=["hello"]), "messages[0]"),
    "an unknown role": (build(messages=[{"role": "function", "content": "x"}]), "messages[0]"),
    "content of another type": (build(messages=[{"role": "user", "content": 5}]), "messages[0].content"),
    "an unknown part": (build(messages=[{"role": "user", "content": [{"type": "audio"}]}]), "messages[0].content[0]"),
    "a part without text": (
        build(messages=[{"role": "user", "content": [{"type": "text", "text": None}]}]),
        "messages[0].content[0].text",
    ),
    "a flag of another type": (build(stream="yes"), "stream"),
    "too many tokens of another type": (build(max_tokens="9"), "max_tokens"),
    "no tokens": (build(max_completion_tokens=0), "max_completion_tokens"),
    "too hot": (build(temperature=2.5), "temperature"),
    "stop of another type": (build(stop=[5]), "stop[0]"),
    "several answers": (build(n=2), "n"),
    "an invalid schema of the answer": (
        build(response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "number?"}}}),
        "response_format",
    ),
    "no schema of the answer": (build(response_format={"type": "json_schema"}), "response_format"),
    "a form of the answer": (build(response_format={"type": "grammar"}), "response_format.type"),
    "a forced call without tools": (build(tool_choice="required"), "tool_choice"),
    "a forced call of another tool": (
        build(tools=[TOOL], tool_choice={"type": "function", "function": {"name": "g"}}),
        "tool_choice",
    ),
    "an unknown choice": (build(tools=[TOOL], tool_choice={"type": "allowed_tools"}), "tool_choice"),
    "a tool of another type": (build(tools=[{"type": "custom", "custom": {"name": "f"}}]), "tools[0].type"),
    "a tool with a strange name": (
        build(tools=[{"type": "function", "function": {"name": "a b"}}]),
        "tools[0].function.name",
    ),
    "two tools of one name": (build(tools=[TOOL, TOOL]), "tools"),
    "a tool with a name of the profile": (
        build(tools=[{"type": "function", "function": {"name": "count_bottles"}}]),
        "tools",
    ),
    "a result without a call": (build(messages=[USER, result("a")]), "messages[1].tool_call_id"),
    "a result of an unknown call": (build(messages=[USER, ASKED, result("b")]), "messages[2].tool_call_id"),
    "a result twice": (build(messages=[USER, ASKED, result("a"), result("a")]), "messages[3].tool_call_id"),
    "a result after a message": (build(messages=[USER, ASKED, USER, result("a")]), "messages[3].tool_call_id"),
    "two calls of one id": (
        build(messages=[USER, {**ASKED, "tool_calls": [CALL, CALL]}]),
        "messages[1].tool_calls",
    ),
    "an image of the system": (
        build(messages=[{"role": "system", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]),
        "messages[0].content",
    ),
    "too many messages": (build(messages=[USER] * 7), "messages"),
}


async def test_refused_requests(monkeypatch, tmp_path):
    """Each is answered with OpenAI's error object, the server goes on, and no model is asked."""
    limits = {"max_messages": 6, "max_body_bytes": 1_000_000}
    kind = {"content-type": "application/json"}
    async with (
        serving_openai(monkeypatch, tmp_path, [sse(said("hi"))], toolkits=["cellar"], **limits) as server,
        httpx2.AsyncClient(base_url=server.url, headers=kind) as client,
    ):
        for name, (body, param) in REFUSED.items():
            answer = await client.post("/chat/completions", content=body)
            assert answer.status_code == 400, (name, answer.text)
            error = answer.json()["error"]
            assert (error["type"], error["param"]) == ("invalid_request_error", param), (name, error)
            assert error["message"], name
            assert not re.search("Input should|validation|[Vv]alid (list|string|dict|tuple)", error["message"]), name
        large = await client.post("/chat/completions", content=b"x" * 1_000_001)
        assert (large.status_code, large.json()["error"]["type"]) == (413, "invalid_request_error")
        announced = b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
        reader, writer = await asyncio.open_connection("127.0.0.1", client.base_url.port)
        writer.write(announced + b"content-length: 99999999999\r\n\r\n{")
        assert (await reader.readline()).startswith(b"HTTP/1.1 413")  # nothing more of the body comes
        writer.close()
        text = await client.post("/chat/completions", content=b"{}", headers={"content-type": "text/plain"})
        assert text.status_code == 415
        assert (await client.head("/models")).status_code == 200
        assert not server.model.requests


async def test_only_the_right_key_is_answered(monkeypatch, tmp_path):
    async with (
        serving_openai(monkeypatch, tmp_path, [sse(said("hi"))], token="s3cret") as server,
        httpx2.AsyncClient(base_url=server.url) as client,
    ):
        for answer in (await client.get("/models"), await client.post("/chat/completions", content=build())):
            assert (answer.status_code, answer.json()["error"]["code"]) == (401, "invalid_api_key")
            assert answer.headers["www-authenticate"].startswith("Bearer")
        assert [model.id async for model in server.client.models.list()] == ["openbb"]
        assert (await server.ask("x")).choices[0].message.content == "hi"


@pytest.mark.parametrize("is_stream", [False, True])
async def test_a_client_that_leaves_ends_its_turn(monkeypatch, tmp_path, is_stream):
    word = events([chunk({"content": "one"})], is_done=False)
    async with serving_openai(monkeypatch, tmp_path, [raw(word, hang_s=600)]) as server:
        body = build(stream=is_stream)
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {len(body)}\r\n"
        writer.write(f"{head}content-type: application/json\r\n\r\n".encode() + body)
        await wait_until(lambda: server.model.requests)
        assert server.metrics.running_queries == 1
        writer.close()
        await wait_until(lambda: server.metrics.running_queries == 0)
        await wait_until(lambda: b'ending="cancelled"' in server.metrics.export())


PARTS = st.lists(
    st.one_of(
        st.builds(lambda text: {"type": "text", "text": text}, st.text()),
        st.builds(lambda text: {"type": "refusal", "refusal": text}, st.text()),
    ),
    max_size=2,
)
CONTENT = st.none() | st.text(max_size=5) | PARTS
IDS = st.sampled_from(["a", "b"])
MESSAGES = st.lists(
    st.one_of(
        st.builds(lambda role, content: {"role": role, "content": content}, st.sampled_from(["user"]), CONTENT),
        st.builds(lambda content: {"role": "system", "content": content}, CONTENT),
        st.builds(
            lambda content, ids: {
                "role": "assistant",
                "content": content,
                "tool_calls": [{**CALL, "id": call_id} for call_id in ids],
            },
            CONTENT,
            st.lists(IDS, max_size=2, unique=True),
        ),
        st.builds(result, IDS, CONTENT),
    ),
    min_size=1,
    max_size=9,
)


@given(MESSAGES)
def test_any_conversation_gives_a_well_formed_history(messages):
    """Each call in the history has one result in the next message, whatever the client sent; or the request fails."""
    try:
        turn = build_turn(ChatBody.parse(build(messages=messages)).convert(), SIGNER)
    except RequestError:
        return
    turn.history.apply(TurnStarted(message=turn.message))
    assert is_well_formed(turn.history.messages)
