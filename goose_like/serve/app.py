"""The HTTP application of one worker: its routes, its middleware and its lifetime.

No other shared module imports a protocol.
"""

import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from goose_like.config.profile import Profile

from .middleware import Metrics, OriginCheck, QuerySlots, RequestLog, check_token
from .openai import endpoints as openai
from .openbb import endpoints as openbb
from .service import open_services
from .settings import Settings
from .shutdown import handle_signals
from .static_files import load_static_files
from .turn import FAULT


def create_app(
    settings: Settings, profiles: Sequence[Profile], create_metrics: Callable[[], Metrics] = Metrics
) -> RequestLog:
    """Create the ASGI application; each worker process does this once."""
    metrics = create_metrics()
    routes = build_routes(profiles)
    for path, response in load_static_files().items():
        routes.append(Route(f"/{path}", response, methods=["GET"], name="page"))
    labels = {route.path: route.name for route in routes}
    lifespan = partial(_run_worker, settings, profiles, metrics)
    handlers: Any = {HTTPException: _send_error, Exception: _send_fault}
    app = Starlette(routes=routes, exception_handlers=handlers, lifespan=lifespan)
    return RequestLog(OriginCheck(app, settings), metrics, labels)


def build_routes(profiles: Sequence[Profile]) -> list[Route]:
    """Build the routes of all protocols, and those for operators; a route's name is its label in metrics and log.

    The first profile is the one of OpenBB Workspace, whose protocol has no names of models.

    Raises:
        ProfileError: the config of the first profile's toolkit `openbb` is invalid.
    """
    return [
        *openbb.build_routes(profiles[0]),
        *openai.build_routes([profile.name for profile in profiles]),
        Route("/healthz", _report_health, name="healthz"),
        Route("/metrics", _export_metrics, name="metrics"),
    ]


@contextlib.asynccontextmanager
async def _run_worker(
    settings: Settings, profiles: Sequence[Profile], metrics: Metrics, _: Starlette
) -> AsyncIterator[dict[str, Any]]:
    """Open and close the parts that requests share; handlers find them in `request.state`."""
    async with open_services(settings, profiles) as services:
        slots = QuerySlots(settings, metrics)
        service = services[profiles[0].name]
        with handle_signals(service, slots):
            yield {"service": service, "services": services, "slots": slots, "metrics": metrics}


async def _report_health(request: Request) -> Response:
    """Answer `GET /healthz`, for balancers: 503 once the server is stopping."""
    if request.state.slots.is_closed:
        return JSONResponse({"status": "draining"}, 503, {"connection": "close"})
    return JSONResponse({"status": "ok"})


async def _export_metrics(request: Request) -> Response:
    """Answer `GET /metrics` with the metrics of all workers."""
    check_token(request, request.state.service.settings)
    return Response(request.state.metrics.export(), media_type="text/plain; version=0.0.4")


def _send_error(_: Request, error: HTTPException) -> Response:
    return JSONResponse({"detail": error.detail}, error.status_code, error.headers)


def _send_fault(_: Request, error: Exception) -> Response:
    logging.getLogger(__name__).error("a request failed", exc_info=error)
    return JSONResponse({"detail": FAULT}, 500)
