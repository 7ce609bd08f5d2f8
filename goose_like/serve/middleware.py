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
from itertools import chain
from urllib.parse import urlsplit

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from goose_like.core.message import Usage

from .connection import LimitedLog
from .settings import METRICS_FOLDER_VARIABLE, WORKSPACE_ORIGINS, Settings, is_loopback

_REFUSAL_S = 1.0
"""Seconds in which a client may still send a body that is announced as too large."""
_CLOSE = {"connection": "close"}
_RETRY = {"retry-after": "2"}
_QUERY_BUCKETS_S = (0.01, 0.05, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
_VOTES = ("up", "down", "other")
_TOKEN_KINDS = ("input", "output", "cache_read", "cache_write")

_UNLOGGED_PATHS = ("healthz", "metrics", "page")
"""Paths that are requested so often that their log lines would hide the others."""


class OriginCheck:
    """ASGI middleware that refuses unknown host names and origins before any other code sees the request.

    CORS alone is not enough: any page may send simple requests to us, and may point a name of its own at our address
    (DNS rebinding). A server that only this machine can reach therefore answers only to this machine's names.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._origins = (*WORKSPACE_ORIGINS, *settings.origins)
        web_origins = [origin for origin in settings.origins if origin.startswith("http")]
        self._host_names = {urlsplit(origin).hostname for origin in web_origins}
        self._is_local = is_loopback(settings.host)
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
        app = self._app
        if scope["type"] == "http":
            app = self._choose_app(Headers(scope=scope))
        await app(scope, receive, send)

    def _choose_app(self, headers: Headers) -> ASGIApp:
        host = headers.get("host", "")
        origin = headers.get("origin")
        try:
            host_name = urlsplit(f"//{host}").hostname or ""
            origin_host = urlsplit(origin or "").netloc
        except ValueError:
            return _refuse(400, "the header `Host` or `Origin` is malformed")
        if self._is_local and not is_loopback(host_name) and host_name not in self._host_names:
            detail = f"this server does not answer to the name {host_name!r}; use 127.0.0.1, or start it with --origin"
            return _refuse(403, detail)
        if origin is None or origin in self._origins:
            return self._app_with_cors
        if origin_host == host:
            return self._app  # our own page
        if origin == "null":  # any page can have it, so it cannot be allowed
            return _refuse(403, "a page without an address, such as a file, may not use this server; serve it by HTTP")
        return _refuse(403, f"pages of {origin} may not use this server; allow them with --origin {origin}")


def _refuse(status: int, detail: str) -> Response:
    return JSONResponse({"detail": detail}, status)


def check_token(request: Request, settings: Settings) -> None:
    """Check the bearer token of a request, if the server has one.

    Raises:
        HTTPException: 401, the token is missing or wrong.
    """
    if not settings.token:
        return
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    is_right = hmac.compare_digest(token.strip().encode(), settings.token.encode())
    if not (is_right and scheme.lower() == "bearer"):
        detail = "send the header `Authorization: Bearer TOKEN` with this server's token"
        raise HTTPException(401, detail, {"www-authenticate": 'Bearer realm="goose-like"'})


async def read_body(request: Request, settings: Settings) -> bytes:
    """Read a JSON body within the limits of size and time.

    Raises:
        HTTPException: 415 not JSON, 413 too large, 408 too slow.
    """
    header = request.headers.get("content-type", "")
    content_type = header.partition(";")[0].strip().lower()
    if content_type != "application/json" and not content_type.endswith("+json"):
        raise HTTPException(415, f"the content type must be application/json, not {content_type or 'missing'!r}")
    too_large = HTTPException(413, f"the body is larger than {settings.max_body_bytes} bytes", _CLOSE)
    announced = request.headers.get("content-length", "")
    is_announced = announced.isdecimal() and int(announced) > settings.max_body_bytes
    time_limit_s = settings.body_timeout_s
    if is_announced:
        # Closing before the client has sent what it is sending would lose the answer on its way.
        time_limit_s = min(time_limit_s, _REFUSAL_S)
    body = bytearray()
    try:
        async with asyncio.timeout(time_limit_s):
            async for piece in request.stream():
                body += piece
                if len(body) > settings.max_body_bytes:
                    raise too_large
    except ClientDisconnect:
        raise HTTPException(400, "the client is gone") from None
    except TimeoutError:
        if is_announced:
            raise too_large from None
        detail = f"the body did not arrive within {settings.body_timeout_s:g} s"
        raise HTTPException(408, detail, _CLOSE) from None
    return bytes(body)


@dataclass(slots=True)
class RequestRecord:
    """The facts about one request for metrics and log; `content` is filled only if content is logged."""

    path: str
    status: int = 500
    dialect: str = ""
    ending: str = ""
    seconds: float = 0.0
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
        labels = ("path", "status", "dialect", "ending")
        self._requests = Counter("goose_like_requests", "Finished requests.", labels, registry=own)
        self._votes = Counter("goose_like_feedback", "Votes on answers.", ("vote",), registry=own)
        self._tokens = Counter("goose_like_tokens", "Tokens used.", ("kind",), registry=own)
        self._running = Gauge("goose_like_running", "Running queries.", registry=own, multiprocess_mode="livesum")
        about = "Seconds until the end of an answer."
        self._seconds = Histogram("goose_like_query_seconds", about, buckets=_QUERY_BUCKETS_S, registry=own)
        for vote in _VOTES:
            self._votes.labels(vote)
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
        for kind in _TOKEN_KINDS:
            self._tokens.labels(kind).inc(getattr(record.usage, f"{kind}_tokens"))

    def count_vote(self, vote: str) -> None:
        """Count a vote on an answer; clients say `up`, `thumbs_up` and the like."""
        vote = vote.removeprefix("thumbs_")
        label = vote if vote in _VOTES else "other"
        self._votes.labels(label).inc()

    def track_query(self) -> AbstractContextManager[None]:
        """Count a query as running until the block ends."""
        return self._running.track_inprogress()

    @property
    def running_queries(self) -> int:
        """Queries that run now in all workers."""
        if self._folder:
            pattern = os.path.join(glob.escape(self._folder), "gauge_livesum_*.db")
            metrics = MultiProcessCollector.merge(glob.glob(pattern))
        else:
            metrics = self._running.collect()
        samples = chain.from_iterable(metric.samples for metric in metrics)
        return int(sum(sample.value for sample in samples))

    def export(self) -> bytes:
        """Return the metrics of all workers in Prometheus' text format."""
        return generate_latest(self._exported)


class RequestLog:
    """ASGI middleware that counts each finished request and writes one log line for it.

    Handlers find the record in `request.state`. `labels` are short names for the known paths. Other paths are logged as
    `other`: they may contain anything.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, labels: Mapping[str, str]) -> None:
        self._app = app
        self._metrics = metrics
        self._labels = labels
        self._log = LimitedLog()
        self._log.install()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on and record how it ends."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        label = self._labels.get(scope["path"], "other")
        record = RequestRecord(label)
        scope["state"]["record"] = record
        started = time.monotonic()

        async def watch(message: Message) -> None:
            if message["type"] == "http.response.start":
                record.status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, watch)
        finally:
            record.seconds = time.monotonic() - started
            self._metrics.count_request(record)
            if record.path not in _UNLOGGED_PATHS:
                self._write_line(scope, record)

    def _write_line(self, scope: Scope, record: RequestRecord) -> None:
        line = _format_log_line(scope, record)
        if record.path == "query" and record.status < 400:
            sys.stderr.write(f"{line}\n")  # one write: workers share stderr
        else:  # anyone can cause such lines, also without a token
            self._log.write(line)


def _format_log_line(scope: Scope, record: RequestRecord) -> str:
    client = scope.get("client") or ("-",)
    words = [
        f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        client[0],
        scope["method"],
        f"/{record.path}",
        str(record.status),
        record.dialect,
        record.ending,
        f"{record.seconds:.3f}s",
    ]
    usage = record.usage
    if usage.total_tokens:
        words.append(f"tokens {usage.input_tokens}+{usage.output_tokens}")
    if record.content:
        words.append(json.dumps(record.content, ensure_ascii=False))
    return " ".join(filter(None, words))


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
            HTTPException: 503 the server is stopping or full, 429 the client has too many queries.
        """
        if self.is_closed:
            raise HTTPException(503, "this server is stopping", _RETRY | _CLOSE)
        if self._metrics.running_queries >= self._settings.max_concurrent:
            raise HTTPException(503, "too many queries at once; try again soon", _RETRY)
        if self._clients[client] >= self._settings.max_concurrent_per_client:
            detail = f"{self._clients[client]} of your queries are running; wait until one ends"
            raise HTTPException(429, detail, _RETRY)
        self._clients[client] += 1
        self.idle.clear()
        try:
            with self._metrics.track_query():
                yield
        finally:
            self._clients.subtract([client])
            self._clients = +self._clients  # without zeros
            if not self._clients:
                self.idle.set()
