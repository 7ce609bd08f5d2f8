"""A boss at work: three levels of bosses byte for byte, and its rounds."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import pytest
from goose_like_toolkits.boss.flow.boss import Outcome

from goose_like.core.errors import ContextLengthError, UsageError
from goose_like.core.events import Answer
from goose_like.core.message import Message, Thinking
from goose_like.sessions.session import Session
from goose_like.workspace.sandbox import bubblewrap
from tests.fakes import PAUSE, call, calls
from tests.long_session import wires
from tests.providers.vendor_rules import valid_for_anthropic, valid_for_openai
from tests.toolkits.boss import boss_model
from tests.toolkits.boss.boss_harness import (
    FILES,
    PROFILE,
    EchoFlow,
    FixedFlow,
    act,
    finish,
    make_spec,
    open_harness,
    resume_session,
    run_boss,
    wait_until,
)
from tests.toolkits.boss.boss_model import DecidingProvider

# --- three levels

LOGS = {
    "jarvis": """# Give the mean and the median of 1, 2, 3, 10.
- 1 · update_plan: 0 of 2 steps done
- 2 · coder: wrote mean and median; result: mean and median are there
- 3 · update_plan: 1 of 2 steps done
- 4 · run_code (print("jarvis", file=open("marks.txt", "a"))): mean 4.0, median 2.5
- 5 · update_plan: 2 of 2 steps done
- 6 · finish: gave both
""",
    "coder": """# Have mean and median in the library.
- 1 · extend_library: wrote mean; result: mean is there
- 2 · run_code (print("coder-mean", file=open("marks.txt", "a"))): 3.0
- 3 · re_plan: a new plan, as median takes mean
- 4 · extend_library: wrote median; result: median is there
- 5 · run_code (print("coder-median", file=open("marks.txt", "a"))): 3.0
- 6 · update_plan: 3 of 3 steps done
- 7 · finish: wrote mean and median
""",
    "extend": """# Write mean
- 1 · write_code: a draft of mean passes its tests
- 2 · save_code: saved in the library: mean
- 3 · update_plan: 2 of 2 steps done
- 4 · finish: wrote mean

# Write median
- 1 · write_code: a draft of median passes its tests
- 2 · save_code: saved in the library: median
- 3 · update_plan: 2 of 2 steps done
- 4 · finish: wrote median
""",
}
PLANS = {
    "jarvis": "- [x] Begin\n- [x] Check\n",
    "coder": "- [x] mean\n- [x] median, which takes mean\n- [x] Check both\n",
    "extend": "- [x] Begin\n- [x] Check\n",
}
LIBRARY = '''def mean(values):
    """Their sum through their number."""
    return sum(values) / len(values)


def median(values):
    """The middle one, or the mean of both."""
    half = len(values) // 2
    ordered = sorted(values)
    return mean(ordered[half:][:1] + ordered[~half:][:1])
'''


TESTS = '''"""Tests of library.py from `write_code`. Run this file to repeat them."""

from library import *

# --- mean
assert mean([1, 3]) == 2

# --- median
from library import mean
assert median([3, 1, 2, 5]) == 2.5
'''


async def test_three_levels_of_bosses_write_these_files(root):
    mode = "full" if bubblewrap.find_sandbox_problem() else "workspace"
    profile = PROFILE.model_copy(update={"sandbox": mode})
    place, outcome = await run_boss(boss_model.make_config(), DecidingProvider(), boss_model.GOAL, profile=profile)
    assert outcome == Outcome(result=boss_model.RESULT, summary="gave both", status="finished")
    assert {path.name: path.read_text() for path in root.iterdir()} == {
        **{f"{name}_logs.md": text for name, text in LOGS.items()},
        **{f"{name}_plan.md": text for name, text in PLANS.items()},
        "library.py": LIBRARY,
        "test_library.py": TESTS,
        "marks.txt": "coder-mean\ncoder-median\njarvis\n",
    }
    code = "from library import mean, median; print(mean([1, 2]), median([3, 1, 2]))"
    ran = await asyncio.to_thread(subprocess.run, [sys.executable, "-c", code], cwd=root, capture_output=True)
    assert ran.stdout == b"1.5 2.0\n"
    steps = list(trace_events(event.model_dump(mode="json") for event in place.recorder.events))
    begun, done = ["log", "plan", "tasks", "plan", "sent", "asked"], ["log", "sent", "asked"]
    assert steps[: len(begun)] == begun, "MemoryWriting, Planner, MemoryReading; then the first round"
    at = steps.index("coder")
    assert steps[at - 5 : at] == ["update_plan", "tasks", *done], "what was done is written and read before a round"
    assert steps[at + 1 : at + 1 + len(begun)] == [f">{step}" for step in begun]
    extended = [
        "write_code",
        "draft",
        *done,
        "save_code",
        "tasks",
        *done,
        "update_plan",
        "tasks",
        *done,
        "finish",
        "log",
    ]
    first = steps.index(">>write_code")
    assert steps[first : first + len(extended)] == [f">>{step}" for step in extended]
    assert steps[first + len(extended) :][:4] == [">log", ">sent", ">asked", ">run_code"]
    assert steps[-2:] == ["finish", "log"]


def trace_events(events: Iterable[Mapping[str, Any]], depth: str = "") -> Iterator[str]:
    """Yield a word for each read, write, plan, request and action, with a `>` for each level of sub-bosses."""
    kinds = {"plan_updated": "tasks", "compacted": "sent", "message_completed": "asked"}
    for event in events:
        kind = event["type"]
        if kind == "subagent":
            yield from trace_events([event["event"]], depth + ">")
        elif kind == "tool_started":
            yield depth + event["call"]["name"]
        elif kind == "state_saved" and event["toolkit"].startswith("boss."):
            yield depth + event["toolkit"].removeprefix("boss.")
        elif kind in kinds:
            yield depth + kinds[kind]


# --- rounds


async def test_unknown_action_is_reported_to_the_controller(root):
    place, outcome = await run_boss(make_spec("run_code"), [act("run_cod", code="1"), act("run_code"), finish()])
    assert outcome == Outcome(result="all done", summary="said all done", status="finished")
    assert ["did you mean 'run_code'" in place.results[0].output, "'code' is missing" in place.results[1].output] == [
        True,
        True,
    ]
    log = (root / "logs.md").read_text().splitlines()
    assert log[0] == "# the goal"
    assert log[1].startswith("- 1 · run_cod (1): failed: no tool 'run_cod'; did you mean 'run_code'?")
    assert log[2].startswith("- 2 · run_code: failed: wrong arguments for run_code")
    assert log[3:] == ["- 3 · finish: said all done"]


async def test_text_without_a_call_gets_three_reminders(root):
    place, outcome = await run_boss(make_spec("run_code"), ["Well."] * 9)
    assert (outcome.status, place.run.history.last_turn.reason) == ("failed", "stop")
    assert outcome.result == "not finished (failed: it named no action)\nsaid last: Well.\nno action was taken"
    assert len(place.provider.requests) == 4
    assert place.reminders == [place.reminders[0]] * 3
    assert "Call a tool: run_code, or another one. To end the work, call `finish`" in place.reminders[0]
    place, outcome = await run_boss(make_spec("run_code"), ["Well.", "Hm.", finish()], session=Session.create("other"))
    assert outcome.status == "finished"


async def test_text_of_a_former_turn_does_not_count_after_resume(root):
    async with open_harness(make_spec("run_code"), ["Well."] * 4) as place:
        assert (await place.run.work("the goal")).status == "failed"
        place.provider.script[:] = ["Well.", finish()]
        assert (await place.run.resume()).status == "finished"


async def test_log_has_no_control_characters(root):
    spec = {"memory_files": FILES, "planner": None, "branches": {"echo": {"parameters": ["n"]}}}
    script = [act("echo", n="bright\n, \x1b[31mred\x00"), act("echo", n=", \x1b[31mred\x00"), finish()]
    place, outcome = await run_boss(spec, script, flows={"echo": FixedFlow()})
    assert outcome.status == "finished"
    lines = (root / "logs.md").read_text().splitlines()
    assert lines[1:3] == ["- 1 · echo (bright): seen", "- 2 · echo (, [31mred): seen"]
    assert "- 1 · echo" in place.memories[1]


async def test_too_long_request_is_repeated_with_the_newest_round_and_the_whole_memory(root):
    (root / "notes.md").write_text("Remember this.\n")
    spec = make_spec() | {"branches": {"echo": {"parameters": ["n"]}}, "memory_files": {**FILES, "notes": "notes.md"}}
    big = [act("echo", n=letter * 9_000) for letter in "abc"]
    script = [*big, ContextLengthError("too long"), finish()]
    place, outcome = await run_boss(spec, script, flows={"echo": FixedFlow("z" * 9_000)})
    assert outcome.status == "finished"
    refused, again = place.provider.requests[-2:]
    assert again.messages[-1] == refused.messages[-1]
    assert "Remember this." in again.messages[-1].text
    assert [message.role for message in again.messages] == ["user", "assistant", "tool", "user"]
    assert "z" * 1_500 in again.messages[2].tool_results[0].output
    assert len(again.messages[2].tool_results[0].output) < 1_600


async def test_requests_are_valid_for_both_vendors(root):
    """Rounds with text alone, thinking, parallel calls, wrong calls and an interrupted call."""

    def thought(message: Message) -> Message:
        return message.model_copy(update={"parts": (Thinking(text="hm", signature="s"), *message.parts)})

    both = calls(call("echo", '{"n": 1}', id="a"), call("echo", '{"n": 2}', id="b"), text="both")
    spec = make_spec() | {"branches": {"echo": {"parameters": ["n"]}}}
    flows = {"echo": EchoFlow(result="z" * 4_000)}
    script = [
        "Well.",
        thought(act("echo", n=1)),
        thought(both),
        both,
        act("none"),
        calls(call("echo", "{n", id="c")),
    ]
    async with open_harness(spec, [*script, [PAUSE]], flows=flows) as place:
        work = asyncio.create_task(place.run.work("the goal"))
        await wait_until(lambda: place.provider.opened == len(script) + 1)
        work.cancel()
        with suppress(asyncio.CancelledError):
            await work
    async with open_harness(spec, [thought(both), "Hm.", both, finish()], flows=flows, session=resume_session()) as on:
        assert (await on.run.resume()).status == "finished"
    requests = [*place.provider.requests, *on.provider.requests]
    for bodies, is_valid in zip(wires(requests), (valid_for_openai, valid_for_anthropic), strict=True):
        assert all(is_valid(json.loads(body)) for body in bodies)


async def test_outcome_after_the_last_round(root):
    spec = make_spec(max_round=3) | {"branches": {"echo": {"parameters": ["n"]}}}
    script = [act("echo", n=n) for n in range(9)]
    place, outcome = await run_boss(spec, script, flows={"echo": EchoFlow()})
    assert outcome.status == "max_round"
    assert outcome.result == (
        "not finished (max round: round 3 was the last)\nthe newest of 3 actions:\n"
        "- 1 · echo: echoed 1\n- 2 · echo: echoed 1\n- 3 · echo: echoed 1"
    )
    assert outcome.summary == "not finished (max round: round 3 was the last) after 3 actions"
    assert ["This is the last round" in memory for memory in place.memories] == [False, False, True]
    assert (root / "logs.md").read_text().count("\n- ") == 3


async def test_rounds_count_over_all_resumes(root):
    spec = make_spec(max_round=4) | {"branches": {"echo": {"parameters": ["n"]}}}
    for rounds in (1, 2, 1):
        kept = Session.create("here") if rounds == 1 and not (root / "logs.md").exists() else resume_session()
        script = [*(act("echo", n=n) for n in range(rounds)), [PAUSE]]
        async with open_harness(spec, script, session=kept, flows={"echo": EchoFlow()}) as place:
            work = asyncio.create_task(place.run.resume() if place.run.history.turns else place.run.work("the goal"))
            await wait_until(lambda: work.done() or place.provider.opened > rounds)  # noqa: B023
            work.cancel()
            with suppress(asyncio.CancelledError):
                assert (await work).status == "max_round"
    assert place.run.history.last_turn.reason == "step_limit"
    assert (root / "logs.md").read_text() == "# the goal\n" + "".join(f"- {n} · echo: echoed 1\n" for n in (1, 2, 3, 4))
    with pytest.raises(UsageError, match="all 4 rounds are used up; continue with more of them"):
        await run_boss(spec, [], session=resume_session(), flows={"echo": EchoFlow()})
    async with open_harness(
        spec | {"max_round": 5}, [finish()], session=resume_session(), flows={"echo": EchoFlow()}
    ) as place:
        assert (await place.run.resume()).status == "finished"


async def test_action_replaces_a_tool_of_the_same_name(root):
    spec = make_spec("update_plan") | {"planner": {}}
    spec["branches"]["hands"] = {"toolkits": ["developer"]}
    place, outcome = await run_boss(spec, ["- [ ] one", act("update_plan", done=[1]), finish()])
    assert outcome.status == "finished"
    tools = [tool.name for tool in place.provider.requests[1].tools]
    assert tools.count("update_plan") == 1
    assert "shell" in tools
    assert (root / "plan.md").read_text() == "- [x] one\n"


async def test_branch_named_like_a_tool_keeps_the_tool(root):
    spec = make_spec() | {"branches": {"shell": {"toolkits": ["developer"]}}}
    place, _ = await run_boss(spec, [finish()])
    assert "shell" in [tool.name for tool in place.provider.requests[0].tools]


async def test_ask_user_with_and_without_a_person(root):
    script = [act("ask_user", question="Which?"), finish()]
    place, _ = await run_boss(
        make_spec("ask_user"), script, answer=Answer(choice="allow", by="person", text="the red one")
    )
    assert place.results[0].output == "the person says: the red one"
    place, _ = await run_boss(make_spec("ask_user"), script, session=Session.create("other"))
    assert place.results[0].output.startswith("nobody is there to answer; decide yourself")
    assert (root / "logs.md").read_text().split("\n\n") == [
        "# the goal\n- 1 · ask_user: (Which?) the person says: the red one\n- 2 · finish: said all done",
        "# the goal\n- 1 · ask_user (Which?): failed: nobody is there to answer; decide yourself, and name your "
        "assumptions in `finish`\n- 2 · finish: said all done\n",
    ]


async def test_flow_exits_early(root):
    spec = make_spec() | {"branches": {"leap": {}}}
    _, outcome = await run_boss(spec, [act("leap")], flows={"leap": EchoFlow(EARLY_EXIT=True, result="so be it")})
    assert outcome == Outcome(result="so be it", summary="echoed 0", status="finished")
    assert (root / "logs.md").read_text() == "# the goal\n- 1 · leap: echoed 0\n"
