"""Tests of the toolkit base class, and of a toolkit from a foreign package."""

import json
import shutil
import subprocess
import sys
import tomllib
import zipfile

import pytest

from goose_like.agent.toolkit_hooks import ToolkitHooks
from goose_like.core.errors import ProfileError
from goose_like.core.notifier import Recorder
from goose_like.toolkit import Requirements, Toolkit, tool
from tests import ROOT


def test_requirements():
    requires = Requirements("me", {"a": "toolkit a"})
    assert requires["a"] == requires.get("a") == "toolkit a"
    assert ("a" in requires, "b" in requires, list(requires), len(requires)) == (True, False, ["a"], 1)
    assert (requires.get("b", None), requires.get("b", 3)) == (None, 3)
    for fail in (lambda: requires["aa"], lambda: requires.get("aa")):
        with pytest.raises(ProfileError, match=r"toolkit 'me' needs 'aa' \(did you mean 'a'\?\); add `requires: {aa: "):
            fail()


class Half(Toolkit):
    """A toolkit that leaves a tool out."""

    @tool(needs="LAMP_KEY")
    def light(self) -> str:
        """Light a lamp."""

    def tools(self):
        return ()


def test_a_tool_that_is_left_out_names_its_need():
    for config, missing in (
        ({}, {"light": "LAMP_KEY"}),
        ({"tools": []}, {}),
        ({"tools": ["light"]}, {"light": "LAMP_KEY"}),
    ):
        half = Half(Recorder(), Requirements("half", {}), config=config)
        assert ToolkitHooks(Recorder(), {"half": half}).list_missing_tools() == missing


PROGRAM = """
import asyncio, json, sys
from goose_like.agent.build import build_exchange
from goose_like.core.notifier import Recorder
from goose_like.config.profile import ModelChoice
from goose_like.config.profile_loader import load_profile

async def main():
    profile, _ = load_profile("seed")
    model = ModelChoice(model="scripted:" + sys.argv[1])
    recorder = Recorder()
    profile = profile.model_copy(update={"processor": model, "accelerator": model})
    async with build_exchange(profile, recorder) as exchange:
        end = await exchange.reply("What is on today?")
        outputs = [result.output for message in exchange.history.messages for result in message.tool_results]
        logged = [event.text for event in recorder.events if event.type == "logged"]
        print(json.dumps([end.reason, outputs, logged, exchange.system.splitlines()[-3:], list(exchange.tools)]))

asyncio.run(main())
"""
SCRIPT = """
- calls:
    - {tool: example, arguments: {}}
    - {tool: example_dependency, arguments: {}}
    - {tool: example_history, arguments: {}}
  text: Looking.
- text: The dentist.
"""


def wheel(source, folder):
    """The wheel of a package of single modules; written by hand, as a build back-end would come from the network."""
    described = tomllib.loads((source / "pyproject.toml").read_text())
    project, modules = described["project"], described["tool"]["setuptools"]["py-modules"]
    stem = f"{project['name'].replace('-', '_')}-{project['version']}"
    points = "".join(
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())
        for group, entries in project["entry-points"].items()
    )
    files = {f"{module}.py": (source / f"{module}.py").read_text() for module in modules} | {
        f"{stem}.dist-info/METADATA": "Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".format_map(project),
        f"{stem}.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{stem}.dist-info/entry_points.txt": points,
    }
    record = f"{stem}.dist-info/RECORD"
    files[record] = "".join(f"{path},,\n" for path in [*files, record])
    path = folder / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


def test_a_toolkit_from_a_foreign_package(tmp_path, home):
    pytest.importorskip("pip", reason="the package is installed with pip")
    source, site = ROOT / "tests/fixtures/packages" / "schedule", tmp_path / "installed"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", str(site)]
    subprocess.run([*pip, str(wheel(source, tmp_path))], check=True, timeout=300)
    (home / "config").mkdir(parents=True)
    shutil.copy(source / "profiles.yaml", home / "config")
    (tmp_path / "script.yaml").write_text(SCRIPT)
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "script.yaml")],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "HOME": str(home), "GOOSE_LIKE_HOME": str(home), "PYTHONPATH": str(site)},
    )
    assert ended.returncode == 0, ended.stderr
    reason, outputs, logged, prompt, tools = json.loads(ended.stdout)
    assert (reason, tools) == ("stop", ["example", "example_dependency", "example_history"])
    assert json.loads(outputs[1]) == ["dentist at ten"]
    assert (outputs[0], outputs[2]) == ("done", "Looking.")
    assert logged == ["An example tool was called, current state is []"]
    assert prompt == ["You assist.", "", "Try out the example tool."]
