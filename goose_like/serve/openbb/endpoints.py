"""HTTP endpoints of the protocol: queries, feedback and discovery."""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Callable, Sequence
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from goose_like.config.profile import Profile
from goose_like.core.events import Event, TurnFinished
from goose_like.core.message import ToolCall
from goose_like.serve.middleware import RequestRecord, RequestRefused, check_token, get_record, read_body
from goose_like.serve.service import OPENBB_TOOLKIT, Service
from goose_like.serve.settings import Settings
from goose_like.serve.sse import EventStream, StreamEncoder
from goose_like.serve.turn import Turn, stream_turn

from .client_tools import to_client_call
from .discovery import AgentInfo, build_agents_json, build_copilots_json
from .events import FRAME_PREFIX, MASKED_WORDS, EventTranslator
from .history import Conversation, build_conversation, list_open_calls
from .query import Query
from .request import RequestError, parse_query
from .state import StateSigner, build_turn_state

_LARGE_BODY_BYTES = 200_000
"""Larger bodies are parsed in a thread, so that other streams do not wait."""


def build_routes(profile: Profile) -> list[Route]:
    """Build the routes of the protocol.

    Raises:
        ProfileError: the profile's presentation to clients is invalid.
    """
    info = AgentInfo.from_profile(profile)
    return [
        *(Route(path, _answer_query, methods=["POST"], name="query") for path in ("/v1/query", "/query")),
        *(Route(path, _take_feedback, methods=["POST"], name="feedback") for path in ("/v1/feedback", "/feedback")),
        Route("/copilots.json", partial(_describe_agent, build_copilots_json, info), name="copilots"),
        Route("/agents.json", partial(_describe_agent, build_agents_json, info), name="agents"),
    ]


async def _answer_query(request: Request) -> Response:
    """Answer `POST /v1/query` with an event stream, or with an error status before the stream starts."""
    service: Service = request.state.service
    record, settings = get_record(request), service.settings
    check_token(request, settings)
    with contextlib.ExitStack() as resources:
        resources.enter_context(request.state.slots.take(request.client.host if request.client else ""))
        query = await _parse_query(await read_body(request, settings), settings)
        record.dialect = query.dialect
        return EventStream(stream_answer(query, service, record), resources.pop_all(), settings.send_timeout_s)


async def _parse_query(body: bytes, settings: Settings) -> Query:
    try:
        query = parse_query(body) if len(body) < _LARGE_BODY_BYTES else await asyncio.to_thread(parse_query, body)
    except RequestError as error:
        raise RequestRefused(422, error.errors) from error
    if len(query.messages) > settings.max_messages:
        msg = f"{len(query.messages)} messages are more than the maximum of {settings.max_messages}"
        raise RequestRefused(422, [{"loc": ["body", "messages"], "msg": msg, "type": "too_long"}])
    return query


async def _take_feedback(request: Request) -> Response:
    """Answer `POST /v1/feedback`: count the vote, and log its text only if content is logged."""
    settings, record = request.state.service.settings, get_record(request)
    check_token(request, settings)
    try:
        feedback = json.loads(await read_body(request, settings))
    except (ValueError, RecursionError) as error:
        raise RequestRefused(422, [{"loc": ["body"], "msg": f"not JSON: {error}", "type": "json_invalid"}]) from error
    if not isinstance(feedback, dict):
        raise RequestRefused(422, [{"loc": ["body"], "msg": "expected an object", "type": "dict_type"}])
    request.state.metrics.count_vote(str(feedback.get("vote")))
    if settings.log_content:
        keys = ("vote", "tags", "user_comment", "trace_id")
        record.content = {key: str(feedback[key]) for key in keys if feedback.get(key)}
    return JSONResponse({"status": "ok"})


async def _describe_agent(
    build_json: Callable[[AgentInfo, str], dict[str, Any]], info: AgentInfo, request: Request
) -> Response:
    return JSONResponse(build_json(info, str(request.base_url)))


def stream_answer(query: Query, service: Service, record: RequestRecord) -> AsyncGenerator[bytes]:
    """Return the bytes of an answer as they come; see `stream_turn`."""
    query = query.model_copy(update={"reserved_names": service.tool_names})
    signer = StateSigner(service.settings.signing_key)
    conversation = build_conversation(query, signer)
    writer = _Writer(query, conversation, signer)
    if conversation.pending_calls:
        return _stream_pending_calls(writer, conversation.pending_calls, record)
    turn = Turn(
        profile=_configure_profile(service.profile, query),
        history=conversation.history,
        message=conversation.message,
        images=conversation.images,
        steps_used=conversation.steps_used,
        question=query.last_user_text,
    )
    return stream_turn(turn, writer, service, record)


async def _stream_pending_calls(
    writer: "_Writer", calls: Sequence[ToolCall], record: RequestRecord
) -> AsyncGenerator[bytes]:
    record.ending = "handed_off"
    yield writer.start() or writer.keep_alive()
    yield writer.write_calls(calls)


def _configure_profile(profile: Profile, query: Query) -> Profile:
    """Put the query into the config of the toolkit `openbb`."""
    toolkits = tuple(
        choice.model_copy(update={"config": {**choice.config, "query": query}})
        if choice.name == OPENBB_TOOLKIT
        else choice
        for choice in profile.toolkits
    )
    return profile.model_copy(update={"toolkits": toolkits})


class _Writer:
    """The protocol's `ResponseWriter`."""

    def __init__(self, query: Query, conversation: Conversation, signer: StateSigner) -> None:
        self._query = query
        self._history = conversation.history
        self._signer = signer
        self._translator = EventTranslator(query, conversation.sources)
        self._encoder = StreamEncoder(FRAME_PREFIX, MASKED_WORDS)

    def start(self) -> bytes:
        return self._encoder.encode(self._translator.opening_frames())

    def write(self, events: Sequence[Event]) -> bytes:
        return self._encoder.encode(self._translator.translate(events))

    def finish(self, finished: TurnFinished) -> bytes:
        if finished.reason == "handed_off":
            return self.write_calls(list_open_calls(self._history))
        return self._encoder.encode(self._translator.closing_frames(finished))

    def write_calls(self, calls: Sequence[ToolCall]) -> bytes:
        """Return the request for the first calls, as many as one request to the client can include."""
        call = to_client_call(calls, self._query)
        requested = len(list_open_calls(self._history)) - len(calls) + call.count
        signed = self._signer.sign(build_turn_state(self._history, requested), self._query.last_user_text)
        return self._encoder.encode([self._translator.function_call_frame(call, signed)])

    def keep_alive(self) -> bytes:
        return self._encoder.keep_alive()
