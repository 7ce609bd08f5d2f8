"""Tests given to `write_code`: kept beside the library, and run again with later drafts."""

import subprocess
import sys

import pytest
from goose_like_toolkits.boss.library.kept_tests import keep_tests

from goose_like.toolkit import ToolError
from tests.toolkits.boss.boss_harness import act, finish, make_spec, run_boss

MEAN = "def mean(xs):\n    return _total(xs) / len(xs)\n\n\ndef _total(xs):\n    return sum(xs)\n"
TESTS = {
    "statements": "assert mean([1, 3]) == {}",
    "functions": "def test_mean():\n    assert mean([1, 3]) == {}\n\n\ndef test_tool(fixture): ...",
    "cases": (
        "from unittest import TestCase, main\nimport unittest\n\n\nclass TestMean(TestCase):\n    def test_it(self):\n"
        "        self.assertEqual(mean([1, 3]), {})\n\n\nif __name__ == '__main__':\n    unittest.main()"
    ),
    "private": "assert _total([1]) == 1\nassert mean([1, 3]) == {}",
}


def run_file(root, *names: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, *names], cwd=root, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("tests", TESTS.values(), ids=TESTS)
async def test_tests_are_run_and_kept(root, tests):
    script = [
        act("write_code", code=MEAN, tests=tests.format(3)),
        act("write_code", code=MEAN, tests=tests.format(2)),
        act("save_code"),
        act("write_code", code=MEAN.replace("sum(xs)", "sum(xs) + 1")),
        act("write_code", code="def twice(x):\n    return 2 * x", tests="assert twice(2) == 4"),
        act("save_code"),
        finish(),
    ]
    spec = make_spec("write_code", "save_code", max_round=9)
    place, outcome = await run_boss({**spec, "memory_files": {"code_library": "lib.py"}}, script)
    assert outcome.status == "finished"
    assert [result.is_error for result in place.results] == [True, False, False, True, False, False, False]
    assert place.results[3].output.startswith("the tests fail (those of earlier drafts ran too); correct the code")
    assert "code_tests" not in place.memories[-1], "the controller does not read them"
    ran = run_file(root, "test_lib.py")
    assert ran.returncode == 0, ran.stderr
    (root / "lib.py").write_text((root / "lib.py").read_text().replace("sum(xs)", "sum(xs) + 1"))
    assert run_file(root, "test_lib.py").returncode == 1


def test_new_tests_replace_those_of_the_same_names():
    kept = keep_tests("", ["mean"], "assert mean([1]) == 1", "lib")
    kept = keep_tests(kept, ["mean", "median"], "assert median([1]) == 1", "lib")
    kept = keep_tests(kept, ["mean"], "assert mean([2]) == 2", "lib")
    assert kept.split("\n\n")[2:] == [
        "# --- mean, median\nassert median([1]) == 1",
        "# --- mean\nassert mean([2]) == 2\n",
    ]
    assert keep_tests(kept, ["mean"], " ", "lib") == kept
    with pytest.raises(ToolError, match="the test code has a syntax error in line 1"):
        keep_tests("", ["mean"], "assert (", "lib")
