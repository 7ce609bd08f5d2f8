"""Undo over a real workspace, for tests."""

import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from goose_like.config.profile import SandboxMode
from goose_like.core.events import Answer, Logged, TurnFinished, TurnStarted
from goose_like.core.history import History
from goose_like.core.message import Message
from goose_like.core.notifier import Recorder
from goose_like.workspace.undo.restore import RestorePlan
from goose_like.workspace.undo.undo import Undo
from goose_like.workspace.workspace import Workspace

Tree = dict[str, tuple[int, bytes]]


def read_tree(root: Path, *, without: tuple[str, ...] = (".git",)) -> Tree:
    """Read every path below a folder: its mode, and its bytes or link target."""
    found = {}
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name not in without]
        for name in (*folders, *files):
            path = Path(folder, name)
            mode = path.lstat().st_mode
            data = os.fsencode(os.readlink(path)) if path.is_symlink() else path.read_bytes() if path.is_file() else b""
            found[str(path.relative_to(root))] = (mode, data)
    return found


@dataclass
class UndoHarness:
    """The undo of a session over a real workspace, with methods to run turns."""

    root: Path
    history: History
    workspace: Workspace
    undo: Undo
    recorder: Recorder

    def begin(self) -> int:
        self.history.apply(TurnStarted(message=Message.user("go")))
        return self.history.turn_count

    def end(self) -> None:
        self.history.apply(TurnFinished(reason="stop"))
        self.undo.end_turn()

    async def turn(self, *scripts: str, **files: str) -> int:
        """Run a turn of file writes and commands, and return its number."""
        number = self.begin()
        for name, text in files.items():
            await self.workspace.write_bytes(name, text.encode())
        for script in scripts:
            await self.command(script)
        self.end()
        return number

    async def command(self, script: str) -> None:
        process = await self.workspace.spawn(["bash", "-c", f"set -e; {script}"])
        output = b""
        while chunk := await process.read():
            output += chunk
        assert await process.wait() == 0, output.decode()

    async def back(self, number: int) -> list[str]:
        return await self.undo.restore(await self.undo.plan_restore(number))

    async def run_and_undo(self, script: str) -> None:
        """Run a turn that changes files, and check that undo restores all of them."""
        before = read_tree(self.root)
        number = await self.turn(script)
        assert read_tree(self.root) != before
        assert await self.back(number) == []
        assert read_tree(self.root) == before

    @property
    def logged(self) -> list[str]:
        return [event.text for event in self.recorder.events if isinstance(event, Logged)]


@asynccontextmanager
async def open_undo(
    folder: Path, history: History | None = None, answer: Answer = Answer(), mode: SandboxMode = "full"
) -> AsyncIterator[UndoHarness]:
    """Open undo, by default in mode `full`, where commands start fastest."""
    root = folder / "work"
    root.mkdir(exist_ok=True)
    recorder, history = Recorder(answer), history or History()
    async with Workspace(root, mode=mode, approval="auto", notifier=recorder) as workspace:
        undo = Undo(
            folder / "session/undo", workspace.folders, history, workspace.run_internal, recorder, workspace.ask_loss
        )
        workspace.add_change_listener(undo.on_change)
        try:
            yield UndoHarness(workspace.root, history, workspace, undo, recorder)
        finally:
            await undo.close()


def create_repository(root: Path) -> None:
    root.mkdir(exist_ok=True)
    run_git(root, "init", "-q")
    (root / ".gitignore").write_text("ignored/\n*.log\n")
    (root / "kept.txt").write_text("one\ntwo\n")
    (root / "sub").mkdir()
    (root / "sub/deep.txt").write_text("deep")
    run_git(root, "add", ".")
    run_git(root, "-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "x")


def run_git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(root), *words], check=True, capture_output=True, text=True)
    return done.stdout


def list_changes(plan: RestorePlan) -> list[tuple[str, str, bool]]:
    return [(change.path.name, change.kind, change.is_edited) for change in plan.changes]


def exclude_paths(all_: Tree, name: str) -> Tree:
    return {path: node for path, node in all_.items() if path.split("/")[0] != name}
