"""A server at an address, for clients that know its token."""

import asyncio
import hmac
import logging
import secrets
import signal
import socket
import sys
from typing import Any

import uvicorn
from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend
from mcp.server.auth.provider import AccessToken, TokenVerifier
from mcp.server.lowlevel.server import Server
from starlette.applications import Starlette
from starlette.middleware.authentication import AuthenticationMiddleware
from typing_extensions import override

from goose_like.core.errors import UsageError

from .start import ServeOptions, open_server

_CLOSE_TIMEOUT_S = 2
_CUT_OFF = (
    "Cancel %s running task(s), timeout graceful shutdown exceeded",
    "ASGI callable returned without starting response.",
    "ASGI callable returned without completing response.",
)
"""Lines of uvicorn about requests that its shutdown cuts off."""


class _OneToken(TokenVerifier):
    """The check of the only token."""

    def __init__(self, token: str) -> None:
        self._token = token.encode()

    @override
    async def verify_token(self, token: str) -> AccessToken | None:
        if not hmac.compare_digest(token.strip().encode(), self._token):
            return None
        return AccessToken(token=token, client_id="client", scopes=[])


class _UvicornServer(uvicorn.Server):
    """The server of uvicorn, which ends without a word about requests that it cuts off."""

    @override
    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        logger = logging.getLogger("uvicorn.error")
        logger.addFilter(self._is_worth_telling)
        try:
            await super().serve(sockets)
            cut_off = self.server_state.tasks
            if cut_off:
                await asyncio.wait(cut_off, timeout=_CLOSE_TIMEOUT_S)
        finally:
            logger.removeFilter(self._is_worth_telling)

    def _is_worth_telling(self, record: logging.LogRecord) -> bool:
        if not self.should_exit:
            return True
        is_cancelled = record.exc_info is not None and record.exc_info[0] is asyncio.CancelledError
        return record.msg not in _CUT_OFF and not is_cancelled


async def serve_http(options: ServeOptions, host: str, port: int, token: str) -> int:
    """Serve clients over HTTP until a signal stops the server. Without a token it makes one, and shows it.

    Raises:
        UsageError: it cannot listen there.
    """
    output = sys.stdout  # inside of the block prints go elsewhere
    with _open_listener(host, port) as listener:
        async with open_server(options) as server:
            token_note = "your token" if token else "a new token at each start; --token sets it"
            token = token or secrets.token_urlsafe(24)
            config = uvicorn.Config(
                create_app(server, token, host),
                log_config=None,
                log_level="warning",
                access_log=False,
                server_header=False,
                ws="none",
                lifespan="on",
                timeout_graceful_shutdown=_CLOSE_TIMEOUT_S,
            )
            place = f"[{host}]" if ":" in host else host
            address = f"http://{place}:{listener.getsockname()[1]}/mcp"
            print(f"goose-like serves MCP at {address}", file=output)
            print(f"  header  Authorization: Bearer {token}  ({token_note})", file=output)
            print("  Press Ctrl-C to stop.", file=output, flush=True)
            for number in (signal.SIGINT, signal.SIGTERM):  # uvicorn raises the signal again after it has stopped
                signal.signal(number, lambda *_: None)
            await _UvicornServer(config).serve(sockets=[listener])
    return 0


def create_app(server: Server[Any], token: str, host: str = "127.0.0.1") -> Starlette:
    """Create the application of a server. At this machine's own addresses it answers to their names and pages alone."""
    verifier = _OneToken(token)
    app = server.streamable_http_app(host=host, token_verifier=verifier)
    app.add_middleware(AuthenticationMiddleware, backend=BearerAuthBackend(verifier))
    return app


def _open_listener(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        reason, _, _ = str(error.strerror).partition(" (")  # Python adds the address
        advice = "try another, e.g. --port 0"
        raise UsageError(f"cannot listen on {host}, port {port}: {reason}; {advice}") from error
