"""Streams of one turn as a client reads them, checked with openbb-ai's own models and parsers."""

import json
from collections.abc import Sequence
from typing import Any

from openbb_ai import models
from openbb_ai.testing import CopilotResponse, capture_stream_response

from goose_like.core.events import Event, MessageCompleted, TurnFinished, TurnStarted
from goose_like.core.history import History
from goose_like.core.message import Message, ToolCall
from goose_like.serve.openbb.history import Conversation
from goose_like.serve.openbb.query import Outcome, Query, UserMessage, Widget, WidgetTiers
from goose_like.serve.openbb.response import EventWriter
from goose_like.serve.state import StateSigner
from tests.serve.sse_reader import read_events

PRICE = "123e4567-e89b-12d3-a456-426614174000"
WIDGETS = WidgetTiers(secondary=(Widget(uuid=PRICE, name="Price"),))
WORKSPACE = Query(dialect="workspace", messages=(UserMessage(text="hi"),), widgets=WIDGETS)
COPILOT = Query(dialect="copilot", messages=(UserMessage(text="hi"),), widgets=WIDGETS)
STOP = TurnFinished(reason="stop")
SIGNER = StateSigner(b"k" * 32)

MODELS = {
    "copilotMessageChunk": models.MessageChunkSSEData,
    "copilotStatusUpdate": models.StatusUpdateSSEData,
    "copilotMessageArtifact": models.ClientArtifact,
    "copilotCitationCollection": models.CitationCollection,
    "copilotPromptSuggestions": models.PromptSuggestionsSSEData,
    "copilotFunctionCall": models.FunctionCallSSEData,
}


def call(name: str = "read_file", **arguments: Any) -> ToolCall:
    return ToolCall(id="call_1", name=name, arguments=json.dumps(arguments))


def create_writer(
    query: Query, *, outcomes: Sequence[tuple[ToolCall, Outcome]] = (), calls: Sequence[ToolCall] = ()
) -> EventWriter:
    """Create a writer for a turn with outcomes of earlier calls, whose newest model message has open calls."""
    history = History()
    history.apply(TurnStarted(message=Message.user("hi")))
    history.apply(MessageCompleted(message=Message.assistant("", calls)))
    return EventWriter(query, Conversation(history, Message.user("hi"), outcomes=tuple(outcomes)), SIGNER)


def stream(query: Query, *batches: Sequence[Event], end: TurnFinished = STOP, **turn: Any) -> list[tuple[str, Any]]:
    """Return everything a client reads of one turn, after checks with openbb-ai."""
    writer = create_writer(query, **turn)
    sent = writer.start() + b"".join(map(writer.write, batches)) + writer.finish(end)
    events = read_events(sent)
    for name, data in events:
        read = MODELS[name].model_validate_json(json.dumps(data))
        if query.dialect == "workspace":  # nothing is sent that upstream does not know or would leave out
            assert json.loads(read.model_dump_json(exclude_none=True, exclude_unset=True)) == data
    if events:
        parsed = CopilotResponse(sent.decode())
        assert parsed.text == words(events)
        if "copilotFunctionCall" not in dict(events):
            assert capture_stream_response(sent.decode())[1] == words(events)
    return events


def words(events: list[tuple[str, Any]]) -> str:
    return "".join(data["delta"] for name, data in events if name == "copilotMessageChunk")
