"""A session that is stopped while it starts."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from goose_like.agent.slash_context import SwitchSession
from goose_like.cli.chat import loop as chat
from goose_like.config.profile import Profile
from goose_like.core.errors import GooseLikeError
from goose_like.core.notifier import Notifier
from goose_like.sessions.session import Session


class StoppingIO:
    """Stops a session as soon as it starts."""

    waits_for_work, finished = True, ()

    def __init__(self):
        self.notifier, self.stopped = Notifier(), []

    def show_startup(self, stop):
        asyncio.get_running_loop().call_soon(lambda: self.stopped.append(stop()))


async def test_one_that_fails_when_it_is_stopped_leaves_nothing_of_the_stop(monkeypatch):
    @asynccontextmanager
    async def fails_instead(*_, **__):
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise GooseLikeError("a toolkit's own words") from None
        yield

    monkeypatch.setattr(chat, "build_exchange", fails_instead)
    session = Session.temporary()
    talk = chat.ChatLoop(io := StoppingIO())
    for times in (1, 2):
        with pytest.raises(GooseLikeError, match="a toolkit's own words"):
            await talk.run(SwitchSession(Profile(toolkits=()), session), (), "")
        assert io.stopped == [True] * times
    assert asyncio.current_task().cancelling() == 0
    session.close()


async def test_a_session_that_is_stopped_when_it_starts_again_goes_on_as_before(monkeypatch):
    """The second of three starts is stopped. The loop returns to the exchange before."""
    starts, shown, read = [], [], []

    @asynccontextmanager
    async def starts_slowly_once(profile, *_, **__):
        starts.append(profile.name)
        if len(starts) == 2:
            await asyncio.sleep(60)
        yield

    async def read_lines(exchange, profile, plan, first):
        read.append(profile.name)
        return SwitchSession(Profile(name="other", toolkits=()), session) if len(read) == 1 else None

    class Input(StoppingIO):
        show = staticmethod(shown.append)

        def show_startup(self, stop):
            if len(starts) == 1:
                super().show_startup(stop)

    monkeypatch.setattr(chat, "build_exchange", starts_slowly_once)
    session = Session.temporary()
    talk = chat.ChatLoop(Input())
    monkeypatch.setattr(talk, "_read_lines", read_lines)
    assert await talk.run(SwitchSession(Profile(name="first", toolkits=()), session), (), "") is session
    assert (starts, read, shown) == (["first", "other", "first"], ["first", "first"], ["the start was stopped"])
    assert asyncio.current_task().cancelling() == 0
