"""The proxy: the way from a sandbox without network to the hosts that are allowed.

It speaks HTTP, on a socket in the network namespace of the sandbox. A host name is checked before it is resolved, since
a lookup already tells its owner something. Names are resolved here, and once. A tunnel to port 443 must begin with a
TLS message for the host that was named.
"""

import asyncio
import os
import re
import socket
import ssl
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from goose_like.core.errors import DeniedError, GooseLikeError
from goose_like.workspace.processes.process import SpawnerClient

from .address_filter import Address, is_address, is_public, normalize_host, resolve_host
from .host_access import HostAccess, format_host

_MAX_CONNECTIONS = 64
_MAX_HEAD_BYTES = 64 * 1024
_CHUNK_BYTES = 256 * 1024
_HEAD_TIMEOUT_S = 30.0
_CONNECT_TIMEOUT_S = 15.0

_HOST = r"(?P<host>[A-Za-z0-9_-][A-Za-z0-9._-]{0,252}|\[[0-9A-Fa-f:.]{2,45}\])"
_TUNNEL = re.compile(rf"CONNECT {_HOST}:(?P<port>\d{{1,5}}) HTTP/1\.[01]")
_REQUEST = re.compile(
    rf"(?P<method>[A-Z]{{1,20}}) http://(?:[^/?#@\s]*@)?{_HOST}(?::(?P<port>\d{{1,5}}))?(?P<path>[/?]\S*)?"
    r" (?P<version>HTTP/1\.[01])"
)
_OWN_REQUEST = re.compile(r"(?P<method>[A-Z]{1,20}) (?P<path>/\S*|\*) (?P<version>HTTP/1\.[01])")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\0\r\n]*")
_HOP_HEADERS = {"connection", "host", "keep-alive", "proxy-authorization", "proxy-connection", "te", "upgrade"}

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class _Refusal(Exception):
    """A response of the proxy's own: the status, and a sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


@dataclass(frozen=True, slots=True)
class _Request:
    """A request without its body. The headers are those for the server, and the length is that of the body."""

    method: str
    path: str
    version: str
    headers: str
    length: int


async def serve_proxy(listener: socket.socket, hosts: HostAccess, spawner: SpawnerClient) -> None:
    """Serve the connections to a socket until cancelled, a limited number at the same time."""
    loop = asyncio.get_running_loop()
    tasks: set[asyncio.Task[None]] = set()
    slots = asyncio.Semaphore(_MAX_CONNECTIONS)

    def end(task: asyncio.Task[None]) -> None:
        tasks.discard(task)
        slots.release()

    try:
        while True:
            await slots.acquire()
            client, _ = await loop.sock_accept(listener)
            task = loop.create_task(_serve_client(client, hosts, spawner))
            tasks.add(task)
            task.add_done_callback(end)
    finally:
        for task in tasks:
            task.cancel()


async def _serve_client(client: socket.socket, hosts: HostAccess, spawner: SpawnerClient) -> None:
    reader, writer = await asyncio.open_connection(sock=client, limit=_MAX_HEAD_BYTES)
    try:
        with suppress(OSError, EOFError, TimeoutError):
            try:
                await _Connection(reader, writer, hosts, spawner).run()
            except _Refusal as refusal:
                writer.write(_format_response(refusal.status, str(refusal)))
                await writer.drain()
    finally:
        writer.close()


class _Connection:
    """One connection of a client: a tunnel, or a single request."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, hosts: HostAccess, spawner: SpawnerClient
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._hosts = hosts
        self._spawner = spawner

    async def run(self) -> None:
        """Serve the connection. Raise _Refusal if nothing was sent to the client yet."""
        first, lines = await self._read_head()
        tunnel = _TUNNEL.fullmatch(first)
        if tunnel:
            host, port = _read_place(tunnel, 443)
            server = await self._connect(host, port)
            self._writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await self._serve_tunnel(host, port, server)
            return
        request = _REQUEST.fullmatch(first)
        if request is None:
            raise _Refusal(400, "the proxy of the sandbox knows CONNECT and http:// only")
        host, port = _read_place(request, 80)
        parsed = _parse_request(request, lines)
        server = await self._connect(host, port)
        await self._forward(parsed, host, port, server)

    async def _read_head(self) -> tuple[str, list[str]]:
        """Read the head of a request: its first line and the headers."""
        try:
            async with asyncio.timeout(_HEAD_TIMEOUT_S):
                head = await self._reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError as error:
            raise _Refusal(431, "the head of the request is too long") from error
        first, *lines = head[:-4].decode("latin-1").split("\r\n")
        if not all(map(_HEADER.fullmatch, lines)):
            raise _Refusal(400, "the headers of the request are malformed")
        return first, lines

    async def _connect(self, host: str, port: int) -> Stream:
        """Connect to a host that is allowed."""
        name = format_host(host, port)
        try:
            await self._hosts.require(name, self._spawner)
            addresses = await resolve_host(host.strip("[]"), port)
        except DeniedError as error:
            raise _Refusal(403, str(error)) from error
        except GooseLikeError as error:
            raise self._build_failure(str(error)) from error
        self._check_addresses(host, name, addresses)
        reason: object = "no address"
        for address in addresses:
            try:
                async with asyncio.timeout(_CONNECT_TIMEOUT_S):
                    return await open_connection(str(address), port)
            except TimeoutError:
                reason = "no answer in time"
            except OSError as error:
                reason = error
        raise self._build_failure(f"can't connect to {name}: {reason}")

    def _check_addresses(self, host: str, name: str, addresses: Iterable[Address]) -> None:
        """Check that a host leads to the open internet only, if the profile does not list it."""
        for address in addresses:
            if is_public(address) or self._hosts.is_listed_for(name, address):
                continue
            sentence = f"not allowed: {host} leads to {address}, which is not on the open internet; "
            sentence += f"the person can allow it in the profile, as network: {{allow: [{name}]}}"
            self._hosts.record_refusal(name, f"it leads to {address}, which is not on the open internet")
            raise _Refusal(403, self._hosts.refuse(sentence))

    def _build_failure(self, sentence: str) -> _Refusal:
        """Build the response for a host that cannot be reached, and keep the sentence for the model."""
        return _Refusal(502, self._hosts.refuse(f"no connection: {sentence}{_advise_proxy_user()}"))

    # --- tunnels

    async def _serve_tunnel(self, host: str, port: int, server: Stream) -> None:
        _, writer = server
        try:
            if port == 80:  # plain HTTP: each request names its host again
                await self._serve_plain(host, server)
                return
            if port == 443:
                hello = await self._read_hello(host)
                if hello is None:
                    return
                writer.write(hello)
            await self._exchange(server, None)
        finally:
            writer.close()

    async def _serve_plain(self, host: str, server: Stream) -> None:
        first, lines = await self._read_head()
        request = _OWN_REQUEST.fullmatch(first)
        if request:
            await self._forward(_parse_request(request, lines), host, 80, server)

    async def _read_hello(self, host: str) -> bytes | None:
        """Read the first message of a TLS client. Return None if it is for another host, which is refused."""
        hello, name = await _read_client_hello(self._reader)
        expected = "" if is_address(host) else host  # TLS names no address
        if normalize_host(name or "") != expected:
            began = f"it began with TLS for {name or 'no host'}"
            self._hosts.record_refusal(host, began)
            self._hosts.refuse(f"the connection to {host} was cut: {began}")
            return None
        return hello

    # --- single requests

    async def _forward(self, request: _Request, host: str, port: int, server: Stream) -> None:
        """Send one request to the server, and copy the response. The connection ends with it."""
        netloc = host if port == 80 else f"{host}:{port}"
        head = f"{request.method} {request.path} {request.version}\r\n"
        head += f"Host: {netloc}\r\n{request.headers}Connection: close\r\n\r\n"
        _, writer = server
        writer.write(head.encode("latin-1"))
        try:
            await self._exchange(server, request.length)
        finally:
            writer.close()

    async def _exchange(self, server: Stream, length: int | None) -> None:
        """Copy data in both directions until the server has sent all. Send the server at most `length` bytes."""
        reader, writer = server

        def close_if_failed(done: asyncio.Task[None]) -> None:
            if not done.cancelled() and done.exception():
                writer.close()

        sending = asyncio.create_task(_copy(self._reader, writer, length))
        sending.add_done_callback(close_if_failed)
        try:
            await _copy(reader, self._writer, None)
        finally:
            sending.cancel()


def _read_place(match: re.Match[str], standard_port: int) -> tuple[str, int]:
    """Read host and port from a matched request. The host is in lower case, without a dot at its end."""
    port = int(match["port"] or standard_port)
    if not 0 < port < 65_536:
        raise _Refusal(400, f"{port} is no port")
    return normalize_host(match["host"]), port


def _parse_request(match: re.Match[str], lines: list[str]) -> _Request:
    """Parse the headers of a request, and drop those that concern the proxy only."""
    lengths = set()
    kept = []
    for line in lines:
        name, _, value = line.partition(":")
        name = name.lower()
        if name == "transfer-encoding":
            raise _Refusal(411, "the proxy of the sandbox needs the length of a request; use https, or Content-Length")
        if name == "content-length":
            lengths.add(value.strip())
        if name not in _HOP_HEADERS:
            kept.append(f"{line}\r\n")
    length = min(lengths, default="0")
    if len(lengths) > 1 or not re.fullmatch(r"[0-9]{1,15}", length):
        raise _Refusal(400, "the length of the request is not clear")
    path = match["path"] or "/"
    if not path.startswith(("/", "*")):
        path = f"/{path}"
    headers = "".join(kept)
    return _Request(match["method"], path, match["version"], headers, int(length))


def _advise_proxy_user() -> str:
    """Advise where this machine itself reaches other machines through a proxy, which is not used here."""
    if not any(name.lower() in ("https_proxy", "all_proxy") for name in os.environ):
        return ""
    return "; this machine has a proxy of its own, which only commands with access='network' use"


async def open_connection(address: str, port: int) -> Stream:
    """Open a connection to an address. Tests replace this function, and `resolve_host`."""
    return await asyncio.open_connection(address, port)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, length: int | None) -> None:
    """Copy data up to its end, and then the end. With a length, copy that much, and no second request behind it."""
    left = length
    while left is None or left > 0:
        size = _CHUNK_BYTES if left is None else min(left, _CHUNK_BYTES)
        data = await reader.read(size)
        if not data:
            break
        writer.write(data)
        await writer.drain()
        if left is not None:
            left -= len(data)
    if length is None and writer.can_write_eof():
        writer.write_eof()


async def _read_client_hello(reader: asyncio.StreamReader) -> tuple[bytes, str | None]:
    """Read the first message of a TLS client. Return its bytes, and the name of the server that it asks for."""
    names: list[str | None] = []

    def take_name(_: object, name: str | None, __: object) -> int:
        names.append(name)
        return ssl.ALERT_DESCRIPTION_HANDSHAKE_FAILURE  # no more is needed

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.sni_callback = take_name
    incoming = ssl.MemoryBIO()
    hello = b""
    tls = context.wrap_bio(incoming, ssl.MemoryBIO(), server_side=True)
    async with asyncio.timeout(_HEAD_TIMEOUT_S):
        while len(hello) < _MAX_HEAD_BYTES:
            data = await reader.read(_CHUNK_BYTES)
            if not data:
                break
            hello += data
            incoming.write(data)
            try:
                tls.do_handshake()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLError:
                break
    return hello, names[0] if names else None


def _format_response(status: int, sentence: str) -> bytes:
    """Format a response. The sentence is the reason too, because many programs show no more of a failed CONNECT."""
    reason = re.sub(r"[^ -~]", "?", sentence)
    body = f"{sentence}\n".encode(errors="replace")
    head = f"HTTP/1.1 {status} {reason[:500]}\r\nContent-Type: text/plain; charset=utf-8\r\n"
    return f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body
