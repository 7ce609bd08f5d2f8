"""Paths of `deny_write`: read-only for commands and file tools, also before they exist."""

import os
from pathlib import Path

import pytest

from goose_like.config.profile import PathChoice, WorkspaceSettings
from goose_like.core.errors import DeniedError, ProfileError
from goose_like.core.events import Refused
from goose_like.core.notifier import Recorder
from goose_like.workspace.workspace import Workspace
from tests.workspace.workspace_harness import GIT, needs_sandbox, run_script

pytestmark = needs_sandbox

NAMES = ("conf.yaml", "locked", "later", "deep/er/later.txt")

TRICKS = {
    "redirect": "echo x > {}",
    "append": "echo x >> {}",
    "touch": "touch {0} {0}/x",
    "remove": "rm -rf {}; echo x > {}",
    "rename": "mv {} gone; echo x > {}",
    "rename over": "echo x > n; mv -f n {}",
    "rename the folder above": "mv deep other; mkdir -p deep/er; echo x > {}",
    "link over": "ln -sf /etc/passwd {}; ln -sfn /etc {}",
    "hard link": "ln {} l && echo x > l",
    "link": "ln -s {} l; echo x > l; echo x > l/x",
    "folder": "mkdir -p {}; mkdir {}/x",
    "remove the folder": "rmdir {}; rmdir deep/er deep; mkdir -p deep/er; echo x > {}",
    "python": "python3 -c \"open('{}', 'w').write('x')\"",
    "dd": "dd if=/dev/zero of={} count=1",
    "truncate": "truncate -s 9 {}",
    "chmod": "chmod 777 {}; echo x > {}",
    "unmount": "umount -l {}; unshare -Urm sh -c 'umount -l {}; echo x > {}'",
    "remount": "unshare -Urm sh -c 'mount -o remount,rw,bind {}; echo x > {}'",
    "proc": "echo x > /proc/self/cwd/{}; echo x > /proc/1/root/$PWD/{}",
    "background": "(sleep 0.1; rm -rf {}; echo x > {}) & wait",
    "another folder": "mkdir sub; cd sub; echo x > ../{}",
    "cp": "mkdir c; echo x > c/conf.yaml; cp -r c/. .; cp c/conf.yaml {}",
    "git": f"git init -q; git add -A; {GIT} commit -qm a; git rm -rqf {{}}; git clean -fdxq",
}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    folder = tmp_path / "work"
    (folder / "locked").mkdir(parents=True)
    (folder / "conf.yaml").write_text("old\n")
    (folder / "locked" / "key").write_text("old\n")
    return folder


def open_workspace(root: Path, *names: str, recorder: Recorder | None = None, mode: str = "workspace") -> Workspace:
    settings = WorkspaceSettings(paths=PathChoice(deny_write=names))
    return Workspace(root, mode=mode, approval="auto", notifier=recorder or Recorder(), settings=settings)


def read_denied(root: Path) -> list[object]:
    """Read what the denied paths hold: nothing was created, changed or removed."""
    found: list[object] = [(root / "conf.yaml").read_text(), (root / "locked" / "key").read_text()]
    found += [sorted(os.listdir(root / "locked")), (root / "conf.yaml").is_symlink()]
    found += [os.path.lexists(root / name) and not os.path.isdir(root / name) for name in NAMES[2:]]
    found += [os.listdir(root / name) for name in NAMES[2:] if os.path.isdir(root / name)]
    return found


async def test_no_trick_changes_a_denied_path(root: Path) -> None:
    async with open_workspace(root, *NAMES) as workspace:
        await run_script(workspace, "true")
        before = read_denied(root)
        for name, trick in TRICKS.items():
            for target in (*NAMES, "locked/key", "locked/new"):
                await run_script(workspace, f"cd {root}; {trick.replace('{}', target).replace('{0}', target)}")
                assert read_denied(root) == before, (name, target)
        await run_script(workspace, "rm -rf c other sub l gone n .git")
    assert sorted(os.listdir(root)) == ["conf.yaml", "locked"]  # the empty folders are gone


@pytest.mark.parametrize("mode", ["workspace", "full"])
@pytest.mark.parametrize("name", [*NAMES, "locked/key", "locked/new/x", "deep/er/later.txt/x", "alias/key"])
async def test_file_tools_refuse_and_say_why(root: Path, name: str, mode: str) -> None:
    (root / "alias").symlink_to("locked")
    recorder = Recorder()
    async with open_workspace(root, *NAMES, recorder=recorder, mode=mode) as workspace:
        with pytest.raises(DeniedError, match="the profile lists it in deny_write"):
            await workspace.write_bytes(name, b"x")
        (refused,) = [event for event in recorder.events if isinstance(event, Refused)]
        assert refused.allowed_by == "a change of paths: {deny_write} in the profile"
        await workspace.write_bytes("free.txt", b"x")
    assert (root / "free.txt").read_text() == "x"


async def test_a_folder_that_another_session_removed_is_back_for_the_next_command(root: Path) -> None:
    async with open_workspace(root, "later") as workspace:
        await run_script(workspace, "true")
        (root / "later").rmdir()
        await run_script(workspace, "echo x > later; echo x > later/x")
        assert os.listdir(root / "later") == []


async def test_what_the_person_puts_into_the_folder_stays(root: Path) -> None:
    async with open_workspace(root, "later") as workspace:
        await run_script(workspace, "true")
        (root / "later" / "mine").write_text("x")
    assert (root / "later" / "mine").read_text() == "x"


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        (".", "is the whole workspace"),
        ("..", "is the whole workspace"),
        ("alias", "leads through a link"),
        ("alias/new", "leads through a link"),
        ("conf.yaml/x", "cannot be protected"),
    ],
)
async def test_a_path_that_cannot_be_protected_is_an_error(root: Path, name: str, problem: str) -> None:
    (root / "alias").symlink_to("locked")
    with pytest.raises(ProfileError, match=problem):
        async with open_workspace(root, name) as workspace:
            await run_script(workspace, "true")


def test_a_pattern_is_refused() -> None:
    with pytest.raises(ValueError, match="a path without wildcards"):
        PathChoice(deny_write=("*.pem",))
