"""A small server that sends scripted streams to the page, for tests of its drawing."""

import asyncio
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from goose_like.serve.openbb.discovery import AgentInfo, build_agents_json
from goose_like.serve.static_files import load_static_files

Event = tuple[str, dict[str, Any]]
HANG = ("hang", {})
"""A marker in place of an event: send nothing more until the client disconnects."""


def chunk(text: str) -> Event:
    return "copilotMessageChunk", {"delta": text}


def step(message: str, kind: str = "INFO", **more: Any) -> Event:
    return "copilotStatusUpdate", {"eventType": kind, "message": message, "group": "reasoning", "hidden": False, **more}


def artifact(kind: str, name: str, content: Any, **more: Any) -> Event:
    return "copilotMessageArtifact", {
        "type": kind,
        "name": name,
        "description": f"{name}, seen",
        "content": content,
        **more,
    }


def call(function: str, **arguments: Any) -> Event:
    return "copilotFunctionCall", {"function": function, "input_arguments": arguments, "extra_state": {"kept": "x"}}


@dataclass
class Played:
    """A server that sends one of `answers` for each request: events of a stream, or a complete response."""

    answers: list[Sequence[Event] | Response]
    token: str = ""
    about: AgentInfo = field(default_factory=lambda: AgentInfo(id="desk", name="Desk", description="Reads dashboards."))
    bodies: list[dict[str, Any]] = field(default_factory=list)
    votes: list[dict[str, Any]] = field(default_factory=list)
    left: threading.Event = field(default_factory=threading.Event)
    url: str = ""

    def app(self) -> Starlette:
        pages = [Route(f"/{name}", response) for name, response in load_static_files().items()]
        return Starlette(
            routes=[
                *pages,
                Route("/agents.json", self._agents),
                Route("/page.json", lambda _: JSONResponse({"model": "openai:m", "limits": "it sees no pictures"})),
                Route("/v1/query", self._query, methods=["POST"]),
                Route("/v1/feedback", self._feedback, methods=["POST"]),
            ]
        )

    async def _agents(self, request: Request) -> Response:
        return self._refused(request) or JSONResponse(build_agents_json(self.about, str(request.base_url)))

    async def _query(self, request: Request) -> Response:
        if refused := self._refused(request):
            return refused
        self.bodies.append(await request.json())
        answer = self.answers[min(len(self.bodies), len(self.answers)) - 1]
        if isinstance(answer, Response):
            return answer
        return StreamingResponse(self._stream(answer), media_type="text/event-stream")

    async def _stream(self, events: Sequence[Event]) -> Any:
        try:
            for name, data in events:
                if (name, data) == HANG:
                    await asyncio.Event().wait()
                yield f"event: {name}\ndata: {json.dumps(data)}\n\n"
                await asyncio.sleep(0)
        except asyncio.CancelledError:
            self.left.set()
            raise

    async def _feedback(self, request: Request) -> Response:
        self.votes.append(await request.json())
        return JSONResponse({"status": "ok"})

    def _refused(self, request: Request) -> Response | None:
        if self.token and request.headers.get("authorization") != f"Bearer {self.token}":
            return JSONResponse({"detail": "a token is needed"}, 401)
        return None


@contextmanager
def played(*answers: Sequence[Event] | Response, **how: Any) -> Iterator[Played]:
    """Run the server in a thread."""
    server = Played(list(answers), **how)
    run = uvicorn.Server(uvicorn.Config(server.app(), port=0, log_level="warning", timeout_graceful_shutdown=1))
    sockets = [run.config.bind_socket()]
    sockets[0].listen()
    server.url = f"http://127.0.0.1:{sockets[0].getsockname()[1]}/"
    thread = threading.Thread(target=run.run, args=(sockets,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        run.should_exit = True
        thread.join(60)
