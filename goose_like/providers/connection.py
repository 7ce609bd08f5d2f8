"""Connections to model servers: which failures last, and a status while a connection takes long."""

import asyncio
import errno
import os
import re
import socket
import ssl
from collections.abc import AsyncGenerator, Iterator
from typing import Any

from goose_like.core.events import Status
from goose_like.core.pattern import compile_later

from .wire import clip

_QUICK_S = 1.0
_LOOPBACK_HOST = compile_later(r"localhost\.?|127(\.\d+){1,3}|0\.0\.0\.0|::1?", re.IGNORECASE)
_CLOSED_HERE = (errno.ECONNREFUSED, errno.EADDRNOTAVAIL)  # the latter for ::1 on a machine without IPv6


class ConnectionWatch:
    """The connection of one request, followed through the trace of the HTTP library."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self._begun: asyncio.Future[None] = loop.create_future()
        self._made: asyncio.Future[None] = loop.create_future()

    @property
    def extensions(self) -> dict[str, Any]:
        """The extensions of the request."""
        return {"trace": self._take_event}

    async def _take_event(self, name: str, _: object) -> None:
        if name == "connection.connect_tcp.started":
            _resolve(self._begun)
        elif name.endswith("send_request_headers.started"):
            _resolve(self._made)

    async def report(self, sending: "asyncio.Future[Any]") -> AsyncGenerator[Status, None]:
        """Yield a status if the connection of a request takes more than a second, and clear it afterwards."""
        await _wait_for(self._begun, sending, None)
        if sending.done():  # the usual case: the connection was open
            return
        if not await _wait_for(self._made, sending, _QUICK_S):
            yield Status(text="connecting")
            await _wait_for(self._made, sending, None)
            yield Status(text="")


def _resolve(future: "asyncio.Future[None]") -> None:
    """Mark an event, which may come again after a redirect."""
    if not future.done():
        future.set_result(None)


async def _wait_for(event: "asyncio.Future[None]", sending: "asyncio.Future[Any]", limit_s: float | None) -> bool:
    """Wait for an event or the end of the request. Return False if neither came in time."""
    done, _ = await asyncio.wait({event, sending}, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
    return bool(done)


def is_loopback_host(host: str | None) -> bool:
    """Return whether a name or address is that of this machine."""
    return bool(_LOOPBACK_HOST.fullmatch(host or ""))


def is_lasting(error: BaseException, host: str | None) -> bool:
    """Check for a failure to connect that will not pass soon.

    These are an unknown host, a bad certificate, and a refused port of this machine, where nothing listens. A server
    elsewhere may be restarting, and a network or a name server may come back.
    """
    is_here = is_loopback_host(host)
    for cause in _list_causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return True
        if isinstance(cause, socket.gaierror) and cause.errno == socket.EAI_NONAME:
            return True
        if isinstance(cause, OSError) and is_here and cause.errno in _CLOSED_HERE:
            return True
    return False


def describe_cause(error: BaseException) -> str:
    """Return the text of the innermost cause that has one. Outer ones may only say that the connection failed."""
    texts = [_get_text(cause) for cause in _list_causes(error)]
    return clip(next(filter(None, reversed(texts)), type(error).__name__), 120)


def _get_text(error: BaseException) -> str:
    if isinstance(error, ConnectionError) and error.errno:  # its own text repeats the address
        return os.strerror(error.errno)
    if isinstance(error, socket.gaierror) and error.strerror:
        return error.strerror
    return str(error)


def _list_causes(error: BaseException | None) -> Iterator[BaseException]:
    """List an error and its causes, from the outside to the inside. The HTTP library passes some as arguments."""
    while error is not None:
        yield error
        if isinstance(error, BaseExceptionGroup):  # one for each address of the host
            error = error.exceptions[0]
        elif error.__cause__:
            error = error.__cause__
        elif error.args and isinstance(error.args[0], BaseException):
            error = error.args[0]
        else:
            error = None
