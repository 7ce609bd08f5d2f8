"""Landlock in place of bubblewrap, where no user namespace can be made: real commands of real workspaces."""

import asyncio
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from goose_like.core.notifier import Recorder
from goose_like.workspace.sandbox.bubblewrap import move_tmp
from goose_like.workspace.sandbox.landlock import find_landlock_problem
from goose_like.workspace.workspace import Workspace
from tests import ROOT
from tests.workspace.workspace_harness import run_script

WITHOUT_NAMESPACES = [
    *("unshare", "--user", "--map-root-user", "sh", "-c"),
    "echo 0 > /proc/sys/user/max_user_namespaces && "
    'exec setpriv --bounding-set=-all --inh-caps=-all "$0" -m tests.workspace.sandbox.test_landlock "$@"',
    sys.executable,
]


def run_without_namespaces(root: Path, mode: str, *scripts: str) -> dict[str, object]:
    """Run scripts in a workspace where bubblewrap fails. Return their codes and outputs, the log and the rules."""
    line = [*WITHOUT_NAMESPACES, str(root), mode, *scripts]
    done = subprocess.run(line, capture_output=True, text=True, cwd=ROOT, timeout=60, check=False)
    if "unshare: " in done.stderr or "setpriv: " in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


async def _run_scripts(root: str, mode: str, *scripts: str) -> None:
    recorder = Recorder()
    async with Workspace(root, mode=mode, approval="auto", notifier=recorder) as workspace:  # type: ignore[arg-type]
        await workspace.prepare_sandbox()
        file = workspace.tmp / "given"
        file.write_text("given")
        given = workspace.path_in_sandbox(file)
        results = [await run_script(workspace, script.replace("GIVEN", given)) for script in scripts]
        denied = workspace.explain_limits(1, "bash: x: Permission denied")
        if mode == "workspace":
            await workspace.write_bytes("tool", b"written\n")
    asked = len(recorder.questions)
    log = [event.text for event in recorder.events if event.type == "logged"]
    print(json.dumps({"results": results, "log": log, "rules": workspace.rules_text, "denied": denied, "asked": asked}))


pytestmark = pytest.mark.skipif(find_landlock_problem() is not None, reason=str(find_landlock_problem()))


@pytest.fixture
def home(root: Path) -> Path:
    home = root.parent / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh/id").write_text("TOPSECRET")
    (root / "file").write_text("text")
    (root / "link").symlink_to(home / ".ssh/id")
    return home


def test_commands_read_the_workspace_and_write_in_tmp(root: Path, home: Path) -> None:
    found = run_without_namespaces(
        root,
        "workspace",
        "cat file && ls",
        "echo mine > $TMPDIR/new && cat $TMPDIR/new GIVEN",
        "echo x > /dev/null && head -c 1 /dev/zero | wc -c",
        "python3 -c 'import subprocess, ssl, asyncio; asyncio.run(asyncio.sleep(0)); print(6 * 7)'",
    )
    codes, outputs = zip(*found["results"], strict=True)  # type: ignore[call-overload]
    assert codes == (0, 0, 0, 0), outputs
    assert outputs == ("text" + "file\nlink\n", "mine\ngiven", "1\n", "42\n")
    assert (root / "tool").read_text() == "written\n"
    assert not found["asked"]
    assert "cannot write in the workspace" in str(found["log"])
    assert "$TMPDIR" in str(found["rules"])
    assert "$TMPDIR" in str(found["denied"])


def test_commands_read_the_repository_around_the_workspace(root: Path, home: Path) -> None:
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    (root / "sub").mkdir()
    (root.parent / "other").write_text("other")
    found = run_without_namespaces(root / "sub", "read-only", "cat ../file; git status --short", "cat ../../other")
    assert found["results"][0] == [0, "text?? ../file\n?? ../link\n"]  # type: ignore[index]
    assert found["results"][1][0] != 0  # type: ignore[index]


ATTACKS = [
    "echo x > file",
    "echo x > new",
    "truncate -s 0 file",
    "rm file",
    "mv file other",
    "ln file other",
    "ln -s /etc other",
    "mkdir folder",
    "chmod 777 file",
    "chown 65534 file",
    'python3 -c \'import os; os.setxattr("file", "user.x", b"1")\'',
    "python3 -c 'import os; os.open(\"file\", os.O_RDONLY | os.O_TRUNC)'",
    "cat ../home/.ssh/id",
    "cat link",
    "ls ..",
    "ls /tmp",
    "cat /proc/$PPID/environ",
    "echo x > /tmp/outside",
    "echo x > /dev/shm/outside",
    "python3 -c 'import socket; socket.socket(socket.AF_UNIX)'",
    "python3 -c 'import socket; socket.socket()'",
    "python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM)'",
    "unshare -Ur true",
]


@pytest.mark.parametrize("mode", ["workspace", "read-only"])
def test_attacks_fail(root: Path, home: Path, mode: str) -> None:
    before = {path: path.lstat().st_mode for path in root.iterdir()}
    master, terminal = pty.openpty()  # as another terminal of the person
    os.write(master, b"typed\n")
    attacks = [*ATTACKS, f"echo x > {os.ttyname(terminal)}", f"timeout 5 head -n 1 {os.ttyname(terminal)}"]
    found = run_without_namespaces(root, mode, *attacks)
    os.close(master)
    os.close(terminal)
    for attack, (code, output) in zip(attacks, found["results"], strict=True):  # type: ignore[call-overload]
        assert code != 0, attack
        assert "TOPSECRET" not in output
    assert {path: path.lstat().st_mode for path in root.iterdir() if path.name != "tool"} == before
    assert (root / "file").read_text() == "text"


def test_doctor_names_the_mechanism_and_the_way_to_the_full_one(root: Path) -> None:
    line = [
        *WITHOUT_NAMESPACES[:-2],
        WITHOUT_NAMESPACES[-2].replace("tests.workspace.sandbox.test_landlock", "goose_like"),
    ]
    done = subprocess.run([*line, sys.executable, "doctor"], capture_output=True, text=True, cwd=ROOT, check=False)
    if "unshare: " in done.stderr or "setpriv: " in done.stderr:
        pytest.skip(done.stderr.strip())
    text = " ".join(done.stdout.split())
    assert "Landlock only: commands cannot write in the workspace" in text
    assert "allow user namespaces" in text


def test_variables_lead_to_the_private_folder() -> None:
    variables = {"TMPDIR": "/tmp", "CACHE": "/tmp/.cache/uv", "PATH": "/tmpfiles:/tmp", "EMPTY": ""}
    moved = {"TMPDIR": "/tmp/x", "CACHE": "/tmp/x/.cache/uv", "PATH": "/tmpfiles:/tmp", "EMPTY": ""}
    assert move_tmp(variables, Path("/tmp/x")) == moved


if __name__ == "__main__":
    asyncio.run(_run_scripts(*sys.argv[1:]))
