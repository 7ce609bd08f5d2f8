"""Linters: the model reads new findings after a change, and never waits long."""

import os
import shutil
from importlib.metadata import files as installed
from pathlib import Path

import pytest
from goose_like_toolkits.developer import linters as module
from goose_like_toolkits.developer.linters import Findings, choose_linters

from goose_like.core.errors import ProfileError
from tests.toolkits.developer.developer_harness import DeveloperHarness, open_developer

RUFF = next(Path(str(file.locate())).resolve() for file in installed("ruff") or () if file.name == "ruff")
SAYS = "\n[new findings of ruff:]\n"
COUNTED = "bash -c 'echo ran >> runs; cat {file}; test ! -s {file}'"


@pytest.fixture
async def here(tmp_path, monkeypatch):
    """A toolkit with ruff on the PATH."""
    monkeypatch.setenv("PATH", str(RUFF.parent), prepend=os.pathsep)
    async with open_developer(tmp_path, "full") as made:
        yield made


async def write(made: DeveloperHarness, path: str, content: str) -> str:
    """Write a file, and return the answer below the line with the size of the change."""
    return (await made.call_ok("write_file", path=path, content=content)).partition(" lines)")[2]


# --- what our own checks find


@pytest.mark.parametrize(
    ("path", "content", "report"),
    [
        ("a.py", "x = (\n", ", but line 1 does not parse: '(' was never closed"),
        ("a.toml", "a = 1\nb = [\n", ", but line 3 does not parse: Invalid value"),
        ("a.toml", "a = 1\n = 2\n", ", but line 2 does not parse: Invalid statement"),
        ("a.yaml", "a: 1\n- b\n", ", but line 2 does not parse: did not find expected key"),
        ("a.yml", "a: !Ref b\n---\na: 1\na: 2\n", ""),
        ("a.json", "[" * 100_000, ""),
        ("a.py", "print(x)\n", f"{SAYS}a.py:1:7: F821 Undefined name `x`"),
        ("a.py", "import os\n", ""),
        ("A.PY", "print(x)\n", f"{SAYS}A.PY:1:7: F821 Undefined name `x`"),
        ("-a.py", "print(x)\n", f"{SAYS}-a.py:1:7: F821 Undefined name `x`"),
        (
            "a.sh",
            "if x\n",
            "\n[new findings of bash:]\n./a.sh: line 2: syntax error: unexpected end of file",
        ),
        ("a.txt", "if (", ""),
    ],
)
async def test_what_is_wrong_is_told(here: DeveloperHarness, path, content, report):
    assert await write(here, path, content) == report


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
async def test_javascript(tmp_path):
    async with open_developer(tmp_path) as made:
        report = await write(made, "a.js", "let a = 1;\nlet b = ;\n")
        assert report == "\n[new findings of node:]\na.js:2: SyntaxError: Unexpected token ';'"
        assert await write(made, "b.js", "import a from './a.js';\nexport const b = a;\n") == ""


@pytest.mark.parametrize("config", ["ruff.toml", "pyproject.toml"])
async def test_a_project_that_has_rules_for_ruff_is_checked_by_those(here: DeveloperHarness, config):
    (here.root / config).write_text(
        {"ruff.toml": "", "pyproject.toml": "[tool.ruff]\n"}[config] + 'lint.select = ["F401"]\n'
    )
    assert "F401" in await write(here, "a.py", "import os\n")
    assert await write(here, "b.py", "print(x)\n") == ""


async def test_a_pyproject_that_does_not_speak_of_ruff_sets_nothing_up(here: DeveloperHarness):
    (here.root / "pyproject.toml").write_text("[project]\nname = 'ruff'\n")
    assert await write(here, "a.py", "import os\nprint(x)\n") == f"{SAYS}a.py:2:7: F821 Undefined name `x`"


# --- only what is new


async def test_what_was_there_before_is_not_told_again(here: DeveloperHarness):
    (here.root / "a.py").write_text("print(old)\n")
    await here.call_ok("read_file", path="a.py")
    assert await write(here, "a.py", "\n\nprint(old)\n") == ""
    assert await write(here, "a.py", "print(old)\nprint(new)\n") == f"{SAYS}a.py:2:7: F821 Undefined name `new`"
    assert await write(here, "a.py", "print(old)\nprint(new)\n\n") == ""
    assert await write(here, "a.py", "print(old1)\n") == f"{SAYS}a.py:1:7: F821 Undefined name `old1`"
    assert await write(here, "a.py", "print(old2)\n") == f"{SAYS}a.py:1:7: F821 Undefined name `old2`"
    assert await write(here, "a.py", "print(old)\n") == f"{SAYS}a.py:1:7: F821 Undefined name `old`"
    assert await write(here, "a.py", "print(old, old)\n") == f"{SAYS}a.py:1:12: F821 Undefined name `old`"


async def test_a_file_that_parses_again_has_no_new_faults_by_that(here: DeveloperHarness):
    await write(here, "a.py", "print(old)\n")
    assert "does not parse" in await write(here, "a.py", "print(old\n")
    assert " still does not parse" in await write(here, "a.py", "print(old,\n")
    assert await write(here, "a.py", "print(old)\n") == ""


async def test_of_many_faults_some_are_told(here: DeveloperHarness):
    report = (await write(here, "a.py", "".join(f"print(x{number})\n" for number in range(30)))).splitlines()
    assert len(report) == 13
    assert report[-1] == "[... and 20 more]"
    report = Findings(None, "x", ("y" * 5000,)).describe_new(Findings())
    assert len(report) < 400


async def test_a_check_runs_once_for_what_a_file_holds(tmp_path):
    async with open_developer(tmp_path, checks={".txt": COUNTED}) as made:
        assert await write(made, "a.txt", "bad\n") == "\n[new findings of bash:]\nbad"
        assert await write(made, "a.txt", "bad\nworse\n") == "\n[new findings of bash:]\nworse"
        assert (made.root / "runs").read_text() == "ran\nran\n"
        await made.shell("echo bad > a.txt; cat a.txt")
        await write(made, "a.txt", "fine\n")
        assert (made.root / "runs").read_text() == "ran\n" * 4


# --- which cost nothing


async def test_one_that_takes_long_is_given_up_for_that_file(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "TIMEOUT_S", 5)  # a quick one must end in time on a busy machine
    slow = "bash -c 'echo ran >> runs; echo fault; grep -q slow {file} && sleep 100; exit 1'"
    async with open_developer(tmp_path, checks={".txt": slow}) as made:
        assert await write(made, "a.txt", "slow") == ""
        assert await write(made, "a.txt", "quick") == ""
        assert (made.root / "runs").read_text() == "ran\n"
        assert "fault" in await write(made, "b.txt", "quick")


async def test_one_without_end_is_given_up(tmp_path):
    async with open_developer(tmp_path, checks={".txt": "yes"}) as made:
        assert await write(made, "a.txt", "x") == ""


async def test_what_is_not_there_is_told_only_to_who_asked_for_it(tmp_path, monkeypatch):
    bare = tmp_path / "bin"
    bare.mkdir()
    (bare / "bash").symlink_to(shutil.which("bash") or "")
    monkeypatch.setenv("PATH", str(bare))
    async with open_developer(tmp_path, "full", checks={".txt": "no-such-check {file}"}) as made:
        assert await write(made, "a.rb", "puts 1\n") == ""
        assert await write(made, "a.txt", "x") == ""
        assert await write(made, "b.txt", "x") == ""
        report = [text for text in made.logged if "no-such-check" in text]
    assert len(report) == 1
    assert report[0].startswith("no-such-check checks nothing: can't start the command: ")


async def test_a_check_runs_in_the_sandbox_and_asks_nobody(tmp_path):
    async with open_developer(tmp_path, checks={".txt": "touch /usr/new"}) as made:
        assert "Read-only file system" in await write(made, "a.txt", "x")
        assert made.recorder.questions == []


async def test_what_lies_outside_of_the_workspace_is_only_parsed(here: DeveloperHarness):
    path = str(here.root.parent / "a.py")
    assert await write(here, path, "print(x)\n") == ""
    assert "does not parse" in await write(here, path, "print(x\n")


async def test_what_is_huge_is_not_looked_at(here: DeveloperHarness):
    assert "does not parse" in await write(here, "a.py", "#" * (module.MAX_FILE_CHARS - 20) + "\nx = (")
    assert await write(here, "b.py", "#" * module.MAX_FILE_CHARS + "\nx = (") == ""


# --- the profile's word


@pytest.mark.parametrize(
    ("config", "parses", "runs"),
    [(False, False, False), ("parse", True, False), (True, True, True), ({".py": False}, False, False)],
)
async def test_what_a_profile_may_say(tmp_path, monkeypatch, config, parses, runs):
    monkeypatch.setenv("PATH", str(RUFF.parent), prepend=os.pathsep)
    async with open_developer(tmp_path, "full", checks=config) as made:
        assert ("does not parse" in await write(made, "a.py", "x = (\n")) == parses
        assert ("F821" in await write(made, "b.py", "print(x)\n")) == runs


async def test_a_command_of_the_profile_takes_the_place_of_ours(tmp_path):
    async with open_developer(
        tmp_path, checks={".PY": "bash -c 'grep -n x \"$0\"; exit 1' {file}", ".sh": True, ".json": "parse"}
    ) as made:
        assert (await write(made, "a b.py", "x = 1\n")).endswith(":]\n1:x = 1")
        assert "does not parse" in await write(made, "a b.py", "x = (\n")
    assert choose_linters({".PY": "mypy '{file} x'"})[".py"].command == ("mypy", "{file} x")
    assert choose_linters({".PY": "mypy"})[".py"].parse


@pytest.mark.parametrize(
    ("config", "words", "place"),
    [
        ("quick", "`checks` is false, parse, or maps", ("config", "checks")),
        ([".py"], "`checks` is false, parse, or maps", ("config", "checks")),
        ({"py": "mypy"}, "suffixes such as .py, not 'py'", ("config", "checks", "py")),
        ({1: False}, "suffixes such as .py, not 1", ("config", "checks", "1")),
        ({".py": 3}, "a check of .py is a command", ("config", "checks", ".py")),
        ({".py": " "}, "a check of .py is a command", ("config", "checks", ".py")),
        ({".py": "mypy '{file}"}, "a check of .py is a command", ("config", "checks", ".py")),
        ({".rs": True}, "a check of .rs is a command", ("config", "checks", ".rs")),
        ({".js": "parse"}, "a check of .js is a command", ("config", "checks", ".js")),
    ],
)
async def test_what_a_profile_may_not_say(config, words, place):
    with pytest.raises(ProfileError, match=words) as raised:
        choose_linters(config)
    assert raised.value.path == place
