"""Who may ask, and how much at once: each refusal is an answer that says why and what to do."""

import asyncio
import hmac
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from .metrics import Board, Row
from .settings import WORKSPACE, Settings, is_loopback

RETRY_AFTER_S = 2
"""What a client is told to wait where there is no room for it."""


class Refusal(Exception):
    """A request that is not answered, as the response that says so."""

    def __init__(self, status: int, why: object, **headers: str) -> None:
        super().__init__(why)
        self.status = status
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        self.response: Response = JSONResponse({"detail": why}, status, names)


class Origins:
    """Outermost, ASGI: names and origins that are not ours are refused, whatever a browser would let through.

    A page of somebody else's may send simple requests anywhere, and may give our address a name of its own (DNS
    rebinding); so where only this machine can reach us, we answer to its names alone. Within stands CORS.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._ours = (*WORKSPACE, *(origin.rstrip("/") for origin in settings.origins))
        self._names = {urlsplit(origin).hostname for origin in settings.origins}
        self._is_local = settings.is_local
        self._app = app
        self._within = CORSMiddleware(
            app,
            allow_origins=self._ours,
            allow_methods=("*",),
            allow_headers=("*",),
            allow_credentials=True,
            allow_private_network=True,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        host, origin = headers.get("host", ""), headers.get("origin")
        try:
            name, page = urlsplit(f"//{host}").hostname or "", urlsplit(origin or "").netloc
        except ValueError:
            await Refusal(400, "the header `Host` or `Origin` is none").response(scope, receive, send)
            return
        if self._is_local and not is_loopback(name) and name not in self._names:
            refusal = Refusal(403, f"this server does not answer to the name {name!r}; ask 127.0.0.1, or use --origin")
            await refusal.response(scope, receive, send)
        elif origin is not None and page == host:
            await self._app(scope, receive, send)  # our own page
        elif origin is not None and origin not in self._ours:
            refusal = Refusal(403, f"pages of {origin} may not ask here; allow them with --origin {origin}")
            await refusal.response(scope, receive, send)
        else:
            await self._within(scope, receive, send)


def check_token(request: Request, settings: Settings) -> None:
    """Lets a request through that brings the token, where there is one.

    Raises:
        Refusal: 401.
    """
    if not settings.token:
        return
    kind, _, given = request.headers.get("authorization", "").partition(" ")
    is_right = hmac.compare_digest(given.strip().encode(), settings.token.encode())
    if not (is_right and kind.lower() == "bearer"):
        why = "send the header `Authorization: Bearer TOKEN` with this server's token"
        raise Refusal(401, why, www_authenticate='Bearer realm="goose-like"')


async def read_body(request: Request, settings: Settings) -> bytes:
    """The body of a request whose content is JSON.

    Raises:
        Refusal: 415 another type of content, 413 too large, told or not; 408 it did not come in time.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and not kind.endswith("+json"):
        raise Refusal(415, f"the content must be application/json, not {kind or 'untold'!r}")
    limit, body = settings.max_body_bytes, bytearray()
    told = request.headers.get("content-length", "")
    if told.isdecimal() and int(told) > limit:
        raise _too_large(limit)
    try:
        async with asyncio.timeout(settings.body_s):
            async for piece in request.stream():
                body += piece
                if len(body) > limit:
                    raise _too_large(limit)
    except TimeoutError:
        raise Refusal(408, f"the body did not come within {settings.body_s:g} s", connection="close") from None
    return bytes(body)


def _too_large(limit: int) -> Refusal:
    return Refusal(413, f"the body is larger than {limit} bytes", connection="close")


class Room:
    """How many queries are answered at once: by all workers together, and by this one for each client.

    `empty` is set while this worker answers none.
    """

    def __init__(self, settings: Settings, board: Board, row: Row) -> None:
        self._settings = settings
        self._board = board
        self._row = row
        self._clients: Counter[str] = Counter()
        self.empty = asyncio.Event()
        self.empty.set()

    @contextmanager
    def taken(self, client: str) -> Iterator[None]:
        """A place for one query.

        Raises:
            Refusal: 503 there is none, 429 this client has its share.
        """
        if self._board.running >= self._settings.max_concurrent:
            raise Refusal(503, "too many queries at once; try again soon", retry_after=str(RETRY_AFTER_S))
        if self._clients[client] >= self._settings.max_concurrent_per_client:
            why = f"{self._clients[client]} of your queries are being answered; wait for one to end"
            raise Refusal(429, why, retry_after=str(RETRY_AFTER_S))
        self._clients[client] += 1
        self._row.run(1)
        self.empty.clear()
        try:
            yield
        finally:
            self._row.run(-1)
            self._clients[client] -= 1
            if not self._clients[client]:
                del self._clients[client]
            if not self._clients:
                self.empty.set()
