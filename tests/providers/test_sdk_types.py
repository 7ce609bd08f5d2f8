"""Tests of the loopback server's checks: each wire's body and events can fail, and a broken answer can say so."""

import asyncio
import json
from typing import Any

import pytest

from tests.loopback import Loopback, Response, answer, chunk, events, named, raw, said, sse, started, words
from tests.responses_events import encode, respond, speak, stream

GOOD: dict[str, tuple[dict[str, Any], Response]] = {
    "/v1/chat/completions": ({"messages": [{"role": "user", "content": "hi"}]}, sse(said("hi"))),
    "/v1/messages": ({"max_tokens": 5, "messages": [{"role": "user", "content": "hi"}]}, answer(words(0, "hi"))),
    "/v1/responses": ({"input": [{"role": "user", "content": "hi"}]}, respond(speak(0, "msg_1", "hi"))),
}
BAD_EVENTS = {
    "/v1/chat/completions": events([chunk({"content": 5})]),
    "/v1/messages": named([{**started(), "message": {}}]),
    "/v1/responses": encode([{**event, "sequence_number": None} for event in stream(speak(0, "msg_1", "hi"))]),
}
BAD_BODIES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": [{"role": "user", "content": [{"type": "text"}]}]},
    "/v1/messages": {"max_tokens": 5, "messages": [{"role": "user", "content": [{"type": "text"}]}]},
    "/v1/responses": {"input": [], "tools": [{"type": "function", "name": 5}]},
}
PATHS = pytest.mark.parametrize("path", GOOD)


async def post(server: Loopback, path: str, body: dict[str, Any]) -> None:
    content = json.dumps({"model": "m", "stream": True, **body}).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(f"POST {path} HTTP/1.1\r\nContent-Length: {len(content)}\r\n\r\n".encode() + content)
    await reader.readuntil(b"\r\n\r\n")
    writer.close()


@PATHS
async def test_what_the_sdk_knows_passes(path: str) -> None:
    body, response = GOOD[path]
    async with Loopback([response]) as server:
        await post(server, path, body)
    assert len(server.requests) == 1


@PATHS
async def test_an_event_that_the_sdk_does_not_know(path: str) -> None:
    body, _ = GOOD[path]
    with pytest.raises(AssertionError, match=path):
        async with Loopback([raw(BAD_EVENTS[path])]) as server:
            await post(server, path, body)


@PATHS
async def test_a_broken_answer_gives_its_reason(path: str) -> None:
    body, _ = GOOD[path]
    async with Loopback([raw(BAD_EVENTS[path], broken="a test of it")]) as server:
        await post(server, path, body)
    assert len(server.requests) == 1


@PATHS
async def test_a_body_that_the_sdk_does_not_know(path: str) -> None:
    _, response = GOOD[path]
    with pytest.raises(AssertionError, match=path):
        async with Loopback([response]) as server:
            await post(server, path, BAD_BODIES[path])
    async with Loopback([response], odd_bodies="a test of them") as server:
        await post(server, path, BAD_BODIES[path])
    assert len(server.requests) == 1


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/responses"])
async def test_a_key_that_the_sdk_does_not_know(path: str) -> None:
    body, response = GOOD[path]
    with pytest.raises(AssertionError, match="unknown keys"):
        async with Loopback([response]) as server:
            await post(server, path, {**body, "fanfare": 1})
