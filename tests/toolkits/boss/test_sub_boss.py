"""Bosses that work for other bosses or for a toolkit: limits, interrupts, and restarts after a kill."""

import asyncio
from contextlib import suppress

import pytest

from goose_like.agent.build import build_exchange
from goose_like.config.profile import Limits, ToolkitChoice
from goose_like.core.message import Message, Usage
from goose_like.core.notifier import Recorder
from goose_like.providers.base import Model, ModelPair
from goose_like.sessions.session import Session
from tests.fakes import PAUSE, is_well_formed
from tests.toolkits.boss.boss_harness import (
    PROFILE,
    ScriptedProvider,
    act,
    cut_events,
    finish,
    get_events_file,
    make_inner_branch,
    make_spec,
    open_harness,
    replay_file,
    resume_session,
    return_note,
    run_boss,
    wait_until,
)

LARGE_STEP = Usage(input_tokens=9_000, output_tokens=1_000)


async def test_all_bosses_share_the_token_limit(root):
    spec = make_spec() | {"branches": {"inner": make_inner_branch("run_code")}}
    script = ScriptedProvider([act("inner", goal="count"), *(act("run_code", code=f"print({n})") for n in range(9))])
    script.usage = LARGE_STEP
    place, outcome = await run_boss(spec, script, limits=Limits(tokens=35_000))
    assert (outcome.status, place.run.exit_code) == ("budget", 5)
    assert len(place.provider.requests) == 4
    used = "not finished (budget: the limit of 35,000 tokens; 40,000 are used in the whole run)"
    assert place.results[0].output.startswith(f"[inner: budget]\n{used}")
    assert place.run.history.usage.total.total_tokens == 40_000
    assert (root / "logs.md").read_text().splitlines()[1:] == [f"- 1 · inner: (budget) {used} after 3 actions"]


async def test_rounds_of_all_bosses_are_steps_of_the_run(root):
    spec = make_spec() | {"branches": {"inner": make_inner_branch("run_code", max_round=90)}, "max_round": 3}
    script = [act("inner", goal="count"), *(act("run_code", code=f"print({n})") for n in range(9))]
    place, outcome = await run_boss(spec, script, limits=Limits(steps=4))
    assert (outcome.status, place.run.exit_code) == ("budget", 3)
    assert len(place.provider.requests) == 4


async def test_tokens_of_the_planner_count(root):
    spec = make_spec("run_code") | {"planner": {}}
    place, _ = await run_boss(spec, [Message.assistant("- [ ] one"), finish()])
    assert place.run.history.usage.total.total_tokens == 30
    assert len(place.provider.requests) == 2


async def test_stopped_planner_is_asked_once_more(root):
    spec = make_spec("run_code") | {"planner": {}}
    async with open_harness(spec, [[PAUSE]]) as place:
        work = asyncio.create_task(place.run.work("the goal"))
        await wait_until(lambda: place.provider.opened == 1)
        work.cancel()
        with suppress(asyncio.CancelledError):
            await work
    async with open_harness(spec, ["- [ ] one", finish()], session=resume_session()) as on:
        assert (await on.run.resume()).status == "finished"
    assert on.provider.requests[0].messages == place.provider.requests[0].messages
    assert (root / "plan.md").read_text() == "- [ ] one\n"


async def test_person_stops_a_sub_boss_and_its_caller_continues(root):
    spec = make_spec() | {"branches": {"inner": make_inner_branch("run_code")}}
    script = [act("inner", goal="count"), act("run_code", code="print(1)"), [PAUSE], finish()]
    async with open_harness(spec, script) as place:
        said = asyncio.create_task(return_note("use three"))
        assert not place.run.stop_innermost(said), "nobody works below"
        work = asyncio.create_task(place.run.work("the goal"))
        await wait_until(lambda: place.provider.opened == 3)
        assert place.run.active_names == ("boss", "inner")
        assert place.run.stop_innermost(said)
        assert (await work).status == "finished"
    result = place.results[0].output
    assert result.startswith("[inner: interrupted]\nthe person ended it and says: use three\n")
    assert "- 1 · run_code (print(1)): 1" in result
    assert (root / "logs.md").read_text().splitlines()[1] == (
        "- 1 · inner: (interrupted) the person ended it and says: use three"
    )
    assert (root / "inner_logs.md").read_text() == "# count\n- 1 · run_code (print(1)): 1\n"
    assert replay_file(get_events_file(place, place.results[0].call_id)).last_turn.reason == "cancelled"


async def test_cancelled_run_closes_both_bosses_and_resumes(root):
    spec = make_spec() | {"branches": {"inner": make_inner_branch("run_code")}}
    async with open_harness(spec, [act("inner", goal="count"), [PAUSE]]) as place:
        work = asyncio.create_task(place.run.work("the goal"))
        await wait_until(lambda: place.provider.opened == 2)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
    for file in (get_events_file(place), get_events_file(place, "call_1")):
        history = replay_file(file)
        assert history.last_turn.reason == "cancelled"
        assert is_well_formed(history.messages)
    assert (root / "logs.md").read_text() == "# the goal\n", "what was cut off is no entry"
    async with open_harness(spec, [finish()], session=resume_session()) as place:
        assert (await place.run.resume()).status == "finished"
        assert place.provider.requests[0].messages[0].text == "the goal"
    assert (root / "logs.md").read_text() == "# the goal\n- 1 · finish: said all done\n"


@pytest.mark.parametrize(("rounds", "status"), [(2, "max_round"), (9, "finished")])
async def test_outcome_of_a_sub_boss_survives_a_kill(root, rounds, status):
    """The process was killed after the inner boss had ended, before its caller had the result."""
    spec = make_spec() | {"branches": {"inner": make_inner_branch("run_code", max_round=rounds)}}
    inner_work = [
        act("run_code", code="print(1)"),
        act("run_code", code="print(2)"),
        finish("counted"),
    ]
    script = [act("inner", goal="count"), *inner_work[:rounds], finish()]
    place, _ = await run_boss(spec, script)
    before = {path.name: path.read_text() for path in root.iterdir()}
    expected = place.results[0]
    cut_events(get_events_file(place), "tool_finished", expected.call_id)
    (root / "logs.md").write_text("# the goal\n")
    async with open_harness(spec, [finish()], session=resume_session()) as place:
        assert (await place.run.resume()).status == "finished"
    assert place.results[0] == expected
    assert expected.output.startswith(f"[inner: {status.replace('_', ' ')}]")
    assert len(place.provider.requests) == 1, "the inner boss did nothing more"
    assert {path.name: path.read_text() for path in root.iterdir()} == before


async def test_used_up_budget_survives_a_kill(root):
    spec = make_spec() | {"branches": {"inner": make_inner_branch("run_code")}}
    script = ScriptedProvider([act("inner", goal="count"), *(act("run_code", code=f"print({n})") for n in range(9))])
    script.usage = LARGE_STEP
    place, outcome = await run_boss(spec, script, limits=Limits(tokens=35_000))
    expected, log = place.results[0], (root / "logs.md").read_text()
    cut_events(get_events_file(place), "tool_finished", expected.call_id)
    (root / "logs.md").write_text("# the goal\n")
    async with open_harness(spec, [], session=resume_session(), limits=Limits(tokens=35_000)) as place:
        assert await place.run.resume() == outcome
    assert place.results[0] == expected
    assert (root / "logs.md").read_text() == log


async def test_tokens_before_a_kill_count_once(root):
    spec = make_spec() | {"branches": {"inner": make_inner_branch("run_code")}}
    script = [
        act("inner", goal="count"),
        *(act("run_code", code=f"print({n})") for n in range(3)),
        finish(),
        finish(),
    ]
    place, _ = await run_boss(spec, script, limits=Limits(tokens=10_000))
    call_id = place.results[0].call_id
    cut_events(get_events_file(place, call_id), "message_completed")
    cut_events(get_events_file(place), "usage_recorded")
    limits = Limits(tokens=10_000)
    async with open_harness(spec, [finish(), finish()], session=resume_session(), limits=limits) as place:
        assert (await place.run.resume()).status == "finished"
    assert place.run.history.usage.total.total_tokens == 90


async def test_plan_marked_before_a_kill_can_be_marked_again(root):
    spec = make_spec("update_plan") | {"planner": {}}
    place, _ = await run_boss(spec, ["- [ ] one", act("update_plan", done=[1]), finish()])
    expected = (root / "logs.md").read_text()
    cut_events(get_events_file(place), "tool_finished", place.results[0].call_id)
    (root / "logs.md").write_text("# the goal\n")
    async with open_harness(spec, [act("update_plan", done=[1]), finish()], session=resume_session()) as place:
        assert (await place.run.resume()).status == "finished"
    assert place.results[0].output.startswith("interrupted")
    assert (root / "logs.md").read_text() == expected


# --- in other profiles


async def test_boss_toolkit_in_a_profile(root):
    profile = PROFILE.model_copy(update={"toolkits": (ToolkitChoice(name="boss", config=make_spec("run_code")),)})
    script = [
        act("boss", goal="count"),
        act("run_code", code="print(1)"),
        finish("one"),
        "It is one.",
    ]
    provider, session, recorder = ScriptedProvider(script), Session.create("here"), Recorder()
    model = Model(provider, "x", "scripted:x")
    async with build_exchange(profile, recorder, session=session, models=ModelPair(model, model)) as exchange:
        end = await exchange.reply("go")
        [result] = [result for message in exchange.history.messages for result in message.tool_results]
    session.close()
    assert end.reason == "stop"
    assert result.output == "[boss: finished]\none"
    assert (root / "logs.md").read_text() == "# count\n- 1 · run_code (print(1)): 1\n- 2 · finish: said one\n"


async def test_boss_delegates(root):
    spec = make_spec() | {"branches": {"hands": {"toolkits": ["delegate"]}}}
    script = [act("delegate", task="look"), "I looked.", finish()]
    place, outcome = await run_boss(spec, script)
    assert outcome.status == "finished"
    assert "I looked." in place.results[0].output
    assert place.run.history.usage.total.total_tokens == 30


async def test_repeating_controller_is_reminded(root):
    again = act("run_code", code="print(1)")
    async with open_harness(
        make_spec("run_code"), [again, again, again, act("run_code", code="print(2)"), finish()]
    ) as place:
        await place.run.work("count")
    said = [[message.text for message in request.messages] for request in place.provider.requests if request.tools]
    assert [any("last 3 steps made the same calls" in text for text in each) for each in said] == [
        *[False] * 3,
        *[True] * 2,  # the rounds that are still shown
    ]
