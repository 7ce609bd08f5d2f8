"""Pydantic's plugins: they work where somebody has installed one, and nobody else waits for the search."""

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import sys
from goose_like.launch.pydantic_plugins import skip_plugin_search

skip_plugin_search()
from pydantic import BaseModel

class Model(BaseModel):
    number: int

assert Model(number="1").number == 1
print("importlib.metadata" in sys.modules)
"""

PLUGIN = """
class Plugin:
    def new_schema_validator(self, *arguments):
        print("asked")
        return None, None, None

plugin = Plugin()
"""


def run_script(site: Path) -> list[str]:
    env = {**os.environ, "PYTHONPATH": str(site)}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=env, check=True, capture_output=True, text=True)
    return done.stdout.split()


def test_without_a_plugin_nothing_is_searched(tmp_path: Path) -> None:
    assert run_script(tmp_path) == ["False"]


def test_an_installed_plugin_works(tmp_path: Path) -> None:
    info = tmp_path / "watcher-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: watcher\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[pydantic]\nwatcher = watcher_plugin:plugin\n")
    (tmp_path / "watcher_plugin.py").write_text(PLUGIN)
    assert run_script(tmp_path) == ["asked", "True"]
