"""The argument `done` of all tools, and the planner's and controllers' view of tools, files and roles."""

import json

from goose_like.core.message import Message
from tests.fakes import call, calls
from tests.toolkits.boss.boss_harness import (
    FixedFlow,
    act,
    finish,
    make_inner_branch,
    make_spec,
    open_harness,
    run_boss,
)

PLAN = "- [ ] one\n- [ ] two\n- [ ] three\n"


def act_on(*names: str, **arguments: object) -> Message:
    return calls(*(call(name, json.dumps(arguments), id="") for name in names))


def describe_tools() -> dict:
    """Describe a boss with actions, tools of a toolkit, a flow, a sub-boss, and a flow with a `done` of its own."""
    branches = {
        **{name: {} for name in ("ask_user", "re_plan", "update_plan", "write_code", "save_code", "run_code")},
        "hands": {"toolkits": ["developer"]},
        "inner": make_inner_branch(),
        "look": {"parameters": ["place"]},
        "own": {"parameters": ["done"]},
    }
    return make_spec(planner={}, branches=branches)


async def test_every_tool_marks_steps(root):
    flows = {"look": FixedFlow(), "own": FixedFlow()}
    async with open_harness(describe_tools(), [], flows=flows) as place:
        tools = place.run._exchange.tools
        assert {"shell", "read_file", "inner", "look", "finish", "save_code"} <= tools.keys()
        assert all("done" in tool.spec.schema["properties"] for tool in tools.values())
        place.provider.script[:] = [
            PLAN,
            act("shell", command="echo here", done=[1]),
            act("look", place="x", done=2),
            act("own", done=[3]),
            act("finish", result="r", summary="s", done=[3]),
        ]
        assert (await place.run.work("the goal")).status == "finished"
    assert (root / "plan.md").read_text() == PLAN.replace("[ ]", "[x]")
    assert place.results[0].output == "here"
    memories = [memory.partition("<plan>")[2] for memory in place.memories]
    assert [memory.count("[x]") for memory in memories] == [0, 1, 2, 2], "a flow's own `done` is no mark"
    assert place.reminders == [text for text in place.reminders if "done" not in text]


async def test_wrong_step_does_not_cost_the_action(root):
    spec = make_spec("run_code", planner={})
    script = [PLAN, act("run_code", code="print(7)", done=[9]), finish()]
    place, outcome = await run_boss(spec, script)
    assert (outcome.status, place.results[0].output) == ("finished", "7")
    [reminder] = place.reminders
    assert reminder.startswith("`done` [9] was not marked: no step 9; the steps are: 1 'one'")
    assert any(reminder == message.text for message in place.provider.requests[2].messages)


async def test_wrong_step_does_not_cost_the_result(root):
    place, outcome = await run_boss(make_spec(planner={}), [PLAN, act("finish", result="r", summary="s", done=[9])])
    assert (outcome.status, outcome.result) == ("finished", "r")
    assert "was not marked" in place.reminders[-1]


async def test_parallel_calls_mark_steps(root):
    (root / "a.txt").write_text("a\n")
    spec = make_spec(planner={}) | {"branches": {"hands": {"toolkits": ["developer"]}}}
    both = calls(
        *(call("read_file", json.dumps({"path": "a.txt", "done": [step]}), id=f"c{step}") for step in (1, 2, 3))
    )
    place, _ = await run_boss(spec, [PLAN, both, finish()])
    assert (root / "plan.md").read_text() == PLAN.replace("[ ]", "[x]")
    assert place.reminders == [text for text in place.reminders if "done" not in text]


async def test_finish_beside_a_failed_call_is_refused(root):
    spec = make_spec("run_code")
    beside = calls(
        call("run_code", json.dumps({"code": "1 / 0"}), id="a"),
        call("finish", json.dumps({"result": "it works", "summary": "s"}), id="b"),
    )
    place, outcome = await run_boss(spec, [beside, finish("it fails")])
    assert outcome.result == "it fails"
    assert place.results[1].output.startswith("a call before this one failed; look at its result first")


async def test_planner_sees_role_tools_and_files(root):
    (root / "src").mkdir()
    (root / "src/calc.py").write_text("")
    spec = make_spec("run_code", "update_plan", planner={"directions": "Be brave."}, name="Ada", description="Counts.")
    spec["branches"]["hands"] = {"toolkits": ["developer"]}
    place, _ = await run_boss(spec, [PLAN, finish()])
    asked = place.provider.requests[0]
    assert asked.system.endswith("\n\nThe agent is Ada: Counts.\n\nBe brave.")
    question = asked.messages[0].text
    assert "<files>\nsrc/calc.py\n</files>" in question
    assert all(f"\n- {name}: " in question for name in ("run_code", "shell", "patch_file"))
    assert not any(text in question for text in ("- update_plan", "- finish", "- hands:", "<log>"))
    assert question.endswith("<goal>\nthe goal\n</goal>")


async def test_sub_boss_knows_its_name_and_description(root):
    spec = make_spec(name="Ada", description="Counts.")
    inner = make_inner_branch("run_code", planner={})
    del inner["boss"]["name"]
    spec["branches"] = {"Sifter": {"description": "Sifts numbers.", **inner}}
    script = [act("Sifter", goal="sift"), PLAN, finish("4, 7"), finish()]
    place, _ = await run_boss(spec, script)
    outer, planner, controller, _ = place.provider.requests
    assert "In this work you are Ada: Counts." in outer.system
    assert "The agent is Sifter: Sifts numbers." in planner.system
    assert "In this work you are Sifter: Sifts numbers." in controller.system
    assert place.results[0].output == "[Sifter: finished]\n4, 7"


async def test_result_of_a_sub_boss_stays_in_the_log(root):
    spec = make_spec("run_code") | {"max_round": 9}
    spec["branches"]["inner"] = make_inner_branch()
    inner = act("finish", result="The port is 8417.\nThe user is ada.", summary="found both")
    script = [act("inner", goal="find"), inner, *(act("run_code", code=f"print({n})") for n in range(4)), finish()]
    place, _ = await run_boss(spec, script)
    last = place.provider.requests[-1].messages
    assert "8417" not in "".join(message.model_dump_json() for message in last[:-1]), "the round is no longer shown"
    assert "- 1 · inner: found both; result: The port is 8417. The user is ada." in last[-1].text


async def test_short_log_costs_no_request_for_notes(root):
    script = [*(act("run_code", code=f"print('value {n}')") for n in range(40)), finish()]
    place, outcome = await run_boss(make_spec("run_code", max_round=41), script)
    assert outcome.status == "finished"
    assert len(place.provider.requests) == 41
    assert "- 1 · run_code" in place.memories[-1]
