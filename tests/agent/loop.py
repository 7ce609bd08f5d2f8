"""Tools, scripts and checks that the tests of the loop share."""

import asyncio
import json
from itertools import pairwise

import pytest

from goose_like.core.events import (
    Question,
    TextDelta,
    TurnFinished,
)
from goose_like.core.tool import make_tool
from tests.fakes import ExchangeHarness, call, calls


def echo(text: str) -> str:
    """Return the text."""
    return text


def fail():
    raise ValueError("no")


def create_echo_steps(number):
    """Create model steps that call `echo` with different texts."""
    return [calls(call("echo", json.dumps({"text": str(at)}))) for at in range(number)]


def list_types(events):
    return [event.type for event in events]


def assert_append_only(requests):
    for before, after in pairwise(requests):
        assert after.messages[: len(before.messages)] == before.messages
        assert (after.system, after.tools) == (before.system, before.tools)


async def wait_for_text(b: ExchangeHarness) -> None:
    """Wait until the first text of the answer."""
    for _ in range(1000):
        if b.events_of(TextDelta):
            return
        await asyncio.sleep(0)
    raise AssertionError("nothing came")


def create_asking_tool(harness):
    async def reach() -> str:
        answer = await harness.journal.ask(Question(kind="network", subject="example.org", text="Allow it?"))
        return answer.choice

    return make_tool(reach)


async def cancel_after(harness, kind, count=1):
    """Run a turn and cancel it after `count` events of this kind."""
    task = asyncio.create_task(harness.exchange.reply("Hi."))
    while len(harness.events_of(kind)) < count:  # noqa: ASYNC110
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert harness.recorder.events[-1] == TurnFinished(reason="cancelled", exit_code=130)
