"""HTTP endpoints of the protocol: chat completions, responses and models."""

import contextlib
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection
from contextlib import aclosing
from functools import partial
from typing import Any, TypeVar

import anyio
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from goose_like.core.threads import run_in_thread
from goose_like.serve.middleware import check_token, read_body
from goose_like.serve.state import StateSigner
from goose_like.serve.turn import EventStream, stream_turn

from .chat_body import ChatBody
from .chat_encoder import ChatEncoder
from .errors import build_error_response
from .files import read_files
from .history import build_turn
from .request import AnswerRequest, RequestError, check_tool_names
from .response import AnswerEncoder, AnswerWriter
from .responses_body import ResponsesBody
from .responses_encoder import ResponsesEncoder

_LARGE_BODY_BYTES = 200_000
"""Larger bodies are parsed in a thread, so that other streams do not wait."""

_ERROR_CODES = {401: "invalid_api_key", 429: "rate_limit_exceeded"}

_CLIENT_IS_GONE = 499
"""The status in the log when nobody was there to read the answer."""

Result = TypeVar("Result")
Endpoint = Callable[[Request], Awaitable[Response]]
Reader = Callable[[bytes, int], tuple[AnswerRequest, AnswerEncoder]]
"""A function that reads the body of a request to one API, with the most messages that it may have."""


def build_routes(names: Collection[str]) -> list[Route]:
    """Build the routes of the protocol for profiles with these names."""
    models = {name: _describe_model(name) for name in names}
    return [
        Route("/v1/chat/completions", _convert_errors(partial(_answer, _read_chat)), methods=["POST"], name="query"),
        Route("/v1/responses", _convert_errors(partial(_answer, _read_responses)), methods=["POST"], name="query"),
        Route("/v1/models", _convert_errors(partial(_list_models, models)), name="models"),
        Route("/v1/models/{model:path}", _convert_errors(partial(_show_model, models)), name="models"),
    ]


def _describe_model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": int(time.time()), "owned_by": "goose-like"}


def _convert_errors(endpoint: Endpoint) -> Endpoint:
    """Wrap an endpoint so that each error has OpenAI's form."""

    async def answer(request: Request) -> Response:
        try:
            return await endpoint(request)
        except RequestError as error:
            return build_error_response(str(error), error.status, error.param, error.code)
        except HTTPException as error:
            code = _ERROR_CODES.get(error.status_code)
            return build_error_response(error.detail, error.status_code, code=code, headers=error.headers)

    return answer


async def _list_models(models: dict[str, dict[str, Any]], request: Request) -> Response:
    """Answer `GET /v1/models`."""
    check_token(request, request.state.service.settings)
    return JSONResponse({"object": "list", "data": [*models.values()]})


async def _show_model(models: dict[str, dict[str, Any]], request: Request) -> Response:
    """Answer `GET /v1/models/NAME`."""
    check_token(request, request.state.service.settings)
    return JSONResponse(models[_find_name(request.path_params["model"], models)])


def _find_name(name: str, known: Collection[str]) -> str:
    if name not in known:
        text = f"the model {name!r} does not exist; this server offers: {', '.join(known)}"
        raise RequestError(text, "model", "model_not_found", 404)
    return name


def _read_chat(body: bytes, max_messages: int) -> tuple[AnswerRequest, AnswerEncoder]:
    chat = ChatBody.parse(body, max_messages)
    return chat.convert(), ChatEncoder(chat)


def _read_responses(body: bytes, max_messages: int) -> tuple[AnswerRequest, AnswerEncoder]:
    responses = ResponsesBody.parse(body, max_messages)
    return responses.convert(), ResponsesEncoder(responses)


async def _answer(read: Reader, request: Request) -> Response:
    """Answer a request with an event stream or an object."""
    record = request.state.record
    settings = request.state.service.settings
    check_token(request, settings)
    with contextlib.ExitStack() as resources:
        client = request.client.host if request.client else ""
        resources.enter_context(request.state.slots.take(client))
        body = await read_body(request, settings)
        wanted, encoder = await _compute(body, partial(read, body, settings.max_messages))
        service = request.state.services[_find_name(wanted.model, request.state.services)]
        check_tool_names(wanted, service.plain_tool_names)
        wanted = await read_files(wanted, service)
        signer = StateSigner(settings.signing_key)
        turn = await _compute(body, partial(build_turn, wanted, signer))
        writer = AnswerWriter(wanted, turn, signer, encoder)
        record.dialect = "openai"
        stream = stream_turn(turn, service.plain_profile, writer, service, record)
        if writer.is_stream:
            return EventStream(stream, resources.pop_all(), settings.send_timeout_s)
        answer = await _collect(stream, request)
        # The model was asked again where that could help, so that the client need not repeat the work of tools.
        headers = {} if writer.status == 200 else {"x-should-retry": "false"}
        status = writer.status if answer else _CLIENT_IS_GONE
        return Response(answer, status, headers, media_type="application/json")


async def _compute(body: bytes, function: Callable[[], Result]) -> Result:
    """Compute something from a body, in a thread if the body is large."""
    if len(body) > _LARGE_BODY_BYTES:
        return await run_in_thread(function)
    return function()


async def _collect(stream: AsyncGenerator[bytes], request: Request) -> bytes:
    """Join the bytes of an answer. When the client disconnects, end the turn and return nothing."""
    answer = b""

    async def watch() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(watch)
        async with aclosing(stream):
            answer = b"".join([piece async for piece in stream])
        group.cancel_scope.cancel()
    return answer
