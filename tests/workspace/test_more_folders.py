"""A second folder that commands and tools may change: the sandbox, path checks, undo and the audit cover it."""

import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from goose_like.config.paths import config_folder, state_folder
from goose_like.config.profile import PathChoice, WorkspaceSettings
from goose_like.core.errors import DeniedError, UsageError
from goose_like.core.events import Answer
from goose_like.core.history import History
from goose_like.core.notifier import Recorder
from goose_like.workspace.more_folders import find_more_folders, resolve_folder
from goose_like.workspace.programs import build_safe_path
from goose_like.workspace.repositories.audit_record import AcceptedState, AuditRecords
from goose_like.workspace.undo.undo import Undo
from goose_like.workspace.workspace import Workspace
from tests.evasion.__main__ import choose_folder
from tests.workspace.undo.undo_harness import UndoHarness, create_repository, read_tree, run_git
from tests.workspace.workspace_harness import needs_sandbox, run_script


@pytest.fixture
def place():
    """A folder outside /tmp with the workspace `app` and the second folder `lib`, two repositories."""
    choose_folder().mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=choose_folder()) as name:
        folder = Path(name).resolve()
        for each in ("app", "lib", "other"):
            create_repository(folder / each)
        yield folder


def open_workspace(place: Path, *words: str, **options: object) -> tuple[Workspace, Recorder]:
    recorder = Recorder(options.pop("answer", Answer()))
    paths = options.pop("paths", PathChoice(hide=("*.pem",)))
    settings = WorkspaceSettings(folders=words or ("../lib:rw",), paths=paths)
    how = {"mode": "workspace", "approval": "auto", "notifier": recorder, "settings": settings} | options
    return Workspace(place / "app", **how), recorder


def test_words_name_folders(place, home):
    root = place / "app"
    (place / "link").symlink_to(place / "lib")
    (root / "sub").mkdir(exist_ok=True)
    words = ("../lib:rw", "../link:rw", "sub:rw", ".:rw", "../lib/sub:rw", "../other", "../no")
    found = find_more_folders(root, WorkspaceSettings(folders=words))
    assert found.writable == (place / "lib",)
    assert found.readable == (place / "other",)
    assert found.problems == ("left out: ../no: there is no such folder",)
    worktree = root / ".goose-like/worktrees/one"
    worktree.mkdir(parents=True)
    settings = WorkspaceSettings(folders=("../lib:rw",))
    assert find_more_folders(worktree, settings).writable == (place / "lib",)
    settings = WorkspaceSettings(folders=("../lib/sub:rw",), paths=PathChoice(deny_write=("../lib",)))
    assert find_more_folders(root, settings).problems == ("left out: ../lib/sub:rw: `deny_write` protects it",)


@needs_sandbox
async def test_denied_paths_hold_there(place, home):
    workspace, _ = open_workspace(place, paths=PathChoice(deny_write=("../lib/sub", "../lib/missing")))
    async with workspace:
        await workspace.prepare_sandbox()
        for name in ("sub/x", "missing/x"):
            assert (await run_script(workspace, f"mkdir -p $(dirname ../lib/{name}); echo x > ../lib/{name}"))[0] != 0
            with pytest.raises(DeniedError):
                await workspace.write_bytes(place / "lib" / name, b"x")
    assert not (place / "lib/missing").exists()


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("secret", "it holds secrets"),
        ("lib/.git/hooks", "git runs what is in it"),
        ("config", "goose-like or your shell runs what is in it"),
        ("python", "goose-like or your shell runs what is in it"),
        ("link-to-secret", "it holds secrets"),
    ],
)
def test_a_folder_with_a_rule_of_its_own_is_refused(place, home, name, reason):
    folders = {
        "secret": state_folder() / "x",
        "config": config_folder() / "commands",
        "python": Path(sys.prefix) / "bin",
    }
    folder = folders.get(name, place / name)
    if name == "link-to-secret":
        (state_folder() / "x").mkdir(parents=True)
        folder.symlink_to(state_folder() / "x")
    folder.mkdir(parents=True, exist_ok=True)
    with pytest.raises(UsageError, match=reason):
        resolve_folder(f"{folder}:rw", place)


@needs_sandbox
async def test_commands_and_tools_change_it_like_the_workspace(place, home):
    (place / "lib/key.pem").write_text("secret")
    (place / "lib/hidden").write_text("secret")
    (place / "lib/.gooseignore").write_text("hidden\n")
    workspace, _ = open_workspace(place)
    async with workspace:
        assert f"You may also write in {place}/lib." in workspace.rules_text
        code, output = await run_script(workspace, "cd ../lib && echo x > new && cat key.pem hidden; touch ../other/x")
        assert code != 0
        assert "secret" not in output
        assert (place / "lib/new").read_text() == "x\n"
        assert not (place / "other/x").exists()
        await workspace.write_bytes(place / "lib/tool", b"x")
        for name in (".git/hooks/x", ".gooseignore", "hidden"):
            with pytest.raises(DeniedError):
                await workspace.write_bytes(place / "lib" / name, b"x")
        with pytest.raises(DeniedError):
            await workspace.write_bytes(place / "lib/.envrc", b"x")  # nobody allows a start file
        await run_script(workspace, "cd ../lib && git config core.fsmonitor ./x && echo x > .git/hooks/pre-commit")
        [note] = await workspace.inspect_changes()
        assert f"setting core.fsmonitor, hook pre-commit in {place}/lib/.git" in note
        assert "fsmonitor" not in (place / "lib/.git/config").read_text()
        assert not (place / "lib/.git/hooks/pre-commit").exists()


@needs_sandbox
@pytest.mark.parametrize(("mode", "approval"), [("read-only", "auto"), ("workspace", "plan")])
async def test_modes_that_only_read_change_nothing_there(place, home, mode, approval):
    workspace, _ = open_workspace(place, mode=mode, approval=approval)
    async with workspace:
        code, _ = await run_script(workspace, "echo x > ../lib/new")
        assert code != 0
        with pytest.raises(DeniedError):
            await workspace.write_bytes(place / "lib/new", b"x")
        assert "also write in" not in workspace.rules_text


@needs_sandbox
async def test_a_subagent_in_a_worktree_only_reads_it(place, home):
    workspace, recorder = open_workspace(place)
    worktree = place / "app/.goose-like/worktrees/one"
    worktree.mkdir(parents=True)
    how = {"mode": "workspace", "approval": "auto", "notifier": recorder, "parent": workspace}
    async with workspace, Workspace(place / "app", **how) as same, Workspace(worktree, **how) as apart:
        assert (await run_script(same, "echo x > ../lib/new"))[0] == 0
        code, output = await run_script(apart, f"cat {place}/lib/new && echo x > {place}/lib/newer")
        assert (code, output.splitlines()[0]) == (1, "x")
        assert apart.folders == (worktree,)


def test_no_program_of_ours_comes_from_it(place, home, monkeypatch):
    monkeypatch.setenv("PATH", f"{place}/lib/bin:{place}/app/bin:/usr/bin")
    assert build_safe_path(place / "app", place / "lib") == "/usr/bin"


def test_the_record_of_a_killed_session_counts_in_both_folders(place, home):
    records = AuditRecords([place / "app", place / "lib"])
    records.write(AcceptedState(closed=["/closed"]))
    records.close(is_kept=True)
    assert AuditRecords([place / "lib"]).former == AcceptedState(closed=["/closed"])
    assert AuditRecords([place / "other"]).former is None


async def test_undo_restores_both_folders(place, home, tmp_path):
    workspace, recorder = open_workspace(place, mode="full")
    history = History()
    before = [read_tree(place / name) for name in ("app", "lib")]
    heads = [run_git(place / name, "rev-parse", "HEAD") for name in ("app", "lib")]
    async with workspace:
        undo = Undo(tmp_path / "undo", workspace.folders, history, workspace.run_internal, recorder, workspace.ask_loss)
        workspace.add_change_listener(undo.on_change)
        harness = UndoHarness(workspace.root, history, workspace, undo, recorder)
        (place / "lib/ignored").mkdir()
        (place / "lib/ignored/mine").write_text("mine")
        number = await harness.turn(
            "for folder in ../app ../lib; do cd $folder; echo x > kept.txt; echo x > new; rm -rf sub ignored; "
            "git -c user.name=n -c user.email=e commit -qam y; done"
        )
        plan = await undo.plan_restore(number)
        changed = {str(change.path.relative_to(place)) for change in plan.changes}
        assert {"app/kept.txt", "lib/kept.txt", "lib/ignored/mine", "lib/.git/HEAD"} < changed
        assert await undo.restore(plan) == []
        assert [run_git(place / name, "rev-parse", "HEAD") for name in ("app", "lib")] == heads
        assert (place / "lib/ignored/mine").read_text() == "mine"
        shutil.rmtree(place / "lib/ignored")
        assert [read_tree(place / name) for name in ("app", "lib")] == before
        await undo.close()
