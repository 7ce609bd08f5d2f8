"""The ledger of commands: when a result waits for a look at the files."""

import asyncio
from pathlib import Path

import pytest

from goose_like.core.notifier import Notifier
from goose_like.workspace.evidence.ledger import Ledger, NameChanges
from goose_like.workspace.evidence.tree_hash import TreeState

LOOKED = ("a.py",)


class LateLook:
    """A look at the files that ends when it is told to."""

    def __init__(self) -> None:
        self.end = asyncio.Event()

    async def hash_tree(self) -> TreeState:
        await self.end.wait()
        return TreeState("hash", LOOKED)


@pytest.fixture
def ledger() -> Ledger:
    return Ledger(Path("/"), Notifier())


def name_at_once(names: tuple[str, ...] | None) -> NameChanges:
    """Return a way to name the changes that gives these names at once."""

    def name_changes(_: object) -> "asyncio.Future[tuple[str, ...] | None]":
        named = asyncio.get_running_loop().create_future()
        named.set_result(names)
        return named

    return name_changes


@pytest.mark.parametrize(
    ("signs", "named", "when_likely", "when_certain"),
    [
        (None, ("b.py",), LOOKED, LOOKED),
        (set(), ("b.py",), (), LOOKED),
        ({"/b.py"}, ("b.py",), ("b.py",), ("b.py",)),
        ({"/b.py"}, (), (), LOOKED),
        ({"/b.py"}, None, LOOKED, LOOKED),
    ],
)
async def test_a_result_waits_for_a_look_if_signs_do_not_suffice(
    ledger: Ledger,
    signs: set[str] | None,
    named: tuple[str, ...] | None,
    when_likely: tuple[str, ...],
    when_certain: tuple[str, ...],
):
    look = LateLook()
    ledger.hash_tree = look.hash_tree
    ledger.take_signs = lambda: signs
    ledger.name_changes = name_at_once(named)
    for is_certain, expected in ((False, when_likely), (True, when_certain)):
        look.end.clear()
        ledger.add("true", "/", "before", exit_code=0)
        found = asyncio.create_task(ledger.find_changes(is_certain=is_certain))
        for _ in range(5):
            await asyncio.sleep(0)
        assert found.done() == (expected != LOOKED)
        look.end.set()
        assert await found == expected
        await ledger.settle()
        assert await ledger.read_tree(Path("/")) == "hash", "the ledger has the look in any case"


async def test_signs_name_nothing_before_the_look_after_the_former_command(ledger: Ledger):
    look = LateLook()
    ledger.hash_tree = look.hash_tree
    ledger.take_signs = lambda: {"/b.py"}
    ledger.name_changes = name_at_once(("b.py",))
    ledger.add("true", "/", "before", exit_code=0)
    ledger.add("true", "/", "before", exit_code=0)
    look.end.set()
    assert await ledger.find_changes(is_certain=False) == LOOKED
