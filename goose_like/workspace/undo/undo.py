"""Undo: keep the file changes of each turn, so that the person can go back to before any of them."""

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
from goose_like.workspace.git import RunCommand, list_ignored_paths

from .log import OpenTurn, UndoLog
from .restore import FileChange, RestorePlan, restore_files
from .snapshot import ABSENT, LIMIT_ENTRIES, CachedState, FileState, Snapshot, read_state, take_snapshot

LIMIT_STORE_BYTES = 1 << 30

_T = TypeVar("_T")


class Undo:
    """Listens to changes of files, and compares the files at the end of each turn.

    A change by a file tool stores that file alone. The first command of a turn takes a snapshot of the whole tree:
    in a repository all files that git does not ignore, elsewhere all files. Failures never reach a turn: undo logs
    them and turns itself off.
    """

    def __init__(self, folder: Path, root: Path, history: History, run: RunCommand, notifier: Notifier) -> None:
        """Prepare undo without any work. The first change creates `folder`. `run` runs a short command of our own."""
        self._folder = folder
        self._root = root
        self._history = history
        self._run = run
        self._notifier = notifier
        self._is_off = False
        self._ended_turn = history.turn_count
        self._snapshot_turn = 0
        self._known: Mapping[str, CachedState] = {}
        self._opened_log: UndoLog | None = None
        self._last_task: asyncio.Task[Any] | None = None
        self._is_too_large = self._has_reported_gaps = False

    # --- during a turn

    async def on_change(self, path: Path | None, argv: Sequence[str]) -> None:
        """Store the state before a change. This is a change listener of the workspace.

        A change between two turns is the person's own and is not stored.
        """
        number = self._history.turn_count
        if self._is_off:
            return
        if number == self._ended_turn:
            if self._last_task is not None:  # otherwise the comparison would count this change as the turn's
                await asyncio.wait({self._last_task})
            return
        if path is None and (self._is_too_large or number == self._snapshot_turn):
            return
        work = partial(self._take_snapshot, number) if path is None else partial(self._store_original, number, path)
        await asyncio.shield(self._enqueue(partial(self._run_unless_off, work)))

    def end_turn(self) -> None:
        """Start comparing the files in the background. Call this at the end of each turn."""
        self._ended_turn = self._history.turn_count
        if self._last_task is not None and not self._is_off:
            self._enqueue(partial(self._run_unless_off, self._record_open_turn))

    async def close(self) -> None:
        """Wait for running work, and ignore later changes."""
        if self._last_task is not None:
            await asyncio.wait({self._last_task})
        self._is_off = True
        if self._opened_log is not None:
            self._opened_log.close()

    # --- going back

    async def plan_restore(self, number: int) -> RestorePlan:
        """Plan the file changes that restore the state before turn `number`.

        Raises:
            GooseLikeError: the stored data cannot be read.
        """
        return await asyncio.shield(self._enqueue(partial(self._plan, number)))

    async def restore(self, plan: RestorePlan, overwrite: frozenset[Path] = frozenset()) -> list[str]:
        """Restore files. A file that somebody else changed is restored only if `overwrite` names it.

        The restore itself counts as part of the newest turn, so a later restore can revert it.

        Returns:
            A sentence for each path that could not be restored.
        """
        chosen = [change for change in plan.changes if not change.is_edited or change.path in overwrite]
        return await asyncio.shield(self._enqueue(partial(self._restore, chosen)))

    async def _plan(self, number: int) -> RestorePlan:
        log = await self._open_log()
        with suppress(OSError):  # the state in memory is complete all the same
            await self._record_open_turn(is_ours=not self._is_off)
        return await asyncio.to_thread(self._build_plan, log, number)

    def _build_plan(self, log: UndoLog, number: int) -> RestorePlan:
        planned = []
        for path, history in log.changes.items():
            if not (changes := [change for change in history if change.turn >= number]):
                continue
            now, target = read_state(path, self._store_or_hash), changes[0].before
            is_edited = changes[-1].after != now or any(one.after != two.before for one, two in pairwise(changes))
            if now != target:
                planned.append(FileChange(Path(path), is_edited, now, target))
        return RestorePlan(tuple(sorted(planned, key=lambda change: change.path)), log.blobs.get)

    async def _restore(self, changes: list[FileChange]) -> list[str]:
        log = await self._open_log()
        with suppress(OSError):
            await self._record_open_turn(is_ours=not self._is_off)

        def restore() -> list[str]:
            notes = restore_files(changes, log.blobs.get, self._store_or_hash)
            after = {str(change.path): read_state(str(change.path), self._store_or_hash) for change in changes}
            done = {
                path: (change.now, state)
                for change in changes
                if (state := after[path := str(change.path)]) != change.now
            }
            with suppress(OSError):
                log.blobs.flush()
                log.record_changes(self._history.turn_count, done)
            return notes

        return await asyncio.to_thread(restore)

    # --- one task after another

    def _enqueue(self, work: Callable[[], Awaitable[_T]]) -> "asyncio.Task[_T]":
        """Start work as a task that waits for all earlier tasks. The task continues even if its caller is cancelled."""
        before = self._last_task

        async def run_in_order() -> _T:
            if before is not None:
                await asyncio.wait({before})
            return await work()

        self._last_task = task = asyncio.create_task(run_in_order())
        return task

    async def _run_unless_off(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            if not self._is_off:
                await work()
        except (OSError, GooseLikeError) as error:
            self._is_off = True
            self._notifier.log(f"undo is off from here on: what changes now can't be taken back ({error})")

    async def _open_log(self) -> UndoLog:
        """Open the files. Record the turn that a killed process left open; anyone may have changed its files since."""
        if self._opened_log is None:
            try:
                self._opened_log = await asyncio.to_thread(UndoLog, self._folder, LIMIT_STORE_BYTES)
            except OSError as error:
                raise GooseLikeError(f"{self._folder} can't be used: {error}") from error
            await self._record_open_turn(is_ours=False)
        return self._opened_log

    # --- reading and comparing files

    async def _store_original(self, number: int, path: Path) -> None:
        await asyncio.to_thread(self._store_original_now, await self._open_log(), number, path)

    def _store_original_now(self, log: UndoLog, number: int, path: Path) -> None:
        turn = log.get_open_turn(number)
        missing_folders = [folder for folder in path.parents if not os.path.lexists(folder)]
        paths = [one for one in (path, *missing_folders) if str(one) not in turn.originals]
        states = {str(one): self._read_original(log, turn, one) for one in paths}
        log.blobs.flush()
        log.record_originals(number, states)

    def _read_original(self, log: UndoLog, turn: OpenTurn, path: Path) -> FileState:
        """Return the state before this turn: from the snapshot if it covers the path, or else the current state."""
        is_excluded = any(str(one) in turn.ignored or one.name == ".git" for one in (path, *path.parents))
        if turn.root and path.is_relative_to(turn.root) and not is_excluded:
            return log.snapshot.get(str(path), ABSENT)
        return read_state(str(path), log.blobs.put)

    async def _take_snapshot(self, number: int) -> None:
        if self._snapshot_turn == number or self._is_too_large:
            return
        log = await self._open_log()
        ignored = await list_ignored_paths(self._root, self._run)
        snapshot = await asyncio.to_thread(self._record_snapshot, log, number, ignored)
        if snapshot.is_complete:
            self._snapshot_turn = number
        else:
            self._is_too_large = True
            self._notifier.log(
                f"undo covers what file tools change, but not what commands do: {self._root} has more than "
                f"{LIMIT_ENTRIES:,} files and folders"
            )
        if snapshot.gaps and not self._has_reported_gaps:
            self._has_reported_gaps = True
            self._notifier.log(f"undo does not cover what commands do to {self._format_gaps(snapshot.gaps)}")

    def _record_snapshot(self, log: UndoLog, number: int, ignored: frozenset[str]) -> Snapshot:
        root = str(self._root)
        snapshot = self._read_tree(log, root, ignored)
        log.blobs.flush()
        if snapshot.is_complete:
            states = {path: cached.state for path, cached in snapshot.states.items()}
            log.record_snapshot(number, root, ignored, states)
        return snapshot

    def _read_tree(self, log: UndoLog, root: str, ignored: frozenset[str]) -> Snapshot:
        own_folders = {os.path.realpath(folder) for folder in (state_folder(), self._folder.parent)}
        put = self._store_or_hash if self._is_off else log.blobs.put
        snapshot = take_snapshot(Path(root), ignored | own_folders, put, self._known)
        self._known = snapshot.states
        return snapshot

    async def _record_open_turn(self, *, is_ours: bool = True) -> None:
        """Compare the files with their state before the open turn, if there is one, and record the changes."""
        if self._opened_log is None or (turn := self._opened_log.open_turn) is None:
            return
        ignored = await list_ignored_paths(Path(turn.root), self._run) if turn.root else frozenset[str]()
        self._snapshot_turn = 0
        await asyncio.to_thread(self._compare, self._opened_log, turn, ignored, is_ours)

    def _compare(self, log: UndoLog, turn: OpenTurn, now_ignored: frozenset[str], is_ours: bool) -> None:
        """Record the changes of a turn. Files that git ignored at the snapshot do not count, even if tracked now."""
        before: dict[str, FileState] = {}
        after: dict[str, FileState] = {}
        if turn.root:
            excluded = turn.ignored | {path for path in now_ignored if path not in log.snapshot}
            snapshot = self._read_tree(log, turn.root, excluded)
            before |= log.snapshot
            after |= {path: cached.state for path, cached in snapshot.states.items()}
            if not snapshot.is_complete:  # new files among so many cannot be found
                after |= {path: read_state(path, self._store_or_hash) for path in before}
        before |= turn.originals
        after |= {path: read_state(path, self._store_or_hash) for path in turn.originals}
        both = {path: (before.get(path, ABSENT), after.get(path, ABSENT)) for path in before.keys() | after.keys()}
        try:
            log.blobs.flush()
        finally:  # record the changes in memory, even on a full disk
            changes = {path: pair for path, pair in both.items() if pair[0] != pair[1]}
            log.record_changes(turn.turn, changes, is_ours=is_ours)

    def _store_or_hash(self, data: bytes) -> str:
        """Store a content if possible, or only hash it, so that a full disk never prevents a restore."""
        if self._opened_log is not None:
            with suppress(OSError):
                return self._opened_log.blobs.put(data)
        return hashlib.sha256(data).hexdigest()

    def _format_gaps(self, gaps: Mapping[str, Sequence[str]]) -> str:
        """Format paths without stored content, such as `3 files over 10 MB, e.g. data.bin`."""
        return "; ".join(
            f"{len(paths)} {'file' if len(paths) == 1 else 'files'} {why}, e.g. {os.path.relpath(paths[0], self._root)}"
            for why, paths in gaps.items()
        )
