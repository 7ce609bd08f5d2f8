"""Proxies and certificates of the environment, as a provider's client meets them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest

from goose_like.core.errors import ModelUnavailableError, ProfileError
from goose_like.providers.http_client import create_client
from tests.certificate import make_server_context, needs_openssl
from tests.loopback import Loopback, Response
from tests.providers.vendors import OPENAI, get_text, set_keys_only

REMOTE = "http://model.test/v1"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    set_keys_only(monkeypatch)
    for name in ("NO_PROXY", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)


@asynccontextmanager
async def open_socks_proxy(server: Loopback) -> AsyncIterator[str]:
    """Open a SOCKS5 proxy that leads every connection to a server, and yield its address."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        greeting = await reader.readexactly(2)
        await reader.readexactly(greeting[1])
        writer.write(b"\x05\x00")
        head = await reader.readexactly(4)
        assert head[:2] == b"\x05\x01"
        size = (await reader.readexactly(1))[0] if head[3] == 3 else 4
        await reader.readexactly(size + 2)
        writer.write(b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00")
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", server.port)
        await asyncio.gather(copy(reader, far_writer), copy(far_reader, writer))

    async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        while data := await source.read(65_536):
            target.write(data)
            await target.drain()
        target.close()

    proxy = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{proxy.sockets[0].getsockname()[1]}"
    finally:
        proxy.close()


@pytest.mark.parametrize("scheme", ["socks5", "socks5h"])
async def test_a_socks_proxy_is_used(monkeypatch: pytest.MonkeyPatch, scheme: str) -> None:
    async with Loopback([OPENAI.answer("hello")]) as server, open_socks_proxy(server) as address:
        monkeypatch.setenv("ALL_PROXY", f"{scheme}://{address}")
        assert get_text(await OPENAI.ask(REMOTE)) == "hello"


@pytest.mark.parametrize(
    "value", ["socks5://127.0.0.1:1", "http://127.0.0.1:1", "127.0.0.1:1", "http://u:p@127.0.0.1:1"]
)
async def test_a_dead_proxy_is_named(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("ALL_PROXY", value)
    with pytest.raises(ModelUnavailableError, match=r"through the proxy 127\.0\.0\.1:1 .*NO_PROXY") as caught:
        await OPENAI.ask(REMOTE)
    assert "u:p" not in str(caught.value)


@pytest.mark.parametrize("value", ["ftp://127.0.0.1:1", "http://[::1"])
async def test_a_useless_proxy_is_an_error_with_its_variable(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("HTTP_PROXY", value)
    monkeypatch.setenv("http_proxy", value)
    with pytest.raises(ProfileError, match="HTTP_PROXY"):
        await OPENAI.ask(REMOTE)


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
async def test_a_server_on_this_machine_is_reached_past_proxies(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with Loopback([OPENAI.answer("hello")]) as server:
        assert get_text(await OPENAI.ask(server.base_url)) == "hello"
        assert get_text(await OPENAI.ask(server.base_url.replace("127.0.0.1", "localhost"))) == "hello"


async def test_a_proxy_is_not_used_for_hosts_of_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("NO_PROXY", "model.test")
    with pytest.raises(ModelUnavailableError, match=r"no answer from model\.test:80 \((?!.*proxy)"):
        await OPENAI.ask(REMOTE)


@pytest.mark.parametrize("content", [None, "no certificate"])
async def test_missing_certificates_are_an_error_with_their_variable(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: str | None
) -> None:
    file = tmp_path / "ca.pem"
    if content:
        file.write_text(content)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    with pytest.raises(ProfileError, match="correct or unset SSL_CERT_FILE"):
        await OPENAI.ask(REMOTE.replace("http:", "https:"))


@needs_openssl
@pytest.mark.parametrize("is_trusted", [True, False])
async def test_certificates_are_checked_behind_a_server_without_tls(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, is_trusted: bool
) -> None:
    context = make_server_context(tmp_path)
    if is_trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert"))
    async with Loopback([Response(200, {}, [b"hello"])], tls=context) as server:
        client = await create_client(urlsplit("http://localhost/v1"), 5)
        async with client:
            if is_trusted:
                assert (await client.get(f"https://localhost:{server.port}/")).text == "hello"
            else:
                with pytest.raises(httpx2.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
                    await client.get(f"https://localhost:{server.port}/")
