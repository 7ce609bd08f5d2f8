"""Tests of the limits of a turn."""

import asyncio

import pytest
from typing_extensions import override

from goose_like.agent.compaction.moderators import Moderator
from goose_like.agent.toolkit import FollowUp
from goose_like.config.profile import Limits
from goose_like.core.events import (
    MessageCompleted,
    PlanUpdated,
    Reminded,
    Task,
    TurnFinished,
    TurnStarted,
)
from goose_like.core.history import INTERRUPTED
from goose_like.core.message import Message
from tests.agent.loop import (
    echo,
    fail,
)
from tests.fakes import FakeToolkit, call, calls


async def test_step_limit(create_harness):
    harness = create_harness([calls(call("echo", '{"text": "x"}')) for _ in range(5)], echo, limits=Limits(steps=2))
    assert await harness.exchange.reply("Hi.") == TurnFinished(
        reason="step_limit", detail="the limit of 2 steps", exit_code=3
    )
    assert len(harness.provider.requests) == 2
    await harness.exchange.reply("Go on.")  # a limit counts within one turn
    assert len(harness.provider.requests) == 4


async def test_token_limit(create_harness):
    harness = create_harness([calls(call("echo", '{"text": "x"}')) for _ in range(5)], echo, limits=Limits(tokens=20))
    end = await harness.exchange.reply("Hi.")
    assert (end.reason, end.exit_code, end.detail) == ("budget", 5, "the limit of 20 tokens; 30 are used")
    assert len(harness.provider.requests) == 2


@pytest.mark.parametrize(("is_repeated", "reason"), [(False, "stop"), (True, "step_limit")])
async def test_no_reminder_turns_the_answer_of_the_last_step_into_a_failure(create_harness, is_repeated, reason):
    demanding = FakeToolkit(before_finish=lambda: FollowUp("run it", is_repeated=is_repeated))
    harness = create_harness(["Done."], limits=Limits(steps=1), toolkits=[demanding])
    harness.journal.emit(PlanUpdated(tasks=(Task(description="plant"), Task(description="water"))))
    assert (await harness.exchange.reply("Hi.")).reason == reason
    assert len(harness.events_of(Reminded)) == is_repeated


@pytest.mark.parametrize(("tokens", "requests"), [(1, 1), (15, 1), (16, 2), (30, 2), (31, 3)])
async def test_a_turn_ends_as_soon_as_its_tokens_are_used(create_harness, tokens, requests):
    """Each step takes 15 tokens."""
    harness = create_harness(
        [calls(call("echo", '{"text": "x"}')) for _ in range(5)], echo, limits=Limits(tokens=tokens)
    )
    assert (await harness.exchange.reply("Hi.")).reason == "budget"
    assert len(harness.provider.requests) == requests


async def test_cost_limit(create_harness):
    limits = Limits(cost_usd=0.00002)
    script = [calls(call("echo", '{"text": "x"}')) for _ in range(5)]
    harness = create_harness(
        script, echo, limits=limits, label="openai:gpt-4o"
    )  # $2.50 and $10 a million: $0.000075 a step
    end = await harness.exchange.reply("Hi.")
    assert (end.reason, end.exit_code, len(harness.provider.requests)) == ("budget", 4, 1)
    assert end.detail == "the limit of $2e-05; $0.0001 is spent"
    harness = create_harness(script, echo, limits=limits, label="openai:unheard-of")
    end = await harness.exchange.reply("Hi.")
    assert (end.reason, end.exit_code) == ("error", 1)
    assert end.detail.startswith("the price of openai:unheard-of is not known")


async def test_time_limit(create_harness):
    async def stand():
        await asyncio.Event().wait()

    harness = create_harness([calls(call("stand")), "never"], stand, limits=Limits(time_s=0.02))
    end = await harness.exchange.reply("Hi.")
    assert (end.reason, end.exit_code, end.detail) == ("budget", 124, "the time limit of 0.02 s")
    assert harness.outputs == [INTERRUPTED]


@pytest.mark.parametrize("time_s", [None, 600.0])
async def test_a_time_out_of_foreign_code_is_not_the_time_limit(create_harness, time_s):
    class Hasty(Moderator):
        @override
        async def rewrite(self, history, models):
            raise TimeoutError("a foreign one")

    harness = create_harness(["Never."], moderator=Hasty({}), limits=Limits(time_s=time_s))
    with pytest.raises(TimeoutError, match="a foreign one"):
        await harness.exchange.reply("Hi.")
    end = harness.exchange.history.last_turn
    assert (end.reason, end.detail, end.exit_code) == ("error", "a fault in goose_like or in a plugin", 1)


async def test_steps_before_a_crash_count(create_harness):
    harness = create_harness(["done"], limits=Limits(steps=1))
    harness.journal.emit(TurnStarted(message=Message.user("go")))
    harness.journal.emit(MessageCompleted(message=calls(call("none"))))
    end = await harness.exchange.resume_turn()
    assert (end.reason, end.exit_code) == ("step_limit", 3)
    assert not harness.provider.requests


async def test_repeating_a_failing_call_warns_and_then_ends_the_turn(create_harness):
    harness = create_harness([calls(call("fail")) for _ in range(9)], fail)
    end = await harness.exchange.reply("Hi.")
    assert (end.reason, end.exit_code) == ("error", 1)
    assert end.detail == "the model made the same failing call 5 times: fail {}; tell it what to do instead"
    assert len(harness.provider.requests) == 5
    assert ["has failed" in output for output in harness.outputs] == [False, False, True, True, True]
    assert harness.outputs[2].startswith("ValueError: no\n")
    assert harness.outputs[2].endswith("\n[this very call has failed 3 times; do something else, or say what you need]")


async def test_a_success_clears_the_count_of_failures(create_harness):
    script = [step for _ in range(6) for step in (calls(call("fail")), calls(call("echo", '{"text": "mended"}')))]
    harness = create_harness([*script, "Done."], fail, echo)
    assert (await harness.exchange.reply("Hi.")).reason == "stop"
    assert not any("has failed" in output for output in harness.outputs)


async def test_failures_count_within_one_turn(create_harness):
    harness = create_harness(
        [*[calls(call("fail")) for _ in range(3)], "No.", *[calls(call("fail")) for _ in range(3)], "No."], fail
    )
    for _ in range(2):
        assert (await harness.exchange.reply("Hi.")).reason == "stop"
