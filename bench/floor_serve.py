"""The floor: a bare Starlette app that relays a model's stream as events. `floor_serve.py PORT MODEL_URL`."""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import uvicorn
from sse_starlette import EventSourceResponse
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Route

ROLES = {"human": "user", "ai": "assistant"}


@asynccontextmanager
async def open_client(_: Starlette) -> AsyncIterator[dict[str, Any]]:
    limits = httpx2.Limits(max_connections=1000)
    async with httpx2.AsyncClient(base_url=sys.argv[2], limits=limits, timeout=600) as client:
        yield {"client": client}


async def relay(client: httpx2.AsyncClient, request: dict[str, Any]) -> AsyncIterator[dict[str, str]]:
    messages = [{"role": ROLES[message["role"]], "content": message["content"]} for message in request["messages"]]
    body = {"model": "bench", "stream": True, "messages": messages}
    async with client.stream("POST", "/chat/completions", json=body) as response:
        async for line in response.aiter_lines():
            if line.startswith("data: {"):
                for choice in json.loads(line[6:])["choices"]:
                    if text := choice["delta"].get("content"):
                        yield {"event": "copilotMessageChunk", "data": json.dumps({"delta": text})}


async def query(request: Request) -> EventSourceResponse:
    return EventSourceResponse(relay(request.state.client, await request.json()))


if __name__ == "__main__":
    app = Starlette(routes=[Route("/v1/query", query, methods=["POST"])], lifespan=open_client)
    uvicorn.run(app, port=int(sys.argv[1]), log_level="warning")
