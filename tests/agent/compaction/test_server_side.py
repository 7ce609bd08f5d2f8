"""Summaries by the server of the main model: when it is asked, what it gets, and what happens if it fails."""

from contextlib import closing
from typing import Any

import pytest

from goose_like.agent.budget import Budget
from goose_like.agent.compaction.summary import compact_history
from goose_like.agent.view import ExchangeView
from goose_like.config.profile import Limits
from goose_like.core.errors import ModelUnavailableError
from goose_like.core.events import (
    Compacted,
    Logged,
    MessageCompleted,
    PromptChanged,
    PromptRecorded,
    TurnStarted,
    UsageRecorded,
)
from goose_like.core.message import Image, Message, Text, Usage, Verbatim
from goose_like.core.notifier import Recorder
from goose_like.providers.base import Model, ModelPair, Request, ServerCompaction
from goose_like.sessions.session import Session
from tests.fakes import FakeProvider

VERBATIM = Verbatim(wire="messages", origin="x", items=({"type": "compaction"},))
PICTURE = Image(name="a.png", media_type="image/png", source="a.png")


class CompactingProvider(FakeProvider):
    """A provider whose server shortens conversations. `found` is its summary, or an error."""

    found: Any = "SUMMARY"
    asked: Request | None = None

    def can_compact(self, model: str) -> bool:
        return True

    async def compact(self, request: Request) -> ServerCompaction:
        self.asked = request
        if isinstance(self.found, Exception):
            raise self.found
        return ServerCompaction(VERBATIM, self.found, Usage(input_tokens=7))


class Scene:
    """A conversation with an image, a main model that takes none, and a fast model that answers `NOTES`."""

    def __init__(self, session: Session, found: Any = "SUMMARY") -> None:
        self.history = session.history
        self.recorder = Recorder()
        self.server = CompactingProvider()
        self.server.found = found
        models = ModelPair(Model(self.server, "m", "a:m"), Model(FakeProvider(["NOTES"]), "fast", "a:fast"))
        self.view = ExchangeView(session, models, self.recorder, Budget(Limits(), session))
        self.history.apply(PromptRecorded(system="be good", tools=(), model="a:m"))
        said = Message(role="user", parts=(Text(text="look"), PICTURE))
        self.history.apply(TurnStarted(message=said))
        self.history.apply(MessageCompleted(message=Message.assistant("seen")))


@pytest.fixture
def session():
    with closing(Session.temporary()) as made:
        yield made


async def test_the_server_of_the_main_model_shortens(session):
    scene = Scene(session)
    event = await compact_history(scene.history, scene.view)
    assert "SUMMARY" in event.summary
    assert event.verbatim == VERBATIM
    assert event.suffix  # no message is left that a server could answer
    assert scene.server.asked.system == "be good"
    assert not any(message.images for message in scene.server.asked.messages)
    assert [event.purpose for event in scene.recorder.events if isinstance(event, UsageRecorded)] == ["compaction"]


async def test_an_encrypted_result_gets_a_summary_for_other_servers(session):
    scene = Scene(session, "")
    event = await compact_history(scene.history, scene.view)
    assert "NOTES" in event.summary
    assert event.verbatim == VERBATIM


async def test_the_fast_model_writes_if_the_server_fails(session):
    scene = Scene(session, ModelUnavailableError("it is down", is_retryable=True))
    event = await compact_history(scene.history, scene.view)
    assert "NOTES" in event.summary
    assert event.verbatim is None
    logged = [event.text for event in scene.recorder.events if isinstance(event, Logged)]
    assert logged == ["the server did not shorten the conversation: it is down"]


async def test_a_focus_is_for_the_fast_model(session):
    scene = Scene(session)
    event = await compact_history(scene.history, scene.view, focus="the ports")
    assert scene.server.asked is None
    assert event.verbatim is None


async def test_the_server_gets_what_the_summary_replaces(session):
    """A change of the prompt that no longer holds is no message for the model, and counts for neither."""
    scene = Scene(session)
    scene.history.apply(TurnStarted(message=Message.user("new")))
    scene.history.apply(PromptChanged(system="be brief", text="be brief"))
    scene.history.apply(PromptRecorded(system="be exact", tools=(), model="a:m"))
    scene.history.apply(MessageCompleted(message=Message.assistant("done")))
    kept_count = len(scene.history.messages) - 2
    await compact_history(scene.history, scene.view, kept_count=kept_count)
    kept = scene.history.context.preview(Compacted(summary="", kept_count=kept_count))
    sent = scene.server.asked.messages
    assert len(sent) + len(kept) == len(scene.history.context.messages)
