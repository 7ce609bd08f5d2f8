"""Tests of the budget of a turn."""

import asyncio

import pytest
from typing_extensions import override

from goose_like.agent.budget import Budget, BudgetError
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
    UsageRecorded,
)
from goose_like.core.history import INTERRUPTED, History
from goose_like.core.message import Message, Usage
from goose_like.providers.base import Model
from goose_like.sessions.session import Session
from tests.agent.loop import (
    echo,
    fail,
)
from tests.fakes import HEADER, FakeProvider, FakeToolkit, call, calls


async def test_step_limit(create_harness):
    harness = create_harness([calls(call("echo", '{"text": "x"}')) for _ in range(5)], echo, limits=Limits(steps=2))
    assert await harness.exchange.reply("Hi.") == TurnFinished(
        reason="step_limit", detail="the limit of 2 steps", exit_code=3
    )
    assert len(harness.provider.requests) == 2
    await harness.exchange.reply("Go on.")  # a limit counts within one turn
    assert len(harness.provider.requests) == 4


STEPS = [calls(call("echo", '{"text": "x"}')) for _ in range(5)]
STEP_USAGE = Usage(input_tokens=900, output_tokens=100)


async def test_token_limit(create_harness):
    harness = create_harness(STEPS, echo, limits=Limits(tokens=2_500))
    harness.provider.usage = STEP_USAGE
    end = await harness.exchange.reply("Hi.")
    used = "the limit of 2,500 tokens; 2,000 are used, and the next request has about 1,0"
    assert (end.reason, end.exit_code, end.detail[: len(used)]) == ("budget", 5, used)
    assert len(harness.provider.requests) == 2


@pytest.mark.parametrize(("is_repeated", "reason"), [(False, "stop"), (True, "step_limit")])
async def test_no_reminder_turns_the_answer_of_the_last_step_into_a_failure(create_harness, is_repeated, reason):
    demanding = FakeToolkit(before_finish=lambda: FollowUp("run it", is_repeated=is_repeated))
    harness = create_harness(["Done."], limits=Limits(steps=1), toolkits=[demanding])
    harness.journal.emit(PlanUpdated(tasks=(Task(description="plant"), Task(description="water"))))
    assert (await harness.exchange.reply("Hi.")).reason == reason
    assert len(harness.events_of(Reminded)) == is_repeated


@pytest.mark.parametrize(("tokens", "requests"), [(1, 0), (900, 1), (1_000, 1), (2_000, 1), (2_100, 2), (3_100, 3)])
async def test_a_request_is_sent_only_if_its_input_fits(create_harness, tokens, requests):
    """Each step takes 1,000 tokens, and the input of the next one is longer."""
    harness = create_harness(STEPS, echo, limits=Limits(tokens=tokens))
    harness.provider.usage = STEP_USAGE
    assert (await harness.exchange.reply("Hi.")).reason == "budget"
    assert len(harness.provider.requests) == requests


async def test_cost_limit(create_harness):
    limits = Limits(cost_usd=0.003)
    harness = create_harness(STEPS, echo, limits=limits, label="openai:gpt-4o")
    harness.provider.usage = STEP_USAGE  # $2.50 and $10 a million: $0.00325
    end = await harness.exchange.reply("Hi.")
    assert (end.reason, end.exit_code, len(harness.provider.requests)) == ("budget", 4, 1)
    assert end.detail == "the limit of $0.003; $0.0032 is spent"
    harness = create_harness(STEPS, echo, limits=limits, label="openai:unheard-of")
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


async def test_a_killed_turn_and_the_next_one_share_a_budget(create_harness):
    harness = create_harness(["done", "done"], limits=Limits(steps=2))
    harness.journal.emit(TurnStarted(message=Message.user("go")))
    for _ in range(2):
        harness.journal.emit(MessageCompleted(message=calls(call("none"))))
    assert (await harness.exchange.reply("Go on.")).exit_code == 3
    assert not harness.provider.requests
    assert (await harness.exchange.reply("Go on.")).exit_code == 0  # the turn before has ended


MODEL = Model(FakeProvider(), "x", "scripted:x", output_limit=100)


def open_budget(folder, limits, parent=None):
    session = Session(folder, "n", History()).detach(History())
    session.record(HEADER)
    session.record(TurnStarted(message=Message.user("go")))
    return session, Budget(limits, session, parent)


async def spend(budget, *sessions, input_tokens=10, output_tokens=90):
    """Make a request that the histories of these sessions count, and return its end."""
    try:
        async with budget.reserve(MODEL, input_tokens):
            await asyncio.sleep(0)
            usage = Usage(input_tokens=input_tokens, output_tokens=output_tokens)
            for session in sessions:
                session.record(UsageRecorded(model="scripted:x", usage=usage, purpose="test", steps=1))
    except BudgetError as error:
        return error.end
    return None


@pytest.mark.parametrize("limits", [Limits(tokens=1_000), Limits(tokens=1_000, steps=7), Limits(steps=3)])
async def test_children_side_by_side_exceed_a_limit_by_at_most_one_answer(tmp_path, limits):
    outer, budget = open_budget(tmp_path, limits)
    work = []
    for _ in range(50):
        middle, middle_budget = open_budget(tmp_path, Limits(), budget)
        inner, inner_budget = open_budget(tmp_path, Limits(), middle_budget)
        work += [spend(middle_budget, middle, outer), spend(inner_budget, inner, middle, outer)]
    ends = await asyncio.gather(*work)
    steps = outer.history.usage.turn_step_count
    assert steps == ends.count(None)
    assert steps <= limits.steps
    if limits.tokens:
        assert outer.history.usage.turn_total.total_tokens <= limits.tokens + 90
    if limits.steps == 256:
        assert steps == 10, "shorter answers than the longest leave room for others, which wait for it"
    refused = next(end for end in ends if end)
    assert refused.reason == "budget"
    assert refused.detail.endswith("in the whole run")


async def test_a_share_of_a_child_ends_the_child_alone(tmp_path):
    outer, budget = open_budget(tmp_path, Limits(tokens=10_000))
    inner, share = open_budget(tmp_path, Limits(tokens=150), budget)
    ends = [await spend(share, inner, outer) for _ in range(3)]
    assert [end.detail if end else None for end in ends] == [None, None, "the limit of 150 tokens; 200 are used"]
    assert await spend(budget, outer) is None


async def test_a_request_that_failed_gives_its_reserve_back(tmp_path):
    session, budget = open_budget(tmp_path, Limits(tokens=50))
    with pytest.raises(ConnectionError):
        async with budget.reserve(MODEL, 10):
            raise ConnectionError
    assert await spend(budget, session) is None


async def test_between_turns_nothing_is_limited(tmp_path):
    session, budget = open_budget(tmp_path, Limits(tokens=50))
    await spend(budget, session)
    assert await spend(budget, session)
    session.record(TurnFinished(reason="budget"))
    assert await spend(budget, session) is None


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
