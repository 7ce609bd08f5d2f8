"""The ledger of commands: when a result waits for a look at the files."""

import asyncio
from pathlib import Path

import pytest

from goose_like.core.notifier import Notifier
from goose_like.workspace.evidence.ledger import Ledger
from goose_like.workspace.evidence.tree_hash import TreeState


class LateLook:
    """A look at the files that ends when it is told to."""

    def __init__(self) -> None:
        self.end = asyncio.Event()

    async def hash_tree(self) -> TreeState:
        await self.end.wait()
        return TreeState("hash", ("a.py",))


@pytest.fixture
def ledger() -> Ledger:
    return Ledger(Path("/"), Notifier())


async def test_only_signs_and_certain_answers_wait_for_a_look(ledger: Ledger):
    look = LateLook()
    ledger.hash_tree = look.hash_tree
    for has_signs in (True, False):
        for is_certain in (True, False):
            look.end.clear()
            ledger.may_have_changed = lambda has_signs=has_signs: has_signs
            ledger.add("true", "/", "before", exit_code=0)
            found = asyncio.create_task(ledger.find_changes(is_certain=is_certain))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            waits = has_signs or is_certain
            assert found.done() != waits
            look.end.set()
            assert await found == (("a.py",) if waits else ())
            await ledger.settle()
            assert await ledger.read_tree(Path("/")) == "hash", "the ledger has the look in any case"
