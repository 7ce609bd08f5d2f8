"""The facts about a project that the model reads first: true, short, cheap, and silent about ignored files."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from goose_like_toolkits.developer.git_index import list_changed_files
from goose_like_toolkits.developer.project_facts import ProjectFacts

from goose_like.workspace.workspace import Workspace
from tests.toolkits.developer.developer_harness import DeveloperHarness, open_developer


@pytest.fixture
async def here(tmp_path):
    async with open_developer(tmp_path) as made:
        yield made


def git(root: Path, *words: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    return subprocess.run(["git", *identity, *words], cwd=root, capture_output=True, text=True, check=True).stdout


async def test_facts_of_a_python_project(here: DeveloperHarness):
    (here.root / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    (here.root / ".gooseignore").write_text("private.txt\n")
    (here.root / "private.txt").write_text("x")
    (here.root / ".venv").mkdir()
    (here.root / ".venv/pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.12.4\n")
    (here.root / "src").mkdir()
    facts = ProjectFacts(here.workspace).collect()
    assert facts["folder"].startswith(f"{here.root} on Linux ")
    assert facts["top level"] == ".gooseignore, .venv/, pyproject.toml, src/"
    assert facts["Python"] == ".venv/bin/python, 3.12.4"
    assert facts["tests, as it seems"] == ".venv/bin/python -m pytest"
    assert "unstaged changes" not in facts


@pytest.mark.parametrize(
    ("files", "command"),
    [
        ({"Makefile": "all:\ntest: all\n", "go.mod": ""}, "make test"),
        ({"package.json": '{"scripts": {"test": "jest"}}'}, "npm test"),
        ({"package.json": '{"scripts": {"test": "jest"}}', "yarn.lock": ""}, "yarn test"),
        ({"package.json": "[" * 3_000, "Cargo.toml": ""}, "cargo test"),
        ({"package.json": "[]", "go.mod": ""}, "go test ./..."),
        ({"notes.txt": ""}, None),
    ],
)
async def test_the_likely_test_command(here: DeveloperHarness, files, command):
    for name, text in files.items():
        (here.root / name).write_text(text)
    assert ProjectFacts(here.workspace).collect().get("tests, as it seems") == command


async def test_facts_are_collected_once_and_short(here: DeveloperHarness):
    for number in range(200):
        (here.root / f"file-{number:03}.txt").touch()
    first = dict(here.toolkit.context_updates())
    assert first["top level"].endswith("file-029.txt, and 170 more")
    assert sum(len(name) + len(value) for name, value in first.items()) < 1_500
    (here.root / "new").touch()
    assert here.toolkit.context_updates() == first


async def test_facts_are_news_that_a_profile_turns_off(tmp_path):
    async with open_developer(tmp_path, news=False) as made:
        assert made.toolkit.context_updates() == {}


async def test_changed_files_are_those_that_git_names(here: DeveloperHarness):
    git(here.root, "init", "-q")
    assert list_changed_files(here.workspace) is None
    names = ["same", "size", "content", "touched", "deleted", "sub/dir/é name", "ignored", "staged", "x" * 70]
    for name in names:
        (here.root / name).parent.mkdir(parents=True, exist_ok=True)
        (here.root / name).write_text(f"one {name}\n")
    (here.root / "link").symlink_to("same")
    git(here.root, "add", ".")
    git(here.root, "commit", "-qm", "first")
    assert list_changed_files(here.workspace) == []
    (here.root / "size").write_text("longer than before\n")
    (here.root / "content").write_text("two content\n")
    (here.root / "sub/dir/é name").write_text("two sub/dir/é name\n")
    (here.root / "staged").write_text("two staged\n")
    git(here.root, "add", "staged")
    (here.root / "ignored").write_text("two")
    (here.root / ".gooseignore").write_text("ignored\n")
    os.utime(here.root / "touched")
    (here.root / "deleted").unlink()
    expected = git(here.root, "-c", "core.quotePath=false", "diff", "--name-only").splitlines()
    async with Workspace(here.root, mode="workspace", approval="auto", notifier=here.recorder) as workspace:
        assert list_changed_files(workspace) == [name for name in expected if name != "ignored"]
    async with Workspace(here.root / "sub", mode="workspace", approval="auto", notifier=here.recorder) as workspace:
        assert list_changed_files(workspace) == ["dir/é name"]


@pytest.mark.parametrize(
    "index", [b"", b"DIRC", b"DIRC\0\0\0\5\0\0\0\1" + bytes(100), b"DIRC\0\0\0\2\0\0\0\5" + bytes(90), bytes(2_000_000)]
)
async def test_an_index_that_only_git_can_read_says_nothing(here: DeveloperHarness, index):
    (here.root / ".git").mkdir()
    (here.root / ".git/config").touch()
    (here.root / ".git/index").write_bytes(index)
    assert list_changed_files(here.workspace) is None


async def test_a_copied_repository_is_compared_by_content(here: DeveloperHarness, tmp_path):
    git(here.root, "init", "-q")
    for number in range(20):
        (here.root / f"{number}").write_text(f"{number}\n")
    git(here.root, "add", ".")
    shutil.copytree(here.root, tmp_path / "copy", copy_function=shutil.copyfile)
    (tmp_path / "copy/7").write_text("8\n")
    async with Workspace(tmp_path / "copy", mode="workspace", approval="auto", notifier=here.recorder) as workspace:
        assert list_changed_files(workspace) == ["7"]
