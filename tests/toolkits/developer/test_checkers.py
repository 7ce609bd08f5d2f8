"""Checkers of the project: only new findings, at once or with a later step."""

import os
import stat
from importlib.metadata import files as installed
from pathlib import Path

import pytest
from goose_like_toolkits.developer import checkers as module

from tests.toolkits.developer.developer_harness import DeveloperHarness, open_developer

MYPY = next(Path(str(file.locate())).resolve() for file in installed("mypy") or () if file.name == "mypy")


@pytest.fixture
async def here(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "BEFORE_S", 60.0)
    monkeypatch.setattr(module, "AFTER_S", 60.0)
    monkeypatch.setenv("PATH", str(MYPY.parent), prepend=os.pathsep)
    async with open_developer(tmp_path, "full") as made:
        yield made


async def write(made: DeveloperHarness, path: str, content: str) -> str:
    """Write a file, and return the answer below the line with the size of the change."""
    return (await made.call_ok("write_file", path=path, content=content)).partition(" lines)")[2]


def put(made: DeveloperHarness, path: str, text: str) -> Path:
    file = made.root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def stand_in(made: DeveloperHarness, path: str, output: str, *, sleeps_s: float = 0) -> None:
    """Write a program that prints what is in the file `output`, and fails if that is something."""
    put(made, "output", output)
    file = put(made, path, f"#!/bin/sh\nsleep {sleeps_s}\ncat '{made.root}/output'\ntest ! -s '{made.root}/output'\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)


async def test_mypy_reports_what_a_change_breaks_and_nothing_older(here: DeveloperHarness):
    put(here, "pyproject.toml", "[tool.mypy]\nstrict = true\n")
    put(here, "a.py", "def f() -> int:\n    return ''\n")
    old = 'a.py:2: error: Incompatible return value type (got "str", expected "int")  [return-value]'
    await here.call_ok("read_file", path="a.py")
    assert await write(here, "a.py", "x: int = 1\n\n\ndef f() -> int:\n    return ''\n") == ""
    report = await write(here, "a.py", "x: int = 'a'\n\n\ndef f() -> int:\n    return ''\n")
    assert report.startswith("\n[new findings of mypy:]\na.py:1: error: Incompatible types in assignment")
    assert old[10:] not in report
    report = await write(here, "b.py", "from a import f\n\nf().nothing\n")
    assert report == '\n[new findings of mypy:]\nb.py:3: error: "int" has no attribute "nothing"  [attr-defined]'


async def test_ruff_with_the_rules_of_the_project_and_mypy_report_together(here: DeveloperHarness):
    put(here, "pyproject.toml", "[tool.mypy]\n[tool.ruff]\nlint.select = ['F401']\n")
    put(here, "a.py", "x: int = 1\n")
    await here.call_ok("read_file", path="a.py")
    report = await write(here, "a.py", "import os\n\nx: int = ''\n")
    assert "[new findings of ruff:]\na.py:1:8: F401" in report
    assert "[new findings of mypy:]\na.py:3: error:" in report


async def test_without_a_setting_nothing_runs(here: DeveloperHarness):
    put(here, "pyproject.toml", "[project]\nname = 'mypy'\n")
    assert await write(here, "a.py", "x: int = ''\n") == ""


ESLINT = (
    '[{{"filePath":"{root}/src/a.js","messages":[{{"ruleId":"no-unused-vars","severity":2,'
    '"message":"\'a\' is assigned a value but never used.","line":1,"column":5,"nodeType":"Identifier",'
    '"messageId":"unusedVar","endLine":1,"endColumn":6}}],"suppressedMessages":[],"errorCount":1,"fatalErrorCount":0,'
    '"warningCount":0,"fixableErrorCount":0,"fixableWarningCount":0,"source":"let a = 1\\n","usedDeprecatedRules":[]}}]'
)
OUTPUTS = {
    "eslint": (
        ("src/a.js", "eslint.config.js", "node_modules/.bin/eslint"),
        ESLINT,
        "src/a.js:1:5: 'a' is assigned a value but never used. (no-unused-vars)",
    ),
    "tsc": (
        ("src/a.ts", "tsconfig.json", "node_modules/.bin/tsc"),
        "src/a.ts(1,7): error TS2322: Type 'string' is not assignable to type 'number'.\n",
        "src/a.ts(1,7): error TS2322: Type 'string' is not assignable to type 'number'.",
    ),
    "go": (
        ("m/a.go", "go.mod", "../bin/go"),
        '# example.org/x/m\nm/a.go:6:2: fmt.Printf format %d has arg "x" of wrong type string\n',
        'm/a.go:6:2: fmt.Printf format %d has arg "x" of wrong type string',
    ),
    "cargo": (
        ("src/main.rs", "Cargo.toml", "../bin/cargo"),
        "src/main.rs:2:13: error[E0425]: cannot find value `x` in this scope\nerror: could not compile `demo`\n",
        "src/main.rs:2:13: error[E0425]: cannot find value `x` in this scope",
    ),
    "pyright": (
        ("a.py", "pyrightconfig.json", ".venv/bin/pyright"),
        '{root}/a.py\n  {root}/a.py:1:10 - error: Type "str" is not assignable to declared type "int"\n'
        "1 error, 0 warnings, 0 informations \n",
        'a.py:1:10 - error: Type "str" is not assignable to declared type "int"',
    ),
}


@pytest.mark.parametrize("name", OUTPUTS)
async def test_the_output_of_each_checker_is_read(here: DeveloperHarness, monkeypatch, name):
    (source, mark, program), output, finding = OUTPUTS[name]
    monkeypatch.setenv("PATH", str(here.root.parent / "bin"), prepend=os.pathsep)
    put(here, mark, "")
    stand_in(here, program, "")
    put(here, source, "")
    await here.call_ok("read_file", path=source)
    assert await write(here, source, "\n") == ""
    put(here, "output", output.replace("{root}", str(here.root)).replace("{{", "{").replace("}}", "}"))
    assert await write(here, source, "\n\n") == f"\n[new findings of {name}:]\n{finding}"
    assert await write(here, source, "\n\n\n") == "", "reported once"
    put(here, "output", "")
    assert await write(here, source, "\n") == ""
    put(here, "output", "a setting is wrong\n")
    assert await write(here, source, "\n\n") == "", "a checker that fails finds nothing"


async def test_slow_findings_come_with_a_later_step_or_before_the_end(here: DeveloperHarness, monkeypatch):
    put(here, "tsconfig.json", "")
    stand_in(here, "node_modules/.bin/tsc", "")
    assert await write(here, "a.ts", "\n") == ""
    monkeypatch.setattr(module, "AFTER_S", 0.01)
    stand_in(here, "node_modules/.bin/tsc", "a.ts(1,1): error TS1: no\n", sleeps_s=0.5)
    assert await write(here, "a.ts", "\n\n") == ""
    assert (await here.toolkit.context_updates())["checks"] == ""
    reason = await here.toolkit.before_finish()
    assert reason is not None
    assert reason.startswith("[new findings of tsc:]\na.ts(1,1): error TS1: no\nFix that, or say why it stays.")
    put(here, "output", "a.ts(1,1): error TS2: no\n")
    assert await write(here, "a.ts", "\n") == ""
    await module._wait(here.toolkit._checkers._checks.values(), 60)
    assert (await here.toolkit.context_updates())["checks"] == "[new findings of tsc:]\na.ts(1,1): error TS2: no"
    assert await here.toolkit.before_finish() is None


@pytest.mark.parametrize("checks", [False, "parse", {"mypy": False}])
async def test_checkers_can_be_turned_off(tmp_path, checks):
    async with open_developer(tmp_path, "full", checks=checks) as made:
        put(made, "mypy.ini", "")
        stand_in(made, ".venv/bin/mypy", "a.py:1: error: no\n")
        assert await write(made, "a.py", "\n") == ""
