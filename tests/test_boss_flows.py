"""The Python API of the boss: classes written from aiflows' reference text, and what they are asked in which order."""

from typing import Any

import pytest
from goose_like_toolkits.boss import AbstractBossFlow, AtomicFlow, CircularFlow, CtrlExMemFlow

from goose_like.profile import Profile


class Diary:
    """What was asked, in order: each flow of a boss writes its name, and what it was given is kept."""

    def __init__(self) -> None:
        self.order: list[str] = []
        self.given: list[tuple[str, dict[str, Any]]] = []

    def note(self, name: str, given: dict[str, Any], what: str = "") -> None:
        self.order.append(f"{name} {what}".strip())
        self.given.append((name, given))

    def payloads(self, name: str) -> list[dict[str, Any]]:
        return [given for noted, given in self.given if noted == name]


@pytest.fixture
def diary() -> Diary:
    return Diary()


def boss_config(diary: Diary, commands: list[dict[str, Any]], **loop: Any) -> dict[str, Any]:
    """A boss whose every part is a flow of its own; its controller gives these commands, one a round."""
    left = iter(commands)
    plans = iter(["1. search\n2. count\n", "1. count\n2. write\n"])

    class Reading(AtomicFlow):
        def run(self, input_data):
            texts = {name: open(path).read() for name, path in input_data["memory_files"].items()}
            diary.note("MemoryReading", input_data)
            return texts

    class Planning(AtomicFlow):
        def run(self, input_data):
            diary.note("Planner", input_data)
            return {"plan": next(plans)}

    class Controlling(AtomicFlow):
        def run(self, input_data):
            command = next(left)
            diary.note("Controller", input_data, command["command"])
            return command

    class Deciding(CtrlExMemFlow):
        @CircularFlow.output_msg_payload_processor
        def detect_finish_or_continue(self, output_payload, src_flow):
            diary.note("detect", {**output_payload, "src_flow": src_flow.name}, output_payload["command"])
            if output_payload["command"] == "finish":
                answer = output_payload["command_args"]["answer"]
                return {"EARLY_EXIT": True, "result": answer, "summary": f"found {answer}"}
            return {"branch": output_payload["command"], "branch_input_data": output_payload["command_args"]}

    class Writing(AtomicFlow):
        def run(self, input_data):
            diary.note("MemoryWriting", input_data)
            with open(input_data["memory_files"]["logs"], "a") as file:
                file.write(f"{input_data['logs']}\n")
            return {}

    def branch(name: str, result: dict[str, Any]) -> type[AtomicFlow]:
        class Doing(AtomicFlow):
            def run(self, input_data):
                diary.note("Executor", input_data, name)
                return result

        return Doing

    return {
        "name": "Clerk",
        "description": "Counts what it finds.",
        "early_exit_key": "EARLY_EXIT",
        "subflows_config": {
            "MemoryReading": {"_target_": Reading},
            "Planner": {"_target_": Planning},
            "CtrlExMem": {
                "_target_": Deciding,
                "subflows_config": {
                    "Controller": {"_target_": Controlling, "name": "Chooser"},
                    "Executor": {
                        "subflows_config": {
                            "search": {"_target_": branch("search", {"result": "3 hits", "summary": "searched"})},
                            "count": {"_target_": branch("count", {"result": "3", "summary": "counted"})},
                            "write": {"_target_": branch("write", {"result": "ok", "summary": "wrote"})},
                            "leave": {
                                "_target_": branch(
                                    "leave", {"EARLY_EXIT": True, "result": "left", "summary": "had enough"}
                                )
                            },
                            "re_plan": {},
                        }
                    },
                    "MemoryWriting": {"_target_": Writing},
                    "MemoryReading": {"_target_": Reading},
                },
                "topology": [
                    {"goal": "choose", "flow": "Controller", "output_interface": {"_target_": ".detect_finish_or_continue"}},
                    {"goal": "do", "flow": "Executor"},
                    {"goal": "write", "flow": "MemoryWriting"},
                    {"goal": "read", "flow": "MemoryReading"},
                ],
                **loop,
            },
        },
        "topology": [
            {"goal": "read", "flow": "MemoryReading"},
            {"goal": "plan", "flow": "Planner"},
            {"goal": "work", "flow": "CtrlExMem"},
        ],
    }


class ClerkFlow(AbstractBossFlow):
    """As the reference has it: a constructor with `memory_files`."""

    def __init__(self, memory_files=None, **kwargs):
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


def test_a_boss_written_from_the_reference(diary, files, tmp_path):
    config = boss_config(
        diary,
        [
            command("search", what="apples"),
            command("count"),
            command("re_plan", reason="there are three"),
            command("write", number=3),
            command("finish", answer="three apples"),
        ],
    )
    flow = ClerkFlow.instantiate_from_config({**config, "memory_files": files})
    flow.profile = PROFILE
    assert flow.run({"goal": "count the apples"}) == {
        "result": "three apples",
        "summary": "found three apples",
        "status": "finished",
    }
    print(*diary.order, sep="\n")
    print((tmp_path / "logs.md").read_text())
    print((tmp_path / "plan.md").read_text())
    assert 0
