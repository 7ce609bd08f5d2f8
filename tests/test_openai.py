"""The openai provider over a real loopback server: what goes out, what comes back, and what each fault becomes."""

import asyncio
import gzip
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing
from email.utils import formatdate
from typing import Any

import pytest
from loopback import Loopback, Response, called, chunk, events, raw, refusal, said, sse, threaded, usage

from goose_like.errors import (
    BrokenStreamError,
    ContextLengthError,
    CredentialError,
    ModelUnavailableError,
    ProfileError,
    ProviderError,
    RateLimitError,
)
from goose_like.events import MessageCompleted, Retrying, TextDelta
from goose_like.message import Message, ToolCall, Usage
from goose_like.profile import ModelChoice
from goose_like.provider import Delta, Patience, Request, ToolSpec, stream_with_retries
from goose_like.providers.door import retry_after_s
from goose_like.providers.openai import OpenAIProvider

KEY = "sk-secret-1234567890"
HASTE = Patience(tries=3, first_wait_s=0.001, longest_wait_s=0.01)
REQUEST = Request("m1", "be good", [Message.user("hi")], [ToolSpec("shell", "Runs.", {"type": "object"})])


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_BASE_URL", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


async def ask(server: Loopback, request: Request = REQUEST, **choice: Any) -> list[Delta]:
    """Everything the provider yields, tried again in haste."""
    return await ask_at(server.base_url, request, **choice)


async def ask_at(base_url: str, request: Request = REQUEST, **choice: Any) -> list[Delta]:
    provider = OpenAIProvider(ModelChoice(model="openai:m1", base_url=base_url, **choice))
    try:
        return [delta async for delta in stream_with_retries(provider, request, HASTE)]
    finally:
        await provider.close()


async def error_of(responses: list[Response], tries: int, **choice: Any) -> ProviderError:
    """The error that the responses end with; the server must have been asked exactly `tries` times."""
    async with Loopback(responses) as server:
        with pytest.raises(ProviderError) as caught:
            await ask(server, **choice)
        assert len(server.requests) == tries
        assert f"openai at 127.0.0.1:{server.port}: " in str(caught.value)
    return caught.value


def text_of(deltas: list[Delta]) -> str:
    done = deltas[-1]
    assert isinstance(done, MessageCompleted)
    return done.message.text


# --- the good case


async def test_an_answer_and_the_request_on_the_wire() -> None:
    async with Loopback([sse([chunk({"content": "hé"}), *said("llo"), usage(10, 5, 8)])]) as server:
        deltas = await ask(server, max_output_tokens=50, temperature=0.5)
        asked = server.requests[0]
    assert [d.text for d in deltas if isinstance(d, TextDelta)] == ["hé", "llo"]
    done = deltas[-1]
    assert isinstance(done, MessageCompleted)
    assert done.usage == Usage(input_tokens=10, output_tokens=5, cache_read_tokens=8)
    assert asked.head.startswith(b"POST /v1/chat/completions HTTP/1.1\r\n")
    assert f"Authorization: Bearer {KEY}".lower().encode() in asked.head.lower()
    assert b"content-type: application/json" in asked.head.lower()
    body = asked.json
    assert body.pop("messages") == [{"role": "system", "content": "be good"}, {"role": "user", "content": "hi"}]
    assert body.pop("tools")[0]["function"]["name"] == "shell"
    assert body == {
        "model": "m1",
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 50,
        "temperature": 0.5,
    }


async def test_parallel_calls_and_one_connection_for_two_requests() -> None:
    async with Loopback([sse(called(("1", "a", "{}"), ("2", "b", '{"x":1}'))), sse(said("done"))]) as server:
        provider = OpenAIProvider(ModelChoice(model="openai:m1", base_url=server.base_url))
        done = [delta async for delta in provider.stream(REQUEST)][-1]
        assert isinstance(done, MessageCompleted)
        assert done.message.tool_calls == (
            ToolCall(id="1", name="a", arguments="{}"),
            ToolCall(id="2", name="b", arguments='{"x":1}'),
        )
        longer = Request(REQUEST.model, REQUEST.system, [*REQUEST.messages, done.message], REQUEST.tools)
        [_ async for _ in provider.stream(longer)]
        await provider.close()
        first, second = (asked.body for asked in server.requests)
    assert second.startswith(first.removesuffix(b"]}"))


async def test_it_works_against_a_server_in_a_thread() -> None:
    with threaded([sse(said("hello"))]) as server:
        assert text_of(await ask(server)) == "hello"


async def test_the_base_url_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Loopback([sse(said("x"))]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.delenv("OPENAI_API_KEY")
        choice = ModelChoice(model="openai:m1")
        assert OpenAIProvider.missing(choice) is None
        provider = OpenAIProvider(choice)
        assert text_of([delta async for delta in provider.stream(REQUEST)]) == "x"
        await provider.close()


async def test_the_constrained_form_sends_a_schema_and_no_tools() -> None:
    async with Loopback([refusal(400)]) as server:
        with pytest.raises(ProviderError):
            await ask(server, tools="constrained")
        body = server.requests[0].json
    assert "tools" not in body
    assert body["response_format"]["json_schema"]["name"] == "answer"
    assert isinstance(body["response_format"]["json_schema"]["schema"], dict)


@pytest.mark.parametrize(
    ("model", "extras"),
    [
        ("gpt-6-sol", {"max_completion_tokens": 9, "reasoning_effort": "none"}),
        ("gpt-5.6-luna", {"max_completion_tokens": 9, "reasoning_effort": "none"}),
        ("gpt-5.4", {"max_completion_tokens": 9}),
    ],
)
def test_what_openai_itself_is_sent(model: str, extras: dict[str, Any]) -> None:
    provider = OpenAIProvider(ModelChoice(model=f"openai:{model}", max_output_tokens=9))
    body = json.loads(provider._body(Request(model, "s", [], REQUEST.tools)))
    assert {
        key: body[key] for key in body if key not in ("model", "stream", "stream_options", "tools", "messages")
    } == (extras)


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        pytest.param(raw(*[bytes([byte]) for byte in events(said("grüße 😀"))]), "grüße 😀", id="byte by byte"),
        pytest.param(raw(events(said("hi"), end="\r\n")), "hi", id="CRLF"),
        pytest.param(raw(events(said("hi"), end="\r")), "hi", id="CR"),
        pytest.param(raw(b": ping\n\n" * 3, events(said("hi")), b": bye\n\n"), "hi", id="comments"),
        pytest.param(raw(events([{"choices": []}, *said("hi")])), "hi", id="empty choices"),
        pytest.param(raw(events(said("hi"), is_done=False)), "hi", id="no [DONE]"),
        pytest.param(raw(events(said("hi")), kind="text/plain"), "hi", id="another content type"),
        pytest.param(raw(events(said("hi")), b"data: {broken"), "hi", id="junk after [DONE]"),
        pytest.param(raw(b"retry: 5\nid: 7\n", events(said("hi"))), "hi", id="other fields"),
        pytest.param(raw(b'data: {"choices":\ndata: []}\n\n', events(said("hi"))), "hi", id="JSON over two data lines"),
        pytest.param(Response(200, {"content-encoding": "gzip"}, [gzip.compress(events(said("hi")))]), "hi", id="gzip"),
        pytest.param(
            Response(200, {"content-length": str(len(events(said("hi"))))}, [events(said("hi"))]), "hi", id="a length"
        ),
    ],
)
async def test_streams_that_are_whole(response: Response, expected: str) -> None:
    async with Loopback([response]) as server:
        assert text_of(await ask(server)) == expected
        assert len(server.requests) == 1


async def test_a_length_stop_within_arguments_is_cut() -> None:
    cut = [chunk({"tool_calls": [{"index": 0, "id": "1", "function": {"name": "f", "arguments": '{"x": "ab'}}]})]
    async with Loopback([sse([*cut, chunk(finish="length")])]) as server:
        done = (await ask(server))[-1]
    assert isinstance(done, MessageCompleted)
    assert done.is_cut
    assert done.message.tool_calls[0].arguments == '{"x": "ab'


# --- refusals


@pytest.mark.parametrize(
    ("status", "kind", "tries", "exit_code", "words"),
    [
        (400, ProviderError, 1, 1, "no way"),
        (401, CredentialError, 1, 76, "OPENAI_API_KEY"),
        (402, RateLimitError, 1, 75, "credit"),
        (403, CredentialError, 1, 76, "OPENAI_API_KEY"),
        (404, ModelUnavailableError, 1, 77, "m1"),
        (408, ModelUnavailableError, 3, 77, "later"),
        (409, ModelUnavailableError, 3, 77, "later"),
        (413, ContextLengthError, 1, 1, "window"),
        (418, ProviderError, 1, 1, "no way"),
        (422, ProviderError, 1, 1, "no way"),
        (429, RateLimitError, 3, 75, "too many requests"),
        (500, ModelUnavailableError, 3, 77, "later"),
        (502, ModelUnavailableError, 3, 77, "later"),
        (503, ModelUnavailableError, 3, 77, "later"),
        (529, ModelUnavailableError, 3, 77, "later"),
    ],
)
async def test_a_refusal(status: int, kind: type[ProviderError], tries: int, exit_code: int, words: str) -> None:
    error = await error_of([refusal(status, "no way")], tries)
    assert type(error) is kind
    assert error.exit_code == exit_code
    assert words in str(error)
    assert f"HTTP {status}: no way" in str(error)


async def test_a_refusal_then_an_answer() -> None:
    async with Loopback([refusal(503), refusal(429, headers={"retry-after": "0"}), sse(said("hi"))]) as server:
        deltas = await ask(server)
        assert len(server.requests) == 3
    assert sum(isinstance(delta, Retrying) for delta in deltas) == 2
    assert text_of(deltas) == "hi"


async def test_no_credit_is_not_tried_again() -> None:
    assert isinstance(await error_of([refusal(429, code="insufficient_quota")], 1), RateLimitError)


async def test_a_request_too_long() -> None:
    message = "This model's maximum context length is 8192 tokens"
    assert isinstance(await error_of([refusal(400, message)], 1), ContextLengthError)


async def test_a_model_without_tools_on_this_wire_says_what_to_set() -> None:
    error = await error_of([refusal(400, "Function tools are not supported in x. Use /v1/responses")], 1)
    assert "tools: constrained" in str(error)


@pytest.mark.parametrize("body", [b"", b"<html>gone</html>", b"{broken", b"null", b"[]", b"\xff\xfe", b'"words"'])
async def test_a_refusal_without_sense_in_its_body(body: bytes) -> None:
    assert isinstance(await error_of([Response(503, {}, [body])], 3), ModelUnavailableError)


async def test_neither_key_nor_password_is_told_and_long_words_are_clipped() -> None:
    async with Loopback([refusal(400, f"bad {KEY} of geheim " + "x" * 5000)]) as server:
        with pytest.raises(ProviderError) as caught:
            await ask_at(server.base_url.replace("//", "//me:geheim@") + "?token=abc")
    text = str(caught.value)
    assert "***" in text
    assert not any(secret in text for secret in (KEY, "geheim", "token=abc", "me:"))
    assert len(text) < 500


@pytest.mark.parametrize("value", ["soon", "-5", "nan", "inf", "1e999", "", "Thu, 99 Foo 2026", "\xff", "1" * 400])
async def test_a_senseless_retry_after_is_as_none(value: str) -> None:
    error = await error_of([refusal(429, headers={"retry-after": value})], 3)
    assert error.retry_after_s is None


@pytest.mark.parametrize(
    ("headers", "expected_s"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after-ms": "x", "retry-after": "7"}, 7.0),
        ({"retry-after": formatdate(1030, usegmt=True)}, 30.0),
        ({"retry-after": formatdate(970, usegmt=True)}, None),
        ({"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"}, 253402300799.0 - 1000),
        ({}, None),
    ],
)
def test_retry_after(headers: dict[str, str], expected_s: float | None) -> None:
    assert retry_after_s(headers, now_s=1000.0) == expected_s


async def test_an_absurd_retry_after_is_capped() -> None:
    async with Loopback([refusal(429, headers={"retry-after": "86400"}), sse(said("hi"))]) as server:
        deltas = await ask(server)
    assert [delta.wait_s for delta in deltas if isinstance(delta, Retrying)] == [HASTE.longest_wait_s]


# --- no connection


async def test_a_refused_connection_names_host_and_port() -> None:
    async with Loopback([]) as server:
        port, base_url = server.port, server.base_url
    with pytest.raises(ModelUnavailableError, match=rf"no answer from 127\.0\.0\.1:{port} .*OPENAI_BASE_URL") as caught:
        await ask_at(base_url)
    assert caught.value.is_retryable


async def test_an_unknown_host() -> None:
    with pytest.raises(ModelUnavailableError, match=r"no\.such\.invalid:443") as caught:
        await ask_at("https://no.such.invalid/v1")
    assert caught.value.is_retryable


async def test_no_tls_where_tls_was_asked() -> None:
    async def plain(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 no TLS here\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(plain, "127.0.0.1", 0)
    with pytest.raises(ModelUnavailableError, match=r"(?i)ssl") as caught:
        await ask_at(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")
    assert caught.value.is_retryable
    server.close()


async def test_a_server_that_accepts_and_says_nothing() -> None:
    async def silent(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(5)
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    with pytest.raises(ModelUnavailableError) as caught:
        await ask_at(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", stall_s=0.05)
    assert caught.value.is_retryable
    server.close()


@pytest.mark.parametrize(
    "base_url", ["localhost:8080", "ftp://x/v1", "http://", "http://x:99999/v1", "http://[::1", "x"]
)
async def test_no_base_url(base_url: str) -> None:
    choice = ModelChoice(model="openai:m1", base_url=base_url)
    assert "http://localhost:8080/v1" in str(OpenAIProvider.missing(choice))
    with pytest.raises(ProfileError, match="no base URL"):
        await ask_at(base_url)


@pytest.mark.parametrize("key", ["", "  ", "schlüssel", "a\nb"])
async def test_no_key(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    choice = ModelChoice(model="openai:m1")
    assert "OPENAI_API_KEY" in str(OpenAIProvider.missing(choice))
    with pytest.raises(CredentialError, match="OPENAI_API_KEY"):
        [_ async for _ in OpenAIProvider(choice).stream(REQUEST)]


# --- broken streams

HALF = events([chunk({"content": "hel"}), chunk({"content": "lo"})], is_done=False)[:-30]


@pytest.mark.parametrize(
    ("response", "words"),
    [
        pytest.param(raw(HALF), "finish reason", id="ends early"),
        pytest.param(raw(events([chunk({"content": "x"})])), "finish reason", id="[DONE] without a finish reason"),
        pytest.param(raw(events([])), "no event stream", id="only [DONE]"),
        pytest.param(raw(HALF, is_reset=True, pause_s=0.02), "connection broke", id="reset"),
        pytest.param(
            Response(200, {"transfer-encoding": "chunked", "connection": "close"}, [b"5\r\ndata:\r\n"]),
            "connection broke",
            id="cut within HTTP chunks",
        ),
        pytest.param(
            Response(200, {"content-length": "9999", "connection": "close"}, [HALF]), "connection broke", id="too short"
        ),
        pytest.param(raw(b'data: {"choices": [{"del\n\n'), "no valid JSON", id="broken JSON"),
        pytest.param(raw(b'data: {"choices": [\xff]}\n\n'), "no valid JSON", id="no UTF-8"),
        pytest.param(raw(b"data: " + b"[" * 100_000 + b"\n\n"), "no valid JSON", id="JSON nested without end"),
        pytest.param(raw(b"data: " + b"1" * 5000 + b"\n\n"), "no valid JSON", id="a number without end"),
        pytest.param(raw(b"data: [1, 2]\n\n"), "a chunk", id="a list"),
        pytest.param(raw(b"data: 5\n\n"), "a chunk", id="a number"),
        pytest.param(raw(b"data: null\n\n"), "finish reason", id="null"),
        pytest.param(raw(events([chunk({"content": 5})])), "content", id="wrong type"),
        pytest.param(raw(events([{"error": {"message": "boom", "code": 500}}])), "boom", id="error within"),
        pytest.param(raw(events([chunk({"content": "x"}), {"error": "boom"}])), "boom", id="error within, as a string"),
        pytest.param(raw(events([chunk(finish="stop")])), "empty", id="says nothing"),
        pytest.param(raw(b"<html>hello</html>", kind="text/html"), "text/html", id="HTML with 200"),
        pytest.param(raw(b'{"choices": []}', kind="application/json"), "application/json", id="JSON with 200"),
        pytest.param(raw(b""), "no event stream", id="empty body"),
        pytest.param(Response(204, {"content-length": "0"}), "no event stream", id="204"),
        pytest.param(
            Response(200, {"content-encoding": "gzip"}, [b"no gzip"]), "connection broke", id="gzip that is none"
        ),
        pytest.param(raw(HALF, hang_s=5), "stalled", id="stalls"),
        pytest.param(raw(hang_s=5), "stalled", id="stalls after the head"),
    ],
)
async def test_a_broken_stream_is_never_an_answer(response: Response, words: str) -> None:
    error = await error_of([response], 3, stall_s=0.3)
    assert type(error) is BrokenStreamError
    assert error.is_retryable
    assert error.exit_code == 77
    assert words in str(error)


async def test_an_error_within_that_tells_of_length() -> None:
    response = raw(events([{"error": {"message": "exceeds the available context size", "code": 400}}]))
    assert isinstance(await error_of([response], 1), ContextLengthError)


async def test_a_broken_stream_then_an_answer() -> None:
    async with Loopback([raw(HALF), sse(said("whole"))]) as server:
        deltas = await ask(server)
    assert text_of(deltas) == "whole"
    assert any(isinstance(delta, Retrying) for delta in deltas)


# --- its own manners


async def test_closing_the_stream_hangs_up() -> None:
    gone = asyncio.Event()

    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(raw(events([chunk({"content": "x"})], is_done=False)).head())
        writer.write(events([chunk({"content": "x"})], is_done=False))
        while await reader.read(4096):
            pass
        gone.set()
        writer.close()

    server = await asyncio.start_server(endless, "127.0.0.1", 0)
    base_url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    provider = OpenAIProvider(ModelChoice(model="openai:m1", base_url=base_url))
    async with aclosing(provider.stream(REQUEST)) as deltas:
        assert await anext(aiter(deltas)) == TextDelta(text="x")
    await asyncio.wait_for(gone.wait(), 5)
    await provider.close()
    server.close()


async def test_cancelling_passes() -> None:
    async with Loopback([raw(HALF, hang_s=30)]) as server:
        provider = OpenAIProvider(ModelChoice(model="openai:m1", base_url=server.base_url))
        begun = asyncio.Event()

        async def read(deltas: AsyncIterator[Delta]) -> None:
            async for _ in deltas:
                begun.set()

        task = asyncio.create_task(read(provider.stream(REQUEST)))
        await asyncio.wait_for(begun.wait(), 5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await provider.close()


def test_importing_the_provider_does_not_import_the_sdk() -> None:
    code = (
        "import sys, goose_like.providers.openai; "
        "sys.exit(' '.join({'openai', 'httpx2', 'anyio'} & {*sys.modules}) or 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
