"""Tests of the errors of `trial`, and of what a toolkit reports."""

import pytest

from goose_like.core.events import FileChanged
from goose_like.core.tool import ToolError
from goose_like.testing import trial
from goose_like.toolkit import Toolkit, tool


class Asking(Toolkit):
    @tool
    async def ask(self) -> str:
        """Ask the fast model."""
        return await self.exchange_view.accelerator.ask("Which?")


async def test_a_question_without_answers():
    async with trial(Asking) as asking:
        with pytest.raises(ToolError, match=r'^there is no model in a trial; pass answers=\["\.\.\."\]'):
            await asking.call("ask")


class Writing(Toolkit):
    @tool
    async def write(self, path: str, diff: str = "") -> None:
        """Write a file."""
        self.report_change(path, diff)


async def test_a_reported_change_has_an_absolute_path_and_its_call():
    async with trial(Writing) as writing:
        await writing.call("write", path="a/b.py", diff="+x")
        await writing.call("write", path="/elsewhere/c.png")
        root = writing.toolkit.workspace.root
    assert writing.recorder.events == [
        FileChanged(call_id="call_1", path=f"{root}/a/b.py", diff="+x"),
        FileChanged(call_id="call_1", path="/elsewhere/c.png"),
    ]
