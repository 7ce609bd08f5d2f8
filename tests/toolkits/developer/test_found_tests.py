"""Tests of the project's own tests, which run when a small model wants to finish."""

import pytest

from goose_like.toolkit import FollowUp
from tests.toolkits.developer.developer_harness import open_developer


@pytest.fixture
async def here(tmp_path):
    async with open_developer(tmp_path, "full", asks_back=True, runs_tests=True) as made:
        (made.root / "Makefile").write_text("test:\n\tgrep -q right a.txt || { echo 'wrong: a.txt'; exit 3; }\n")
        yield made


async def test_a_failure_of_the_tests_is_shown_until_they_pass(here):
    assert await here.toolkit.before_finish() is None, "nothing was changed"
    await here.call_ok("write_file", path="a.txt", content="no\n")
    await here.shell("mkdir sub; cd sub")
    for _ in range(2):
        reason = await here.toolkit.before_finish()
        assert isinstance(reason, FollowUp)
        assert reason.is_repeated
        assert reason.text.startswith("The tests of this project fail: make test\n")
        assert "wrong: a.txt" in reason.text
    await here.call_ok("write_file", path="a.txt", content="right\n")
    assert await here.toolkit.before_finish() is None
    assert here.workspace.ledger.last_command.exit_code == 0


async def test_a_model_that_cannot_repair_it_may_end(here):
    await here.call_ok("write_file", path="a.txt", content="no\n")
    repeated = [(await here.toolkit.before_finish()).is_repeated for _ in range(3)]
    assert repeated == [True, True, False]


async def test_a_project_without_tests_is_left_alone(here):
    (here.root / "Makefile").unlink()
    await here.call_ok("write_file", path="a.txt", content="no\n")
    assert "ran nothing since" in (await here.toolkit.before_finish()).text


async def test_a_project_whose_tests_are_not_written_yet_is_left_alone(here):
    (here.root / "Makefile").unlink()
    (here.root / "pyproject.toml").write_text("[tool.pytest.ini_options]\ntestpaths = ['tests']\n")
    await here.call_ok("write_file", path="a.txt", content="no\n")
    assert "ran nothing since" in (await here.toolkit.before_finish()).text
    assert here.workspace.ledger.last_command.exit_code == 5
