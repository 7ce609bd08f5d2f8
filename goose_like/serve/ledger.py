"""One count and one line a request, without a word of what was said unless that was asked for."""

import json
import sys
import time
from datetime import UTC, datetime

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .metrics import Row, Seen

_KINDS = {
    **{f"{version}/{name}": name for version in ("", "/v1") for name in ("query", "feedback")},
    **{f"/{name}.json": name for name in ("copilots", "agents")},
    **{f"/{name}": name for name in ("healthz", "metrics")},
}
"""What is counted and logged of a path. A client may write anything into another one."""

_UNLOGGED = ("healthz", "metrics", "page")
"""Whose lines would bury the others: balancers ask each second, and a page is a dozen files."""


class Ledger:
    """Outermost, ASGI: sees how each request ends."""

    def __init__(self, app: ASGIApp, row: Row) -> None:
        self._app = app
        self._row = row

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        seen = scope["seen"] = Seen(_KINDS.get(scope["path"], "other"))
        began = time.monotonic()

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start":
                seen.status = message["status"]
            elif seen.first_byte_s is None and message.get("body"):
                seen.first_byte_s = time.monotonic() - began
            await send(message)

        try:
            await self._app(scope, receive, watched)
        finally:
            seen.seconds = time.monotonic() - began
            self._row.count(seen)
            if seen.path not in _UNLOGGED:
                print(_line(scope, seen), file=sys.stderr, flush=True)


def seen_of(request: Request) -> Seen:
    """What the ledger will note of this request."""
    seen: Seen = request.scope["seen"]
    return seen


def _line(scope: Scope, seen: Seen) -> str:
    client = (scope.get("client") or ("-",))[0]
    words = [f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}", client, scope["method"], f"/{seen.path}", str(seen.status)]
    words += filter(None, (seen.dialect, seen.ending))
    words.append(f"{seen.seconds:.3f}s")
    if seen.path == "query" and seen.first_byte_s is not None:
        words.append(f"first byte {seen.first_byte_s:.3f}s")
    if seen.usage.total_tokens:
        words.append(f"tokens {seen.usage.input_tokens}+{seen.usage.output_tokens}")
    if seen.content:
        words.append(json.dumps(seen.content, ensure_ascii=False))
    return " ".join(words)
