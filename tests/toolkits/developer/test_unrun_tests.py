"""Tests that a command seemed to run, and did not."""

import pytest

from tests.toolkits.developer.developer_harness import open_developer

FUNCTIONS = "import sys\nsys.path.insert(0, '.')\n\ndef test_a():\n    assert False\n"
METHODS = "import unittest\n\nclass A(unittest.TestCase):\n    def test_a(self):\n        assert False\n"


@pytest.fixture
async def here(tmp_path):
    async with open_developer(tmp_path, "full") as made:
        yield made


@pytest.mark.parametrize(
    ("source", "command", "advice"),
    [
        ("def slug(x):\n    return x\n", "python3 t/test_a.py", "t/test_a.py has none; import what it shall check"),
        (FUNCTIONS, "python3 t/test_a.py", "`python3 -m pytest t/test_a.py`"),
        (FUNCTIONS, "cd t && python3 -B test_a.py && echo ok", "`python3 -m pytest test_a.py`"),
        (METHODS, "cat t/test_a.py; python3 t/test_a.py", "`python3 -m unittest t/test_a.py`"),
        (FUNCTIONS, "cd t; python3 -m unittest test_a.py", "run tests that are plain functions with pytest"),
        (FUNCTIONS, "python3 -m pytest -q t/test_a.py -k nothing", "name their file"),
    ],
)
async def test_no_test_ran(here, source, command, advice):
    (here.root / "t").mkdir()
    (here.root / "t" / "test_a.py").write_text(source)
    answer = await here.shell(command)
    assert "[no test ran: " in answer
    assert advice in answer
    assert here.workspace.ledger.last_command.ran_no_test


@pytest.mark.parametrize(
    "source",
    [
        FUNCTIONS.replace("False", "True") + "\ntest_a()\n",
        METHODS.replace("False", "True") + "\nif __name__ == '__main__':\n    unittest.main()\n",
        "def read():\n    pass\n\nprint(read())\n",
        "def test_a(:\n",
        "",
    ],
)
async def test_a_script_that_does_something_gets_no_note(here, source):
    (here.root / "test_a.py").write_text(source)
    assert "no test ran" not in await here.shell("python3 test_a.py; python3 -m pytest --version; python3 nothing.py")
    assert not here.workspace.ledger.last_command.ran_no_test
    assert "no test ran" not in await here.shell("cat test_a.py; true | python3 -")


async def test_a_missing_module_is_explained(here):
    (here.root / "shop").mkdir()
    answer = await here.shell("python3 -c 'import sys; sys.path = []; import shop.cart'")
    assert f"[shop is in {here.root}: run this there with `python -m`, tests with `python -m pytest`]" in answer
    note = "nothing_here is not installed: write it without nothing_here, with what Python itself has"
    (here.root / "a.py").write_text("import nothing_here\n")
    assert f"[{note}]" in await here.shell("python3 a.py")
    assert note in await here.call_ok("write_file", path="a.py", content="import nothing_here\n")
    assert "not installed" not in await here.shell("echo \"No module named 'x'\"")
