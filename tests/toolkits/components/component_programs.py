"""Programs of components, run with the stage's own modules and with the real package of PyPI."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import ROOT
from tests.toolkits.components.concopilot_real import Real

INSIDE = ROOT / "toolkits/goose_like_toolkits/components/inside"

# A program leaves what it found in `result`. With ours, a host is played that finds configurations below `.runtime`.
OURS = """
import json, os, sys
sys.path[:0] = [{package!r}, os.getcwd()]
from stage import compat, wire
compat.install()

def host(method, **params):
    import yaml
    if method == "resolve":
        named = params["config"]
        place = [*named["group_id"].split("."), named["artifact_id"], named["version"]]
        folder = os.path.join(".runtime", *place, str(named.get("instance_id", 0)))
        file = named.get("config_file", "config.yaml")
    else:
        named = {{}}
        folder, file = os.path.split(params["config_file"])
    from concopilot.util import ClassDict
    with open(os.path.join(folder, file)) as text:
        found = ClassDict.convert(yaml.safe_load(text))
    found.config = found.config or ClassDict()
    found.config.update_nested(named.get("config", {{}}))
    found._config_info = {{"config_folder": folder, "config_file": file}}
    return json.loads(json.dumps(found))

class Host:
    def call(self, method, **params):
        return host(method, **params)

wire.connect(Host())
"""
REAL = "import json, os, sys\nsys.path[:0] = [os.getcwd()]\n"
SHOW = "\nprint('\\n' + json.dumps(result, default=repr))\n"
TOLD = '''
def told(call):
    """What a call gives, or the kind and the words of its error."""
    try:
        return call()
    except Exception as error:
        return [type(error).__name__, str(error)]
'''
DEMO = """
from concopilot.framework.message import Message
from concopilot.framework.plugin import AbstractPlugin
from concopilot.framework.resource import Resource, BasicResourceManager
from concopilot.framework.resource.category import Disk
from concopilot.framework.context import Context
from concopilot.util import ClassDict
from concopilot import Settings
Settings().current_time = lambda: "now"

class Demo(AbstractPlugin):
    def command(self, command_name, param, **kwargs):
        return {"answer": command_name, "param": param}

class Pool(Resource):
    def initialize(self):
        log.append(f"+{self.id}")
        if self.config.config.fails:
            raise OSError(f"{self.id} is down")
    def finalize(self):
        log.append(f"-{self.id}")
        if self.config.config.sticks:
            raise OSError(f"{self.id} sticks")

log = []
def config(type="plugin", /, as_plugin=False, **more):
    return {"group_id": "Org.Demo", "artifact_id": "It", "version": "1.0-B", "type": type, "as_plugin": as_plugin,
            "config": {}, **more}
def pool(id, kind="Pool", **more):
    return Pool(config("resource", resource_type=kind, config={"id": id, **more}))
def manager(*resources):
    made = BasicResourceManager(config("resource_manager"))
    for resource in resources:
        made.add_resource(resource)
    return made
"""


class Stage:
    """Runs programs in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "work"
        self.folder.mkdir()
        self.package = folder / "package"
        shutil.copytree(INSIDE, self.package / "stage", ignore=shutil.ignore_patterns("__pycache__"))

    def ours(self, program: str, *arguments: str) -> Any:
        """What a program finds with the stage's own modules."""
        whole = OURS.format(package=str(self.package)) + TOLD + program + SHOW
        command = [sys.executable, "-I", "-c", whole, *arguments]
        ended = subprocess.run(command, capture_output=True, text=True, cwd=self.folder, check=False)
        assert ended.returncode == 0, ended.stderr[-3000:]
        return _last(ended.stdout)

    def really(self, real: Real, program: str, *arguments: str) -> Any:
        """What it finds with the real package."""
        return _last(real.run(REAL + TOLD + program + SHOW, self.folder, arguments))

    def both(self, real: Real, program: str) -> Any:
        """What it finds with either, which is the same."""
        ours = self.ours(program)
        assert ours == self.really(real, program)
        return ours

    def component(self, place: str, config: str, instance: str = "0") -> None:
        folder = self.folder / ".runtime" / place / instance
        folder.mkdir(parents=True)
        (folder / "config.yaml").write_text(config)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def _last(printed: str) -> Any:
    return json.loads(printed.rstrip().rpartition("\n")[2])
