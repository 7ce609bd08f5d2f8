"""Sessions as trajectories for harbor. With --harbor its own models read that of a real session."""

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest

from goose_like.core.events import (
    Compacted,
    MessageCompleted,
    PromptChanged,
    PromptRecorded,
    Rewound,
    ToolFinished,
    TurnStarted,
)
from goose_like.core.message import Message, ToolCall, ToolResult, ToolSpec, Usage
from goose_like.sessions.export_atif import export_atif
from goose_like.sessions.index import find_session
from goose_like.sessions.transcript import Transcript
from tests.e2e.command import Place, shell
from tests.sessions.session_files import HOSTILE, write_events, write_full_session

AGENT_FIELDS = {"model_name", "reasoning_content", "tool_calls", "metrics", "llm_call_count", "observation"}


def export(name):
    trajectory = json.loads(export_atif(Transcript.read(find_session(name))))
    check_rules(trajectory)
    return trajectory


def check_rules(trajectory):
    """Check the rules of the format that types cannot tell."""
    assert trajectory["schema_version"] == "ATIF-v1.8"
    steps = trajectory["steps"]
    assert [step["step_id"] for step in steps] == list(range(1, len(steps) + 1))
    assert trajectory["final_metrics"]["total_steps"] == len(steps)
    children = trajectory.get("subagent_trajectories", [])
    names = [child["trajectory_id"] for child in children]
    for step in steps:
        assert step["timestamp"].endswith("Z")
        if step["source"] != "agent":
            assert not AGENT_FIELDS & set(step)
        calls = {call["tool_call_id"] for call in step.get("tool_calls", [])}
        for result in step.get("observation", {}).get("results", []):
            assert result["source_call_id"] in calls
            for reference in result.get("subagent_trajectory_ref", []):
                assert reference["trajectory_id"] in names
    for child in children:
        check_rules(child)


def test_each_side_has_its_steps():
    write_full_session()
    trajectory = export("one")
    assert trajectory["agent"]["model_name"] == "local"
    request, answer, reminder, interjection, cut, end = trajectory["steps"]
    sources = [step["source"] for step in trajectory["steps"]]
    assert sources == ["user", "agent", "system", "user", "agent", "system"]
    assert request["message"][0] == {"type": "text", "text": HOSTILE}
    assert Path(request["message"][1]["source"]["path"]).read_bytes() == b"\x89PNG"
    assert answer["reasoning_content"] == HOSTILE
    assert answer["metrics"]["prompt_tokens"] == 1200
    assert [call["arguments"] for call in answer["tool_calls"]][2] == {"": "{broken"}
    results = {result["source_call_id"]: result for result in answer["observation"]["results"]}
    assert results["b"]["content"] == "saved"
    assert results["d"]["extra"] == results["c"]["extra"] == {"is_error": True}
    assert (reminder["message"], interjection["message"], cut["extra"]) == (HOSTILE, "wait", {"is_cut": True})
    assert end["message"] == f"The turn ended: error. {HOSTILE}"


@pytest.mark.parametrize("call_id", ["d1", "functions.delegate:0", "x" * 81, "../é"])
def test_prompt_tools_summaries_and_subagents(call_id):
    spec = ToolSpec("delegate", "Delegate.", {"type": "object", "properties": {}})
    changed = ToolSpec("delegate", "Delegate more.", {"type": "object", "properties": {}})
    new = ToolSpec("look", "Look.", {"type": "object", "properties": {}})
    call = ToolCall(id=call_id, name="delegate", arguments='{"task": "look"}')
    usage = Usage(input_tokens=900, output_tokens=20, cache_read_tokens=800)
    session = write_events(
        "parent",
        PromptRecorded(system="You are.", tools=(spec,)),
        TurnStarted(message=Message.user("go")),
        MessageCompleted(message=Message.assistant("", [call]), usage=usage),
        ToolFinished(result=ToolResult(call_id=call_id, output="looked")),
        PromptChanged(system="You are.", tools=(new,), changed_tools=(changed,)),
        Compacted(summary="So far.", kept_count=0),
        Rewound(message_count=1),
    )
    child = session.open_subagent_session(call_id)
    child.append(TurnStarted(message=Message.user("look")))
    child.append(MessageCompleted(message=Message.assistant("looked")))
    child.close()
    trajectory = export("parent")
    functions = [tool["function"] for tool in trajectory["agent"]["tool_definitions"]]
    described = [(function["name"], function["description"]) for function in functions]
    assert described == [("delegate", "Delegate more."), ("look", "Look.")]
    messages = [step["message"] for step in trajectory["steps"]]
    assert messages[:4] == ["You are.", "go", "", "So far."]
    (result,) = trajectory["steps"][2]["observation"]["results"]
    (inner,) = trajectory["subagent_trajectories"]
    assert result["subagent_trajectory_ref"] == [{"trajectory_id": inner["trajectory_id"]}]
    assert [step["message"] for step in inner["steps"]] == ["look", "looked"]
    assert trajectory["final_metrics"]["total_cached_tokens"] == 800


READ = """
import sys
from harbor.models.trajectories import Trajectory
found = Trajectory.model_validate_json(sys.stdin.read())
print(found.schema_version, len(found.steps), len(found.subagent_trajectories))
"""


def test_harbor_reads_a_real_session(request, tmp_path):
    """Tools, a delegate, a compaction, and a turn that is interrupted while a command runs."""
    python = request.config.getoption("--harbor")
    if python is None:
        pytest.skip("it needs `pip install harbor==0.26.*` in Python 3.12: --harbor PYTHON")
    place = Place(tmp_path / "home", tmp_path / "work")
    place.work.mkdir()
    config = place.home / "config/profiles.yaml"
    config.parent.mkdir(parents=True)
    moderator = "{name: summarize, config: {limit_tokens: 9000}}"
    config.write_text(
        "a: {extends: default, toolkits: [developer, delegate]}\n"
        f"b: {{extends: default, toolkits: [developer, delegate], moderator: {moderator}}}\n"
    )
    long = {"calls": [shell("seq 3000")], "usage": {"input": 9000, "output": 20}}
    first = place.script(
        {"thinking": "First a look.", **long},
        {"calls": [{"tool": "delegate", "arguments": {"task": "look around"}}]},
        "I looked.",
        "All is here.",
    )
    done = place.run("run", "-P", "a", "-m", first, "--session", "s", "look")
    assert done.returncode == 0, done.stderr
    skipped = ["skipped"] * 3
    second = place.script(*skipped, long, long, "Goal: look.", "Done.")
    done = place.run("run", "-P", "b", "-m", second, "--resume", "s", "look longer")
    assert done.returncode == 0, done.stderr
    third = place.script(*[{"calls": [shell("sleep 1000")]}] * 7)
    process = place.start("run", "-P", "a", "-m", third, "--resume", "s", "wait")
    while "sleep 1000" not in json.dumps(place.events()):
        assert process.poll() is None, process.communicate()
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    done = place.run("session", "export", "s", "--format", "atif", "-o", "t.json")
    assert done.returncode == 0, done.stderr
    text = (place.work / "t.json").read_text()
    check_rules(json.loads(text))
    assert "The turn ended: cancelled" in text
    assert '"replaced": "all messages before"' in text
    read = subprocess.run([python, "-c", READ], input=text, capture_output=True, text=True, check=False)
    assert read.returncode == 0, read.stderr
    assert read.stdout.split()[0] == "ATIF-v1.8"
    assert read.stdout.split()[2] == "1"
