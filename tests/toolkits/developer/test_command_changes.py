"""What the result of a command says about the files that it changed."""

import subprocess
from pathlib import Path

import pytest

from tests.agent.test_verification import Work, open_work
from tests.toolkits.developer.developer_harness import open_developer

NONE = "[no file changed: the text to replace is not there as the command has it; look at the file first]"


@pytest.fixture
def folder(home, tmp_path):
    folder = tmp_path / "project"
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


async def run(work: Work, *commands: str) -> list[str]:
    """Let the model run commands in one turn, and return their results."""
    start = len(work.exchange.history.messages)
    await work.turn(*map(work.shell, commands), "It failed.")
    results = []
    for message in work.exchange.history.messages[start:]:
        results += [result.output for result in message.tool_results]
    return results


async def test_a_file_that_has_become_empty_is_told_without_other_names(folder: Path):
    (folder / "a.txt").write_text("b\n")
    async with open_work(folder) as work:
        (result,) = await run(work, "sort a.txt > a.txt; touch b.txt")
        assert result.startswith("[no output]\n[the file a.txt is empty now: ")
        assert "files changed" not in result


async def test_a_result_names_the_files_that_a_command_changed(folder: Path):
    (folder / "a.py").write_text("x = 1\n")
    async with open_work(folder) as work:
        results = await run(
            work,
            "sed -i 's/x = 1/x = 2/' a.py",
            "echo y > b.py; mkdir -p sub; mv a.py sub",
            "rm sub/a.py; seq 7 | xargs -I{} touch f{}",
            "cat b.py",
            "cat b.py | tail -1; mkdir -p empty __pycache__; touch __pycache__/x.pyc",
        )
        assert results == [
            "[no output]\n[files changed: a.py]",
            "[no output]\n[files changed: a.py, b.py, sub/a.py]",
            "[no output]\n[files changed: f1, f2, f3, f4, f5 and 3 more]",
            "y",
            "y",
        ]
        await work.turn(work.change(), "Done.")
        assert await run(work, "true") == ["[no output]"], "a tool wrote that file"
        plan = await work.exchange.undo.plan_restore(1)
        assert {change.path.name for change in plan.changes} >= {"a.py", "b.py", "f7"}


@pytest.mark.parametrize(
    "command",
    [
        "sed -i 's/no such text/y/' a.py && echo Replaced.",
        "sed -i s/nothing/y/ *.py",
        "perl -pi -e 's/nothing/y/' a.py ignored.log",
        "sed -i s/nothing/y/ ignored.log",
        "python3 - <<'EOF'\nfrom pathlib import Path\nf = Path('a.py')\n"
        "f.write_text(f.read_text().replace('nothing', 'y'))\nEOF",
    ],
)
async def test_an_edit_that_matches_nothing_is_told(folder: Path, command: str):
    (folder / "a.py").write_text("x = 1\n")
    (folder / "ignored.log").write_text("x = 1\n")
    (folder / ".gitignore").write_text("*.log\n")
    async with open_work(folder) as work:
        results = await run(work, command, command.replace("nothing", "x").replace("no such text", "x"))
        assert [NONE in result for result in results] == [True, False]


@pytest.mark.parametrize("mode", ["workspace", "full"])
async def test_an_edit_is_judged_without_undo_too(tmp_path: Path, mode: str):
    async with open_developer(tmp_path, mode) as here:
        (here.root / "a.py").write_text("x = 1\n")
        assert NONE in await here.shell("sed -i s/nothing/y/ a.py")
        assert await here.shell("sed -i s/x/y/ a.py") == "[no output]"
        assert NONE not in await here.shell("sed -i s/nothing/y/ no.py")
        assert NONE not in await here.shell("echo x > /tmp/a.txt; sed -i s/nothing/y/ /tmp/a.txt a.py")
