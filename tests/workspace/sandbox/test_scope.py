"""Sandbox scopes: which paths a process with a scope can see and write."""

import asyncio
import os
import socket
import sys
from pathlib import Path

import pytest

from goose_like.config.profile import SandboxMode
from goose_like.core.errors import DeniedError
from goose_like.core.events import Answer
from goose_like.core.notifier import Recorder
from goose_like.workspace.sandbox import bubblewrap
from goose_like.workspace.sandbox.scope import SandboxScope
from goose_like.workspace.workspace import Workspace
from tests.workspace.workspace_harness import run_script

pytestmark = pytest.mark.skipif(
    bubblewrap.find_sandbox_problem() is not None, reason=str(bubblewrap.find_sandbox_problem())
)

NOTHING = SandboxScope()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GOOSE_LIKE_HOME", str(tmp_path / "goose"))
    write_files(tmp_path / "home", ".ssh/id_ed25519", "diary.txt", "library/a.py", "library/.git/config")
    return tmp_path / "home"


@pytest.fixture
def root(home: Path) -> Path:
    write_files(
        home / "work", "a.txt", "sub/b.txt", ".git/config", "sub/.cache/c", ".runtime/r", ".env", "sub/.env.local"
    )
    return home / "work"


def write_files(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"[{name}]")


def create_workspace(root: Path, mode: SandboxMode = "workspace", answer: Answer = Answer()) -> Workspace:
    return Workspace(root, mode=mode, approval="auto", notifier=Recorder(answer))


async def test_nothing_but_the_workspace_is_there(root: Path, home: Path) -> None:
    async with create_workspace(root) as workspace:
        script = f"cat a.txt sub/b.txt; echo new > c.txt; ls -A {home} {home.parent}; cat {home}/diary.txt"
        _, output = await run_script(workspace, script, scope=NOTHING)
        assert "[a.txt][sub/b.txt]" in output
        assert f"{home}:\nwork\n" in output
        assert f"{home.parent}:\nhome\n" in output
        assert "[diary.txt]" not in output
        assert (root / "c.txt").read_text() == "new\n"
        assert (await run_script(workspace, "touch d.txt; ls /run"))[0] == 0  # a command's sandbox is another one


async def test_what_is_around_the_workspace_cannot_be_written(root: Path, home: Path) -> None:
    async with create_workspace(root) as workspace:
        for place in ("/x", "/usr/x", "/etc/x", "/var/x"):
            code, _ = await run_script(workspace, f"echo x > {place}", scope=NOTHING)
            assert code != 0, place
        await run_script(workspace, f"echo x > {home}/x", scope=NOTHING)
    assert not (home / "x").exists()


async def test_programs_and_python_run(root: Path) -> None:
    async with create_workspace(root) as workspace:
        script = "import json, ssl, ctypes, os; print(len(os.listdir('/proc/self/fd')) > 0, os.getcwd())"
        _, output = await run_script(workspace, f'{sys.executable} -c "{script}"', scope=NOTHING)
        assert output.split() == ["True", str(root)]
        assert (await run_script(workspace, "git --version && head -c 2 /dev/urandom > /dev/null", scope=NOTHING))[
            0
        ] == 0


async def test_ways_around(root: Path, home: Path) -> None:
    (root / "out").symlink_to(home)
    (root / "up").symlink_to("../diary.txt")
    async with create_workspace(root) as workspace:
        for path in (
            "out/diary.txt",
            "up",
            "../diary.txt",
            f"/proc/self/root{home}/diary.txt",
            "/proc/1/cwd/diary.txt",
        ):
            code, output = await run_script(workspace, f"cat {path}", scope=NOTHING)
            assert code, path
            assert "[diary.txt]" not in output, path


async def test_secrets_of_the_system_stay_hidden(root: Path) -> None:
    async with create_workspace(root) as workspace:
        assert (await run_script(workspace, "cat /etc/shadow | wc -c", scope=NOTHING))[1].split()[-1] == "0"


async def test_paths_that_are_named(root: Path, home: Path) -> None:
    async with create_workspace(root) as workspace:
        scope = SandboxScope(readable=(home / "library", home / "none"), writable=(home / "library/sub",))
        script = f"cat {home}/library/a.py; ls {home}; echo x > {home}/library/a.py"
        code, output = await run_script(workspace, script, scope=scope)
        assert code != 0
        assert output.startswith("[library/a.py]library\nwork\n")
    assert (home / "library/a.py").read_text() == "[library/a.py]"


async def test_a_file_alone(root: Path, home: Path) -> None:
    async with create_workspace(root) as workspace:
        code, output = await run_script(
            workspace, f"cat {home}/diary.txt; ls {home}", scope=SandboxScope(readable=(home / "diary.txt",))
        )
        assert (code, output) == (0, "[diary.txt]diary.txt\nwork\n")


async def test_a_named_path_behind_a_link(root: Path, home: Path, tmp_path: Path) -> None:
    (ours := tmp_path / "goose/state/e").mkdir(parents=True)
    (home / "shelf").symlink_to("library")
    (home / "e").symlink_to(ours)
    async with create_workspace(root) as workspace:
        scope = SandboxScope(readable=(home / "shelf",), writable=(home / "e",))
        script = f"cat {home}/shelf/a.py {home}/library/a.py; echo x > {home}/e/1; echo x > {ours}/2"
        assert await run_script(workspace, script, scope=scope) == (0, "[library/a.py]" * 2)
    assert sorted(path.name for path in ours.iterdir()) == ["1", "2"]


async def test_a_named_path_inside_the_workspace_stays_writable(root: Path) -> None:
    async with create_workspace(root) as workspace:
        assert (await run_script(workspace, "echo x > sub/new", scope=SandboxScope(readable=(root / "sub",))))[0] == 0


async def test_what_commands_may_not_see_cannot_be_named(root: Path, home: Path, tmp_path: Path) -> None:
    async with create_workspace(root) as workspace:
        for path in (home / ".ssh", home / ".ssh/id_ed25519", Path("/run"), tmp_path / "goose/state/sessions"):
            with pytest.raises(DeniedError, match="hidden from commands"):
                await run_script(workspace, "true", scope=SandboxScope(readable=(path,)))
        code, output = await run_script(
            workspace, f"ls -A {home}/.ssh; cat {home}/diary.txt", scope=SandboxScope(readable=(home,))
        )
        assert (code, output) == (0, "[diary.txt]")  # the whole home is: without its secrets


async def test_our_own_folders_may_be_named_and_written(root: Path, tmp_path: Path) -> None:
    for mode, folder in (("workspace", "state"), ("read-only", "state"), ("workspace", "cache")):
        ours = tmp_path / "goose" / folder / "environments/one"
        ours.mkdir(parents=True, exist_ok=True)
        async with create_workspace(root, mode) as workspace:  # type: ignore[arg-type]
            assert (await run_script(workspace, f"echo {mode} > {ours}/f", scope=SandboxScope(writable=(ours,))))[
                0
            ] == 0
            assert (ours / "f").read_text() == f"{mode}\n"
            code, output = await run_script(
                workspace, f"cat {ours}/f && echo x > {ours}/f", scope=SandboxScope(readable=(ours,))
            )
            assert code
            assert output.startswith(f"{mode}\n")
            await run_script(workspace, f"echo x > {ours}/f")
            assert (ours / "f").read_text() == f"{mode}\n"  # a command has no part in it


async def test_a_writable_path_is_no_more_than_commands_have(root: Path, home: Path) -> None:
    async with create_workspace(root) as workspace:
        scope = SandboxScope(writable=(home / "library",))
        code, output = await run_script(workspace, f"ls {home}/library; echo x > {home}/library/x", scope=scope)
        assert code
        assert output.startswith("a.py\n")


async def test_read_only(root: Path) -> None:
    async with create_workspace(root, "read-only") as workspace:
        code, output = await run_script(
            workspace, "cat a.txt; echo x > /tmp/t && echo x > new", scope=SandboxScope(writable=(root,))
        )
        assert code
        assert output.startswith("[a.txt]")
    async with create_workspace(root) as workspace:
        scope = SandboxScope(is_read_only=True, writable=(root / "sub",))
        assert (await run_script(workspace, "echo x > new", scope=scope))[0] != 0
        assert (await run_script(workspace, "echo x > sub/new", scope=scope))[0] == 0


async def test_dot_folders(root: Path) -> None:
    async with create_workspace(root) as workspace:
        script = "cat .git/config sub/.cache/c .env sub/.env.local; cat .runtime/r; echo x > .git/new; mv sub other"
        _, output = await run_script(workspace, script, scope=NOTHING)
        assert "[" not in output
        _, output = await run_script(workspace, script, scope=SandboxScope(dot_folders=(".runtime", ".env")))
        assert "[.env]" in output
        assert "[.runtime/r]" in output
        assert output.count("[") == 2
    assert not (root / ".git/new").exists()
    assert (root / "sub/.cache/c").exists()


async def test_within_a_dot_folder_that_is_seen_others_are_not(root: Path) -> None:
    write_files(root, ".runtime/x/.venv/v")
    async with create_workspace(root) as workspace:
        _, output = await run_script(
            workspace, "cat .runtime/r .runtime/x/.venv/v", scope=SandboxScope(dot_folders=(".runtime",))
        )
        assert output.startswith("[.runtime/r]")
        assert "/v]" not in output
        path = root / ".runtime/x/.venv"
        assert "/v]" in (await run_script(workspace, f"cat {path}/v", scope=SandboxScope(readable=(path,))))[1]


async def test_many_dot_folders_and_odd_names(root: Path) -> None:
    for number in range(150):
        (root / f"p{number:03}/.d").mkdir(parents=True)
        (root / f"p{number:03}/.d/f").write_text("[x]")
    write_files(root, ".a b\n$(x)/f")
    os.mkfifo(root / ".pipe")
    (root / ".nowhere").symlink_to("/nonexistent")
    (root / ".loop").symlink_to(".")
    (root / os.fsdecode(b".\xff")).mkdir()
    async with create_workspace(root) as workspace:
        _, output = await run_script(workspace, "cat .a*/f; cat .git/config p*/.d/f", scope=NOTHING)
        assert "[.a" not in output
        assert "[.git" not in output  # those nearest to the top are sure to be hidden
        assert 50 < output.count("[x]") < 60


async def test_deep_folders(root: Path) -> None:
    folder = root
    for _ in range(300):
        folder /= "deep"
    folder.mkdir(parents=True)
    write_files(folder, ".git/config")
    async with create_workspace(root) as workspace:
        _, output = await run_script(workspace, f"cat {folder}/.git/config; cat a.txt", scope=NOTHING)
        assert "[.git" not in output
        assert output.endswith("[a.txt]")


async def test_network_as_commands_have_it(root: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        script = f"python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}), 5)'"
        async with create_workspace(root, answer=Answer(choice="allow", by="person")) as workspace:
            assert (await run_script(workspace, script, scope=NOTHING))[0] != 0
            assert (await run_script(workspace, script, scope=NOTHING, access="network"))[0] == 0
        async with create_workspace(root) as workspace:
            with pytest.raises(DeniedError, match="network"):
                await run_script(workspace, script, scope=NOTHING, access="network")


async def test_commands_do_not_meet_it_and_it_ends_with_the_session(root: Path) -> None:
    workspace = create_workspace(root)
    async with workspace:
        process = await workspace.spawn(["sleep", "1000"], scope=NOTHING)
        look = "cat /proc/*/cmdline | tr '\\0' ' '"
        # A process has no command line until its exec has ended.
        async with asyncio.timeout(60):
            while "sleep 1000" not in (await run_script(workspace, look, scope=NOTHING))[1]:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert "sleep" not in (await run_script(workspace, look))[1]
        await run_script(workspace, "echo shared > /tmp/t")
        assert (await run_script(workspace, "cat /tmp/t", scope=NOTHING))[1] == "shared\n"
    with pytest.raises(Exception, match="session is over"):
        await process.wait()


async def test_without_a_sandbox_it_does_nothing(root: Path, home: Path) -> None:
    async with create_workspace(root, "full") as workspace:
        assert (await run_script(workspace, f"cat {home}/diary.txt", scope=NOTHING))[1] == "[diary.txt]"


async def test_a_narrowed_workspace_passes_it_on(root: Path, home: Path, tmp_path: Path) -> None:
    async with (
        create_workspace(root) as parent,
        Workspace(root, mode="read-only", approval="auto", notifier=Recorder(), parent=parent) as narrow,
    ):
        code, output = await run_script(narrow, f"cat a.txt; cat {home}/diary.txt; echo x > a.txt", scope=NOTHING)
        assert code
        assert output.startswith("[a.txt]")
        assert "[diary.txt]" not in output
    assert (root / "a.txt").read_text() == "[a.txt]"
