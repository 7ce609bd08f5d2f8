"""Undo: what a session's turns do to files is kept, so that a person can go back to before any of them."""

import asyncio
import hashlib
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

from goose_like.config.paths import state_folder
from goose_like.core.errors import GooseLikeError
from goose_like.core.history import History
from goose_like.core.notifier import Notifier
from goose_like.workspace.ignored import Run, ignored

from .blobs import Contents
from .log import Open, Records
from .restore import Change, Reversal, put_back
from .snapshot import ABSENT, LIMIT_ENTRIES, Node, Seen, Tree, look, node_at

LIMIT_STORE_BYTES = 1 << 30

_T = TypeVar("_T")


class Undo:
    """Listens to what changes files, and looks at the end of each turn at what became of them.

    A file tool's file is kept alone. Before a turn's first command stock is taken of the whole tree: in a repository
    of what git does not ignore, elsewhere of everything. No failure of it reaches a turn: it is told, and undo is off.
    """

    def __init__(self, folder: Path, root: Path, history: History, run: Run, notifier: Notifier) -> None:
        """Does no work yet. `folder` is made when first needed; `run` runs a short command of ours."""
        self._folder = folder
        self._root = root
        self._history = history
        self._run = run
        self._notifier = notifier
        self._is_off = False
        self._ended = history.turn_count
        self._stocked = 0
        self._seen: Mapping[str, Seen] = {}
        self._store: tuple[Contents, Records] | None = None
        self._last: asyncio.Task[Any] | None = None
        self._is_too_large = self._has_told_gaps = False

    # --- what happens in a turn

    async def before_change(self, path: Path | None, argv: Sequence[str]) -> None:
        """To be told of every change by the workspace. Between turns it is the person's own, and nothing is kept."""
        number = self._history.turn_count
        if self._is_off:
            return
        if number == self._ended:
            if self._last is not None:  # or it would be taken for the turn's
                await asyncio.wait({self._last})
            return
        if path is None and (self._is_too_large or number == self._stocked):
            return
        work = partial(self._take_stock, number) if path is None else partial(self._keep, number, path)
        await asyncio.shield(self._next(partial(self._unless_off, work)))

    def end_turn(self) -> None:
        """To be told when a turn is over. What it changed is looked at from here on, and nobody waits for that."""
        self._ended = self._history.turn_count
        if self._last is not None and not self._is_off:
            self._next(partial(self._unless_off, self._settle))

    async def close(self) -> None:
        """Waits for what is under way. Changes are no longer listened to."""
        if self._last is not None:
            await asyncio.wait({self._last})
        self._is_off = True
        if self._store is not None:
            for part in self._store:
                with suppress(OSError):
                    part.close()

    # --- going back

    async def plan(self, number: int) -> Reversal:
        """What going back to before turn `number` would change of files now.

        Raises:
            GooseLikeError: what was kept can't be read.
        """
        return await asyncio.shield(self._next(partial(self._plan, number)))

    async def restore(self, plan: Reversal, overwrite: frozenset[Path] = frozenset()) -> list[str]:
        """Goes back, but for files that somebody else changed: these only where `overwrite` names them.

        Gives sentences for what could not be done. It can be gone back on in its turn, as a part of the newest turn.
        """
        chosen = [change for change in plan.changes if not change.is_edited or change.path in overwrite]
        return await asyncio.shield(self._next(partial(self._restore, chosen)))

    async def _plan(self, number: int) -> Reversal:
        contents, records = await self._opened()
        with suppress(OSError):  # it is folded all the same
            await self._settle(is_ours=not self._is_off)
        return await asyncio.to_thread(self._draw, contents, records, number)

    def _draw(self, contents: Contents, records: Records, number: int) -> Reversal:
        changes = []
        for path, every in records.steps.items():
            if not (steps := [step for step in every if step.turn >= number]):
                continue
            now, target = node_at(path, self._keep_or_name), steps[0].before
            is_edited = steps[-1].after != now or any(one.after != two.before for one, two in pairwise(steps))
            if now != target:
                changes.append(Change(Path(path), is_edited, now, target))
        return Reversal(number, tuple(sorted(changes, key=lambda change: change.path)), contents.get)

    async def _restore(self, changes: list[Change]) -> list[str]:
        contents, records = await self._opened()
        with suppress(OSError):
            await self._settle(is_ours=not self._is_off)

        def put() -> list[str]:
            told = put_back(changes, contents.get, self._keep_or_name)
            after = {str(change.path): node_at(str(change.path), self._keep_or_name) for change in changes}
            done = {
                path: (change.now, node)
                for change in changes
                if (node := after[path := str(change.path)]) != change.now
            }
            with suppress(OSError):
                contents.flush()
                records.leave(self._history.turn_count, done)
            return told

        return await asyncio.to_thread(put)

    # --- one after another

    def _next(self, work: Callable[[], Awaitable[_T]]) -> "asyncio.Task[_T]":
        """The work as a task, which begins when all that came before is done, and goes on when nobody waits for it."""
        before = self._last

        async def in_order() -> _T:
            if before is not None:
                await asyncio.wait({before})
            return await work()

        self._last = task = asyncio.create_task(in_order())
        return task

    async def _unless_off(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            if not self._is_off:
                await work()
        except (OSError, GooseLikeError) as error:
            self._is_off = True
            self._notifier.log(f"undo is off from here on: what changes now can't be taken back ({error})")

    async def _opened(self) -> tuple[Contents, Records]:
        """The store; at first what a process that was killed left open is looked at, which may be anyone's by now."""
        if self._store is None:
            self._store = await asyncio.to_thread(self._open)
            await self._settle(is_ours=False)
        return self._store

    def _open(self) -> tuple[Contents, Records]:
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            contents = Contents(self._folder / "contents", LIMIT_STORE_BYTES)
            return contents, Records(self._folder / "records.jsonl")
        except OSError as error:
            raise GooseLikeError(f"{self._folder} can't be used: {error}") from error

    # --- looking

    async def _keep(self, number: int, path: Path) -> None:
        contents, records = await self._opened()
        await asyncio.to_thread(self._keep_one, contents, records, number, path)

    def _keep_one(self, contents: Contents, records: Records, number: int, path: Path) -> None:
        open_ = records.begin(number)
        made = [folder for folder in path.parents if not os.path.lexists(folder)]
        news = {
            str(one): self._before(contents, records, open_, one) for one in (path, *made) if str(one) not in open_.kept
        }
        contents.flush()
        records.keep(number, news)

    def _before(self, contents: Contents, records: Records, open_: Open, path: Path) -> Node:
        """How it was before this turn: as stock says, if that would have seen it, else as it is."""
        is_left_out = any(str(one) in open_.ignored or one.name == ".git" for one in (path, *path.parents))
        if open_.root and path.is_relative_to(open_.root) and not is_left_out:
            return records.tree.get(str(path), ABSENT)
        return node_at(str(path), contents.keep)

    async def _take_stock(self, number: int) -> None:
        if self._stocked == number or self._is_too_large:
            return
        contents, records = await self._opened()
        left_out = await ignored(self._root, self._run)
        tree = await asyncio.to_thread(self._stock, contents, records, number, left_out)
        if tree.is_complete:
            self._stocked = number
        else:
            self._is_too_large = True
            self._notifier.log(
                f"undo covers what file tools change, but not what commands do: {self._root} has more than "
                f"{LIMIT_ENTRIES:,} files and folders"
            )
        if tree.gaps and not self._has_told_gaps:
            self._has_told_gaps = True
            self._notifier.log(f"undo does not cover what commands do to {self._listed(tree.gaps)}")

    def _stock(self, contents: Contents, records: Records, number: int, left_out: frozenset[str]) -> Tree:
        root = str(self._root)
        tree = self._look(contents, root, left_out)
        contents.flush()
        if tree.is_complete:
            records.stock(number, root, left_out, {path: seen.node for path, seen in tree.seen.items()})
        return tree

    def _look(self, contents: Contents, root: str, left_out: frozenset[str]) -> Tree:
        ours = {os.path.realpath(folder) for folder in (state_folder(), self._folder.parent)}
        keep = self._keep_or_name if self._is_off else contents.keep
        tree = look(Path(root), left_out | ours, keep, self._seen)
        self._seen = tree.seen
        return tree

    async def _settle(self, *, is_ours: bool = True) -> None:
        """Looks at what the open turn has left, if there is one."""
        if self._store is None or (open_ := self._store[1].open) is None:
            return
        left_out = await ignored(Path(open_.root), self._run) if open_.root else frozenset[str]()
        self._stocked = 0
        await asyncio.to_thread(self._compare, *self._store, open_, left_out, is_ours)

    def _compare(
        self, contents: Contents, records: Records, open_: Open, now_ignored: frozenset[str], is_ours: bool
    ) -> None:
        """What was ignored when stock was taken is none of the turn's; what was not ignored then still counts."""
        before: dict[str, Node] = {}
        after: dict[str, Node] = {}
        if open_.root:
            left_out = open_.ignored | {path for path in now_ignored if path not in records.tree}
            tree = self._look(contents, open_.root, left_out)
            before |= records.tree
            after |= {path: seen.node for path, seen in tree.seen.items()}
            if not tree.is_complete:  # what is new among so many can't be told
                after |= {path: node_at(path, self._keep_or_name) for path in before}
        before |= open_.kept
        after |= {path: node_at(path, self._keep_or_name) for path in open_.kept}
        both = {path: (before.get(path, ABSENT), after.get(path, ABSENT)) for path in before.keys() | after.keys()}
        try:
            contents.flush()
        finally:  # it is folded, whatever can be written
            changes = {path: pair for path, pair in both.items() if pair[0] != pair[1]}
            records.leave(open_.turn, changes, is_ours=is_ours)

    def _keep_or_name(self, data: bytes) -> str:
        """For what is only looked at, or put out of the way: a full disk must not stand against going back."""
        if self._store is not None:
            with suppress(OSError):
                return self._store[0].keep(data)
        return hashlib.sha256(data).hexdigest()

    def _listed(self, gaps: Mapping[str, Sequence[str]]) -> str:
        """`3 files over 10 MB, e.g. data.bin`."""
        return "; ".join(
            f"{len(paths)} {'file' if len(paths) == 1 else 'files'} {why}, e.g. {os.path.relpath(paths[0], self._root)}"
            for why, paths in gaps.items()
        )
