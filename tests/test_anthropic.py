"""The anthropic provider over a real loopback server: what goes out, what comes back, and what each fault becomes."""

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
from loopback import Loopback, Response, answer, ended, named, raw, refusal, started, thought, threaded, wish, words

from goose_like.errors import (
    BrokenStreamError,
    ContextLengthError,
    CredentialError,
    GooseLikeError,
    ModelUnavailableError,
    ProfileError,
    ProviderError,
    RateLimitError,
)
from goose_like.events import MessageCompleted, Retrying, TextDelta
from goose_like.message import Message, Text, Thinking, ToolCall, ToolResult, Usage
from goose_like.profile import ModelChoice
from goose_like.provider import Delta, Patience, Request, ToolSpec, stream_with_retries
from goose_like.providers.anthropic import AnthropicProvider, BedrockProvider, VertexProvider

KEY = "sk-ant-secret-1234567890"
HASTE = Patience(tries=3, first_wait_s=0.001, longest_wait_s=0.01)
REQUEST = Request("m1", "be good", [Message.user("hi")], [ToolSpec("shell", "Runs.", {"type": "object"})])
MARK = b',"cache_control":{"type":"ephemeral"}'


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    proxies = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
    for name in ("ANTHROPIC_BASE_URL", "ANTHROPIC_AUTH_TOKEN", "AWS_REGION", "CLOUD_ML_REGION", *proxies):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)


async def ask(server: Loopback, request: Request = REQUEST, **choice: Any) -> list[Delta]:
    """Everything the provider yields, tried again in haste."""
    return await ask_at(server.base_url, request, **choice)


async def ask_at(base_url: str, request: Request = REQUEST, **choice: Any) -> list[Delta]:
    provider = AnthropicProvider(ModelChoice(model="anthropic:m1", base_url=base_url, **choice))
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
        assert f"anthropic at 127.0.0.1:{server.port}: " in str(caught.value)
    return caught.value


def text_of(deltas: list[Delta]) -> str:
    done = deltas[-1]
    assert isinstance(done, MessageCompleted)
    return done.message.text


# --- the good case


async def test_an_answer_and_the_request_on_the_wire() -> None:
    async with Loopback([answer(words(0, "hé", "llo"), cache_read_input_tokens=8)]) as server:
        deltas = await ask(server, max_output_tokens=50)
        asked = server.requests[0]
    assert [d.text for d in deltas if isinstance(d, TextDelta)] == ["hé", "llo"]
    done = deltas[-1]
    assert isinstance(done, MessageCompleted)
    assert done.usage == Usage(input_tokens=18, output_tokens=5, cache_read_tokens=8)
    head = asked.head.lower()
    assert head.startswith(b"post /v1/messages http/1.1\r\n")
    assert f"authorization: bearer {KEY}".encode() in head
    assert b"content-type: application/json" in head
    assert b"anthropic-version: 2026-10-21" in head
    body = asked.json
    assert [entry["content"][0]["text"] for entry in body.pop("messages")] == ["hi"]
    assert body.pop("tools")[0]["name"] == "shell"
    assert body.pop("system")[0]["text"] == "be good"
    assert body == {"model": "m1", "stream": True, "max_tokens": 50}


async def test_a_turn_of_three_requests_goes_back_as_it_came() -> None:
    first = answer(
        thought(0, "hm", "SIG"),
        words(1, "both"),
        wish(2, "t1", "a", '{"x":', " 1}"),
        wish(3, "t2", "b"),
        stop="tool_use",
    )
    script = [first, answer(wish(0, "t3", "a", "{}"), stop="tool_use"), answer(words(0, "done"))]
    async with Loopback(script) as server:
        provider = AnthropicProvider(ModelChoice(model="anthropic:m1", base_url=server.base_url))
        history = [*REQUEST.messages]
        while True:
            request = Request(REQUEST.model, REQUEST.system, tuple(history), REQUEST.tools)
            done = [delta async for delta in provider.stream(request)][-1]
            assert isinstance(done, MessageCompleted)
            history.append(done.message)
            if not done.message.tool_calls:
                break
            results = tuple(ToolResult(call_id=call.id, output="ok") for call in done.message.tool_calls)
            history.append(Message(role="tool", parts=results))
        await provider.close()
        bodies = [asked.body for asked in server.requests]
    assert history[1].parts == (
        Thinking(text="hm", signature="SIG"),
        Text(text="both"),
        ToolCall(id="t1", name="a", arguments='{"x": 1}'),
        ToolCall(id="t2", name="b", arguments="{}"),
    )
    sent = json.loads(bodies[1])["messages"][1]["content"]
    assert sent[0] == {"type": "thinking", "thinking": "hm", "signature": "SIG"}
    assert [part["type"] for part in sent] == ["thinking", "text", "tool_use", "tool_use"]
    bare = [body.replace(MARK, b"").removesuffix(b"]}") for body in bodies]
    assert bare[1].startswith(bare[0])
    assert bare[2].startswith(bare[1])
    assert [body.count(MARK) for body in bodies] == [2, 3, 3]


async def test_it_works_against_a_server_in_a_thread() -> None:
    with threaded([answer(words(0, "hello"))]) as server:
        assert text_of(await ask(server)) == "hello"


@pytest.mark.parametrize("end", ["", "/", "/v1", "/v1/"])
async def test_the_base_url_of_the_environment(end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Loopback([answer(words(0, "x"))]) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", f"http://127.0.0.1:{server.port}{end}")
        monkeypatch.delenv("ANTHROPIC_API_KEY")
        monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "another-secret")
        choice = ModelChoice(model="anthropic:m1")
        assert AnthropicProvider.missing(choice) is None
        provider = AnthropicProvider(choice)
        assert text_of([delta async for delta in provider.stream(REQUEST)]) == "x"
        await provider.close()
        assert server.requests[0].head.startswith(b"POST /v1/messages ")
        assert b"another-secret" not in server.requests[0].head


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ({"model": "claude-opus-5-5"}, {"max_tokens": 64_000, "thinking": "adaptive"}),
        ({"model": "claude-haiku-5-5", "max_output_tokens": 9}, {"max_tokens": 9, "thinking": "adaptive"}),
        ({"model": "claude-opus-5-5", "window": 8_000}, {"max_tokens": 1_000, "thinking": "adaptive"}),
        ({"model": "claude-sonnet-4-5"}, {"max_tokens": 25_000}),
        ({"model": "claude-sonnet-4-5-20250929"}, {"max_tokens": 25_000}),
        ({"model": "other"}, {"max_tokens": 16_000}),
    ],
)
def test_limits_and_thinking_by_the_model(choice: dict[str, Any], expected: dict[str, Any]) -> None:
    name = choice["model"]
    provider = AnthropicProvider(ModelChoice(**{**choice, "model": f"anthropic:{name}"}))
    body = json.loads(provider._body(Request(name, "s", [Message.user("x")])))
    found = {key: body[key] for key in ("max_tokens", "thinking") if key in body}
    if "thinking" in found:
        found["thinking"] = found["thinking"]["type"]
    assert found == expected


def test_windows_are_known() -> None:
    known = {"claude-opus-5-5": 1_000_000, "claude-haiku-4-5": 200_000, "anthropic.claude-sonnet-5-5": 1_000_000}
    assert {name: AnthropicProvider.facts.window_of(name) for name in known} == known
    assert AnthropicProvider.facts.window_of("other") is None


WHOLE = named([started(), *words(0, "hi"), *ended()])


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        pytest.param(
            raw(*[bytes([byte]) for byte in named([started(), *words(0, "grüße 😀"), *ended()])]),
            "grüße 😀",
            id="byte by byte",
        ),
        pytest.param(raw(named([started(), *words(0, "hi"), *ended()], end="\r\n")), "hi", id="CRLF"),
        pytest.param(raw(named([started(), *words(0, "hi"), *ended()], end="\r")), "hi", id="CR"),
        pytest.param(raw(b": ping\n\n" * 3, WHOLE, b": bye\n\n"), "hi", id="comments"),
        pytest.param(raw(named([{"type": "ping"}]), WHOLE), "hi", id="pings"),
        pytest.param(raw(b"event: ping\n\n", WHOLE), "hi", id="an event without data"),
        pytest.param(raw(named([{"type": "fanfare"}]), WHOLE), "hi", id="an unknown event"),
        pytest.param(raw(WHOLE.replace(b"event: message_start\n", b"")), "hi", id="an event without a name"),
        pytest.param(raw(WHOLE, kind="text/plain"), "hi", id="another content type"),
        pytest.param(raw(WHOLE, b"data: {broken"), "hi", id="junk after the end"),
        pytest.param(raw(b"retry: 5\nid: 7\n", WHOLE), "hi", id="other fields"),
        pytest.param(
            raw(b'event: ping\ndata: {"type":\ndata: "ping"}\n\n', WHOLE), "hi", id="JSON over two data lines"
        ),
        pytest.param(Response(200, {"content-encoding": "gzip"}, [gzip.compress(WHOLE)]), "hi", id="gzip"),
        pytest.param(Response(200, {"content-length": str(len(WHOLE))}, [WHOLE]), "hi", id="a length"),
    ],
)
async def test_streams_that_are_whole(response: Response, expected: str) -> None:
    async with Loopback([response]) as server:
        assert text_of(await ask(server)) == expected
        assert len(server.requests) == 1


async def test_pings_are_life() -> None:
    """What the model writes into a long argument comes at once, after minutes of nothing but pings."""
    pings = [named([{"type": "ping"}])] * 8
    async with Loopback([raw(named([started()]), *pings, WHOLE.partition(b"\n\n")[2], pause_s=0.1)]) as server:
        assert text_of(await ask(server, stall_s=0.5)) == "hi"


# --- refusals


@pytest.mark.parametrize(
    ("status", "kind", "tries", "exit_code", "said"),
    [
        (400, ProviderError, 1, 1, "no way"),
        (401, CredentialError, 1, 76, "ANTHROPIC_API_KEY"),
        (402, RateLimitError, 1, 75, "credit"),
        (403, CredentialError, 1, 76, "ANTHROPIC_API_KEY"),
        (404, ModelUnavailableError, 1, 77, "no model 'm1'"),
        (408, ModelUnavailableError, 3, 77, "later"),
        (409, ModelUnavailableError, 3, 77, "later"),
        (413, ContextLengthError, 1, 1, "window"),
        (418, ProviderError, 1, 1, "no way"),
        (422, ProviderError, 1, 1, "no way"),
        (429, RateLimitError, 3, 75, "too many requests"),
        (500, ModelUnavailableError, 3, 77, "later"),
        (502, ModelUnavailableError, 3, 77, "later"),
        (503, ModelUnavailableError, 3, 77, "later"),
        (504, ModelUnavailableError, 3, 77, "later"),
        (529, ModelUnavailableError, 3, 77, "later"),
    ],
)
async def test_a_refusal(status: int, kind: type[ProviderError], tries: int, exit_code: int, said: str) -> None:
    error = await error_of([refusal(status, "no way")], tries)
    assert type(error) is kind
    assert error.exit_code == exit_code
    assert said in str(error)
    assert f"HTTP {status}: no way" in str(error)


async def test_a_refusal_then_an_answer() -> None:
    script = [refusal(529), refusal(429, headers={"retry-after": "0"}), answer(words(0, "hi"))]
    async with Loopback(script) as server:
        deltas = await ask(server)
        assert len(server.requests) == 3
    assert sum(isinstance(delta, Retrying) for delta in deltas) == 2
    assert text_of(deltas) == "hi"


@pytest.mark.parametrize("body", [b"", b"<html>gone</html>", b"{broken", b"null", b"[]", b"\xff\xfe", b'"words"'])
async def test_a_refusal_without_sense_in_its_body(body: bytes) -> None:
    assert isinstance(await error_of([Response(503, {}, [body])], 3), ModelUnavailableError)


async def test_neither_key_nor_password_is_told_and_long_words_are_clipped() -> None:
    async with Loopback([refusal(400, f"bad {KEY} of geheim " + "x" * 5000)]) as server:
        with pytest.raises(ProviderError) as caught:
            await ask_at(server.base_url.replace("//", "//me:geheim@"))
    text = str(caught.value)
    assert "***" in text
    assert not any(secret in text for secret in (KEY, "geheim", "me:"))
    assert len(text) < 500


@pytest.mark.parametrize(
    ("value", "wait_s"),
    [
        ("0.005", 0.005),
        ("86400", HASTE.longest_wait_s),
        (formatdate(4_000_000_000, usegmt=True), HASTE.longest_wait_s),
        ("1e999", None),
        ("-5", None),
        ("soon", None),
    ],
)
async def test_retry_after(value: str, wait_s: float | None) -> None:
    async with Loopback([refusal(429, headers={"retry-after": value}), answer(words(0, "hi"))]) as server:
        deltas = await ask(server)
        assert len(server.requests) == 2
    (waited,) = [delta.wait_s for delta in deltas if isinstance(delta, Retrying)]
    # Without a sane wish the pause is our own, of a millisecond.
    assert waited == (round(wait_s, 2) if wait_s else 0.0)


# --- no connection


async def test_a_refused_connection_names_host_and_port() -> None:
    async with Loopback([]) as server:
        port, base_url = server.port, server.base_url
    said = rf"no answer from 127\.0\.0\.1:{port} .*ANTHROPIC_BASE_URL"
    with pytest.raises(ModelUnavailableError, match=said) as caught:
        await ask_at(base_url)
    assert caught.value.is_retryable


async def test_an_unknown_host() -> None:
    with pytest.raises(ModelUnavailableError, match=r"no\.such\.invalid:443") as caught:
        await ask_at("https://no.such.invalid")
    assert caught.value.is_retryable


async def test_a_server_that_accepts_and_says_nothing() -> None:
    async def silent(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(5)
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    with pytest.raises(ModelUnavailableError) as caught:
        await ask_at(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", stall_s=0.05)
    assert caught.value.is_retryable
    server.close()


@pytest.mark.parametrize("base_url", ["localhost:8080", "ftp://x", "http://", "http://x:99999", "http://[::1", "x"])
async def test_no_base_url(base_url: str) -> None:
    choice = ModelChoice(model="anthropic:m1", base_url=base_url)
    assert "http://localhost:8080" in str(AnthropicProvider.missing(choice))
    with pytest.raises(ProfileError, match="no base URL"):
        await ask_at(base_url)


@pytest.mark.parametrize("key", ["", "  ", "schlüssel", "a\nb"])
async def test_no_key(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", key)
    choice = ModelChoice(model="anthropic:m1")
    assert "ANTHROPIC_API_KEY" in str(AnthropicProvider.missing(choice))
    with pytest.raises(CredentialError, match="ANTHROPIC_API_KEY"):
        [_ async for _ in AnthropicProvider(choice).stream(REQUEST)]


@pytest.mark.parametrize(("key", "value"), [("temperature", 0.5), ("tools", "constrained")])
def test_what_the_wire_does_not_take_is_told_before_the_first_request(key: str, value: Any) -> None:
    fault = AnthropicProvider.missing(ModelChoice(model="anthropic:m1", **{key: value}))
    assert isinstance(fault, ProfileError)
    assert key in str(fault)


# --- broken streams

HALF = named([started(), *words(0, "hel", "lo")])[:-30]


def within(kind: str) -> Response:
    """An error that comes after the answer has begun."""
    error = {"type": "error", "error": {"type": kind, "message": "boom"}}
    return raw(named([started(), *words(0, "x"), error]))


@pytest.mark.parametrize(
    ("response", "said"),
    [
        pytest.param(raw(HALF), "message_stop", id="ends early"),
        pytest.param(raw(named([started(), *words(0, "x"), *ended()[:1]])), "message_stop", id="no message_stop"),
        pytest.param(raw(named([started(), *words(0, "x"), *ended(None)])), "stop reason", id="no stop reason"),
        pytest.param(raw(HALF, is_reset=True, pause_s=0.02), "connection broke", id="reset"),
        pytest.param(
            Response(200, {"transfer-encoding": "chunked", "connection": "close"}, [b"5\r\ndata:\r\n"]),
            "connection broke",
            id="cut within HTTP chunks",
        ),
        pytest.param(
            Response(200, {"content-length": "9999", "connection": "close"}, [HALF]), "connection broke", id="too short"
        ),
        pytest.param(raw(b'event: x\ndata: {"type": "mess\n\n'), "no valid JSON", id="split JSON"),
        pytest.param(raw(b'event: x\ndata: {"type": "\xff"}\n\n'), "no valid JSON", id="no UTF-8"),
        pytest.param(raw(b"data: " + b"[" * 100_000 + b"\n\n"), "no valid JSON", id="JSON nested without end"),
        pytest.param(raw(b"data: [1, 2]\n\n"), "an event", id="a list"),
        pytest.param(raw(b"data: 5\n\n"), "an event", id="a number"),
        pytest.param(raw(named(words(0, "x"))), "before its message_start", id="no start"),
        pytest.param(raw(named([started(), *words(0, "x")[1:]])), "never began", id="a delta before its block"),
        pytest.param(raw(named([started(), *words(0, "x"), *words(0, "y")])), "twice", id="an index twice"),
        pytest.param(raw(named([started(), *ended()])), "empty", id="says nothing"),
        pytest.param(raw(b"<html>hello</html>", kind="text/html"), "text/html", id="HTML with 200"),
        pytest.param(raw(b'{"content": []}', kind="application/json"), "application/json", id="JSON with 200"),
        pytest.param(raw(b""), "no event stream", id="empty body"),
        pytest.param(Response(204, {"content-length": "0"}), "no event stream", id="204"),
        pytest.param(
            Response(200, {"content-encoding": "gzip"}, [b"no gzip"]), "connection broke", id="gzip that is none"
        ),
        pytest.param(raw(HALF, hang_s=5), "stalled", id="stalls"),
        pytest.param(raw(hang_s=5), "stalled", id="stalls after the head"),
        pytest.param(raw(*[b": still here\n\n"] * 20, pause_s=0.1), "stalled", id="only comments"),
    ],
)
async def test_a_broken_stream_is_never_an_answer(response: Response, said: str) -> None:
    error = await error_of([response], 3, stall_s=0.3)
    assert type(error) is BrokenStreamError
    assert error.is_retryable
    assert error.exit_code == 77
    assert said in str(error)


@pytest.mark.parametrize(
    ("kind", "expected", "tries", "exit_code"),
    [
        ("overloaded_error", ModelUnavailableError, 3, 77),
        ("api_error", ModelUnavailableError, 3, 77),
        ("rate_limit_error", RateLimitError, 3, 75),
        ("authentication_error", CredentialError, 1, 76),
        ("invalid_request_error", ProviderError, 1, 1),
    ],
)
async def test_an_error_within_the_stream(kind: str, expected: type[ProviderError], tries: int, exit_code: int) -> None:
    error = await error_of([within(kind)], tries)
    assert type(error) is expected
    assert error.exit_code == exit_code
    assert "boom" in str(error)


async def test_a_refusal_of_the_model_is_not_tried_again() -> None:
    error = await error_of([answer(words(0, "I"), stop="refusal")], 1)
    assert "declined" in str(error)


async def test_an_answer_that_is_cut_within_arguments() -> None:
    async with Loopback([answer(wish(0, "t1", "shell", '{"command": "ls'), stop="max_tokens")]) as server:
        done = (await ask(server))[-1]
    assert isinstance(done, MessageCompleted)
    assert done.is_cut
    assert done.message.tool_calls[0].arguments == '{"command": "ls'


async def test_a_broken_stream_then_an_answer() -> None:
    async with Loopback([raw(HALF), answer(words(0, "whole"))]) as server:
        deltas = await ask(server)
    assert text_of(deltas) == "whole"
    assert any(isinstance(delta, Retrying) for delta in deltas)


# --- its own manners


async def test_closing_the_stream_hangs_up() -> None:
    gone = asyncio.Event()

    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(raw().head() + named([started(), *words(0, "x")]))
        while await reader.read(4096):
            pass
        gone.set()
        writer.close()

    server = await asyncio.start_server(endless, "127.0.0.1", 0)
    base_url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    provider = AnthropicProvider(ModelChoice(model="anthropic:m1", base_url=base_url))
    async with aclosing(provider.stream(REQUEST)) as deltas:
        assert await anext(aiter(deltas)) == TextDelta(text="x")
    await asyncio.wait_for(gone.wait(), 5)
    await provider.close()
    server.close()


async def test_cancelling_passes() -> None:
    async with Loopback([raw(HALF, hang_s=30)]) as server:
        provider = AnthropicProvider(ModelChoice(model="anthropic:m1", base_url=server.base_url))
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
        "import sys, goose_like.providers.anthropic; "
        "sys.exit(' '.join({'anthropic', 'httpx2', 'anyio'} & {*sys.modules}) or 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# --- elsewhere


@pytest.mark.parametrize(
    ("kind", "model", "fault"),
    [
        (BedrockProvider, "bedrock:anthropic.claude-opus-5-5", "goose-like[bedrock]"),
        (VertexProvider, "vertex:claude-opus-5-5", "goose-like[vertex]"),
    ],
)
def test_elsewhere_a_library_is_missing(
    kind: type[AnthropicProvider], model: str, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("goose_like.providers.anthropic.find_spec", lambda name: None)
    found = kind.missing(ModelChoice(model=model))
    assert isinstance(found, GooseLikeError)
    assert fault in str(found)


async def test_bedrock_speaks_the_same_wire_at_another_door(monkeypatch: pytest.MonkeyPatch) -> None:
    """As far as it can be seen without Amazon: the SDK's client for it carries our body to its own path."""
    monkeypatch.setattr("goose_like.providers.anthropic.find_spec", lambda name: True)
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", KEY)
    async with Loopback([answer(words(0, "hi")), refusal(401, "no")]) as server:
        choice = ModelChoice(model="bedrock:anthropic.claude-opus-5-5", base_url=f"http://127.0.0.1:{server.port}/x")
        assert BedrockProvider.missing(choice) is None
        provider = BedrockProvider(choice)
        request = Request("anthropic.claude-opus-5-5", "s", [Message.user("x")])
        assert text_of([delta async for delta in provider.stream(request)]) == "hi"
        with pytest.raises(CredentialError, match=r"^bedrock at 127"):
            [_ async for _ in provider.stream(request)]
        await provider.close()
        assert server.requests[0].head.startswith(b"POST /x/v1/messages ")
        assert server.requests[0].json["model"] == "anthropic.claude-opus-5-5"
