"""Claims that a check succeeded: which sentences are claims, and which commands they can rest on."""

from pathlib import Path

import pytest

from goose_like.agent.claims import find_check, find_claims, find_doubt
from goose_like.core.events import CommandFinished

ROOT = Path("/w")


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("All tests pass.", ["tests"]),
        ("I fixed it. All 12 tests pass now.", ["tests"]),
        ("The existing tests still pass and ruff is clean.", ["tests", "lint"]),
        ("Done: `pytest -q` passes.", ["tests"]),
        ("**Tests:** the whole test suite is green.", ["tests"]),
        ("The change passes all unit tests.", ["tests"]),
        ("12 passed in 0.3 s.", ["tests"]),
        ("mypy passes with no errors, and the build succeeds.", ["types", "build"]),
        ("It compiles without errors.", ["build"]),
    ],
)
def test_claims(text, kinds):
    assert find_claims(text) == kinds


@pytest.mark.parametrize(
    "text",
    [
        "I did not run the tests, so I can't say whether they pass.",
        "The tests should pass now.",
        "Run `pytest` to make sure that all tests pass.",
        "Do all tests pass?",
        "I wrote a test that passes None to the parser.",
        "One test fails, and 11 tests pass.",
        "Once the tests pass, merge it.",
        "> All tests pass.",
        "```\n12 passed\n```",
        "Tests passed before my change.",
        "The function passes the test value on, which the caller reads.",
        "I added a test. The value passes through the parser.",
        "No test needed a change.",
    ],
)
def test_no_claims(text):
    assert find_claims(text) == []


def command(line, code=0, pipe=(), folder="/w", after="a"):
    return CommandFinished(command=line, folder=folder, exit_code=code, pipe_codes=pipe, after=after)


@pytest.mark.parametrize(
    ("line", "code", "pipe", "outcome"),
    [
        ("pytest -q", 0, (), "passed"),
        ("pytest -q", 1, (), "failed"),
        ("cd sub && python -m pytest -q tests", 1, (), "failed"),
        ("uv run pytest && echo done", 0, (), "passed"),
        ("uv run pytest && ruff check", 1, (), "unknown"),
        ("pytest 2>&1 | tail -5", 0, (1, 0), "failed"),
        ("pytest 2>&1 | tail -5", 0, (0, 0), "passed"),
        ("pytest | grep FAILED", 1, (0, 1), "passed"),
        ("pytest; true", 0, (), "unknown"),
        ("pytest || true", 0, (), "unknown"),
        ("timeout 60 npm run test:unit", 0, (), "passed"),
        ("CI=1 make check", 2, (), "failed"),
        ("go test ./...", 0, (), "passed"),
        ("python tests/test_a.py", 0, (), "passed"),
        ("python -m unittest", 0, (), "passed"),
        ("pytest", None, (), "unknown"),
    ],
)
def test_outcomes_of_test_commands(line, code, pipe, outcome):
    check = find_check(command(line, code, pipe))
    assert check is not None
    assert (check.outcome, "tests" in check.kinds) == (outcome, True)


@pytest.mark.parametrize(
    "line",
    [
        "ls tests",
        "pytest --collect-only",
        "pytest --version",
        "cat test_a.py",
        "echo 'all tests pass'",
        "git add tests",
        "x 'y",
    ],
)
def test_other_commands_are_no_checks(line):
    assert find_check(command(line)) is None


@pytest.mark.parametrize(
    ("entries", "doubt"),
    [
        ([], "no such check ran"),
        ([command("pytest")], ""),
        ([command("pytest", after="b")], "the check ran before the last change"),
        ([command("pytest", 1)], "`pytest` failed with exit code 1"),
        ([command("pytest", 1), command("pytest")], ""),
        ([command("pytest"), command("pytest", 1)], "`pytest` failed with exit code 1"),
        ([command("pytest", folder="/tmp/other")], "the check ran in another folder"),
        ([command("cd ../other && pytest")], "the check ran in another folder"),
        ([command("pytest /elsewhere/tests")], "the check ran in another folder"),
        ([command("pytest", folder="/w/tests")], ""),
        ([command("ruff check")], "no such check ran"),
        ([command("pytest", after="")], ""),
    ],
)
def test_doubts(entries, doubt):
    assert find_doubt("tests", entries, "a:i", [ROOT], [ROOT / "src" / "x.py"]) == doubt


def test_a_project_of_its_own_without_changes_is_another_folder(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "pyproject.toml").touch()
    entries = [command("pytest", folder=str(tmp_path / "docs"))]
    assert find_doubt("tests", entries, "a", [tmp_path], [tmp_path / "src" / "x.py"]) != ""
    assert find_doubt("tests", entries, "a", [tmp_path], [tmp_path / "docs" / "x.py"]) == ""
    assert find_doubt("tests", entries, "a", [tmp_path], []) == ""
