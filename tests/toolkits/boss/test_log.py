"""Lines of the log: they keep outcomes, however long the output is."""

import json

import pytest
from goose_like_toolkits.boss.memory.log import LogEntry

from goose_like.core.message import ToolCall, ToolResult

UNITTEST = (
    "F\n======\nFAIL: test_a (t.T.test_a)\nAssertionError: 1 != 2\n------\nRan 2 tests in 0.0s\n\nFAILED (failures=2)\n"
)
TRACEBACK = (
    'Traceback (most recent call last):\n  File "_program.py", line 9, in <module>\n    assert size(1) == 3\n'
    "           ^^^^^^^^^^^^\nAssertionError\n"
)


def write_line(output: str, *, is_error: bool = False, replacement: str | None = None, **arguments: str) -> str:
    call = ToolCall(id="c", name="shell", arguments=json.dumps(arguments or {"command": "go"}))
    result = ToolResult(call_id="c", output=output, is_error=is_error, replacement=replacement)
    return LogEntry(3, call, result, 0).line.removeprefix("- 3 · shell")


@pytest.mark.parametrize(
    ("output", "line"),
    [
        (f"{UNITTEST}[exit code 1]", " (go): FAILED (failures=2) [exit code 1]"),
        (f"{UNITTEST}calc.py\nREADME.md\n", " (go): FAILED (failures=2) … README.md"),
        (
            "..\n== 1 failed, 2 passed in 0.1s ==\n[exit code 1]\n[a hook was disabled]",
            " (go): == 1 failed, 2 passed in",
        ),
        ("test result: FAILED. 1 passed; 1 failed;\n\nerror: test failed\n", " (go): error: test failed"),
        (f"{TRACEBACK}[exit code 1]", " (go): assert size(1) == 3 · AssertionError [exit code 1]"),
        ("ValueError: no\nstdout comes last\n[exit code 1]", " (go): ValueError: no … stdout comes last [exit code 1]"),
        ("class A:\n  def f(self):\n    x = 1\n    return DateRange(\n", " (go): 4 lines, the last: return DateRange("),
        ("a\nb\n", " (go): b"),
        ("", " (go): no output"),
        ("[exit code 3]", " (go): [exit code 3]"),
        (f"{'x' * 900}\n[exit code 1]", "… [exit code 1]"),
    ],
)
def test_line_keeps_the_outcome(output, line):
    written = write_line(output)
    assert line in written
    assert len(written) <= 200


def test_report_is_longer_than_other_lines():
    assert write_line("x", replacement=f"found {'y' * 400} z").endswith(" z")
    assert len(write_line("x", replacement="y" * 900)) < 620


def test_first_telling_line_of_code_is_shown():
    assert write_line("1", code="# a script\nimport math\nfrom a import b\n\nprint(math.pi)") == " (print(math.pi)): 1"
    assert write_line("1", code="import math") == " (import math): 1"
