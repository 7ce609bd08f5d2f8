"""Notes about files that a command missed: which folder is missing, and what there is."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.toolkits.developer.developer_harness import DeveloperHarness, open_developer


@pytest.fixture(params=["workspace", "full"])
async def here(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[DeveloperHarness]:
    """A toolkit in each of the two modes."""
    async with open_developer(tmp_path, request.param) as made:
        yield made


async def test_a_missed_file_is_told_what_the_folder_has(here: DeveloperHarness) -> None:
    assert "[the folder has: nothing]" in await here.shell("cat gone.py")
    await here.shell("mkdir src; touch .hidden calc.py")
    assert "[the folder has: calc.py, src/]" in await here.shell("cat gone.py")
    await here.shell("mkdir -p src/a src/__pycache__; touch src/a/{b,c}.py")
    assert "[the folder has: calc.py, src/a/b.py, src/a/c.py]" in await here.shell("cat gone.py")
    await here.shell("touch src/a/f{01..20}")
    assert "[the folder has: calc.py, src/a/]" in await here.shell("cat gone.py")
    await here.shell("touch f{01..30}")
    assert ", f19, ...]" in await here.shell("cat gone.py")
    assert "the folder has" not in await here.shell("cat calc.py; ls gone; true")
    assert "the folder has" not in await here.shell("cd /usr; cat gone; cat gone2")


@pytest.mark.parametrize(
    "command",
    [
        "touch tests/new/test_a.py",
        "echo 1 > tests/new/a.txt",
        "touch ./tests/new/a",
        """python3 -c 'open("tests/new/a", "w")'""",
    ],
)
async def test_a_missing_folder_is_named(here: DeveloperHarness, command: str) -> None:
    note = "[there is no folder tests/new; for a new file in it, first: mkdir -p tests/new]"
    assert note in await here.shell(command)
    await here.shell("mkdir -p tests/new")
    assert "there is no folder" not in await here.shell("cat tests/new/gone")


@pytest.mark.parametrize(
    "command",
    [
        "echo 1 > 'my dir/sub/a'",
        "touch 'my dir/sub/a'",
        "find 'my dir/sub/a'",
        "cd 'my dir/sub/a'",
        """python3 -c 'open("my dir/sub/a", "w")'""",
    ],
)
async def test_a_missing_folder_with_a_space_is_named_for_the_shell(here: DeveloperHarness, command: str) -> None:
    note = "[there is no folder 'my dir/sub'; for a new file in it, first: mkdir -p 'my dir/sub']"
    assert note in await here.shell(command)


@pytest.mark.parametrize(
    "command",
    [
        "mkdir /tmp/mine; cat /tmp/mine/gone",
        "mkdir ../mine; cat ../mine/gone",
        'echo "$HOME/no/such/folder/x: No such file or directory"; false',
        "cat secret/deep/gone",
        "ln -s /tmp/mine elsewhere; cat elsewhere/deep/gone",
        "grep x 'my dir/sub/gone'",
        r"cat $'a\nb/gone'",
        r"""cat "it's/gone" """,
        r"mkdir $'caf\xe9'; echo > $'caf\xe9/deep/gone'",
        r"""mkdir 'a\b'; python3 -c 'open(r"a\b/gone")'""",
    ],
)
async def test_no_folder_is_named_that_may_exist(tmp_path: Path, command: str) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project/.gooseignore").write_text("secret\n")
    async with open_developer(tmp_path) as here:
        answer = await here.shell(command)
    assert "No such file" in answer
    assert "there is no folder" not in answer
