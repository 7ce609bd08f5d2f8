"""The generic ACP agent of harbor runs a task with goose_like, in a folder. See the option `--harbor`."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests import ROOT
from tests.e2e.command import Place

pytestmark = [
    pytest.mark.skipif(find_spec("acp") is None, reason="the extra `acp` is not installed"),
    pytest.mark.skipif(find_spec("mcp") is None, reason="the extra `mcp` is not installed"),
]
if find_spec("acp") and find_spec("mcp"):
    from tests.acp.editor import write_profile
    from tests.toolkits.mcp.servers import script

TASK = {
    "task.toml": 'schema_version = "1.4"\n',
    "instruction.md": "Write the sum of 2 and 3 into sum.txt.",
    "environment/Dockerfile": "FROM scratch\n",
    "tests/test.sh": "grep -qsx 5 /app/sum.txt; echo $((1 - ($? > 0))) > /logs/verifier/reward.txt\n",
}


@pytest.fixture
def harbor(request):
    """The Python of an environment with harbor."""
    python = request.config.getoption("--harbor")
    if python is None:
        pytest.skip("it needs `pip install harbor==0.26.* agent-client-protocol` in Python 3.12: --harbor PYTHON")
    return python


def run_trial(harbor, place, **agent_options):
    """Run the task with goose-like, and return the folder with the results."""
    for name, text in TASK.items():
        file = place.work / "task" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    entry = json.loads((ROOT / "docs/acp-registry.json").read_text())
    command = {"cmd": sys.executable, "args": ["-m", "goose_like", "acp"]}
    entry["distribution"]["local"] = command | {"env": {"GOOSE_LIKE_HOME": str(place.home)}}
    options = {"registry_entry": entry, "distribution_preference": "local", "skip_install": True, **agent_options}
    server, *arguments = script("demo_server.py", "stdio")
    demo = {"name": "demo", "transport": "stdio", "command": server, "args": arguments}
    config = {
        "task": {"path": str(place.work / "task")},
        "trials_dir": str(place.work),
        "trial_name": "trial",
        "agent": {"name": "acp", "kwargs": options, "mcp_servers": [demo]},
        "environment": {"import_path": "local_folder:LocalFolder"},
    }
    file = place.work / "config.json"
    file.write_text(json.dumps(config))
    env = {**os.environ, "HARBOR_TELEMETRY": "0", "PYTHONPATH": str(Path(__file__).parent)}
    words = [harbor, "-m", "harbor.cli.main", "trial", "start", "-c", str(file)]
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return place.work / "trial"


@pytest.mark.parametrize(("permission_mode", "reward"), [("allow", 1.0), ("deny", 0.0)])
def test_harbor_runs_a_task(harbor, tmp_path, permission_mode, reward):
    place = Place(tmp_path / "home", tmp_path / "work")
    place.work.mkdir()
    find = {"tool": "find_tools", "arguments": {"query": "add numbers"}}
    add = {"tool": "call_tool", "arguments": {"name": "mcp__demo__add", "arguments": {"a": 2, "b": 3}}}
    write = {"tool": "write_file", "arguments": {"path": "sum.txt", "content": "5\n"}}
    steps = [
        {"calls": [find], "usage": {"input": 900, "output": 30}},
        {"calls": [add], "usage": {"input": 950, "output": 30, "cached": 900}},
        {"text": "It is 5.", "calls": [write], "usage": {"input": 990, "output": 20, "cached": 950}},
        {"text": "Done.", "usage": {"input": 1010, "output": 5, "cached": 990}},
    ]
    write_profile(place.home, *steps, approval="ask")
    trial = run_trial(harbor, place, permission_mode=permission_mode)
    result = json.loads((trial / "result.json").read_text())
    assert result["exception_info"] is None
    assert result["verifier_result"]["rewards"] == {"reward": reward}
    tokens = {name: result["agent_result"][f"n_{name}_tokens"] for name in ("input", "output", "cache")}
    assert tokens == {"input": 3850, "output": 85, "cache": 2840}
    trajectory = json.loads((trial / "agent/trajectory.json").read_text())
    assert trajectory["agent"]["name"] == "goose-like"
    assert trajectory["final_metrics"]["total_prompt_tokens"] == 3850
    calls = [call["function_name"] for step in trajectory["steps"] for call in step.get("tool_calls") or []]
    assert calls[-1] == "edit"
    assert trajectory["steps"][-1]["message"] == "Done."
