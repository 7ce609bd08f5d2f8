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
    for name in ("src", ".pytest_cache", ".goose-like", "__pycache__", "page_cache"):
        (here.root / name).mkdir()
    facts = await ProjectFacts(here.workspace).collect({})
    assert facts["folder"].startswith(f"{here.root} on Linux ")
    assert facts["top level"] == ".gooseignore, .venv/, page_cache/, pyproject.toml, src/"
    assert facts["Python"] == ".venv/bin/python, 3.12.4"
    assert facts["tests, as it seems"] == ".venv/bin/python -m pytest"
    assert not {"git", "last commits"} & facts.keys()


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
    assert (await ProjectFacts(here.workspace).collect({})).get("tests, as it seems") == command


async def test_file_tools_take_the_names_of_the_facts(here: DeveloperHarness):
    git(here.root, "init", "-q")
    name = os.fsdecode(b"caf\xe9.txt")
    (here.root / name).write_text("inside\n")
    facts = await ProjectFacts(here.workspace).collect({})
    assert (facts["top level"], facts["git"]) == ("caf\ufffd.txt", "1 untracked (caf\ufffd.txt)")
    assert "inside" in await here.call_ok("read_file", path=facts["top level"])


async def test_facts_are_short(here: DeveloperHarness):
    for number in range(200):
        (here.root / f"file-{number:03}.txt").touch()
    first = await here.toolkit.context_updates()
    assert first["top level"].endswith("file-029.txt, and 170 more")
    assert sum(len(name) + len(value) for name, value in first.items()) < 1_500


async def test_facts_are_collected_anew_when_they_are_told_again(here: DeveloperHarness):
    facts = ProjectFacts(here.workspace)
    first = await facts.collect({})
    (here.root / "new").touch()
    told = {f"developer.{name}": value for name, value in first.items()}
    assert await facts.collect(told) == first
    assert (await facts.collect({}))["top level"] == "new"


async def test_facts_are_news_that_a_profile_turns_off(tmp_path):
    async with open_developer(tmp_path, news=False) as made:
        assert await made.toolkit.context_updates() == {"checks": ""}


async def test_git_is_told_as_git_sees_it(here: DeveloperHarness):
    async def read() -> tuple[str | None, str | None]:
        facts = await ProjectFacts(here.workspace).collect({})
        return facts.get("git"), facts.get("last commits")

    git(here.root, "init", "-q")
    assert await read() == ("nothing changed", None)
    for name in ("a", "b", "c", "gone", "hidden"):
        (here.root / name).write_text(f"{name}\n")
    assert await read() == ("5 untracked (a, b, c, gone, hidden)", None)
    git(here.root, "add", ".")
    assert await read() == ("5 staged (a, b, c, gone, hidden)", None)
    for subject in ("one", "two", "three", f"four{'r' * 80}"):
        git(here.root, "commit", "-q", "--allow-empty", "-m", subject)
    assert await read() == ("nothing changed", f"four{'r' * 68}...; three; two")
    (here.root / "a").write_text("staged\n")
    git(here.root, "add", "a")
    (here.root / "b").write_text("changed\n")
    (here.root / "gone").unlink()
    (here.root / "new").mkdir()
    (here.root / "new/file").touch()
    for cache in ("__pycache__", ".pytest_cache", ".goose-like/worktrees"):
        (here.root / cache).mkdir(parents=True)
        (here.root / cache / "x").touch()
    assert (await read())[0] == "1 staged, 2 changed, 1 untracked (a, b, gone, new/)"
    (here.root / ".gooseignore").write_text("hidden\n.gooseignore\n")
    (here.root / "hidden").write_text("secret\n")
    async with Workspace(here.root, mode="workspace", approval="auto", notifier=here.recorder) as workspace:
        facts = await ProjectFacts(workspace).collect({})
    assert facts["git"] == "1 staged, 2 changed, 1 untracked (a, b, gone, new/)"


async def test_a_conflict_and_a_worktree(here: DeveloperHarness):
    git(here.root, "init", "-q", "-b", "main")
    (here.root / "a").write_text("one\n")
    git(here.root, "add", ".")
    git(here.root, "commit", "-qm", "first")
    git(here.root, "checkout", "-qb", "other")
    (here.root / "a").write_text("two\n")
    git(here.root, "commit", "-qam", "second")
    git(here.root, "checkout", "-q", "main")
    (here.root / "a").write_text("three\n")
    git(here.root, "commit", "-qam", "third")
    git(here.root, "worktree", "add", "-q", "--detach", "sub", "other")
    (here.root / "sub/b").touch()
    with pytest.raises(subprocess.CalledProcessError):
        git(here.root, "merge", "-q", "other")
    assert (await ProjectFacts(here.workspace).collect({}))["git"] == "1 in conflict, 1 untracked (a, sub/)"
    async with Workspace(here.root / "sub", mode="workspace", approval="auto", notifier=here.recorder) as workspace:
        facts = await ProjectFacts(workspace).collect({})
        assert (facts["git"], facts["last commits"]) == ("1 untracked (b)", "second; first")
        assert facts["top level"] == "a, b"
        assert workspace.branch == f"detached at {git(here.root, 'rev-parse', 'other')[:8]}"


async def test_git_runs_nothing_of_the_repository(here: DeveloperHarness, tmp_path: Path):
    """Settings and hooks of a repository must not run outside the sandbox, nor lead git elsewhere."""
    git(here.root, "init", "-q")
    (here.root / "a").write_text("one\n")
    (here.root / ".gitattributes").write_text("* filter=evil diff=evil\n")
    git(here.root, "add", ".")
    git(here.root, "commit", "-qm", "first")
    evil = tmp_path / "evil"
    evil.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    evil.chmod(0o755)
    keys = "core.fsmonitor filter.evil.clean filter.evil.process diff.evil.textconv diff.evil.command diff.external "
    for key in f"{keys} core.pager pager.log gpg.program core.sshCommand".split():
        git(here.root, "config", key, str(evil))
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/private").touch()
    git(here.root, "config", "log.showSignature", "true")
    git(here.root, "config", "core.worktree", str(tmp_path / "elsewhere"))
    (here.root / ".git/hooks/post-index-change").write_text(evil.read_text())
    (here.root / ".git/hooks/post-index-change").chmod(0o755)
    (here.root / "a").write_text("two\n")
    facts = await ProjectFacts(here.workspace).collect({})
    assert facts["git"] == "1 changed (a)"
    assert not (tmp_path / "ran").exists()


async def test_git_fetches_nothing(here: DeveloperHarness, tmp_path: Path):
    """A partial clone asks its server for missing objects, and its settings say how."""
    git(here.root, "init", "-q")
    (here.root / "a").write_text("one\n")
    git(here.root, "add", ".")
    git(here.root, "commit", "-qm", "first")
    name = git(here.root, "rev-parse", "HEAD").strip()
    (here.root / f".git/objects/{name[:2]}/{name[2:]}").unlink()
    evil = tmp_path / "evil"
    evil.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    evil.chmod(0o755)
    settings = {
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
        "remote.origin.url": f"ext::{evil}",
        "protocol.allow": "always",
        "protocol.ext.allow": "always",
    }
    for key, value in settings.items():
        git(here.root, "config", key, value)
    await ProjectFacts(here.workspace).collect({})
    assert not (tmp_path / "ran").exists()
    with pytest.raises(subprocess.CalledProcessError):
        git(here.root, "log")
    assert (tmp_path / "ran").exists()


async def test_changed_files_are_those_that_git_names(here: DeveloperHarness):
    git(here.root, "init", "-q")
    assert list_changed_files(here.workspace) == []
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
