"""HTTP endpoints of the protocol: queries, feedback and discovery."""

import contextlib
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from goose_like.config.profile import Profile
from goose_like.core.threads import run_in_thread
from goose_like.providers.registry import choose_models, format_model_label
from goose_like.serve.middleware import RequestRecord, check_token, read_body
from goose_like.serve.service import CLIENT_TOOLKIT, Service, describe_model_limits
from goose_like.serve.state import StateSigner
from goose_like.serve.turn import EventStream, stream_turn

from .client_tools import WIDGET_DATA_FUNCTIONS, build_prefetch
from .discovery import AgentInfo, build_agents_json, build_copilots_json
from .files import has_files, read_files
from .history import build_conversation
from .query import Query
from .request import RequestError, load_object, parse_query
from .response import EventWriter

_LARGE_BODY_BYTES = 200_000
"""Larger bodies are parsed in a thread, so that other streams do not wait."""


def build_routes(profile: Profile) -> list[Route]:
    """Build the routes of the protocol.

    Raises:
        ProfileError: the profile's presentation to clients is invalid.
    """
    info = AgentInfo.from_profile(profile)
    return [
        Route("/v1/query", _answer_query, methods=["POST"], name="query"),
        Route("/query", _answer_query, methods=["POST"], name="query"),
        Route("/v1/feedback", _take_feedback, methods=["POST"], name="feedback"),
        Route("/feedback", _take_feedback, methods=["POST"], name="feedback"),
        Route("/copilots.json", partial(_describe_agent, build_copilots_json, info), name="copilots"),
        Route("/agents.json", partial(_describe_agent, build_agents_json, info), name="agents"),
        Route("/page.json", partial(_describe_model, profile), name="page"),
    ]


async def _answer_query(request: Request) -> Response:
    """Answer `POST /v1/query` with an event stream, or with an error status before the stream starts."""
    service: Service = request.state.service
    record = request.state.record
    settings = service.settings
    check_token(request, settings)
    with contextlib.ExitStack() as resources:
        client = request.client.host if request.client else ""
        resources.enter_context(request.state.slots.take(client))
        body = await read_body(request, settings)
        parse = partial(parse_query, body, settings.max_messages, service.tool_names)
        try:
            if len(body) > _LARGE_BODY_BYTES:
                query = await run_in_thread(parse)
            else:
                query = parse()
        except RequestError as error:
            return JSONResponse({"detail": error.errors}, 422)
        record.dialect = query.dialect
        stream = stream_answer(query, service, record)
        return EventStream(stream, resources.pop_all(), settings.send_timeout_s)


async def _take_feedback(request: Request) -> Response:
    """Answer `POST /v1/feedback`: count the vote, and log its text only if content is logged."""
    settings = request.state.service.settings
    check_token(request, settings)
    body = await read_body(request, settings)
    try:
        feedback = load_object(body)
    except RequestError as error:
        return JSONResponse({"detail": error.errors}, 422)
    request.state.metrics.count_vote(str(feedback.get("vote")))
    if settings.log_content:
        content = request.state.record.content
        for key in ("vote", "tags", "user_comment", "trace_id"):
            if feedback.get(key):
                content[key] = str(feedback[key])
    return JSONResponse({"status": "ok"})


async def _describe_agent(
    build_json: Callable[[AgentInfo, str], dict[str, Any]], info: AgentInfo, request: Request
) -> Response:
    return JSONResponse(build_json(info, str(request.base_url)))


async def _describe_model(profile: Profile, _: Request) -> Response:
    """Answer `GET /page.json`: which model answers, and what it cannot do."""
    choice = choose_models(profile)[0]
    return JSONResponse({"model": format_model_label(choice), "limits": describe_model_limits(choice)})


async def stream_answer(query: Query, service: Service, record: RequestRecord) -> AsyncGenerator[bytes]:
    """Yield the bytes of an answer as they come; see `stream_turn`."""
    if has_files(query) and service.documents:
        query = await read_files(query, service.documents)
    async with aclosing(_stream_answer(query, service, record)) as pieces:
        async for piece in pieces:
            yield piece


def _stream_answer(query: Query, service: Service, record: RequestRecord) -> AsyncGenerator[bytes]:
    signer = StateSigner(service.settings.signing_key)
    conversation = build_conversation(query, signer)
    writer = EventWriter(query, conversation, signer)
    profile = _configure_profile(service.profile, query)
    if conversation.pending_calls:
        return _stream_call(partial(writer.write_calls, conversation.pending_calls), record)
    if _fetches_widgets(profile) and (call := build_prefetch(query)):
        return _stream_call(partial(writer.write_call, call), record)
    return stream_turn(conversation, profile, writer, service, record)


async def _stream_call(write: Callable[[], bytes], record: RequestRecord) -> AsyncGenerator[bytes]:
    record.ending = "handed_off"
    yield write()


def _fetches_widgets(profile: Profile) -> bool:
    """Tell whether the profile lets the model fetch the data of widgets."""
    toolkits = {choice.name: choice for choice in profile.toolkits}
    names = toolkits[CLIENT_TOOLKIT].config.get("tools")
    return names is None or WIDGET_DATA_FUNCTIONS[0] in names


def _configure_profile(profile: Profile, query: Query) -> Profile:
    """Put the query into the config of the toolkit `openbb`."""
    toolkits = {choice.name: choice for choice in profile.toolkits}
    choice = toolkits[CLIENT_TOOLKIT]
    config = {**choice.config, "query": query}
    toolkits[choice.name] = choice.model_copy(update={"config": config})
    return profile.model_copy(update={"toolkits": tuple(toolkits.values())})
