"""A day's work in the default sandbox: edit, test, install and commit ask nothing."""

import shutil
import subprocess
import zipfile

import pytest

from tests.e2e.command import Place, shell

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


@pytest.mark.parametrize("folder", ["sub", "sub/deep"])
def test_a_session_in_a_subfolder_sees_and_commits_the_whole_repository(repository, folder):
    for name in ("docs/style.md", "sub/a.txt", "sub/deep/a.txt"):
        (repository.work / name).parent.mkdir(parents=True, exist_ok=True)
        (repository.work / name).write_text("Write short lines.\n")
    (repository.work / "AGENTS.md").write_text("Read @docs/style.md first.\n")
    git(repository.work, "add", "-A")
    git(repository.work, "commit", "-qm", "more")
    place = Place(repository.home, repository.work / folder)
    command = "echo b >> a.txt; git status --short; git commit -qam wip; cat ../../docs/style.md ../docs/style.md"
    read = {"tool": "read_file", "arguments": {"path": str(repository.work / "area.py")}}
    done = place.run("run", "--model", place.script({"calls": [shell(command), read]}, "done"), "work")
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    assert "docs/style.md" in done.stderr
    assert "not imported" not in done.stderr
    outputs = [event["result"]["output"] for event in place.events() if event["type"] == "tool_finished"]
    assert "M a.txt" in outputs[0]
    assert "Write short lines." in outputs[0]
    assert " D " not in outputs[0]
    assert "side + side" in outputs[1]
    assert git(repository.work, "show", "--name-status", "--format=") == f"M\t{folder}/a.txt\n"


def test_a_folder_below_tmp_that_is_added_is_seen_by_commands_and_tools(place):
    other = place.work.parent / "other"
    other.mkdir()
    (other / "a.txt").write_text("seen")
    read = {"tool": "read_file", "arguments": {"path": str(other / "a.txt")}}
    steps = {"calls": [shell(f"cat {other}/a.txt; echo x > {other}/a.txt"), read]}
    done = place.run("run", "--add-dir", str(other), "--model", place.script(steps, "it is not writable"), "work")
    assert done.returncode == 0, done.stderr
    outputs = [event["result"]["output"] for event in place.events() if event["type"] == "tool_finished"]
    assert ["seen" in output for output in outputs] == [True, True]
    assert (other / "a.txt").read_text() == "seen"
