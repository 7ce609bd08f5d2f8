"""The HTTP server as an ASGI application: routes, and what stands around them."""

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from sse_starlette import EventSourceResponse
from sse_starlette.sse import SendTimeoutError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from goose_like.config.profile import Profile
from goose_like.serve.openbb.discovery import About, agents, copilots
from goose_like.serve.openbb.query import Query
from goose_like.serve.openbb.request import RequestError, read_query

from .ledger import Ledger, seen_of
from .metrics import Board, Row
from .middleware import RETRY_AFTER_S, Origins, Refusal, Room, check_token, read_body
from .service import Service, open_service
from .settings import Settings
from .shutdown import Drain
from .static_files import Asset, assets
from .turn import answer

_LARGE_BYTES = 200_000
"""A body beyond this is read in a thread, so that other streams go on meanwhile."""


@dataclass(frozen=True, slots=True)
class AppFactory:
    """Makes the application in a worker's process. `parent` is the process without which the worker ends too."""

    settings: Settings
    profile: Profile
    board: Board
    parent: int | None = None

    def __call__(self) -> Ledger:
        about = About.of(self.profile)
        routes = [
            *(Route(path, _answer, methods=["POST"]) for path in ("/v1/query", "/query")),
            *(Route(path, _take_feedback, methods=["POST"]) for path in ("/v1/feedback", "/feedback")),
            Route("/copilots.json", partial(_discovered, copilots, about)),
            Route("/agents.json", partial(_discovered, agents, about)),
            Route("/healthz", _tell_health),
            Route("/metrics", _tell_metrics),
            *(Route(f"/{path}", partial(_page, asset)) for path, asset in assets().items()),
        ]
        refused: Any = {Refusal: _refused, HTTPException: _no_such, ClientDisconnect: _gone}
        row = self.board.row()
        inner = Starlette(routes=routes, exception_handlers=refused, lifespan=partial(_living, self, row))
        return Ledger(Origins(inner, self.settings), row)


@dataclass(frozen=True, slots=True)
class _Worker:
    """What the routes of one worker use."""

    service: Service
    drain: Drain
    board: Board
    row: Row
    room: Room


@contextlib.asynccontextmanager
async def _living(factory: AppFactory, row: Row, _: Starlette) -> AsyncIterator[dict[str, Any]]:
    """Opens what a worker shares, takes its signals, and closes all in the end. Its state is in every request's."""
    settings, board = factory.settings, factory.board
    async with open_service(settings, factory.profile) as service:
        room = Room(settings, board, row)
        drain = Drain(service, room)
        with drain.watching(factory.parent):
            yield {"worker": _Worker(service, drain, board, row, room)}


def _worker(request: Request) -> _Worker:
    worker: _Worker = request.state.worker
    return worker


# --- the routes


async def _answer(request: Request) -> Response:
    """`POST /v1/query`: an event stream. What is wrong with the request is told by its status, before the stream."""
    worker, seen = _worker(request), seen_of(request)
    service, settings = worker.service, worker.service.settings
    check_token(request, settings)
    _check_time(worker)
    with contextlib.ExitStack() as place:
        place.enter_context(worker.room.taken(request.client.host if request.client else ""))
        query = await _read(await read_body(request, settings), settings)
        seen.dialect = query.dialect
        return _Stream(answer(query, service, seen), place.pop_all(), settings.send_s)


async def _read(body: bytes, settings: Settings) -> Query:
    try:
        query = read_query(body) if len(body) < _LARGE_BYTES else await asyncio.to_thread(read_query, body)
    except RequestError as error:
        raise Refusal(422, error.errors) from error
    if len(query.messages) > settings.max_messages:
        text = f"{len(query.messages)} messages are more than the {settings.max_messages} that are taken"
        raise Refusal(422, [{"loc": ["body", "messages"], "msg": text, "type": "too_long"}])
    return query


def _check_time(worker: _Worker) -> None:
    if worker.drain.is_begun:
        raise Refusal(503, "this server is being stopped", retry_after=str(RETRY_AFTER_S), connection="close")


async def _take_feedback(request: Request) -> Response:
    """`POST /v1/feedback`: counted; its words are logged only where content is."""
    worker, seen = _worker(request), seen_of(request)
    settings = worker.service.settings
    check_token(request, settings)
    try:
        told = json.loads(await read_body(request, settings))
    except (ValueError, RecursionError) as error:
        raise Refusal(422, [{"loc": ["body"], "msg": f"no JSON: {error}", "type": "json_invalid"}]) from error
    if not isinstance(told, dict):
        raise Refusal(422, [{"loc": ["body"], "msg": "expected an object", "type": "dict_type"}])
    worker.row.vote(str(told.get("vote")))
    if settings.log_content:
        seen.content = {key: str(told[key]) for key in ("vote", "tags", "user_comment", "trace_id") if told.get(key)}
    return JSONResponse({"status": "ok"})


async def _discovered(listing: Any, about: About, request: Request) -> Response:
    return JSONResponse(listing(about, str(request.base_url)))


async def _tell_health(request: Request) -> Response:
    """`GET /healthz`, for balancers: 503 from the signal to stop on."""
    if _worker(request).drain.is_begun:
        return JSONResponse({"status": "draining"}, 503, {"connection": "close"})
    return JSONResponse({"status": "ok"})


async def _tell_metrics(request: Request) -> Response:
    """`GET /metrics`, in Prometheus' text format, of all workers."""
    worker = _worker(request)
    check_token(request, worker.service.settings)
    return Response(worker.board.text(), media_type="text/plain; version=0.0.4")


async def _page(asset: Asset, request: Request) -> Response:
    seen_of(request).path = "page"
    return Response(asset.body, headers=asset.headers)


# --- their ends


class _Stream(EventSourceResponse):
    """The answer; its place is free again when it is over, however that came. We send our own signs of life."""

    def __init__(self, content: AsyncIterator[bytes], place: contextlib.ExitStack, send_s: float) -> None:
        super().__init__(content, sep="\n", ping=0, send_timeout=send_s)
        self._place = place

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        except SendTimeoutError:
            logging.getLogger(__name__).warning("a client did not read its answer any more and is left")
        finally:
            self._place.close()


def _refused(_: Request, error: Refusal) -> Response:
    return error.response


def _no_such(_: Request, error: HTTPException) -> Response:
    return JSONResponse({"detail": error.detail}, error.status_code, error.headers)


def _gone(_: Request, error: ClientDisconnect) -> Response:
    return Response(status_code=400)  # nobody reads it
