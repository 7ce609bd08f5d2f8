"""The repository audit: hooks and settings that commands leave."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.workspace.workspace_harness import ONCE, create_confined, needs_sandbox, run_script


@pytest.fixture
def project(root: Path) -> Path:
    """A repository that exists before the session."""
    subprocess.run(["git", "init", "-q", str(root / "project")], check=True)
    return root / "project"


ATTACKS = {
    "hook": "git init -q r && echo evil > r/.git/hooks/pre-commit && chmod +x r/.git/hooks/pre-commit",
    "hooks link": "git init -q r && rm -r r/.git/hooks && mkdir b && echo evil >b/update && ln -s ../../b r/.git/hooks",
    "setting": "git init -q r && git -C r config core.fsmonitor evil",
    "include": "git init -q r && git -C r config include.path ../../evil",
    "alias": "git init -q r && git -C r config alias.st '!evil'",
    "broken": "git init -q r && echo '[evil' > r/.git/config",
    "bare": "git init -q --bare r && git -C r config core.sshCommand evil",
    "hidden deep": "git init -q node_modules/a/r && echo evil > node_modules/a/r/.git/hooks/post-checkout",
    "worktree setting": "git init -q r && cd r; git config extensions.worktreeConfig 1; git config --worktree a.b evil",
    "pointer": "git init -q /tmp/evil && mkdir r && echo 'gitdir: /tmp/evil/.git' > r/.git",
    "common": "git init -q r && git init -q /tmp/evil && echo /tmp/evil/.git > r/.git/commondir",
    "replaced": "git clone -q project copy 2>/dev/null; cp -r project/.git other; echo evil > other/hooks/update",
}


def find_dangers(root: Path) -> list[str]:
    """List the effects of an attack that are still active."""
    found = []
    for folder, _, _ in os.walk(root):
        if Path(folder, "hooks").is_dir():
            found += [name for name in os.listdir(Path(folder, "hooks")) if not name.endswith((".sample", ".refused"))]
    text = "".join(path.read_text() for path in root.rglob("config*") if path.is_file() and path.suffix != ".refused")
    links = [
        str(path) for path in root.rglob("*") if path.name in ("commondir",) or (path.name == ".git" and path.is_file())
    ]
    return found + ([text] if "evil" in text else []) + links


@needs_sandbox
@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
async def test_new_repositories_are_looked_at(root: Path, project: Path, attack: str) -> None:
    workspace, recorder = create_confined(root)
    async with workspace:
        await run_script(workspace, attack)
        assert find_dangers(root)
        told = await workspace.inspect_changes(None)
        assert told
        assert "disabled" in told[0]
        assert recorder.questions[0].kind == "repository"
        assert find_dangers(root) == []
        assert await workspace.inspect_changes(None) == []


@needs_sandbox
async def test_what_a_person_allows_stays(root: Path) -> None:
    workspace, recorder = create_confined(root, ONCE)
    async with workspace:
        await run_script(workspace, ATTACKS["hook"])
        assert await workspace.inspect_changes(None) == []
        assert await workspace.inspect_changes(None) == []
        assert len(recorder.questions) == 1
        assert "hook pre-commit" in recorder.questions[0].text
        await run_script(workspace, "echo worse > r/.git/hooks/pre-commit")
        await workspace.inspect_changes(None)
        assert len(recorder.questions) == 2


@needs_sandbox
async def test_ordinary_git_is_not_asked_about(root: Path) -> None:
    workspace, recorder = create_confined(root)
    async with workspace:
        code, output = await run_script(
            workspace,
            """set -e
            git init -q a; cd a; git config user.name n; git config user.email e
            git commit -q --allow-empty -m one; git checkout -q -b topic; git worktree add -q ../tree
            cd ..; git clone -q a b; git -C b branch --set-upstream-to=origin/topic
            git -C a -c protocol.file.allow=always submodule --quiet add ../b sub""",
        )
        assert code == 0, output
        assert await workspace.inspect_changes(None) == []
    assert recorder.questions == []


STUBBORN = {
    "a folder that is closed": "git init -q b && echo evil > b/.git/hooks/pre-commit && chmod 555 b/.git/hooks",
    "the name is taken": "git init -q b && cd b/.git/hooks && echo evil > update && mkdir -p update.refused/x",
    "the settings are locked": "git init -q b && cd b/.git && git config core.fsmonitor evil && mkdir -p config.lock "
    "config.refused/x",
}


@needs_sandbox
@pytest.mark.parametrize("attack", STUBBORN.values(), ids=STUBBORN)
async def test_what_resists_is_put_out_of_effect_too(root: Path, attack: str) -> None:
    workspace, _ = create_confined(root)
    async with workspace:
        await run_script(workspace, attack)
        (told,) = await workspace.inspect_changes(None)
        assert "disabled" in told
    assert not (root / "b/.git/hooks/pre-commit").exists()
    assert not (root / "b/.git/hooks/update").exists()
    config = root / "b/.git/config"
    assert not config.exists() or "evil" not in config.read_text()


@needs_sandbox
async def test_the_last_look_is_at_the_end(root: Path) -> None:
    workspace, recorder = create_confined(root)
    async with workspace:
        await run_script(workspace, ATTACKS["hook"])
    assert find_dangers(root) == []
    assert recorder.questions == []
    assert "disabled" in str(recorder.events)


@needs_sandbox
async def test_the_last_look_comes_when_only_files_were_written_too(root: Path) -> None:
    workspace, _ = create_confined(root)
    async with workspace:
        await workspace.write_bytes("r/config", b"[core]\nfsmonitor = evil\n")  # as yet a file like any other
        for name in ("HEAD", "objects/x", "refs/x"):
            await workspace.write_bytes(f"r/{name}", b"")
        assert find_dangers(root)
    assert find_dangers(root) == []
