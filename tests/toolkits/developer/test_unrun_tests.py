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


@pytest.mark.parametrize(
    ("start", "is_its_own"),
    [
        ("def slug(x):\n    return x\n", True),
        ("import json\nslug = json.loads\n", True),
        ("from slug import slug\n", False),
        ("import shop.cart\nslug = str\n", False),
        ("import subprocess\nslug = str\n", False),
    ],
)
async def test_a_test_of_its_own_copy_is_no_test(here, start, is_its_own):
    (here.root / "slug.py").write_text("def slug(x):\n    return x\n")
    (here.root / "shop").mkdir()
    (here.root / "shop" / "cart.py").touch()
    (here.root / "test_slug.py").write_text(f"{start}assert slug('1')\n")
    answer = await here.shell("python3 test_slug.py")
    note = "[no test ran: test_slug.py imports nothing of this project, so it checks only itself; "
    assert (note in answer) == is_its_own
    assert here.workspace.ledger.last_command.ran_no_test == is_its_own


IMPORTS_UNITTEST = "import unittest\nfrom {name} import f\n\nclass A(unittest.TestCase):\n    def test_a(self):\n"
CALLS_MAIN = "        self.assertEqual(f(), 1)\n\nunittest.main()\n"


@pytest.mark.parametrize(
    ("module", "command"),
    [
        ("src/mypkg/__init__.py", "PYTHONPATH=src python3 tests/test_a.py"),
        ("src/mypkg.py", "export PYTHONPATH=src; python3 tests/test_a.py"),
        ("tests/mypkg.py", "python3 tests/test_a.py"),
        ("lib/mypkg.py", "cd tests && PYTHONPATH=../lib python3 test_a.py"),
        ("code/mypkg/__init__.py", "PYTHONPATH=nothing:code python3 tests/test_a.py"),
        ("code/colorsys.py", "PYTHONPATH=code python3 tests/test_a.py"),
        ("tests/colorsys.py", "python3 tests/test_a.py"),
    ],
)
async def test_a_module_of_the_project_counts_wherever_it_is(here, module, command):
    file = here.root / module
    (here.root / "tests").mkdir()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("def f():\n    return 1\n")
    name = "colorsys" if "colorsys" in module else "mypkg"
    (here.root / "tests/test_a.py").write_text(IMPORTS_UNITTEST.format(name=name) + CALLS_MAIN)
    answer = await here.shell(command)
    assert "Ran 1 test" in answer
    assert "no test ran" not in answer
    assert not here.workspace.ledger.last_command.ran_no_test


@pytest.mark.parametrize(
    "source", [FUNCTIONS, METHODS, "def slug(x):\n    return x\n", "import pytest\nassert pytest\n"]
)
async def test_tests_that_ran_are_not_denied(here, source):
    (here.root / "test_a.py").write_text(source.replace("False", "True"))
    answer = await here.shell("python3 test_a.py; echo; echo 'Ran 3 tests in 0.1s'; echo 'Ran 0 tests in 0.1s'")
    assert "no test ran" not in answer


async def test_small_models_hear_of_it_until_a_test_runs(tmp_path):
    async with open_developer(tmp_path, "full", asks_back=True) as made:
        (made.root / "test_a.py").write_text("assert 1 == 1\n")
        await made.shell("python3 test_a.py")
        for _ in range(2):
            objection = await made.toolkit.before_finish()
            assert objection.is_repeated
            assert objection.text.startswith("This failed: python3 test_a.py\n[no test ran: test_a.py imports nothing")
        (made.root / "test_a.py").write_text("import sys\nsys.path.append('lib')\n\nassert 1 == 1\n")
        await made.shell("python3 test_a.py")
        assert await made.toolkit.before_finish() is None


async def test_a_missing_module_is_explained(here):
    (here.root / "shop").mkdir()
    answer = await here.shell("python3 -c 'import sys; sys.path = []; import shop.cart'")
    assert f"[shop is in {here.root}: run this there with `python -m`, tests with `python -m pytest`]" in answer
    (here.root / "a.py").write_text("import nothing_here\n")
    assert "[nothing_here is not installed]" in await here.shell("python3 a.py")
    assert "not installed" not in await here.shell("echo \"No module named 'x'\"")
    assert "not installed" not in await here.shell("python3 -c 'import json.nothing'")


async def test_small_models_are_told_to_do_without_a_missing_module(tmp_path):
    async with open_developer(tmp_path, "full", asks_back=True) as made:
        note = "nothing_here is not installed: write it without nothing_here, with what Python itself has"
        (made.root / "a.py").write_text("import nothing_here\n")
        assert f"[{note}]" in await made.shell("python3 a.py")
        assert note in await made.call_ok("write_file", path="a.py", content="import nothing_here\n")


@pytest.mark.parametrize(
    ("module", "command", "advice"),
    [
        ("src/pkg/__init__.py", "python3 -c 'import pkg.a'", "{root}/src: run this with PYTHONPATH={root}/src"),
        ("src/pkg.py", "cd tests; python3 test_a.py", "{root}/src: run this with PYTHONPATH={root}/src"),
        ("lib/pkg.py", "python3 tests/test_a.py", "{root}/lib: run this with PYTHONPATH={root}/lib"),
        ("tests/pkg.py", "cat tests/test_a.py | python3", "{root}/tests: run this with PYTHONPATH={root}/tests"),
        (
            ".venv/lib/python3.13/site-packages/pkg.py",
            "python3 tests/test_a.py",
            "the project's .venv: run this with {root}/.venv/bin/python",
        ),
    ],
)
async def test_a_module_of_the_project_is_found(tmp_path, module, command, advice):
    async with open_developer(tmp_path, "full", asks_back=True) as made:
        for name in (module, "tests/test_a.py", ".venv/bin/python"):
            (made.root / name).parent.mkdir(parents=True, exist_ok=True)
            (made.root / name).write_text("import pkg\n" if "test_a" in name else "")
        wanted = f"[pkg is in {advice.format(root=made.root)}]"
        assert wanted in await made.shell(command)


@pytest.mark.parametrize(
    ("file", "source", "advice"),
    [
        ("slug.py", "def slug(x):\n    return x\n", "write `from slug import slug` in place of its own `slug`"),
        ("src/cart.py", "class Cart:\n    pass\n", "write `from cart import Cart` in place of its own `Cart`"),
        ("other.py", "def other(x):\n    return x\n", "import what it"),
        ("test_b.py", "def slug(x):\n    return x\n", "import what it"),
        ("broken.py", "def slug(\n", "import what it"),
    ],
)
@pytest.mark.parametrize("end", ["", "assert slug('1')\n"])
async def test_a_result_names_the_import_of_what_a_test_defines_again(here, file, source, advice, end):
    (here.root / "src").mkdir()
    (here.root / file).write_text(source)
    copies = "class Cart:\n    pass\n\ndef slug(x):\n    return x\n\n"
    (here.root / "test_a.py").write_text(copies + end)
    assert advice in await here.shell("python3 test_a.py")
