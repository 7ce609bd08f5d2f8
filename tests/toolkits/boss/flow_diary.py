"""A boss whose parts are flows that record their calls."""

from pathlib import Path
from typing import Any

from goose_like_toolkits.boss import AtomicFlow, CircularFlow, CtrlExMemFlow

_OUTPUTS = {
    "search": {"result": "3 hits", "summary": "searched"},
    "count": {"result": "3", "summary": "counted"},
    "write": {"result": "ok", "summary": "wrote"},
    "leave": {"EARLY_EXIT": True, "result": "left", "summary": "had enough"},
}


class Diary:
    """The calls of all flows of a boss in order, with their inputs."""

    def __init__(self) -> None:
        self.order: list[str] = []
        self.given: list[tuple[str, dict[str, Any]]] = []

    def note(self, name: str, given: dict[str, Any], what: str = "") -> None:
        self.order.append(f"{name} {what}".strip())
        self.given.append((name, given))

    def payloads(self, name: str) -> list[dict[str, Any]]:
        return [given for noted, given in self.given if noted == name]


def make_config(diary: Diary, commands: list[dict[str, Any]], **loop: Any) -> dict[str, Any]:
    """Configure a boss that has a flow for every part. The controller gives one of these commands per round."""
    flows = make_flows(diary, commands)
    branches: dict[str, Any] = {name: {"_target_": flows[name]} for name in _OUTPUTS}
    return {
        "name": "Clerk",
        "description": "Counts what it finds.",
        "early_exit_key": "EARLY_EXIT",
        "subflows_config": {
            "MemoryReading": {"_target_": flows["MemoryReading"]},
            "Planner": {"_target_": flows["Planner"]},
            "CtrlExMem": {
                "_target_": flows["CtrlExMem"],
                "subflows_config": {
                    "Controller": {"_target_": flows["Controller"], "name": "Chooser"},
                    "Executor": {"subflows_config": {**branches, "re_plan": {}}},
                    "MemoryWriting": {"_target_": flows["MemoryWriting"]},
                    "MemoryReading": {"_target_": flows["MemoryReading"]},
                },
                "topology": [
                    {
                        "goal": "choose",
                        "flow": "Controller",
                        "output_interface": {"_target_": ".detect_finish_or_continue"},
                    },
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


def make_flows(diary: Diary, commands: list[dict[str, Any]]) -> dict[str, type]:
    """Make the flow classes by the names of their parts and branches."""
    left = iter(commands)
    plans = iter(["1. search\n2. count\n", "1. count\n2. write\n"])

    class Reading(AtomicFlow):
        def run(self, input_data):
            texts = {name: Path(path).read_text() for name, path in input_data["memory_files"].items()}
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
            with Path(input_data["memory_files"]["logs"]).open("a") as file:
                file.write(f"{input_data['logs']}\n")
            return {}

    parts = {"MemoryReading": Reading, "Planner": Planning, "Controller": Controlling, "MemoryWriting": Writing}
    return {**parts, "CtrlExMem": Deciding, **{name: make_branch(diary, name) for name in _OUTPUTS}}


def make_branch(diary: Diary, name: str) -> type[AtomicFlow]:
    class Doing(AtomicFlow):
        def run(self, input_data):
            diary.note("Executor", input_data, name)
            return _OUTPUTS[name]

    return Doing
