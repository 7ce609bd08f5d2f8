"""`pip install` in cells, with a real kernel, real pip, and wheels that are made here; no network."""

from pathlib import Path

import pytest
from goose_like_toolkits.code.worker.install import InstallFailed, find_install

from goose_like.core.events import Answer
from tests.toolkits.code.cell_harness import open_harness
from tests.workspace.workspace_harness import ONCE, needs_sandbox, write_wheel


@pytest.fixture
def options(tmp_path: Path) -> str:
    (tmp_path / "wheels").mkdir()
    write_wheel(tmp_path / "wheels", "pony", "1.5")
    return f"--no-index --find-links {tmp_path}/wheels"


@needs_sandbox
async def test_packages_last_for_the_session(tmp_path: Path, options: str) -> None:
    async with open_harness(tmp_path, answer=ONCE) as here:
        said = await here.run(
            f"try:\n    import pony\nexcept ImportError:\n    !pip install -q pony {options} 2>&1 | tail -1\n"
            "import pony\npony.__file__"
        )
        assert said.startswith("Successfully installed pony-1.5\n")
        assert str(here.session.outputs) in said  # not in the interpreter of the person
        assert await here.run("%pip install pony") == "already installed"
        (question,) = here.recorder.questions
        assert question.text.startswith("install packages for the Python kernel, with the network: pip install pony")
        await here.call("kernel_reset")
        assert "1.5" in await here.run("import pony; pony.VERSION")
    async with open_harness(tmp_path) as resumed:
        assert "1.5" in await resumed.run("import pony; pony.VERSION")


@needs_sandbox
async def test_refusals_and_failures_are_told(tmp_path: Path, options: str) -> None:
    async with open_harness(tmp_path, answer=Answer()) as here:
        said = await here.run(f"x = 1\n%pip install pony {options}\nx = 2")
        assert said.startswith(
            "not allowed: install packages for the Python kernel, with the network: pip install pony"
        )
        assert "Traceback" not in said
        assert await here.run("x") == "1"
    async with open_harness(tmp_path, answer=ONCE) as here:
        said = await here.run(f"%pip install absent {options}")
        assert said.startswith("can't install absent")
        assert "ERROR: No matching distribution found for absent" in said


@needs_sandbox
async def test_verification_lets_packages_be_installed(
    tmp_path: Path, options: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "project"))
    (tmp_path / "wheels").rename(tmp_path / "project")
    async with open_harness(tmp_path, answer=ONCE, verify={"allowed_modules": ["pony"]}) as here:
        said = await here.run("!pip install pony")
        assert said.startswith(
            "Error on line 1: !pip install pony => magics and shell commands are refused, except `%pip"
        )
        assert "1.5" in await here.run("%pip install pony\nimport pony\npony.VERSION")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("pip install a 'b>=1' # c", ["a", "b>=1"]),
        ("/x/python3.12 -m pip install --user a", ["a"]),
        ("uv pip install -q a > /dev/null 2>&1", ["a"]),
        ("pip3 install a | tail -1", ["a"]),
        ("pip list", None),
        ("echo pip install a", None),
        ("pip 'install", None),
        ("", None),
    ],
)
def test_install_lines(line: str, words: list[str] | None) -> None:
    assert find_install(line) == words


@pytest.mark.parametrize("line", ["pip install a && pytest", "pip install a; ls", "pip install a || true"])
def test_lines_with_other_commands(line: str) -> None:
    with pytest.raises(InstallFailed, match="a line of its own"):
        find_install(line)
