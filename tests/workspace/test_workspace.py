"""The workspace: change listeners, and its start and end."""

import asyncio
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

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
