"""Checks and records of each HTTP request: origin, token, body, query slots, metrics and log."""

import asyncio
import glob
import hmac
import json
import os
import sys
import time
from collections import Counter as CountsByKey
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import urlsplit

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from goose_like.core.message import Usage

from .settings import METRICS_FOLDER_VARIABLE, WORKSPACE_ORIGINS, Settings, is_loopback

_RETRY_AFTER_S = 2
_FIRST_BYTE_BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_QUERY_BUCKETS_S = (0.01, 0.05, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
_VOTES = ("up", "down", "other")
_TOKEN_KINDS = ("input", "output", "cache_read", "cache_write")

_UNLOGGED_PATHS = ("healthz", "metrics", "page")
"""Paths that are requested so often that their log lines would hide the others."""


class RequestRefused(Exception):
    """A request that gets an error response."""

    def __init__(self, status: int, detail: object, **headers: str) -> None:
        super().__init__(detail)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.response: Response = JSONResponse({"detail": detail}, status, named)


class OriginCheck:
    """ASGI middleware that refuses unknown host names and origins before any other code sees the request.

    CORS alone is not enough: any page may send simple requests to us, and may point a name of its own at our address
    (DNS rebinding). A server that only this machine can reach therefore answers only to this machine's names.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._origins = (*WORKSPACE_ORIGINS, *(origin.rstrip("/") for origin in settings.origins))
        self._host_names = {urlsplit(origin).hostname for origin in settings.origins}
        self._is_local = settings.is_local
        self._app = app
        self._app_with_cors = CORSMiddleware(
            app,
            allow_origins=self._origins,
            allow_methods=("*",),
            allow_headers=("*",),
            allow_credentials=True,
            allow_private_network=True,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        host, origin = headers.get("host", ""), headers.get("origin")
        try:
            host_name, origin_host = urlsplit(f"//{host}").hostname or "", urlsplit(origin or "").netloc
        except ValueError:
            await RequestRefused(400, "the header `Host` or `Origin` is malformed").response(scope, receive, send)
            return
        if self._is_local and not is_loopback(host_name) and host_name not in self._host_names:
            detail = f"this server does not answer to the name {host_name!r}; use 127.0.0.1, or start it with --origin"
            await RequestRefused(403, detail).response(scope, receive, send)
        elif origin is not None and origin_host == host:
            await self._app(scope, receive, send)  # our own page
        elif origin is not None and origin not in self._origins:
            detail = f"pages of {origin} may not use this server; allow them with --origin {origin}"
            await RequestRefused(403, detail).response(scope, receive, send)
        else:
            await self._app_with_cors(scope, receive, send)


def check_token(request: Request, settings: Settings) -> None:
    """Check the bearer token of a request, if the server has one.

    Raises:
        RequestRefused: 401, the token is missing or wrong.
    """
    if not settings.token:
        return
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    is_right = hmac.compare_digest(token.strip().encode(), settings.token.encode())
    if not (is_right and scheme.lower() == "bearer"):
        detail = "send the header `Authorization: Bearer TOKEN` with this server's token"
        raise RequestRefused(401, detail, www_authenticate='Bearer realm="goose-like"')


async def read_body(request: Request, settings: Settings) -> bytes:
    """Read a JSON body within the limits of size and time.

    Raises:
        RequestRefused: 415 not JSON, 413 too large, 408 too slow.
    """
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type != "application/json" and not content_type.endswith("+json"):
        raise RequestRefused(415, f"the content type must be application/json, not {content_type or 'missing'!r}")
    max_bytes, body = settings.max_body_bytes, bytearray()
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length) > max_bytes:
        raise _build_too_large(max_bytes)
    try:
        async with asyncio.timeout(settings.body_timeout_s):
            async for piece in request.stream():
                body += piece
                if len(body) > max_bytes:
                    raise _build_too_large(max_bytes)
    except TimeoutError:
        detail = f"the body did not arrive within {settings.body_timeout_s:g} s"
        raise RequestRefused(408, detail, connection="close") from None
    return bytes(body)


def _build_too_large(max_bytes: int) -> RequestRefused:
    return RequestRefused(413, f"the body is larger than {max_bytes} bytes", connection="close")


@dataclass(slots=True)
class RequestRecord:
    """The facts about one request for metrics and log; `content` is filled only if content is logged."""

    path: str
    status: int = 500
    dialect: str = ""
    ending: str = ""
    seconds: float = 0.0
    first_byte_s: float | None = None
    usage: Usage = field(default_factory=Usage)
    content: dict[str, str] = field(default_factory=dict)


class Metrics:
    """The server's Prometheus metrics.

    One worker keeps them in memory. Several workers each write files in the folder that PROMETHEUS_MULTIPROC_DIR
    names, and any worker can report the sums over all of them. Files of a worker that died still count.
    """

    def __init__(self) -> None:
        disable_created_metrics()
        own = CollectorRegistry()
        self._requests = Counter(
            "goose_like_requests", "Finished requests.", ("path", "status", "dialect", "ending"), registry=own
        )
        self._votes = Counter("goose_like_feedback", "Votes on answers.", ("vote",), registry=own)
        self._tokens = Counter("goose_like_tokens", "Tokens used.", ("kind",), registry=own)
        self._running = Gauge("goose_like_running", "Running queries.", registry=own, multiprocess_mode="livesum")
        self._first_byte = Histogram(
            "goose_like_query_first_byte_seconds",
            "Seconds until the first byte of an answer.",
            buckets=_FIRST_BYTE_BUCKETS_S,
            registry=own,
        )
        self._seconds = Histogram(
            "goose_like_query_seconds", "Seconds until the end of an answer.", buckets=_QUERY_BUCKETS_S, registry=own
        )
        for vote in _VOTES:
            self._votes.labels(vote)
        for kind in _TOKEN_KINDS:
            self._tokens.labels(kind)
        self._folder = os.environ.get(METRICS_FOLDER_VARIABLE, "")
        self._exported = own
        if self._folder:
            self._exported = CollectorRegistry()
            MultiProcessCollector(self._exported, self._folder)

    def count_request(self, record: RequestRecord) -> None:
        """Count a finished request."""
        self._requests.labels(record.path, str(record.status), record.dialect, record.ending).inc()
        if record.path == "query":
            self._seconds.observe(record.seconds)
            if record.first_byte_s is not None:
                self._first_byte.observe(record.first_byte_s)
        for kind in _TOKEN_KINDS:
            self._tokens.labels(kind).inc(getattr(record.usage, f"{kind}_tokens"))

    def count_vote(self, vote: str) -> None:
        """Count a vote on an answer."""
        self._votes.labels(vote if vote in _VOTES else "other").inc()

    def track_query(self) -> AbstractContextManager[None]:
        """Count a query as running until the block ends."""
        return self._running.track_inprogress()

    @property
    def running_queries(self) -> int:
        """Queries that run now in all workers."""
        if self._folder:
            files = glob.glob(os.path.join(glob.escape(self._folder), "gauge_livesum_*.db"))
            metrics = MultiProcessCollector.merge(files)
        else:
            metrics = self._running.collect()
        return int(sum(sample.value for metric in metrics for sample in metric.samples))

    def export(self) -> bytes:
        """Return the metrics of all workers in Prometheus' text format."""
        return generate_latest(self._exported)


class RequestLog:
    """ASGI middleware that counts each finished request and writes one log line for it.

    `labels` are short names for the known paths. Other paths are logged as `other`: they may contain anything.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, labels: Mapping[str, str]) -> None:
        self._app = app
        self._metrics = metrics
        self._labels = labels

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on and record how it ends."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        record = scope["record"] = RequestRecord(self._labels.get(scope["path"], "other"))
        started = time.monotonic()

        async def watch(message: Message) -> None:
            if message["type"] == "http.response.start":
                record.status = message["status"]
            elif record.first_byte_s is None and message.get("body"):
                record.first_byte_s = time.monotonic() - started
            await send(message)

        try:
            await self._app(scope, receive, watch)
        finally:
            record.seconds = time.monotonic() - started
            self._metrics.count_request(record)
            if record.path not in _UNLOGGED_PATHS:
                print(_format_log_line(scope, record), file=sys.stderr, flush=True)


def get_record(request: Request) -> RequestRecord:
    """Return the record that the log will write for a request."""
    record: RequestRecord = request.scope["record"]
    return record


def _format_log_line(scope: Scope, record: RequestRecord) -> str:
    client = (scope.get("client") or ("-",))[0]
    words = [f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}", client, scope["method"], f"/{record.path}", str(record.status)]
    words += filter(None, (record.dialect, record.ending))
    words.append(f"{record.seconds:.3f}s")
    if record.path == "query" and record.first_byte_s is not None:
        words.append(f"first byte {record.first_byte_s:.3f}s")
    if record.usage.total_tokens:
        words.append(f"tokens {record.usage.input_tokens}+{record.usage.output_tokens}")
    if record.content:
        words.append(json.dumps(record.content, ensure_ascii=False))
    return " ".join(words)


class QuerySlots:
    """Limits on queries that run at once: in all workers together, and in this worker for each client address.

    `idle` is set while this worker runs no query. New queries are refused while `is_closed` is true.
    """

    def __init__(self, settings: Settings, metrics: Metrics) -> None:
        self._settings = settings
        self._metrics = metrics
        self._clients: CountsByKey[str] = CountsByKey()
        self.is_closed = False
        self.idle = asyncio.Event()
        self.idle.set()

    @contextmanager
    def take(self, client: str) -> Iterator[None]:
        """Take a slot for one query of a client until the block ends.

        Raises:
            RequestRefused: 503 the server is stopping or full, 429 the client has too many queries.
        """
        if self.is_closed:
            detail = "this server is stopping"
            raise RequestRefused(503, detail, retry_after=str(_RETRY_AFTER_S), connection="close")
        if self._metrics.running_queries >= self._settings.max_concurrent:
            raise RequestRefused(503, "too many queries at once; try again soon", retry_after=str(_RETRY_AFTER_S))
        if self._clients[client] >= self._settings.max_concurrent_per_client:
            detail = f"{self._clients[client]} of your queries are running; wait until one ends"
            raise RequestRefused(429, detail, retry_after=str(_RETRY_AFTER_S))
        self._clients[client] += 1
        self.idle.clear()
        try:
            with self._metrics.track_query():
                yield
        finally:
            self._clients[client] -= 1
            if not self._clients[client]:
                del self._clients[client]
            if not self._clients:
                self.idle.set()
