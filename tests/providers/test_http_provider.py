"""Tests of the providers of both vendors over a loopback server: complete answers and faults."""

import asyncio
import errno
import gzip
import re
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from email.utils import formatdate

import anthropic
import httpx2
import openai
import pytest

from goose_like.config.profile import ModelChoice
from goose_like.core.errors import CredentialError, ModelUnavailableError, ProfileError, ProviderError
from goose_like.core.events import MessageCompleted, Retrying, Status, TextDelta
from goose_like.providers.base import Delta
from goose_like.providers.connection import is_lasting
from goose_like.providers.openai import OpenAIProvider
from goose_like.providers.retry import stream_with_retries
from tests.loopback import Asked, Loopback, Response, raw, refusal, threaded
from tests.providers.vendors import (
    ANTHROPIC,
    KEY,
    OPENAI,
    QUICK_RETRIES,
    REQUEST,
    RESPONSES,
    Vendor,
    get_text,
    set_keys_only,
)
from tests.providers.wire_faults import FAULTS, Fault


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    set_keys_only(monkeypatch)


@pytest.fixture(params=[OPENAI, RESPONSES, ANTHROPIC], ids=lambda vendor: vendor.wire)
def vendor(request: pytest.FixtureRequest) -> Vendor:
    assert isinstance(request.param, Vendor)
    return request.param


# --- complete answers


async def test_it_works_against_a_server_in_a_thread(vendor: Vendor) -> None:
    with threaded([vendor.answer("hello")]) as server:
        assert get_text(await vendor.ask(server.base_url)) == "hello"
        assert server.requests[0].head.startswith(f"POST {vendor.path} HTTP/1.1\r\n".encode())


STREAMS: dict[str, Callable[[Vendor], Response]] = {
    "byte by byte": lambda v: raw(*[bytes([byte]) for byte in v.whole("grüße 😀")]),
    "CRLF": lambda v: raw(v.whole("grüße 😀").replace(b"\n", b"\r\n")),
    "CR": lambda v: raw(v.whole("grüße 😀").replace(b"\n", b"\r")),
    "comments": lambda v: raw(b": ping\n\n" * 3, v.whole("grüße 😀"), b": bye\n\n"),
    "another content type": lambda v: raw(v.whole("grüße 😀"), kind="text/plain"),
    "junk after the end": lambda v: raw(v.whole("grüße 😀"), v.done and b"data: {broken", broken="junk"),
    "other fields": lambda v: raw(b"retry: 5\nid: 7\n", v.whole("grüße 😀")),
    "gzip": lambda v: Response(200, {"content-encoding": "gzip"}, [gzip.compress(v.whole("grüße 😀"))]),
    "a length": lambda v: Response(200, {"content-length": str(len(v.whole("grüße 😀")))}, [v.whole("grüße 😀")]),
}


@pytest.mark.parametrize("name", STREAMS)
async def test_complete_streams(vendor: Vendor, name: str) -> None:
    async with Loopback([STREAMS[name](vendor)]) as server:
        assert get_text(await vendor.ask(server.base_url)) == "grüße 😀"
        assert len(server.requests) == 1


async def test_a_very_long_line_is_complete(vendor: Vendor) -> None:
    text = "x" * 2_000_000
    async with Loopback([vendor.answer(text)]) as server:
        assert get_text(await vendor.ask(server.base_url)) == text


async def test_a_length_stop_within_arguments_is_cut(vendor: Vendor) -> None:
    stopped = vendor.stream(*vendor.called('{"command": "ls'), *vendor.last(vendor.cut)) + vendor.done
    async with Loopback([raw(stopped)]) as server:
        done = (await vendor.ask(server.base_url))[-1]
        assert len(server.requests) == 1
    assert isinstance(done, MessageCompleted)
    assert done.is_cut
    assert done.message.tool_calls[0].arguments == '{"command": "ls'


# --- faults


@pytest.mark.parametrize(("vendor", "fault"), FAULTS, ids=lambda one: one.name)
async def test_a_fault_is_never_an_answer(vendor: Vendor, fault: Fault) -> None:
    async with Loopback([fault.response(vendor)]) as server:
        with pytest.raises(fault.error, match=re.escape(fault.words(vendor))) as caught:
            await vendor.ask(server.base_url, stall_s=0.3)
        assert len(server.requests) == fault.requests
        assert str(caught.value).startswith(f"{vendor.name} at 127.0.0.1:{server.port}: ")
    error = caught.value
    assert (type(error), error.exit_code) == (fault.error, fault.exit_code)
    assert error.is_retryable == (fault.requests > 1)


async def test_a_fault_then_an_answer(vendor: Vendor) -> None:
    script = [raw(vendor.half), refusal(429, headers={"retry-after": "0"}), vendor.answer("whole")]
    async with Loopback(script) as server:
        deltas = await vendor.ask(server.base_url)
        assert len(server.requests) == 3
    assert sum(isinstance(delta, Retrying) for delta in deltas) == 2
    assert get_text(deltas) == "whole"


@pytest.mark.parametrize(
    ("value", "wait_s"),
    [
        ("0.005", 0.005),
        *((senseless, None) for senseless in ("soon", "-5", "nan", "inf", "1e999", "", "Thu, 99 Foo 2026", "\xff")),
    ],
)
async def test_retry_after(vendor: Vendor, value: str, wait_s: float | None) -> None:
    script = [refusal(429, headers={"retry-after": value}), vendor.answer("hi")]
    async with Loopback(script) as server:
        deltas = await vendor.ask(server.base_url)
        assert len(server.requests) == 2
    (waited,) = [delta.wait_s for delta in deltas if isinstance(delta, Retrying)]
    # Without a valid request of the server the pause is the policy's, one millisecond.
    assert waited == (round(wait_s, 2) if wait_s else 0.0)


@pytest.mark.parametrize(("status", "exit_code"), [(429, 75), (503, 77)])
@pytest.mark.parametrize("is_date", [False, True])
async def test_a_long_pause_ends_at_once(vendor: Vendor, status: int, exit_code: int, is_date: bool) -> None:
    value = formatdate(time.time() + 3600, usegmt=True) if is_date else "3600"
    async with Loopback([refusal(status, headers={"retry-after": value})]) as server:
        with pytest.raises(ProviderError, match=r"the server asks to wait until [\d:-]+ \((60|59) min\)$") as caught:
            await vendor.ask(server.base_url)
        assert len(server.requests) == 1
    assert caught.value.exit_code == exit_code


async def test_a_redirect_loop_ends_at_once(vendor: Vendor) -> None:
    here = Response(307, {"location": vendor.path, "content-length": "0"})
    async with Loopback([here]) as server:
        with pytest.raises(ModelUnavailableError, match="redirects without end; correct base_url") as caught:
            await vendor.ask(server.base_url)
        assert len(server.requests) <= 6
    assert not caught.value.is_retryable


FOREIGN_PING = "only Anthropic documents an event `ping`"


async def test_keep_alives_are_life(vendor: Vendor) -> None:
    pings = [b": still here\n\n", b'event: ping\ndata: {"type": "ping"}\n\n'] * 5
    played = raw(*pings, vendor.whole("hello"), pause_s=0.15, broken=FOREIGN_PING)
    async with Loopback([played]) as server:
        assert get_text(await vendor.ask(server.base_url, stall_s=1.2)) == "hello"
        assert len(server.requests) == 1


@pytest.mark.parametrize("ping", [b": still here\n\n", b'event: ping\ndata: {"type": "ping"}\n\n'])
async def test_keep_alives_without_end_stall(vendor: Vendor, ping: bytes) -> None:
    async with Loopback([raw(*[ping] * 1000, pause_s=0.02, broken=FOREIGN_PING), vendor.answer("hello")]) as server:
        deltas = await vendor.ask(server.base_url, stall_s=0.3)
    assert get_text(deltas) == "hello"
    retries = [delta.text for delta in deltas if isinstance(delta, Retrying)]
    assert retries
    assert all("the stream stalled" in text for text in retries)


async def test_errors_hide_secrets_and_clip_long_texts(vendor: Vendor) -> None:
    async with Loopback([refusal(400, f"bad {KEY} of geheim " + "x" * 5000)]) as server:
        with pytest.raises(ProviderError) as caught:
            await vendor.ask(server.base_url.replace("//", "//me:geheim@") + "?token=abc")
    text = str(caught.value)
    assert "***" in text
    assert not any(secret in text for secret in (KEY, "geheim", "token=abc", "me:"))
    assert len(text) < 500


# --- no connection


async def test_a_refused_connection_names_host_and_port(vendor: Vendor) -> None:
    async with Loopback([]) as server:
        port, base_url = server.port, server.base_url
    said = rf"no answer from 127\.0\.0\.1:{port} .*{vendor.url_variable}"
    with pytest.raises(ModelUnavailableError, match=said) as caught:
        await vendor.ask(base_url)
    assert (caught.value.is_retryable, caught.value.exit_code) == (True, 77)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.1", "0.0.0.0", "[::1]"])
async def test_a_refused_port_of_this_machine_is_retried_once(vendor: Vendor, host: str) -> None:
    provider = vendor.provider(vendor.choice(f"http://{host}:1/v1"))
    deltas = stream_with_retries(provider, REQUEST, QUICK_RETRIES)
    retrying = await anext(deltas)
    assert isinstance(retrying, Retrying)
    assert (retrying.retry, retrying.max_retries) == (1, 1)
    with pytest.raises(ModelUnavailableError, match=r"\((Connection refused|Cannot assign|All connection attempts)"):
        await anext(deltas)
    await provider.close()


def wrap(error: Exception) -> Exception:
    """Wrap an error like the HTTP library: in the error of each address, and in one of its own."""
    outer = httpx2.ConnectError("All connection attempts failed")
    outer.__cause__ = OSError(ExceptionGroup("multiple connection attempts failed", [error, OSError("late")]))
    return outer


@pytest.mark.parametrize("wrapping", [lambda error: error, wrap], ids=["bare", "wrapped"])
@pytest.mark.parametrize(
    ("error", "host", "lasts"),
    [
        (socket.gaierror(socket.EAI_NONAME, "unknown"), "no.such.invalid", True),
        (ssl.SSLCertVerificationError(1, "expired"), "api.example.com", True),
        (ConnectionRefusedError(errno.ECONNREFUSED, "refused"), "localhost", True),
        (ConnectionRefusedError(errno.ECONNREFUSED, "refused"), "127.0.0.53", True),
        (OSError(errno.EADDRNOTAVAIL, "no IPv6"), "::1", True),
        (ConnectionRefusedError(errno.ECONNREFUSED, "refused"), "localhost.example.com", False),
        (ConnectionRefusedError(errno.ECONNREFUSED, "refused"), "127.0.0.1.example.com", False),
        (ConnectionRefusedError(errno.ECONNREFUSED, "refused"), "192.168.0.7", False),
        (ConnectionRefusedError(errno.ECONNREFUSED, "refused"), None, False),
        (socket.gaierror(socket.EAI_AGAIN, "later"), "api.example.com", False),
        (socket.gaierror(socket.EAI_FAIL, "later"), "api.example.com", False),
        (OSError(errno.ENETUNREACH, "no network"), "192.0.2.1", False),
        (OSError(errno.EHOSTUNREACH, "no route"), "192.0.2.1", False),
        (OSError(errno.EHOSTUNREACH, "no route"), "localhost", False),
        (ConnectionResetError(errno.ECONNRESET, "reset"), "localhost", False),
        (ssl.SSLError(1, "wrong version number"), "localhost", False),
        (TimeoutError(errno.ETIMEDOUT, "slow"), "localhost", False),
    ],
)
def test_only_failures_that_stay_count_as_lasting(error, host, lasts, wrapping) -> None:
    assert is_lasting(wrapping(error), host) is lasts


async def test_a_slow_connection_is_shown(vendor: Vendor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goose_like.providers.connection._QUICK_S", 0.02)
    greeting = asyncio.Event()

    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await greeting.wait()
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    provider = vendor.provider(vendor.choice(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"))
    deltas = provider.stream(REQUEST)
    assert await anext(deltas) == Status(text="connecting")
    greeting.set()
    assert await anext(deltas) == Status(text="")
    with pytest.raises(ModelUnavailableError):
        await anext(deltas)
    server.close()
    await provider.close()


async def test_an_unknown_host(vendor: Vendor) -> None:
    with pytest.raises(ModelUnavailableError, match=r"no\.such\.invalid:443") as caught:
        await vendor.ask("https://no.such.invalid/v1")
    assert (caught.value.is_retryable, caught.value.exit_code) == (True, 77)


@pytest.mark.parametrize(
    ("scheme", "line"),
    [
        pytest.param("https", b"HTTP/1.1 400 no TLS here\r\n\r\n", id="no TLS"),
        pytest.param("http", b"hello, this is no HTTP\r\n\r\n", id="no HTTP"),
        pytest.param("http", b"", id="it hangs up"),
        pytest.param("http", None, id="it says nothing"),
    ],
)
async def test_a_server_that_speaks_no_http(vendor: Vendor, scheme: str, line: bytes | None) -> None:
    over, asked = asyncio.Event(), 0

    async def other(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        asked += 1
        if line is None:
            await over.wait()
        else:
            writer.write(line)
        writer.close()

    server = await asyncio.start_server(other, "127.0.0.1", 0)
    with pytest.raises(ModelUnavailableError, match="no answer from") as caught:
        await vendor.ask(f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", stall_s=0.1)
    assert (caught.value.is_retryable, caught.value.exit_code, asked) == (True, 77, 3)
    over.set()
    server.close()


@pytest.mark.parametrize(
    "base_url", ["localhost:8080", "ftp://x/v1", "http://", "http://x:99999/v1", "http://[::1", "x"]
)
async def test_no_base_url(vendor: Vendor, base_url: str) -> None:
    assert "http://localhost:8080" in str(vendor.provider.find_setup_error(vendor.choice(base_url)))
    with pytest.raises(ProfileError, match="no base URL"):
        await vendor.ask(base_url)


@pytest.mark.parametrize("key", ["", "  ", "schlüssel", "a\nb"])
async def test_no_key(vendor: Vendor, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(vendor.key_variable, key)
    choice = ModelChoice(model=f"{vendor.name}:m1")
    assert vendor.key_variable in str(vendor.provider.find_setup_error(choice))
    with pytest.raises(CredentialError, match=vendor.key_variable):
        [_ async for _ in vendor.provider(choice).stream(REQUEST)]


# --- closing and importing


@pytest.mark.parametrize(("missing_bytes", "connections"), [(0, 1), (1, 2)], ids=["it ends", "its end never comes"])
async def test_a_whole_answer_is_finished_in_the_background(
    vendor: Vendor, missing_bytes: int, connections: int
) -> None:
    whole = vendor.whole("x")
    length = str(len(whole) + missing_bytes)
    served = set()

    class CountingServer(Loopback):
        def _response(self, asked: Asked) -> Response:
            served.add(asyncio.current_task())  # one task serves one connection
            return super()._response(asked)

    hang_s = 30.0 * missing_bytes
    async with CountingServer([Response(200, {"content-length": length}, [whole], hang_s=hang_s)]) as server:
        provider = vendor.provider(vendor.choice(server.base_url))
        for _ in range(2):
            deltas = [delta async for delta in provider.stream(REQUEST)]
            assert get_text(deltas) == "x"
        await provider.close()
        assert len(served) == connections
    assert not [task for task in asyncio.all_tasks() if " _finish " in str(task.get_coro())]


async def test_closing_the_stream_hangs_up(vendor: Vendor) -> None:
    gone = asyncio.Event()

    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(raw().head() + vendor.stream(*vendor.said("x")))
        while await reader.read(4096):
            pass
        gone.set()
        writer.close()

    server = await asyncio.start_server(endless, "127.0.0.1", 0)
    provider = vendor.provider(vendor.choice(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"))
    async with aclosing(provider.stream(REQUEST)) as deltas:
        assert await anext(aiter(deltas)) == TextDelta(text="x")
    await asyncio.wait_for(gone.wait(), 60)
    await provider.close()
    server.close()


@pytest.mark.parametrize("answers", [True, False], ids=["an answer waits", "no answer yet"])
async def test_closing_the_stream_at_a_status_hangs_up(
    vendor: Vendor, answers: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("goose_like.providers.connection._QUICK_S", 0)
    asked, gone = asyncio.Event(), asyncio.Event()

    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if answers:
            writer.write(raw().head() + vendor.stream(*vendor.said("x")))
        asked.set()
        while await reader.read(4096):
            pass
        gone.set()
        writer.close()

    server = await asyncio.start_server(endless, "127.0.0.1", 0)
    provider = vendor.provider(vendor.choice(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"))
    async with aclosing(provider.stream(REQUEST)) as deltas:
        assert await anext(aiter(deltas)) == Status(text="connecting")
        await asked.wait()
        await asyncio.sleep(0.1)  # the head arrives while nobody reads on
    assert not [task for task in asyncio.all_tasks() if "_post" in str(task.get_coro())]
    await asyncio.wait_for(gone.wait(), 60)
    await provider.close()
    server.close()


async def test_cancelling_passes(vendor: Vendor) -> None:
    async with Loopback([raw(vendor.half, hang_s=30)]) as server:
        provider = vendor.provider(vendor.choice(server.base_url))
        begun = asyncio.Event()

        async def read(deltas: AsyncIterator[Delta]) -> None:
            async for _ in deltas:
                begun.set()

        task = asyncio.create_task(read(provider.stream(REQUEST)))
        await asyncio.wait_for(begun.wait(), 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await provider.close()


def test_a_request_needs_no_sdk(vendor: Vendor) -> None:
    code = (
        "import asyncio, sys; from tests.providers.vendors import VENDORS, get_text; "
        f"print(get_text(asyncio.run(VENDORS[{vendor.wire!r}].ask(sys.argv[1])))); "
        "sys.exit(' '.join({'openai', 'anthropic'} & {*sys.modules}) or 0)"
    )
    with threaded([vendor.answer("hello")]) as server:
        subprocess.run([sys.executable, "-c", code, server.base_url], check=True)


def test_importing_the_provider_does_not_import_httpx2(vendor: Vendor) -> None:
    code = (
        f"import sys, goose_like.providers.{vendor.name}; "
        "sys.exit(' '.join({'httpx2', 'anyio'} & {*sys.modules}) or 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# --- headers


async def _ask_with_sdk(vendor: Vendor, base_url: str) -> None:
    if vendor is OPENAI:
        async with openai.AsyncOpenAI(base_url=base_url) as client:
            stream = await client.chat.completions.create(model="m1", messages=[], stream=True)
            assert [chunk async for chunk in stream]
    elif vendor is RESPONSES:
        async with openai.AsyncOpenAI(base_url=base_url) as client:
            answer = await client.responses.create(model="m1", input="hi", stream=True)
            assert [event async for event in answer]
    else:
        async with anthropic.AsyncAnthropic(base_url=base_url.removesuffix("/v1")) as other:
            events = await other.messages.create(model="m1", messages=[], max_tokens=9, stream=True)
            assert [event async for event in events]


async def test_the_vendors_sdk_sends_the_same_headers(vendor: Vendor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-1")
    for name in ("OPENAI", "ANTHROPIC"):
        monkeypatch.setenv(f"{name}_CUSTOM_HEADERS", "X-Team: blue\nX-Empty:\n\n")
    async with Loopback([vendor.answer("hello")] * 2) as server:
        await vendor.ask(server.base_url)
        await _ask_with_sdk(vendor, server.base_url)
        ours, theirs = (dict(_split_head(asked.head)) for asked in server.requests)
    changing = {"user-agent", "content-length", "accept-encoding"}
    expected = {name: value for name, value in theirs.items() if not name.startswith("x-stainless")}
    assert {name: ours.get(name) for name in expected.keys() - changing} == {
        name: expected[name] for name in expected.keys() - changing
    }
    assert ours.keys() - changing <= theirs.keys()
    assert ours["user-agent"].startswith("goose-like/")


@pytest.mark.parametrize("line", ["sk-0123456789", ": sk-0123456789", "two words: sk-0123456789"])
async def test_a_wrong_line_of_headers_is_named_and_not_quoted(
    vendor: Vendor, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"{vendor.name.upper()}_CUSTOM_HEADERS", f"X-Team: blue\n\n{line}")
    async with Loopback([vendor.answer("hello")]) as server:
        with pytest.raises(
            ProfileError, match=rf"{vendor.name.upper()}_CUSTOM_HEADERS, line 3: .*NAME: VALUE"
        ) as caught:
            await vendor.ask(server.base_url)
        assert server.requests == []
    assert "sk-" not in str(caught.value)


def _split_head(head: bytes) -> list[tuple[str, str]]:
    lines = (line.partition(":") for line in head.decode().splitlines()[1:] if line)
    return [(name.lower(), value.strip()) for name, _, value in lines]


async def test_a_query_in_the_base_url_stays(vendor: Vendor) -> None:
    async with Loopback([vendor.answer("hello")]) as server:
        await vendor.ask(f"{server.base_url}?api-version=7")
        assert server.requests[0].head.startswith(f"POST {vendor.path}?api-version=7 HTTP/1.1".encode())


def test_the_address_can_be_hidden() -> None:
    provider = OpenAIProvider(ModelChoice(model="openai:m", base_url="http://me:pw@desk.example:8080/v1"))
    for address in ("desk.example:8080", "http://me:pw@desk.example:8080/v1", "desk.example"):
        assert provider.hide_address(f"openai at desk.example:8080: no answer from {address}; look") == (
            "openai: no answer from the model's server; look"
        )
