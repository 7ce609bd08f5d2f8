"""Workspaces for tests, and commands in them."""

from pathlib import Path

import pytest

from goose_like.core.events import Answer
from goose_like.core.notifier import Recorder
from goose_like.workspace.sandbox import bubblewrap
from goose_like.workspace.workspace import Workspace

needs_sandbox = pytest.mark.skipif(
    bubblewrap.find_sandbox_problem() is not None, reason=str(bubblewrap.find_sandbox_problem())
)


ONCE = Answer(choice="allow", by="person")


SESSION = Answer(choice="allow_prefix", by="person")


GIT = "git -c user.name=n -c user.email=e"


def create_confined(root: Path, answer: Answer = Answer()) -> tuple[Workspace, Recorder]:
    recorder = Recorder(answer)
    return Workspace(root, mode="workspace", approval="auto", notifier=recorder), recorder


async def run_script(workspace: Workspace, script: str, **options: object) -> tuple[int, str]:
    process = await workspace.spawn(["bash", "-c", script], **options)  # type: ignore[arg-type]
    output = b""
    while chunk := await process.read():
        output += chunk
    return await process.wait(), output.decode()
