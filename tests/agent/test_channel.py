"""Tests of the channel: the events of one coroutine as a stream."""

import asyncio

import pytest

from goose_like.agent.channel import Channel
from goose_like.core.events import Logged, TextDelta


async def tell(channel, *texts, error=None):
    for text in texts:
        channel.log(text)
        await asyncio.sleep(0)
    if error:
        raise error


async def read_texts(channel, work):
    return [event.text async for batch in channel.stream(work) for event in batch]


async def test_stream_ends_with_the_work():
    channel = Channel()
    channel.log("before")
    assert await read_texts(channel, tell(channel, "a", "b")) == ["before", "a", "b"]
    assert await read_texts(channel, tell(channel, "c")) == ["c"]


async def test_stream_raises_what_the_work_raised():
    channel, heard = Channel(), []
    with pytest.raises(KeyError):  # noqa: PT012
        async for batch in channel.stream(tell(channel, "a", error=KeyError("x"))):
            heard += [event.text for event in batch]
    assert heard == ["a"]


async def test_leaving_early_cancels_the_work():
    channel, ended = Channel(), []

    async def work():
        try:
            await tell(channel, *"abc")
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    stream = channel.stream(work())
    assert [event.text for event in await anext(stream)] == ["a"]
    await stream.aclose()
    assert ended == [True]
    assert await read_texts(channel, tell(channel, "d")) == ["d"]


async def test_cancelling_the_reader_cancels_the_work():
    channel, ended, started = Channel(), [], asyncio.Event()

    async def work():
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    async def listen():
        async for _ in channel.stream(work()):
            pass

    task = asyncio.create_task(listen())
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == [True]


async def test_a_batch_holds_all_events_and_merges_text():
    channel, go = Channel(), asyncio.Event()

    async def work():
        for word in ("a", "b"):
            channel.notify(TextDelta(text=word))
        channel.log("between")
        channel.notify(TextDelta(text="c"))
        await go.wait()
        channel.notify(TextDelta(text="d"))

    batches = channel.stream(work(), heartbeat_s=0.01)
    assert await anext(batches) == [TextDelta(text="ab"), Logged(text="between"), TextDelta(text="c")]
    assert await anext(batches) == []  # nothing came for a while
    go.set()
    assert [batch async for batch in batches if batch] == [[TextDelta(text="d")]]
