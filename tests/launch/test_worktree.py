"""Worktrees of sessions: what creates, keeps and removes them, in real repositories."""

import os
import subprocess
from pathlib import Path

import pytest

from goose_like.config import trust
from goose_like.config.paths import find_main_folder, find_worktree
from goose_like.config.profile import PermissionLists
from goose_like.core.errors import DeniedError, GooseLikeError, UsageError
from goose_like.core.notifier import Recorder
from goose_like.launch.worktree import create_worktree, hold_worktree, leave_worktrees
from goose_like.workspace.programs import find_program
from goose_like.workspace.workspace import Workspace
from tests.workspace.workspace_harness import GIT, create_confined, needs_sandbox, run_script


def git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", folder, *words], check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def root(tmp_path, monkeypatch) -> Path:
    folder = tmp_path / "project"
    (folder / "sub").mkdir(parents=True)
    git(folder, "init", "-qb", "main")
    (folder / "sub/a.py").write_text("one\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "Add a")
    monkeypatch.chdir(folder)
    return folder


async def leave(folder: Path, answer: str = "") -> list[str]:
    shown: list[str] = []

    async def ask(label: str) -> str:
        shown.append(label)
        return answer

    await leave_worktrees([folder], shown.append, ask)
    return shown


def test_it_has_a_branch_from_head_and_stays_out_of_sight(root):
    (root / "sub/a.py").write_text("two\n")
    folder, notes = create_worktree("one", root / "sub")
    top = root / ".goose-like/worktrees/one"
    assert folder == top / "sub"
    assert notes == [f"worktree {top} on the new branch worktree-one", f"uncommitted changes stay in {root}"]
    assert (folder / "a.py").read_text() == "one\n"
    assert git(folder, "log", "--format=%s %D") == "Add a HEAD -> worktree-one, main"
    assert git(root, "status", "--porcelain") == "M sub/a.py"
    nested, _ = create_worktree("two", folder)  # beside the first one, not within it
    assert nested == root / ".goose-like/worktrees/two/sub"
    assert find_main_folder(nested) == root / "sub"


def test_head_may_be_detached(root):
    git(root, "checkout", "-q", "--detach")
    folder, _ = create_worktree("one", root)
    assert git(folder, "branch", "--show-current") == "worktree-one"


@pytest.mark.parametrize("name", ["", "-x", "a/b", "..", "a..b", "a.lock", "a.", "a b", "ä", "x" * 65, "a\n"])
def test_a_name_that_git_may_not_take_is_refused(root, name):
    with pytest.raises(UsageError, match="is no name for a worktree"):
        create_worktree(name, root)


def test_what_is_in_the_way_is_named(root, tmp_path):
    create_worktree("one", root)
    with pytest.raises(UsageError, match="there is a worktree 'one' already; go on there: cd "):
        create_worktree("one", root)
    git(root, "branch", "worktree-two")
    with pytest.raises(UsageError, match="there is a branch 'worktree-two' already"):
        create_worktree("two", root)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="this folder is in none; make one with: git init"):
        create_worktree("one", tmp_path / "empty")
    git(tmp_path / "empty", "init", "-q")
    with pytest.raises(UsageError, match="has no commit"):
        create_worktree("one", tmp_path / "empty")


def test_nothing_is_written_through_a_link(root, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (root / ".goose-like").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(GooseLikeError, match="became a link"):
        create_worktree("one", root)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_no_hook_and_no_git_of_the_repository_runs(root, monkeypatch):
    for file in (root / ".git/hooks/post-checkout", root / "bin/git"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"#!/bin/sh\ntouch {root}/evil\n")
        file.chmod(0o755)
    monkeypatch.setenv("PATH", f"{root}/bin:{os.environ['PATH']}")
    folder, _ = create_worktree("one", root)
    assert not (root / "evil").exists()
    assert find_program("git", folder) != str(root / "bin/git")  # it is the repository's in a worktree, too


# --- the end


@pytest.mark.parametrize("part", ["smudge", "process"])
async def test_no_filter_of_the_repository_runs_and_others_do(root, tmp_path, part):
    (root / "tools").mkdir()
    (root / "tools/own.sh").write_text(f"#!/bin/sh\ntouch {tmp_path}/pwned\ncat\n")
    (root / "tools/own.sh").chmod(0o755)
    (root / ".gitattributes").write_text("*.py filter=own\n*.txt filter=other\n")
    (root / "a.txt").write_text("a\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "Add attributes")
    git(root, "config", f"filter.own.{part}", "tools/own.sh" if part == "smudge" else f"sh {root}/tools/own.sh")
    git(root, "config", "filter.own.required", "true")
    git(root, "config", "filter.other.smudge", "tr a b")
    folder, _ = create_worktree("one", root)
    assert (folder / "a.txt").read_text() == "b\n"
    (folder / "sub/a.py").write_text("two\n")
    await leave(folder, "r")
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize("value", ["tools/own.sh", "true\ntools/own.sh"])
def test_a_filter_that_no_option_can_turn_off_is_refused(root, tmp_path, value):
    (root / "tools").mkdir()
    (root / "tools/own.sh").write_text(f"#!/bin/sh\ntouch {tmp_path}/pwned\ncat\n")
    (root / "tools/own.sh").chmod(0o755)
    (root / ".gitattributes").write_text("*.py filter=a=b\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "Add attributes")
    git(root, "config", "filter.a=b.smudge", value)
    with pytest.raises(UsageError, match=r"'filter\.a=b' runs a script of this repository"):
        create_worktree("one", root)
    git(root, "config", "--unset", "filter.a=b.smudge")
    git(root, "config", "filter.plain.smudge", value)
    (root / ".gitattributes").write_text("*.py filter=plain\n")
    git(root, "commit", "-qam", "Use another filter")
    create_worktree("one", root)
    assert not (tmp_path / "pwned").exists()


async def test_one_without_changes_is_removed_with_its_branch(root):
    folder, _ = create_worktree("one", root)
    assert await leave(folder) == ["removed worktree one, which had no changes"]
    assert (find_worktree(folder), folder.exists()) == (folder, False)
    assert git(root, "branch", "--format=%(refname:short)") == "main"
    assert await leave(folder) == []


@pytest.mark.parametrize(("answer", "is_kept"), [("", True), ("k\n", True), ("x\n", True), ("r\n", False)])
async def test_one_with_work_is_asked_about(root, answer, is_kept):
    folder, _ = create_worktree("one", root)
    (folder / "new").write_text("x")
    (folder / "sub/a.py").write_text("two\n")
    git(folder, "commit", "-qam", "Change a")
    shown = await leave(folder, answer)
    assert shown[0] == "worktree one has 1 commit and 1 changed file"
    assert folder.exists() == is_kept
    assert ("worktree-one" in git(root, "branch")) == is_kept
    removal = "git worktree remove --force .goose-like/worktrees/one; git branch -D worktree-one"
    assert shown[2] == (f"kept {folder}; to remove it, in {root}: {removal}" if is_kept else "removed worktree one")


async def test_commits_that_an_ordinary_branch_has_are_not_lost(root):
    folder, _ = create_worktree("one", root)
    git(folder, "commit", "-q", "--allow-empty", "-m", "More")
    create_worktree("two", folder)
    assert (await leave(folder))[0] == "worktree one has 1 commit"
    git(root, "merge", "-q", "worktree-one")
    assert await leave(folder) == ["removed worktree one, which had no changes"]


async def test_what_a_delegate_left_in_it_is_not_lost(root):
    folder, _ = create_worktree("one", root)
    (folder / ".goose-like/worktrees/delegate-1").mkdir(parents=True)
    (folder / ".goose-like/worktrees/.gitignore").write_text("*\n")
    assert (await leave(folder))[0] == "worktree one has 1 unmerged delegate"


async def test_one_in_use_or_without_git_stays(root):
    folder, _ = create_worktree("one", root)
    with hold_worktree(folder):
        assert await leave(folder) == []
    (folder / ".git").write_text("gitdir: /nowhere\n")
    (shown,) = await leave(folder)
    assert shown.startswith(f"kept {folder}: git rev-list: ")


# --- safety


@needs_sandbox
async def test_a_commit_works_in_the_sandbox_and_hooks_stay_protected(root):
    folder, _ = create_worktree("one", root)
    workspace, recorder = create_confined(folder)
    async with workspace:
        code, output = await run_script(workspace, f"echo x > f && git add f && {GIT} commit -qm more && git status")
        assert (code, "working tree clean" in output) == (0, True), output
        assert await workspace.inspect_changes(None) == []
        assert workspace.branch == "worktree-one"
        for line in (
            "echo evil > $(git rev-parse --git-common-dir)/hooks/pre-commit",
            "git config core.fsmonitor evil",
            "echo gitdir: /tmp/evil > .git",
            "echo /tmp/evil > $(git rev-parse --git-dir)/commondir",
            "echo evil > ../../../sub/a.py",
        ):
            await run_script(workspace, line)
        assert "setting core.fsmonitor" in str(await workspace.inspect_changes(None))
    assert git(folder, "log", "-1", "--format=%s") == "more"
    assert [file.name for file in (root / ".git/hooks").iterdir() if not file.name.endswith(".sample")] == []
    assert "evil" not in (root / ".git/config").read_text() + (root / "sub/a.py").read_text()
    assert (folder / ".git").read_text() == f"gitdir: {root}/.git/worktrees/one\n"
    assert [question.kind for question in recorder.questions] == ["repository"]


@needs_sandbox
async def test_one_that_appears_in_another_session_is_no_change_to_ask_about(root):
    workspace, recorder = create_confined(root)
    async with workspace:
        await run_script(workspace, "true")
        folder, _ = create_worktree("one", root)
        await run_script(workspace, "git status")
        assert await workspace.inspect_changes(None) == []
        await leave(folder)
        assert await workspace.inspect_changes(None) == []
    assert recorder.questions == []


@needs_sandbox
@pytest.mark.parametrize("is_tracked", [False, True])
async def test_it_hides_what_the_main_folder_hides(root, is_tracked):
    (root / ".gooseignore").write_text(".*\nsub/a.py\n")
    if is_tracked:
        git(root, "add", "-f", ".gooseignore")
        git(root, "commit", "-qm", "Hide")
    (root / ".env").write_text("secret")
    folder, _ = create_worktree("one", root)
    (folder / ".env").write_text("secret")
    (folder / "shown").write_text("shown")
    workspace, _ = create_confined(folder)
    async with workspace:
        for name in (".env", "sub/a.py"):
            assert await run_script(workspace, f"cat {root}/{name} {name} 2> /dev/null") == (1, "")
            for path in (root / name, folder / name):
                with pytest.raises(DeniedError):
                    workspace.read_bytes(path)
        assert await run_script(workspace, "cat shown") == (0, "shown")
        assert workspace.read_bytes("shown") == b"shown"


def test_it_has_the_permissions_of_its_main_folder(root):
    (root / ".goose-like").mkdir()
    (root / ".goose-like/profiles.yaml").write_text("mine: {}\n")
    git(root, "add", "--all")
    git(root, "commit", "-qm", "Add a profile")
    folder, _ = create_worktree("one", root)
    project = trust.read_project_config(root)
    trust.trust_project(project)
    with trust._edit_folder(root) as fields:
        fields["permissions"] = PermissionLists(deny=("git push",))
    assert trust.load_trusted_project(folder).root == folder
    workspace = Workspace(folder, mode="workspace", approval="auto", notifier=Recorder())
    assert workspace._permissions.judge("command", "git push", "git push")[0] == "deny"
    trust.store_approval(folder, trust.StoredApproval(kind="network", subject="make"))
    assert list(trust.load_trust()) == [root]
    (folder / ".goose-like/profiles.yaml").write_text("mine: {extends: local}\n")
    assert trust.load_trusted_project(folder) is None
