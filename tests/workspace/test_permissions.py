"""Permissions: the policy decides, the person answers, and answers are remembered."""

import asyncio
from pathlib import Path

import pytest

from goose_like.core.errors import DeniedError
from goose_like.core.events import Answer
from goose_like.core.notifier import Recorder
from goose_like.workspace.policy import decide
from goose_like.workspace.workspace import Workspace
from tests.workspace.workspace_harness import ALWAYS, ONCE, create_confined, needs_sandbox, run_script


def test_policy() -> None:
    for kind in ("network", "outside", "repository", "sandbox"):
        assert decide(kind, "workspace", "auto") == "ask"
        assert decide(kind, "workspace", "yolo") == "allow"
        assert decide(kind, "full", "auto") == "allow"


async def test_a_refusal_says_what_to_do(workspace: Workspace) -> None:
    with pytest.raises(DeniedError, match=r"network access for: curl x: nobody is there.*without the network"):
        await workspace.spawn(["curl", "x"], access="network")
    with pytest.raises(DeniedError, match="inside the sandbox"):
        await workspace.spawn(["true"], access="full")


async def test_answers_are_remembered_by_kind(root: Path) -> None:
    for answer, count in ((ONCE, 2), (ALWAYS, 1)):
        workspace, recorder = create_confined(root, answer)
        async with workspace:
            await workspace.require_permission("network", "a", "a")
            await workspace.require_permission("network", "b", "b")
            assert len(recorder.questions) == count
            await workspace.require_permission("outside", "c", "c")
            assert recorder.questions[-1].kind == "outside"


async def test_one_question_at_a_time(root: Path) -> None:
    open_ = 0

    class Slow(Recorder):
        async def ask(self, question: object) -> Answer:
            nonlocal open_
            open_ += 1
            assert open_ == 1
            await asyncio.sleep(0.01)
            open_ -= 1
            return ONCE

    workspace = Workspace(root, mode="workspace", approval="auto", notifier=Slow())
    async with workspace:
        await asyncio.gather(*(workspace.require_permission("network", str(n), "x") for n in range(5)))


@needs_sandbox
async def test_full_access_when_granted(root: Path, tmp_path: Path) -> None:
    workspace, recorder = create_confined(root, ONCE)
    async with workspace:
        assert (await run_script(workspace, f"echo x > {tmp_path}/out", access="full"))[0] == 0
        assert (tmp_path / "out").exists()
        assert [question.kind for question in recorder.questions] == ["sandbox"]
        assert (await run_script(workspace, f"echo x > {tmp_path}/out2"))[0] in (0, 1)
        assert not (tmp_path / "out2").exists()
