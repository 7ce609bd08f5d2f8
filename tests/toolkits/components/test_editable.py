"""Packages that `setup.pip` installs with `-e`: their code stays where it is, and is imported from there."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from goose_like.core.events import Answer
from tests.toolkits.components.component_session import company

ALLOWED = Answer(choice="allow", by="person")
_PROJECT = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
_BACKEND = """
import os, zipfile


def build_editable(folder, config_settings=None, metadata_directory=None):
    name = "helpers-1.0-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(folder, name), "w") as archive:
        archive.writestr("__editable__.helpers.pth", os.path.abspath("src") + chr(10))
        archive.writestr("helpers-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: helpers\\nVersion: 1.0\\n")
        archive.writestr("helpers-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\n")
        archive.writestr("helpers-1.0.dist-info/RECORD", "")
    return name
"""
_CONFIG = """
group_id: org.example
artifact_id: counting
version: "1.0.0"
type: plugin
as_plugin: true
info: {{title: counting, description: Counts.}}
commands: [{{command_name: count, description: Counts.}}]
setup:
  package: {package}
  pip: {pip}
"""
_CODE = """
from concopilot.framework.plugin import AbstractPlugin


class Counting(AbstractPlugin):
    def command(self, command_name, param, **kwargs):
        import helpers
        return helpers.COUNT


def constructor(config):
    return Counting(config)
"""


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A Python project outside of the running directory."""
    project = tmp_path / "elsewhere" / "project"
    (project / "src" / "helpers").mkdir(parents=True)
    (project / "src" / "helpers" / "__init__.py").write_text("COUNT = 7\n")
    (project / "pyproject.toml").write_text(_PROJECT)
    (project / "backend.py").write_text(_BACKEND)
    return project


def counting(folder: Path, pip: list[Any], package: str = "counting") -> dict[str, Any]:
    place = folder / "shop" / "counting"
    (place / ".config").mkdir(parents=True)
    (place / ".config" / "config.yaml").write_text(_CONFIG.format(package=package, pip=json.dumps(pip)))
    (place / "__init__.py").write_text(_CODE)
    return {"path": str(place)}


@pytest.mark.parametrize("mode", ["workspace", "full"])
async def test_what_is_installed_in_its_place_is_imported_from_there(tmp_path, sources, mode):
    use = counting(tmp_path, [["-e", str(sources)]])
    (tmp_path / "elsewhere" / "diary.txt").write_text("secret")
    async with company(tmp_path, use, "escaper", answer=ALLOWED, mode=mode) as made:
        assert await made.ok("counting_count") == "7"
        assert "secret" not in await made.failed("escaper_read", path=str(tmp_path / "elsewhere" / "diary.txt"))
        await made.failed("escaper_write", path=str(sources / "src" / "new.py"))
        assert not (sources / "src" / "new.py").exists()


async def test_one_whose_own_package_lies_there(tmp_path, sources):
    code = tmp_path / "elsewhere" / "project" / "src" / "deep" / "__init__.py"
    code.parent.mkdir()
    code.write_text(_CODE)
    async with company(tmp_path, counting(tmp_path, [[f"--editable={sources}"]], "deep"), answer=ALLOWED) as made:
        assert await made.ok("counting_count") == "7"


async def test_a_process_that_runs_is_renewed_for_it_and_that_is_told(tmp_path, sources):
    use = counting(tmp_path, [["-e", str(sources)]])
    async with company(tmp_path, use, "greeter", answer=ALLOWED) as made:
        await made.ok("greeter_greet", who="Ada")
        said = await made.ok("counting_count")
        assert said.startswith("7\n")
        assert "gone: greeter" in said
        assert await made.ok("counting_count") == "7"
        assert '"times": 1' in await made.ok("greeter_greet", who="Ada")
        assert '"times": 2' in await made.ok("greeter_greet", who="Ada")


async def test_one_that_another_makes_is_told_to_come_with_the_next_start(tmp_path, sources):
    use = counting(tmp_path, [["-e", str(sources)]])
    async with company(tmp_path, "stranger", answer=ALLOWED) as made:
        place = made.root / "counting"
        shutil.copytree(Path(use["path"]) / ".config", place)
        asked = {"method": "resolve_file", "params": {"config_file": "counting/config.yaml"}}
        said = await made.failed("stranger_ask", **asked)
        assert f"counting is installed from {sources}, which the components' process sees from its next start" in said
    async with company(tmp_path, "stranger", answer=ALLOWED) as made:
        assert "org.example" in await made.ok("stranger_ask", **asked)


async def test_sources_that_are_gone_are_nobodys_fault(tmp_path, sources):
    use = counting(tmp_path, [["-e", str(sources)]])
    async with company(tmp_path, use, "greeter", answer=ALLOWED) as made:
        assert await made.ok("counting_count") == "7"
    shutil.rmtree(sources)
    async with company(tmp_path, use, "greeter", answer=ALLOWED) as made:
        await made.ok("greeter_greet", who="Ada")
        assert "No module named 'helpers'" in await made.failed("counting_count")


async def test_where_nothing_is_installed_nothing_is_read_of_what_would_be(tmp_path):
    use = counting(tmp_path, [["--config-settings", "x"]])
    async with company(tmp_path, use, "greeter", setup=False) as made:
        await made.ok("greeter_greet", who="Ada")
        assert "No module named 'helpers'" in await made.failed("counting_count")
