"""The HTTP application of one worker: its routes, its middleware and its lifetime.

No other shared module imports a protocol.
"""

import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from goose_like.config.profile import Profile
from goose_like.serve.openbb import endpoints as openbb

from .middleware import Metrics, OriginCheck, QuerySlots, RequestLog, RequestRefused, check_token
from .service import open_service
from .settings import Settings
from .shutdown import GracefulShutdown
from .static_files import load_static_files


@dataclass(frozen=True, slots=True)
class AppFactory:
    """A factory that each worker process calls once to get its ASGI application.

    Every instance is pickled and sent to the workers. A worker stops if process `parent_pid` ends.
    """

    settings: Settings
    profile: Profile
    parent_pid: int | None = None
    create_metrics: Callable[[], Metrics] = Metrics

    def __call__(self) -> RequestLog:
        """Build the application."""
        metrics = self.create_metrics()
        routes = build_routes(self.profile)
        files = load_static_files().items()
        routes += [Route(f"/{path}", response, methods=["GET"], name="page") for path, response in files]
        labels = {route.path: route.name for route in routes}
        handlers: Any = {RequestRefused: _refuse, HTTPException: _send_error, ClientDisconnect: _ignore_disconnect}
        app = Starlette(routes=routes, exception_handlers=handlers, lifespan=partial(_run_worker, self, metrics))
        return RequestLog(OriginCheck(app, self.settings), metrics, labels)


def build_routes(profile: Profile) -> list[Route]:
    """Build the routes of all protocols, and those for operators; a route's name is its label in metrics and log.

    Raises:
        ProfileError: the config of the profile's toolkit `openbb` is invalid.
    """
    return [
        *openbb.build_routes(profile),
        Route("/healthz", _report_health, name="healthz"),
        Route("/metrics", _export_metrics, name="metrics"),
    ]


@contextlib.asynccontextmanager
async def _run_worker(factory: AppFactory, metrics: Metrics, _: Starlette) -> AsyncIterator[dict[str, Any]]:
    """Open and close the parts that requests share; handlers find them in `request.state`."""
    async with open_service(factory.settings, factory.profile) as service:
        slots = QuerySlots(factory.settings, metrics)
        with GracefulShutdown(service, slots).handle_signals(factory.parent_pid):
            yield {"service": service, "slots": slots, "metrics": metrics}


async def _report_health(request: Request) -> Response:
    """Answer `GET /healthz`, for balancers: 503 once the server is stopping."""
    if request.state.slots.is_closed:
        return JSONResponse({"status": "draining"}, 503, {"connection": "close"})
    return JSONResponse({"status": "ok"})


async def _export_metrics(request: Request) -> Response:
    """Answer `GET /metrics` with the metrics of all workers."""
    check_token(request, request.state.service.settings)
    return Response(request.state.metrics.export(), media_type="text/plain; version=0.0.4")


def _refuse(_: Request, error: RequestRefused) -> Response:
    return error.response


def _send_error(_: Request, error: HTTPException) -> Response:
    return JSONResponse({"detail": error.detail}, error.status_code, error.headers)


def _ignore_disconnect(_: Request, error: ClientDisconnect) -> Response:
    return Response(status_code=400)  # the client is gone and does not read this
