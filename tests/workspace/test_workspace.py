"""The workspace: change listeners, and its start and end."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from goose_like.core.errors import DeniedError
from goose_like.core.events import Answer, Question
from goose_like.core.notifier import Recorder
from goose_like.workspace.workspace import Workspace
from tests import ROOT
from tests.workspace.workspace_harness import create_confined, needs_sandbox, run_script


async def test_listeners_come_first(workspace: Workspace, root: Path) -> None:
    heard: list[tuple[Path | None, tuple[str, ...]]] = []

    async def listen(path: Path | None, argv: Sequence[str], *_: object) -> None:
        assert not (root / "f").exists()
        heard.append((path, tuple(argv)))

    workspace.add_change_listener(listen)
    await workspace.write_bytes("f", b"x")
    (root / "f").unlink()
    await workspace.spawn(["true"])
    await workspace.spawn(["true"], writes=False)
    assert heard == [(root / "f", ()), (None, ("true",))]


@needs_sandbox
async def test_warm_and_close_leave_nothing(root: Path) -> None:
    workspace, _ = create_confined(root)
    await workspace.prepare_sandbox()
    await run_script(workspace, "sleep 300 &")
    folder = workspace.tmp
    assert folder.exists()
    await workspace.close()
    assert not folder.exists()
    await workspace.close()


@needs_sandbox
async def test_a_cancelled_internal_command_does_not_disturb_others(workspace: Workspace) -> None:
    internal = asyncio.create_task(workspace.run_internal(["true"]))
    other = asyncio.create_task(run_script(workspace, "echo on"))
    await asyncio.sleep(0)  # both wait for the spawner now
    internal.cancel()
    assert await other == (0, "on\n")


@needs_sandbox
def test_the_environment_that_we_run_from_is_not_writable(root: Path) -> None:
    venv = root / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    paths = [str(ROOT), *(path for path in sys.path if path.endswith("site-packages"))]
    probe = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from goose_like.core.notifier import Recorder\n"
        "from goose_like.workspace.workspace import Workspace\n"
        "async def main():\n"
        f"    root = Path({str(root)!r})\n"
        "    async with Workspace(root, mode='workspace', approval='auto', notifier=Recorder()) as workspace:\n"
        "        line = 'echo x > .venv/bin/goose-like; echo y > beside.txt'\n"
        "        process = await workspace.spawn(['bash', '-c', line])\n"
        "        while await process.read(): pass\n"
        "        await process.wait()\n"
        "asyncio.run(main())\n"
    )
    subprocess.run([venv / "bin" / "python", "-c", probe], check=True, cwd=root, env={"PYTHONPATH": ":".join(paths)})
    assert (root / "beside.txt").exists()
    assert not (venv / "bin" / "goose-like").exists()


@needs_sandbox
async def test_a_narrowed_mode_holds_for_open_questions_files_and_commands_of_a_child(root: Path) -> None:
    asked = asyncio.Event()

    class Silent(Recorder):
        async def ask(self, question: Question) -> Answer:
            asked.set()
            return await asyncio.Future()

    async with (
        Workspace(root, mode="workspace", approval="auto", notifier=Silent()) as parent,
        Workspace(root, mode="workspace", approval="auto", notifier=Silent(), parent=parent) as child,
    ):
        assert (await run_script(child, "touch before"))[0] == 0
        question = asyncio.create_task(child.require_permission("outside", "/x", "change /x"))
        await asked.wait()
        parent.restrict("workspace", "plan")
        with pytest.raises(DeniedError, match="change /x: this session forbids it"):
            await question
        for workspace in (parent, child):
            assert (workspace.mode, workspace.approval) == ("read-only", "plan")
            assert (await run_script(workspace, "touch after"))[0] == 1
            with pytest.raises(DeniedError):
                await workspace.write_bytes("after", b"x")
            workspace.restrict("full", "yolo")
            assert workspace.mode == "read-only"
    assert os.listdir(root) == ["before"]


@needs_sandbox
async def test_no_other_command_sees_a_process_that_stands_apart(tmp_path):
    workspace, _ = create_confined(tmp_path)
    async with workspace:
        script = "sleep 60 & touch ready; wait"
        process = await workspace.spawn(["bash", "-c", script], env={"MARK": "apart-42"}, is_own=True, is_apart=True)
        while not (tmp_path / "ready").exists():  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        look = "cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep -c '^MARK='"
        _, seen = await run_script(workspace, look, is_own=True)
        assert seen == "0\n"
        _, seen = await run_script(workspace, look, is_own=True, env={"MARK": "own"})
        assert seen != "0\n"
        await process.stop(0)
        assert not await workspace._spawners.has_processes()
