"""The Python API of the boss: classes written from the reference of aiflows, and the order of their calls."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from goose_like_toolkits.boss import AbstractBossFlow, AtomicFlow, CircularFlow, CtrlExMemFlow, FlowLauncher

from goose_like.config.profile import ModelChoice, Profile
from goose_like.core.errors import UsageError
from goose_like.core.events import Logged
from goose_like.core.notifier import Recorder
from tests.toolkits.boss.flow_diary import Diary, make_config


@pytest.fixture
def diary() -> Diary:
    return Diary()


class ClerkFlow(AbstractBossFlow):
    """A boss with a constructor that takes `memory_files`, like in the reference."""

    def __init__(self, memory_files, **kwargs):
        super().__init__(memory_files=memory_files, **kwargs)


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GOOSE_LIKE_HOME", str(tmp_path / "home"))
    for name in ("plan.md", "logs.md"):
        (tmp_path / name).write_text("")
    return {"plan": "plan.md", "logs": "logs.md"}


def command(name: str, **arguments: Any) -> dict[str, Any]:
    return {"command": name, "command_args": arguments}


PROFILE = Profile(toolkits=(), sandbox="full", approval="yolo")


PLANNED = ["MemoryReading", "Planner"]


def a_round(name: str) -> list[str]:
    """List the calls of a round, in the order of aiflows. A round that ends the boss neither writes nor reads."""
    done = {"finish": [], "re_plan": ["Planner"], "saerch": []}.get(name, [f"Executor {name}"])
    memory = [] if name in ("finish", "leave") else ["MemoryWriting", "MemoryReading"]
    return [f"Controller {name}", f"detect {name}", *done, *memory]


def test_boss_written_from_the_reference(diary, files, tmp_path):
    config = make_config(
        diary,
        [
            command("search", what="apples"),
            command("count"),
            command("re_plan", reason="there are three"),
            command("write", number=3),
            command("finish", answer="three apples"),
        ],
    )
    flow = ClerkFlow.instantiate_from_config({**config, "memory_files": files}, profile=PROFILE)
    assert flow.run({"goal": "count the apples"}) == {
        "result": "three apples",
        "summary": "found three apples",
        "status": "finished",
    }
    rounds = [call for name in ("search", "count", "re_plan", "write", "finish") for call in a_round(name)]
    assert diary.order == [*PLANNED, *rounds]
    assert (tmp_path / "plan.md").read_text() == "1. count\n2. write\n"
    assert (tmp_path / "logs.md").read_text().splitlines() == [
        "- 1 · search: searched",
        "- 2 · count: counted",
        "- 3 · re_plan: a new plan, as there are three",
        "- 4 · write: wrote",
    ]


def test_inputs_of_each_flow(diary, files, tmp_path):
    (tmp_path / "facts.txt").write_text("apples are red")
    commands = [command("search", what="apples"), command("count"), command("finish", answer="3")]
    config = make_config(diary, commands)
    flow = ClerkFlow(memory_files={**files, "facts": "facts.txt"}, flow_config=config, profile=PROFILE)
    assert flow.run({"goal": "count the apples"})["status"] == "finished"
    paths = {name: str(tmp_path / path) for name, path in flow.memory_files.items()}
    memory = {"plan": "1. search\n2. count\n", "facts": "apples are red"}
    (planned,) = diary.payloads("Planner")
    assert planned["goal"] == "count the apples"
    assert "search" in planned["question"]
    first, second, third = diary.payloads("Controller")
    shared = {"goal": "count the apples", "memory_files": paths, **memory}
    assert first == {**shared, "logs": "", "result": "", "summary": ""}
    assert second == {**shared, "logs": "- 1 · search: searched\n", "result": "3 hits", "summary": "searched"}
    assert third["result"] == "3"
    said, *_ = diary.payloads("detect")
    assert said == {"command": "search", "command_args": {"what": "apples"}, "thought": "", "src_flow": "Chooser"}
    assert diary.payloads("Executor") == [{"what": "apples"}, {}]
    written = diary.payloads("MemoryWriting")[0]
    assert written == {"memory_files": {"logs": paths["logs"]}, "logs": "- 1 · search: searched", "summary": "searched"}


def test_logs_of_the_caller_are_shown_to_planner_and_controller(diary, files, tmp_path):
    config = make_config(diary, [command("count"), command("finish", answer="3")])
    flow = ClerkFlow(files, flow_config=config, profile=PROFILE)
    flow.run({"goal": "go", "logs": "- 1 · search: found a pear\n"})
    seen = [given["logs"] for name in ("Planner", "Controller") for given in diary.payloads(name)]
    written = "- 1 · count: counted\n"
    assert seen == ["- 1 · search: found a pear\n"] * 2 + [f"- 1 · search: found a pear\n{written}"]
    assert (tmp_path / "logs.md").read_text() == written


@pytest.mark.parametrize("key", ["max_round", "max_rounds"])
def test_last_round_raises_nothing(diary, files, key):
    flow = ClerkFlow(files, flow_config=make_config(diary, [command("count")] * 3, **{key: 3}), profile=PROFILE)
    ended = flow.run({"goal": "count"})
    assert ended["status"] == "max_round"
    assert "counted" in ended["result"]
    assert diary.order == [*PLANNED, *a_round("count") * 3]


def test_executor_exits_early(diary, files):
    flow = ClerkFlow(files, flow_config=make_config(diary, [command("leave")]), profile=PROFILE)
    assert flow.run({"goal": "go"}) == {"result": "left", "summary": "had enough", "status": "finished"}
    assert diary.order == [*PLANNED, *a_round("leave")]


def test_unknown_branch_is_reported_to_the_controller(diary, files):
    commands = [command("saerch"), command("finish", answer="gave up")]
    flow = ClerkFlow(files, flow_config=make_config(diary, commands), profile=PROFILE)
    assert flow.run({"goal": "go"})["result"] == "gave up"
    assert "did you mean 'search'?" in diary.payloads("Controller")[1]["result"]


def test_failing_executor_is_reported_with_its_line(diary, files):
    class Failing(AtomicFlow):
        def run(self, input_data):
            return input_data["what"]

    config = make_config(diary, [command("search"), command("finish", answer="gave up")])
    config["subflows_config"]["CtrlExMem"]["subflows_config"]["Executor"]["subflows_config"]["search"] = Failing
    flow = ClerkFlow(files, flow_config=config, profile=PROFILE)
    assert flow.run({"goal": "go"})["result"] == "gave up"
    message = diary.payloads("Controller")[1]["result"]
    assert "the flow 'Failing' failed: KeyError: 'what'" in message
    assert 'return input_data["what"]' in message


async def test_run_inside_a_loop_names_arun(diary, files):
    flow = ClerkFlow(files, flow_config=make_config(diary, [command("finish", answer="3")]), profile=PROFILE)
    with pytest.raises(UsageError, match="await flow"):
        flow.run({"goal": "count"})
    assert (await flow.arun({"goal": "count"}))["result"] == "3"


def test_goal_is_required(diary, files):
    flow = ClerkFlow(files, flow_config=make_config(diary, []), profile=PROFILE)
    with pytest.raises(UsageError, match="the goal is missing"):
        flow.run({"wish": "count"})
    assert diary.order == []


def part(config: dict[str, Any], *path: str) -> dict[str, Any]:
    for name in path:
        config = config["subflows_config"][name]
    return config


def test_failing_planner_ends_the_boss(diary, files):
    class Failing(AtomicFlow):
        def run(self, input_data):
            raise ValueError("no idea")

    config = make_config(diary, [])
    part(config)["subflows_config"]["Planner"] = Failing
    ended = ClerkFlow(files, flow_config=config, profile=PROFILE).run({"goal": "go"})
    assert ended["status"] == "failed"
    assert "the flow 'Failing' failed: ValueError: no idea" in ended["result"]


@pytest.mark.parametrize("given", ["words", {"comand": "count"}, None])
def test_controller_without_a_command_ends_the_boss(diary, files, given):
    class Silent(AtomicFlow):
        def run(self, input_data):
            return given

    config = make_config(diary, [])
    part(config, "CtrlExMem")["subflows_config"]["Controller"] = Silent
    ended = ClerkFlow(files, flow_config=config, profile=PROFILE).run({"goal": "go"})
    assert ended["status"] == "failed"
    assert f"the Controller 'Silent' gave no command but {given!r}" in ended["result"]


def test_each_flow_is_built_once(diary, files):
    made: list[str] = []

    class Counted(AtomicFlow):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            made.append(self.name)

        def run(self, input_data):
            return "counted"

    config = make_config(diary, [command("count"), command("finish", answer="1")])
    part(config, "CtrlExMem", "Executor")["subflows_config"]["count"] = {"_target_": Counted, "name": "counter"}
    flow = ClerkFlow.instantiate_from_config({**config, "memory_files": files}, profile=PROFILE)
    assert made == ["counter"]
    assert flow.run({"goal": "go"})["result"] == "1"
    assert made == ["counter"]


# --- with a model as its controller


class Adder(AtomicFlow):
    def run(self, input_data):
        return {"result": input_data["a"] + input_data["b"], "summary": "added"}


class AsPrinted(CtrlExMemFlow):
    """A subclass whose method has no `self`, like in the reference."""

    @CircularFlow.output_msg_payload_processor
    def detect_finish_or_continue(output_payload, src_flow):
        if output_payload["command"] == "finish":
            return {"DONE": True, "result": output_payload["command_args"]["answer"].upper(), "summary": "done"}
        return output_payload


class Static(CtrlExMemFlow):
    @staticmethod
    @CircularFlow.output_msg_payload_processor
    def detect_finish_or_continue(output_payload, src_flow):
        return AsPrinted.detect_finish_or_continue(output_payload, src_flow)


def asked_of_a_model(loop: Any = None, **commands: Any) -> dict[str, Any]:
    table = {"add": {"description": "Adds.", "input_args": ["a", "b"]}, "finish": {"input_args": ["answer"]}}
    executor = {"subflows_config": {"add": Adder}}
    within = {"subflows_config": {"Controller": {"commands": table | commands}, "Executor": executor}}
    target = {"_target_": loop} if loop else {}
    return {"early_exit_key": "DONE", "subflows_config": {"Planner": None, "CtrlExMem": {**target, **within}}}


def playing(tmp_path: Path, *steps: Any) -> Profile:
    (tmp_path / "script.yaml").write_text(json.dumps(steps))
    return PROFILE.model_copy(update={"processor": ModelChoice(model=f"scripted:{tmp_path / 'script.yaml'}")})


def calls(tool: str, expect: str = "", **arguments: Any) -> dict[str, Any]:
    return {"calls": [{"tool": tool, "arguments": arguments}], **({"expect": expect} if expect else {})}


@pytest.mark.parametrize("loop", [AsPrinted, Static])
def test_subclass_decides_on_the_choice_of_a_model(files, tmp_path, loop):
    ending = calls("finish", "Round 2", result="five", summary="added")
    profile = playing(tmp_path, "1. add", calls("add", "Round 1", a=2, b=3), ending)
    flow = AbstractBossFlow(files, flow_config=asked_of_a_model(loop), profile=profile)
    assert flow.run({"goal": "add"}) == {"result": "FIVE", "summary": "done", "status": "finished"}
    assert (tmp_path / "logs.md").read_text().splitlines()[1:] == ["- 1 · add: added", "- 2 · finish: done"]
    assert (tmp_path / "plan.md").read_text() == "1. add\n"


def test_finish_ends_without_a_subclass(files, tmp_path):
    ending = calls("finish", "Round 2", result="five", summary="added")
    profile = playing(tmp_path, "1. add", calls("add", a=2, b=3), ending)
    flow = AbstractBossFlow(files, flow_config=asked_of_a_model(), profile=profile)
    assert flow.run({"goal": "add"}) == {"result": "five", "summary": "added", "status": "finished"}


def test_failing_subclass_is_reported_to_the_controller(files, tmp_path):
    class Hasty(CtrlExMemFlow):
        def detect_finish_or_continue(self, output_payload, src_flow):
            if output_payload["command"] == "add":
                raise ValueError("no adding")
            return {"DONE": True, "result": "gave up", "summary": "gave up"}

    profile = playing(tmp_path, "1. add", calls("add", a=2, b=3), calls("finish", result="x", summary="x"))
    flow = AbstractBossFlow(files, flow_config=asked_of_a_model(Hasty), profile=profile)
    assert flow.run({"goal": "add"})["result"] == "gave up"
    (line, _) = (tmp_path / "logs.md").read_text().splitlines()[1:]
    assert "Hasty.detect_finish_or_continue failed at the command 'add': ValueError: no adding" in line


def test_controller_flow_without_a_subclass(files, tmp_path):
    class Choosing(AtomicFlow):
        def run(self, input_data):
            if input_data["result"]:
                return {"command": "finish", "command_args": {"answer": input_data["result"]}}
            return {"command": "add", "command_args": {"a": 2, "b": 3}}

    config = asked_of_a_model()
    config["subflows_config"]["CtrlExMem"]["subflows_config"]["Controller"] = Choosing
    flow = AbstractBossFlow(files, flow_config=config, profile=playing(tmp_path, "1. add"))
    assert flow.run({"goal": "add"}) == {"result": "5", "summary": "5", "status": "finished"}


def test_rounds_alone_use_the_plan_of_the_caller(files, tmp_path):
    profile = playing(tmp_path, calls("add", "1. add", a=2, b=3), calls("finish", result="x", summary="x"))
    config = asked_of_a_model()["subflows_config"]["CtrlExMem"]
    flow = AsPrinted(files, flow_config={**config, "early_exit_key": "DONE"}, profile=profile)
    assert flow.run({"goal": "add", "plan": "1. add"})["result"] == "X"
    assert (tmp_path / "plan.md").read_text() == "1. add\n"


def test_rounds_need_a_subclass():
    with pytest.raises(TypeError, match="abstract"):
        CtrlExMemFlow.instantiate_from_config({})


class Inner(CtrlExMemFlow):
    def detect_finish_or_continue(self, output_payload, src_flow):
        if output_payload["command"] == "finish":
            return {"EARLY_EXIT": True, "result": "inner", "summary": "inside"}
        return output_payload


def test_nested_boss_has_its_own_flows(files, tmp_path):
    inner = asked_of_a_model(Inner)
    del inner["early_exit_key"]
    inner["memory_files"] = {"plan": "inner.md", "logs": "inner.log"}
    config = asked_of_a_model()
    config["subflows_config"]["CtrlExMem"]["subflows_config"]["Executor"]["subflows_config"]["helper"] = inner
    ending = calls("finish", "helper: inside", result="both", summary="both")
    within = ["1. add", calls("add", a=1, b=1), calls("finish", result="x", summary="x")]
    profile = playing(tmp_path, "1. ask the helper", calls("helper", goal="add inside"), *within, ending)
    flow = AbstractBossFlow(files, flow_config=config, profile=profile)
    assert flow.run({"goal": "add"})["result"] == "both"
    assert (tmp_path / "inner.log").read_text() == "# add inside\n- 1 · add: added\n- 2 · finish: inside\n"
    assert (tmp_path / "logs.md").read_text().splitlines()[1] == "- 1 · helper: inside; result: inner"


def test_unmapped_parts_are_logged(files, tmp_path):
    config = asked_of_a_model(draw={"description": "Draws."})
    recorder = Recorder()
    profile = playing(tmp_path, "1. end", calls("finish", result="x", summary="x"))
    flow = AbstractBossFlow(files, flow_config=config, profile=profile, notifier=recorder)
    flow.run({"goal": "add"})
    assert "command 'draw': there is no such branch" in [e.text for e in recorder.events if isinstance(e, Logged)]


def test_launcher_runs_a_flow(files, tmp_path):
    flow = AbstractBossFlow(
        files,
        flow_config=asked_of_a_model(),
        profile=playing(tmp_path, "1. end", calls("finish", result="x", summary="y")),
    )
    _, readable = FlowLauncher.launch(flow_with_interfaces={"flow": flow}, data=[{"id": 0, "goal": "end"}])
    assert readable == [{"result": "x", "summary": "y", "status": "finished"}]


def test_package_imports_the_api_on_first_use():
    program = (
        "import sys, goose_like_toolkits.boss as boss; listed = set(dir(boss)); "
        "print('goose_like.agent.build' in sys.modules); from goose_like_toolkits.boss import *; "
        "print('goose_like.agent.build' in sys.modules, listed >= {'AtomicFlow', *boss.__all__} <= set(globals()))"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["False", "True", "True"]
    with pytest.raises(ImportError, match="AbstractBosFlow"):
        from goose_like_toolkits.boss import AbstractBosFlow  # noqa: F401
