"""What commands see of the repository around the workspace: all of it, so that git takes no hidden file for deleted."""

import os
import subprocess
from pathlib import Path

import pytest

from goose_like.config.paths import home_folder, kept_folder
from goose_like.core.errors import DeniedError
from goose_like.core.notifier import Recorder
from goose_like.workspace.sandbox.path_rules import build_rules, resolve_path
from goose_like.workspace.workspace import Workspace
from tests.workspace.workspace_harness import GIT, needs_sandbox, run_script

COMMIT = f"{GIT} commit -qam wip && git show --name-status --format= && git status --short"


def run_git(folder: Path, *words: str) -> str:
    line = [*GIT.split(), *words]
    return subprocess.run(line, cwd=folder, check=True, capture_output=True, text=True).stdout


def create_repository(folder: Path) -> Path:
    (folder / "sub/deep").mkdir(parents=True)
    for name in ("README.md", "sub/notes.txt", "sub/deep/a.txt"):
        (folder / name).write_text("a\n")
    run_git(folder, "init", "-q")
    run_git(folder, "add", "README.md", "sub")
    run_git(folder, "commit", "-qm", "start")
    return folder


@pytest.fixture
def repository(root: Path) -> Path:
    return create_repository(root / "project")


@needs_sandbox
@pytest.mark.parametrize("mode", ["workspace", "read-only"])
@pytest.mark.parametrize("place", ["", "sub", "sub/deep"])
async def test_git_sees_the_whole_repository_below_tmp(repository: Path, place: str, mode: str) -> None:
    (repository / "README.md").write_text("b\n")
    (repository.parent / "other").write_text("x")
    async with Workspace(repository / place, mode=mode, approval="auto", notifier=Recorder()) as workspace:  # type: ignore[arg-type]
        script = f"git status --short; git -C {repository} status --short; ls {repository.parent}"
        _, output = await run_script(workspace, script)
        assert output.split() == ["M", "../" * len(Path(place).parts) + "README.md", "M", "README.md", "project"]
        assert workspace.read_bytes(repository / "README.md") == b"b\n"


@needs_sandbox
@pytest.mark.parametrize("place", ["sub", "sub/deep"])
async def test_a_commit_in_a_subfolder_below_tmp_deletes_nothing(repository: Path, place: str) -> None:
    recorder = Recorder()
    async with Workspace(repository / place, mode="workspace", approval="auto", notifier=recorder) as workspace:
        files = "notes.txt" if place == "sub" else "a.txt"
        assert await run_script(workspace, f"echo b >> {files}; {COMMIT}") == (0, f"M\t{place}/{files}\n")
        code, output = await run_script(workspace, f"echo x >> {repository}/README.md; touch {repository}/new")
        assert code != 0, output
        with pytest.raises(DeniedError):  # nobody allows a change outside the workspace
            await workspace.write_bytes(repository / "README.md", b"x")
    assert run_git(repository, "ls-files").split() == ["README.md", "sub/deep/a.txt", "sub/notes.txt"]
    assert (repository / "README.md").read_text() == "a\n"
    assert not (repository / "new").exists()


@needs_sandbox
async def test_the_main_repository_of_a_worktree_is_seen(repository: Path, root: Path) -> None:
    run_git(repository, "worktree", "add", "-q", str(root / "tree"))
    async with Workspace(root / "tree/sub", mode="workspace", approval="auto", notifier=Recorder()) as workspace:
        assert await run_script(workspace, f"echo b >> notes.txt; {COMMIT}") == (0, "M\tsub/notes.txt\n")
        assert await run_script(workspace, f"git -C {repository} status --short") == (0, "")


@needs_sandbox
@pytest.mark.parametrize("place", ["sub", "tree"])
async def test_a_repository_that_stays_hidden_is_none_for_git(root: Path, place: str) -> None:
    home = create_repository(root.parent / "home")
    if place == "tree":
        run_git(home, "worktree", "add", "-q", str(root / "tree"))
    folder = home / "sub" if place == "sub" else root / "tree"
    before, recorder = run_git(home, "rev-parse", "HEAD"), Recorder()
    async with Workspace(folder, mode="workspace", approval="auto", notifier=recorder) as workspace:
        for line in ("git status --short", f"echo b >> README.md; {COMMIT}"):
            code, output = await run_script(workspace, line)
            assert code != 0
            assert "not a git repository" in output
        assert f"most of the repository {home} is hidden" in workspace.rules_text
    log = [event.text for event in recorder.events if event.type == "logged"]
    assert len(log) == 1
    assert str(home) in log[0]
    assert run_git(home, "rev-parse", "HEAD") == before


@needs_sandbox
async def test_a_home_folder_as_workspace_is_no_hidden_repository(root: Path) -> None:
    home = create_repository(root.parent / "home")
    async with Workspace(home, mode="workspace", approval="auto", notifier=Recorder()) as workspace:
        assert await run_script(workspace, f"echo b >> README.md; {COMMIT}") == (0, "M\tREADME.md\n")
        assert "repository" not in workspace.rules_text


@pytest.mark.parametrize("value", ["/", "//", "/usr/..", "", "ann", "/nothing/here", "/dev/null", "/tmp", "/usr"])
async def test_every_home_has_rules_that_hide_its_secrets(
    value: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", value)
    rules = build_rules(root, root.parent / "private")
    hidden = [home_folder() / ".ssh/id_ed25519", home_folder() / ".netrc", Path("/etc/shadow")]
    assert {rules.get_rule(resolve_path(path)) for path in hidden} <= {"hidden", "tmp"}
    assert rules.get_rule(root) == "write"
    assert rules.get_rule(Path("/usr/lib")) == "read"


@pytest.mark.parametrize("variable", ["PATH", "GOPATH", "CARGO_HOME", "LD_LIBRARY_PATH", "KUBECONFIG"])
async def test_folders_in_variables_may_begin_with_two_slashes(
    variable: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = root.parent / "folder"
    (folder / "bin").mkdir(parents=True)
    (folder / ".netrc").touch()
    monkeypatch.setenv(variable, f"/{folder}:{os.environ['PATH']}")
    rules = build_rules(root, root.parent / "private", shown=[f"/{folder}/shown"])
    assert not [path for path in rules.table if str(path).startswith("//")]
    assert rules.get_rule(folder / "shown") == "read"


@pytest.mark.parametrize("variable", ["GOOSE_LIKE_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"])
def test_commands_never_reach_what_later_starts_trust(
    variable: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tools of CI put the cache into the workspace."""
    monkeypatch.delenv("GOOSE_LIKE_HOME", raising=False)
    monkeypatch.setenv(variable, str(root / ".cache"))
    rules = build_rules(root, root.parent / "private")
    assert rules.get_rule(resolve_path(kept_folder() / "mcp-offers.json")) == "hidden"
