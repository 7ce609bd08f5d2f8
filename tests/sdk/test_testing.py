"""Tests of the errors of `trial`."""

import pytest

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
