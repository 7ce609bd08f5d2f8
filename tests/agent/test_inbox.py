"""Tests of messages that the user sends while a turn runs."""

import asyncio

import pytest

from goose_like.agent.inbox import Inbox
from goose_like.core.events import (
    Interjected,
    MessageCompleted,
    TextDelta,
    TurnFinished,
)
from goose_like.core.history import INTERRUPTED
from goose_like.core.notifier import Recorder
from tests.agent.loop import (
    echo,
    wait_for_text,
)
from tests.fakes import PAUSE, call, calls


async def test_a_message_is_taken_back_unless_a_step_was_cut_short_for_it():
    inbox = Inbox()
    assert inbox.take_newest() == ""
    for text in ("one", "two", "three"):
        inbox.put(text)
    assert (inbox.take_newest(), inbox.pending) == ("three", ["one", "two"])
    with inbox:
        assert inbox.take_newest() == "two"
        inbox.steer()
        assert inbox.take_newest() == ""
        await asyncio.sleep(0)
    assert inbox.take() == ["one"]


async def test_waiting_messages_come_before_the_next_step(create_harness):
    def look() -> str:
        """Looks."""
        harness.exchange.inbox.put("and mind the cat")
        return "seen"

    harness = create_harness([calls(call("look")), "done"], look)
    await harness.exchange.reply("go")
    assert [message.text or message.role for message in harness.messages] == [
        "go",
        "assistant",
        "tool",
        "and mind the cat",
        "done",
    ]
    assert len(harness.provider.requests) == 2
    assert [event.message.text for event in harness.events_of(Interjected)] == ["and mind the cat"]


async def test_a_message_at_the_end_continues_the_turn(create_harness):
    class Late(Recorder):
        def notify(self, event):
            super().notify(event)
            if isinstance(event, TextDelta) and event.text == "first":
                harness.exchange.inbox.put("one thing more")

    harness = create_harness(["first", "second"], front=Late())
    assert await harness.exchange.reply("go") == TurnFinished(reason="stop")
    assert [message.text for message in harness.messages] == ["go", "first", "one thing more", "second"]
    assert harness.exchange.history.turn_count == 1


async def test_steering_cuts_a_stream(create_harness):
    harness = create_harness([[TextDelta(text="so I will"), PAUSE], "as you wish"])
    assert not harness.exchange.inbox.steer()
    turn = asyncio.create_task(harness.exchange.reply("go"))
    await wait_for_text(harness)
    assert not harness.exchange.inbox.steer()  # there is nothing to say
    harness.exchange.inbox.put("stop that")
    assert harness.exchange.inbox.steer()
    assert not harness.exchange.inbox.steer()
    assert await turn == TurnFinished(reason="stop")
    assert [message.text for message in harness.messages] == [
        "go",
        "so I will",
        "stop that\n\n[Your previous answer was cut off before its end.]",
        "as you wish",
    ]
    assert [event.is_cut for event in harness.events_of(MessageCompleted)] == [True, False]
    assert harness.provider.streams_closed == 2


async def test_steering_ends_running_tools_and_answers_their_calls(create_harness):
    is_running, is_cancelled = asyncio.Event(), asyncio.Event()

    async def wait() -> str:
        """Waits."""
        is_running.set()
        try:
            return await asyncio.Event().wait()
        except asyncio.CancelledError:
            is_cancelled.set()
            raise

    harness = create_harness([calls(call("wait"), call("echo", '{"text": "x"}', id="c2")), "as you wish"], wait, echo)
    turn = asyncio.create_task(harness.exchange.reply("go"))
    await is_running.wait()
    harness.exchange.inbox.put("no")
    assert harness.exchange.inbox.steer()
    assert await turn == TurnFinished(reason="stop")
    assert is_cancelled.is_set()
    assert INTERRUPTED in harness.outputs
    assert [message.text or message.role for message in harness.messages] == [
        "go",
        "assistant",
        "tool",
        "no",
        "as you wish",
    ]


async def test_cancelling_a_steered_turn(create_harness):
    harness = create_harness([[TextDelta(text="so"), PAUSE]])
    turn = asyncio.create_task(harness.exchange.reply("go"))
    await wait_for_text(harness)
    harness.exchange.inbox.put("no")
    harness.exchange.inbox.steer()
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    assert harness.events_of(TurnFinished)[-1].reason == "cancelled"
    assert harness.exchange.inbox.take() == ["no"]
