"""Components that a person writes in the working folder: their files, their code, their requirements, their errors."""

from pathlib import Path

import pytest

from goose_like.core.events import Answer
from tests.toolkits.components.component_files import put_into_repository
from tests.toolkits.components.component_session import company
from tests.workspace.workspace_harness import write_wheel

CONFIG = """\
group_id: org.example
artifact_id: {name}
version: "1.0"
type: plugin
as_plugin: true
info: {{title: {name}, description: Works., prompt_file_name: p.md}}
commands: [{{command_name: work, description: Works.}}]
setup: {{package: {name}, pip: {pip}}}
"""
CODE = """\
import os, time
from concopilot.framework.plugin import AbstractPlugin

class It(AbstractPlugin):
    def __init__(self, config):
        super().__init__(config)
        while os.path.exists("slow"):
            time.sleep(0.1)

    def finalize(self):
        while os.path.exists("hangs"):
            time.sleep(0.1)

    def command(self, command_name, param, **kwargs):
        print("printed")
        return open(self.config_file_path("p.md")).read()

def constructor(config):
    return {result}
"""


def write(folder: Path, name: str, pip: str = "[]", result: str = "It(config)") -> dict[str, str]:
    """Write a component and return how a profile names it."""
    (folder / name / ".config").mkdir(parents=True)
    (folder / name / ".config/config.yaml").write_text(CONFIG.format(name=name, pip=pip))
    (folder / name / ".config/p.md").write_text(f"Read {name}.")
    (folder / name / "__init__.py").write_text(CODE.format(result=result))
    return {"path": str(folder / name)}


@pytest.mark.parametrize("mode", ["workspace", "full"])
async def test_it_reads_its_own_files_and_its_result_is_shown_after_what_it_prints(tmp_path, mode):
    mine = write(tmp_path / "project", "mine")
    async with company(tmp_path, mine, mode=mode) as made:
        assert await made.ok("mine_work") == "Read mine."
        assert made.shown == "printed\nRead mine.\n"


async def test_the_authors_source_needs_no_pip_and_wins_over_other_copies(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    write(tmp_path / "source", "mine", pip="['mine>=3', concopilot]")
    (tmp_path / "source/pyproject.toml").write_text('[project]\nname = "mine"\ndependencies = ["concopilot>=0.0.5"]\n')
    write(tmp_path / "other", "mine", result="5")
    put_into_repository(tmp_path / "source")
    used = {"group_id": "org.example", "artifact_id": "mine", "version": "1.0"}
    async with company(tmp_path, used, path=[str(tmp_path / "other")]) as made:
        assert await made.ok("mine_work") == "Read mine."
        assert made.recorder.questions == []


async def test_no_copy_replaces_the_framework(tmp_path):
    (tmp_path / "other/concopilot").mkdir(parents=True)
    (tmp_path / "other/concopilot/__init__.py").write_text("raise RuntimeError('another framework')\n")
    async with company(tmp_path, write(tmp_path, "mine"), path=[str(tmp_path / "other")]) as made:
        assert await made.ok("mine_work") == "Read mine."


async def test_a_refused_installation_is_asked_once(tmp_path):
    async with company(tmp_path, write(tmp_path, "mine", pip="[no-such-package-of-ours]"), answer=Answer()) as made:
        for _ in range(2):
            assert "not allowed" in await made.failed("mine_work")
        assert len(made.recorder.questions) == 1


async def test_later_options_of_pip_count(tmp_path):
    (tmp_path / "wheels").mkdir()
    write_wheel(tmp_path / "wheels", "pony", "1.0")
    mine, allowed = write(tmp_path, "mine", pip="[pony]"), Answer(choice="allow")
    async with company(tmp_path, mine, answer=allowed, pip_params=["--no-index"]) as made:
        assert "pony" in await made.failed("mine_work")
    found = ["--no-index", "--find-links", str(tmp_path / "wheels")]
    async with company(tmp_path, mine, answer=allowed, pip_params=found) as made:
        assert await made.ok("mine_work") == "Read mine."


@pytest.mark.parametrize("words", ["[--target, /tmp, x]", "[-r, file.txt]"])
async def test_options_that_hide_something_are_refused(tmp_path, words):
    async with company(tmp_path, write(tmp_path, "mine", pip=f"[{words}]")) as made:
        assert "is not taken from a component" in await made.failed("mine_work")


async def test_time_limits_hold_for_construction_and_finalization(tmp_path):
    first, second = write(tmp_path, "first"), write(tmp_path, "second")
    async with company(tmp_path, first, second, timeout_s=1.0) as made:
        (made.root / "slow").touch()
        assert "first can't be constructed: stopped, as its time limit of 1 s" in await made.failed("first_work")
        (made.root / "slow").unlink()
        await made.ok("first_work")
        await made.ok("second_work")
        (made.root / "hangs").touch()
    lines = [text.partition(": stopped")[0] for text in made.logged]
    assert lines == [f"components: {name}: finalize failed" for name in ("second", "first")]


async def test_a_constructor_that_gives_no_component(tmp_path):
    async with company(tmp_path, write(tmp_path, "mine", result="5")) as made:
        assert "the constructor of org.example:mine:1.0 gives 5, which is no component" in await made.failed(
            "mine_work"
        )


async def test_components_that_include_each_other(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    include = (
        "__import__('concopilot.util.initializer.component', fromlist=['x']).create_component(config.config.inner)"
    )
    for name, other in (("one", "two"), ("two", "one")):
        write(tmp_path / "source", name, result=include)
        with (tmp_path / "source" / name / ".config/config.yaml").open("a") as file:
            file.write(f'config: {{inner: {{group_id: org.example, artifact_id: {other}, version: "1.0"}}}}\n')
    put_into_repository(tmp_path / "source")
    async with company(tmp_path, {"group_id": "org.example", "artifact_id": "one", "version": "1.0"}) as made:
        assert "components include each other without end" in await made.failed("one_work")
