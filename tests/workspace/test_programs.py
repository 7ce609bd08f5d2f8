"""Tests of the search for programs: folders of the workspace and relative folders are skipped."""

import os

import pytest

from goose_like.core.errors import GooseLikeError
from goose_like.core.notifier import Recorder
from goose_like.workspace.programs import build_git_environment, build_safe_path, find_program
from goose_like.workspace.workspace import Workspace


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A repository with a folder in it as the workspace, and programs inside and outside."""
    (tmp_path / "repo/.git").mkdir(parents=True)
    for name in ("outside", "repo/.venv/bin", "repo/work/bin"):
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
        for program in ("bash", name.split("/")[0]):
            (tmp_path / name / program).write_text("#!/bin/sh\n")
            (tmp_path / name / program).chmod(0o755)
    (tmp_path / "link").symlink_to(tmp_path / "repo/work/bin")
    folders = [
        tmp_path / "repo/.venv/bin",
        "",
        "bin",
        tmp_path / "link",
        tmp_path / "repo/work/bin",
        tmp_path / "outside",
    ]
    monkeypatch.setenv("PATH", os.pathsep.join(map(str, folders)))
    monkeypatch.chdir(tmp_path / "repo/work")
    return tmp_path


def test_only_folders_outside_the_repository_are_searched(place):
    root = place / "repo/work"
    assert build_safe_path(root) == str(place / "outside")
    assert find_program("bash", root) == str(place / "outside/bash")
    assert find_program("repo", root) is None


def test_a_workspace_that_holds_everything_leaves_the_system_folders(place):
    assert build_safe_path(place) == os.defpath


def test_our_own_git_keeps_only_variables_about_the_way_to_a_server(place, monkeypatch):
    for name in ("GIT_DIR", "GIT_CONFIG_PARAMETERS", "GIT_EXEC_PATH", "GIT_SSH_COMMAND", "HOME"):
        monkeypatch.setenv(name, "x")
    variables = build_git_environment(place / "repo")
    assert {name for name in variables if name.startswith("GIT_")} == {"GIT_SSH_COMMAND", "GIT_TERMINAL_PROMPT"}
    assert variables["HOME"] == "x"
    assert variables["PATH"] == str(place / "outside")


async def test_commands_with_network_start_the_bash_outside(place):
    workspace = Workspace(place / "repo/work", mode="workspace", approval="auto", notifier=Recorder())
    assert workspace.find_program("bash") == str(place / "outside/bash")
    with pytest.raises(GooseLikeError, match="no 'repo' on the PATH outside the workspace"):
        await workspace.spawn(["repo"], access="network", is_own=True)
    await workspace.close()
