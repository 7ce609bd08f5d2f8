"""Private folders: each lives as long as its process, and the next process removes those of killed ones."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from goose_like.config.private_folder import PrivateFolder, remove_abandoned_folders
from goose_like.sessions.session import Session
from tests.workspace.workspace_harness import create_confined, needs_sandbox, run_script

HOLDER = """
import sys
from goose_like.config.private_folder import PrivateFolder

folders = [PrivateFolder(kind) for kind in ("tmp", "session", "serve", "metrics", "engine")]
for folder in folders:
    (folder.path / "below").mkdir()
    (folder.path / "below" / "file").write_text("x")
    print(folder.path, flush=True)
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def tmp(tmp_path, monkeypatch):
    """The folder of temporary files, also for other processes."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


def remove_abandoned():
    remove_abandoned_folders().join()


def test_folders_of_a_killed_process_are_removed_and_others_stay(tmp):
    with subprocess.Popen([sys.executable, "-c", HOLDER], stdin=-1, stdout=-1, text=True) as process:
        paths = [Path(line.strip()) for line in iter(process.stdout.readline, "ready\n")]
        others = [tmp / name for name in ("somebody", "goose-like-tmp", "goose-like-other-abc", "x-goose-like-tmp-abc")]
        for other in others:
            other.mkdir()
        (tmp / "goose-like-tmp-file").write_text("")
        with PrivateFolder("session") as own:
            remove_abandoned()
            assert own.path.exists()
            assert len(paths) == 5
            assert all((path / "below/file").exists() for path in paths)
            process.kill()
            process.wait()
            remove_abandoned()
            assert sorted(tmp.iterdir()) == sorted([own.path, *others, tmp / "goose-like-tmp-file"])


def test_links_lead_the_removal_nowhere(tmp, tmp_path):
    target = tmp_path / "target"
    (target / "below").mkdir(parents=True)
    (tmp / "goose-like-tmp-link").symlink_to(target)
    (tmp / "goose-like-session-dead").mkdir()
    (tmp / "goose-like-session-dead/link").symlink_to(target)
    remove_abandoned()
    assert [path.name for path in tmp.iterdir()] == ["goose-like-tmp-link"]
    assert (target / "below").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_folders_of_other_users_stay(tmp):
    folder = tmp / "goose-like-tmp-theirs"
    folder.mkdir()
    os.chown(folder, 65534, 65534)
    remove_abandoned()
    assert folder.exists()


def test_a_new_folder_that_a_removal_takes_is_replaced(tmp, monkeypatch):
    """A removal between the creation of a folder and its lock finds a folder without a lock."""
    make = tempfile.mkdtemp
    taken = []

    def make_and_lose(**options):
        path = make(**options)
        if not taken:
            taken.append(path)
            remove_abandoned()
        return path

    monkeypatch.setattr("tempfile.mkdtemp", make_and_lose)
    with PrivateFolder("tmp") as folder:
        assert not Path(taken[0]).exists()
        remove_abandoned()
        assert folder.path.exists()
    assert list(tmp.iterdir()) == []


def test_a_missing_folder_of_temporary_files_is_no_error(tmp):
    tmp.rmdir()
    remove_abandoned()


@needs_sandbox
async def test_workspaces_and_sessions_that_live_keep_their_folders(tmp, tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    session = Session.temporary()
    living, _ = create_confined(root)
    async with living, create_confined(root)[0] as workspace:
        assert living.tmp.exists()
        await run_script(workspace, "true")
        remove_abandoned()
        assert workspace.tmp.parent == living.tmp.parent == session.folder.parent == tmp
        await workspace.close()
        remove_abandoned()
        assert living.tmp.exists()
        assert session.file.exists()
    session.close()
    assert list(tmp.iterdir()) == []
