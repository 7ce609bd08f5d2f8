"""Servers that are addresses: streamable HTTP, and the older SSE."""

from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from goose_like import __version__
from goose_like.core.threads import run_in_executor
from goose_like.providers.connection import is_loopback_host

from .server import ServerConfig

MAX_EVENT_BYTES = 32 << 20
_CONNECT_TIMEOUT_S = 10.0
_SILENCE_S = 3_600.0
"""The longest time without a byte. Calls have a limit of their own, and a stream of changes may be silent for long."""


async def open_http(server: ServerConfig, auth: Any, note_status: Callable[[int], None]) -> Any:
    """Return a transport of the SDK to a server, which the SDK's client enters.

    `auth` is an `httpx2.Auth` or None. `note_status` takes the status of each answer: the SDK's errors do not name it.
    """
    import httpcore2

    # Loading the system's certificates is slow but releases the lock: a thread does it during the import.
    loading = run_in_executor(None, httpcore2.default_ssl_context)
    import httpx2
    from mcp.client.sse import sse_client
    from mcp.client.streamable_http import streamable_http_client

    from goose_like.providers.answer_limits import HEADERS, limit_answer

    certificates = await loading

    async def limit(response: httpx2.Response) -> None:
        note_status(response.status_code)
        # The SDK follows redirects within the origin, where headers and tokens may go.
        if not response.has_redirect_location:
            await limit_answer(response)

    def create_client(
        headers: dict[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,
        auth: httpx2.Auth | None = None,
    ) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(
            verify=certificates,
            timeout=httpx2.Timeout(_SILENCE_S, connect=_CONNECT_TIMEOUT_S),
            headers={**HEADERS, "user-agent": f"goose-like/{__version__}", **(headers or {})},
            event_hooks={"response": [limit]},
            trust_env=not is_loopback_host(urlsplit(server.url).hostname),
            auth=auth,
        )

    if server.transport == "sse":
        return sse_client(server.url, server.headers, httpx_client_factory=create_client, auth=auth)
    client = create_client(server.headers, auth=auth)
    return _Closing(client, streamable_http_client(server.url, http_client=client, max_sse_event_size=MAX_EVENT_BYTES))


class _Closing:
    """A transport together with its HTTP client, which the SDK does not close."""

    def __init__(self, client: Any, transport: Any) -> None:
        self._client = client
        self._transport = transport

    async def __aenter__(self) -> Any:
        return await self._transport.__aenter__()

    async def __aexit__(self, *error: Any) -> Any:
        try:
            return await self._transport.__aexit__(*error)
        finally:
            await self._client.aclose()
