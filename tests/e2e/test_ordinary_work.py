"""A day's work in the default sandbox: edit, test, install and commit ask nothing."""

import shutil
import subprocess
import zipfile

import pytest

from tests.e2e.command import shell

TEST = "from area import square\n\n\ndef test_square():\n    assert square(3) == 9\n"
IDENTITY = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")


def git(folder, *words):
    return subprocess.run(["git", *IDENTITY, *words], cwd=folder, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def repository(place):
    """A repository with a failing test, a package for npm and a wheel that needs no network."""
    git(place.work, "init", "-q", "-b", "main")
    git(place.work, "config", "user.name", "Ada")
    git(place.work, "config", "user.email", "ada@example.org")
    (place.work / "area.py").write_text("def square(side):\n    return side + side\n")
    (place.work / "test_area.py").write_text(TEST)
    (place.work / "package.json").write_text(
        '{"name": "area", "scripts": {"test": "node -e \'console.log(3 * 3)\'"}}\n'
    )
    (place.work / ".gitignore").write_text(".venv/\n__pycache__/\n.pytest_cache/\n*.whl\n")
    with zipfile.ZipFile(place.work / "tiny-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny.py", "answer = 42\n")
        wheel.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        wheel.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("tiny-1.0.dist-info/RECORD", "")
    git(place.work, "add", "-A")
    git(place.work, "commit", "-qm", "start")
    return place


def test_editing_testing_installing_and_committing_ask_nothing(repository):
    commands = {
        "python -m pytest -q": "1 failed",
        "sed -i 's/side + side/side * side/' area.py && python -m pytest -q": "1 passed",
        "python -m venv .venv && .venv/bin/pip install -q --no-index ./tiny-1.0-py3-none-any.whl": "",
        ".venv/bin/python -c 'import tiny; print(tiny.answer)'": "42",
        "git switch -qc fix && git add -A && git commit -qm 'fix: sides' && git rev-list --count HEAD": "2",
        "git stash list; git switch -q main && git merge -q fix && git branch -d fix && git status --short": "Deleted",
        "git worktree add -q ../work-two 2>&1 || git worktree add -q /tmp/two && git worktree list | wc -l": "2",
    }
    if shutil.which("npm"):
        commands["npm test"] = "9"
    steps = [{"calls": [shell(command)]} for command in commands]
    done = repository.run("run", "--model", repository.script(*steps, "done"), "work")
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    results = [event["result"] for event in repository.events() if event["type"] == "tool_finished"]
    outputs = {command: result["output"] for command, result in zip(commands, results, strict=True)}
    assert {command: text for command, text in outputs.items() if commands[command] not in text} == {}
    assert not any("not allowed" in text for text in outputs.values())
    assert not any(event["type"] == "asked" for event in repository.events())
    assert git(repository.work, "status", "--short") == ""
    assert git(repository.work, "log", "-1", "--format=%s").strip() == "fix: sides"
