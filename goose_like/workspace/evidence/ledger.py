"""The ledger of a session: each command with its exit code, and the hashes of the tree before and after it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence, Set
from contextlib import suppress
from contextvars import Context
from pathlib import Path

from goose_like.core.events import CommandFinished
from goose_like.core.notifier import Notifier

from .folder_watch import Signs
from .tree_hash import TreeState, get_files_hash

HashTree = Callable[[], Awaitable[TreeState]]
"""Computes the hash of the files as they are now; empty if it is unknown."""

TakeSigns = Callable[[], Signs]
"""Takes the signs of changes since the last call."""

NameChanges = Callable[[Set[str]], Awaitable[tuple[str, ...] | None]]
"""Names those of the files with a sign that differ from the last look; None if only a look at all files can tell."""

_LIMIT_S = 0.5


class Ledger:
    """Writes a `command_finished` event after each command.

    The tree after a command is read in the background: the model thinks longer. It is also the tree before the next
    command, unless a tool has written a file since. What a person changes meanwhile counts as a change of that command.
    """

    def __init__(self, root: Path, notifier: Notifier) -> None:
        self.hash_tree: HashTree | None = None
        self.take_signs: TakeSigns = lambda: None
        self.name_changes: NameChanges | None = None
        self.written: set[Path] = set()
        """The files that tools have written in this turn."""
        self.commands: list[CommandFinished] = []
        """The commands of this turn that have ended."""
        self.is_written_since_command = False
        self._first_tree = ""
        self._has_unknown_change = False
        self._changes: tuple[str, ...] | None = None
        self._signs: Signs = None
        self._named: Awaitable[tuple[str, ...] | None] | None = None
        self._root = root
        self._notifier = notifier
        self._tree: str | None = None
        self._pending: asyncio.Task[None] | None = None

    @property
    def last_command(self) -> CommandFinished | None:
        """The last command of this turn that has ended."""
        return self.commands[-1] if self.commands else None

    async def read_tree(self, root: Path) -> str:
        """Return the hash of the tree of a workspace now; empty if it is unknown, or another folder's."""
        if self.hash_tree is None or root != self._root:
            return ""
        await self.settle()
        if self._tree is None:
            self._tree = (await self.hash_tree()).value
        if not self._first_tree and not self.written:
            self._first_tree = self._tree
        return self._tree

    async def look_again(self) -> str:
        """Return the hash of the tree now, also if a person has changed files since; empty if it is unknown."""
        if self.hash_tree is None:
            return ""
        await self.settle()
        return (await self.hash_tree()).value

    async def has_changes(self) -> bool:
        """Return whether the files differ from those at the start of the turn, or may differ."""
        await self.settle()
        if self._first_tree:
            tree = await self.read_tree(self._root)
            return get_files_hash(tree) != get_files_hash(self._first_tree)
        return bool(self.written) or self._has_unknown_change

    def start_turn(self) -> None:
        """Begin a turn with nothing written yet. Between turns, files may have changed."""
        self.written = set()
        self.commands = []
        self._tree = None
        self._first_tree = ""
        self._has_unknown_change = False

    async def announce_write(self, path: Path) -> None:
        """Note that a tool will write a file. The tree after the command before is read first."""
        await self.settle()
        self.written.add(path)
        self.is_written_since_command = True
        self._tree = None

    def add(
        self,
        command: str,
        folder: str,
        before: str,
        *,
        exit_code: int | None,
        pipe_codes: Sequence[int] = (),
        is_verification: bool = False,
        ran_no_test: bool = False,
    ) -> None:
        """Add a command that has ended. `exit_code` is None for one that was stopped, or runs on."""
        event = CommandFinished(
            command=command,
            folder=folder,
            exit_code=exit_code,
            pipe_codes=tuple(pipe_codes),
            before=before,
            is_verification=is_verification,
            ran_no_test=ran_no_test,
        )
        self.commands.append(event)
        self.is_written_since_command = False
        self._tree = None
        self._has_unknown_change |= not before
        self._signs = self.take_signs()
        self._named = None
        has_looked = self._pending is None or self._pending.done()
        if self._signs and before and has_looked and self.name_changes:
            self._named = self.name_changes(self._signs)
        # A context of its own: the tool call will have ended.
        self._pending = asyncio.create_task(self._complete(event, self._pending), context=Context())

    async def _complete(self, event: CommandFinished, earlier: asyncio.Task[None] | None) -> None:
        if earlier:
            await earlier
        self._changes = None
        if event.before and self.hash_tree:
            state = await self.hash_tree()
            self._tree = state.value
            if state.value:
                self._changes = state.changes
            event = event.model_copy(update={"after": state.value})
        self._notifier.notify(event)

    async def find_changes(self, *, is_certain: bool) -> tuple[str, ...] | None:
        """Find the names of the files that the last command changed; None if that is unknown, or takes too long.

        The signs of changes tell them. The look at all files is waited for if the signs do not suffice, or if the
        answer that no file changed must be certain.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(_LIMIT_S):
                names = await self._read_signs()
                if names or (names is not None and not is_certain):
                    return names
                await self.settle()
                return self._changes
        return None

    async def _read_signs(self) -> tuple[str, ...] | None:
        if self._signs is not None and not self._signs:
            return ()
        if self._named is None:
            return None
        return await self._named

    async def settle(self) -> None:
        """Wait until each command that has ended is in the session."""
        if self._pending:
            await asyncio.shield(self._pending)
