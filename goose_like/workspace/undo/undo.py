"""Undo: keep the file changes of each turn, so that the person can go back to before any of them."""

import asyncio
import os
import shlex
import stat
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, TypeVar

from goose_like.config.paths import CACHE_PATHS, WORKTREES_FOLDER, state_folder
from goose_like.core.errors import GooseLikeError
from goose_like.core.history import History
from goose_like.core.notifier import Notifier
from goose_like.core.threads import run_in_executor
from goose_like.workspace.repositories.git import RunCommand, list_filtered_paths, list_ignored_paths
from goose_like.workspace.repositories.git_index import read_index

from .backup import read_losses
from .contents import Contents
from .destruction import find_losses, is_destructive, may_lose
from .log import OpenTurn, UndoLog
from .losses import Losses
from .names import UnknownName
from .repository import find_git_folder, is_same_index, list_changed_paths, read_head, restore_head
from .restore import FileChange, RestorePlan, restore_files
from .snapshot import ABSENT, LIMIT_ENTRIES, FileState, Snapshot, read_state, take_snapshot
from .tracked import TrackedFiles

LIMIT_STORE_BYTES = 1 << 30
_LIMIT_INDEX_BYTES = 256 << 20

_T = TypeVar("_T")

AskLoss = Callable[[str, str, str], Awaitable[object]]
"""Asks about a line in a folder that loses what undo cannot keep, and why. Raises DeniedError after a no."""


class Undo:
    """Listens to changes of files, and compares the files at the end of each turn.

    A change by a file tool stores that file alone. The first command of a turn takes a snapshot of the whole tree:
    in a repository HEAD, the index and all files that git does not ignore, elsewhere all files. Files that are as git
    saw them are not copied, since git has their contents. A destructive command
    also stores what it would delete, and the person is asked about the rest. Other failures never reach a turn: undo
    logs them and turns itself off. One thread does all work, in the order of the calls.
    """

    def __init__(
        self,
        folder: Path,
        root: Path,
        history: History,
        run: RunCommand,
        notifier: Notifier,
        ask_loss: AskLoss | None = None,
    ) -> None:
        """Prepare undo without any work. The first change creates `folder`. `run` runs a short command of our own."""
        self._folder = folder
        self._root = root
        self._history = history
        self._run = run
        self._notifier = notifier
        self._ask_loss = ask_loss
        self._loop = asyncio.get_running_loop()
        self._worker = ThreadPoolExecutor(1)
        self._ended_turn = history.turn_count
        self._snapshot_turn = 0
        self._known: Snapshot = {}
        self._git: Path | None = None
        self._contents: Contents | None = None
        self._told: set[str] = set()
        self._restored: dict[str, tuple[FileState, FileState]] = {}  # by the last restore, until the next turn ends
        self._is_off = self._is_too_large = False

    async def on_change(
        self, path: Path | None, argv: Sequence[str], folder: str = "", is_confined: bool = True
    ) -> None:
        """Store the state before a change. This is a change listener of the workspace.

        A change between two turns is the person's own and is not stored.

        Raises:
            DeniedError: the command would lose what undo cannot keep, and the person did not allow it.
        """
        number, worktrees = self._history.turn_count, self._root / WORKTREES_FOLDER
        is_elsewhere = (path or Path(folder or self._root)).is_relative_to(worktrees)
        if path is not None and is_elsewhere:
            return  # it belongs to a subagent or another session
        if number == self._ended_turn:
            await self._queue(lambda: None)  # otherwise the comparison would count this change as the turn's
        elif path is not None:
            await self._queue(partial(self._run_unless_off, partial(self._store_original, number, path)))
        else:
            if self._snapshot_turn != number:
                await self._queue(partial(self._run_unless_off, partial(self._take_snapshot, number)))
            is_line = [os.path.basename(argv[0]), *argv[1:2]] == ["bash", "-c"] and len(argv) == 3
            line = argv[2] if is_line else shlex.join(argv)
            if not may_lose(line) or (
                is_elsewhere and is_confined
            ):  # most commands: a thread for nothing would delay them
                return
            folder = folder or str(self._root)
            problem = await self._queue(partial(self._back_up, number, line, folder, is_confined))
            if problem and self._ask_loss:
                await self._ask_loss(line, folder, problem)

    def end_turn(self) -> None:
        """Start comparing the files in the background. Call this at the end of each turn."""
        self._ended_turn = self._history.turn_count
        self._restored = {}
        if not self._is_off:
            self._queue(partial(self._run_unless_off, partial(self._record_open_turn, is_ours=True)))

    async def close(self) -> None:
        """Wait for running work, end the thread, and ignore later changes."""
        await self._queue(self._close)

    async def plan_restore(self, number: int) -> RestorePlan:
        """Plan the way back to before turn `number`. Raise GooseLikeError if the stored data cannot be read."""
        return await self._queue(partial(self._plan, number))

    async def plan_redo(self) -> RestorePlan:
        """Plan the way back to before the last restore. The plan is empty when a turn has followed it."""
        return await self._queue(self._plan_redo)

    async def list_turn_changes(self) -> dict[int, list[Path]]:
        """List the paths that each turn changed, by its number. Raise as `plan_restore`."""
        return await self._queue(self._list_turn_changes)

    async def restore(self, plan: RestorePlan, overwrite: frozenset[Path] = frozenset()) -> list[str]:
        """Restore files. A file that somebody else changed is restored only if `overwrite` names it.

        The restore counts as part of the newest turn, and can be undone. Return a sentence for each path that failed.
        """
        chosen = [change for change in plan.changes if not change.is_edited or change.path in overwrite]
        return await self._queue(partial(self._restore, chosen))

    def _queue(self, work: Callable[[], _T]) -> "asyncio.Future[_T]":
        """Start work in the thread, after all earlier work. The work continues if its caller is cancelled."""
        return asyncio.shield(run_in_executor(self._worker, work))

    # --- in the thread: during a turn

    def _run_unless_off(self, work: Callable[[], None]) -> None:
        try:
            if not self._is_off:
                work()
        except (OSError, GooseLikeError) as error:
            self._is_off = True
            self._tell(f"undo is off from here on: what changes now can't be taken back ({error})")

    def _tell(self, text: str) -> None:
        self._loop.call_soon_threadsafe(self._notifier.log, text)

    def _open_contents(self) -> Contents:
        """Open the files. Record the turn that a killed process left open; anyone may have changed its files since."""
        if self._contents is None:
            try:
                self._contents = Contents(UndoLog(self._folder, LIMIT_STORE_BYTES), self._run_git)
            except OSError as error:
                raise GooseLikeError(f"{self._folder} can't be used: {error}") from error
            self._record_open_turn(is_ours=False)
        return self._contents

    def _run_git(self, words: list[str]) -> bytes:
        async def run() -> bytes:
            return (await self._run(words))[1]

        try:
            return self._wait_for(run())
        except GooseLikeError as error:
            raise OSError(str(error)) from error

    def _store_original(self, number: int, path: Path) -> None:
        log = self._open_contents().log
        turn = log.get_open_turn(number)
        missing_folders = [folder for folder in path.parents if not os.path.lexists(folder)]
        paths = [one for one in (path, *missing_folders) if str(one) not in turn.before]
        states = {str(one): ABSENT if turn.covers(one) else read_state(str(one), log.store_blob) for one in paths}
        log.record_originals(number, states)

    def _take_snapshot(self, number: int) -> None:
        if self._snapshot_turn == number:
            return
        log, root = self._open_contents().log, str(self._root)
        self._git = find_git_folder(self._root)
        if self._git:
            paths = [str(self._git / name) for name in ("HEAD", "index")]
            log.record_originals(number, {path: self._read_state(path) for path in paths})
        self._snapshot_turn = number
        if self._is_too_large:
            return
        ignored, tracked = self._list_ignored(root), TrackedFiles(self._root, self._list_filtered)
        states, is_complete = self._read_tree(log, root, ignored, tracked)
        count = f"{root} has over {LIMIT_ENTRIES:,}"
        if is_complete or states:
            log.record_snapshot(number, root, ignored, states, is_partial=not is_complete)
        if not is_complete and states:
            self._tell_once("undo does not cover what commands do to files that git does not track", f"{count} of them")
        elif not is_complete:
            self._is_too_large = True
            self._tell_once("undo does not cover what commands do", f"{count} files and folders")
        self._tell_gaps(root, ignored if is_complete else frozenset(), tracked)

    def _tell_gaps(self, root: str, ignored: frozenset[str], tracked: TrackedFiles) -> None:
        """Tell the person which files are not covered, once for each reason."""
        for problem in tracked.problems:
            self._tell_once("undo can't use what git has", problem)
        gaps = {path: cached.gap for path, cached in self._known.items() if cached.gap}
        others = os.path.join(root, WORKTREES_FOLDER)
        lost = (path for path in sorted(ignored) if not CACHE_PATHS.fullmatch(path.rstrip("/")))
        gaps |= {path: "ignored by git" for path in lost if not (_is_below(path, others) or _is_below(others, path))}
        if set(gaps.values()) - self._told:
            self._told.update(gaps.values())
            path, reason = next(iter(gaps.items()))
            more = f" and {len(gaps) - 1} more" if gaps.keys() - {path} else ""
            self._tell(f"undo does not cover what commands do to {os.path.relpath(path, root)} ({reason}){more}")

    def _tell_once(self, fact: str, reason: str) -> None:
        if fact not in self._told:
            self._told.add(fact)
            self._tell(f"{fact}: {reason}")

    # --- in the thread: destructive commands

    def _back_up(self, number: int, line: str, folder: str, is_confined: bool) -> str:
        """Store what a line would lose and the snapshot lacks. Return what cannot be stored, for the person."""
        try:
            if self._is_off:
                return "undo is off" if is_destructive(line) else ""
            if losses := find_losses(line, folder):
                return self._store_losses(number, losses, is_confined)
            return ""
        except (OSError, GooseLikeError) as error:
            self._is_off = True
            self._tell(f"undo is off from here on: what changes now can't be taken back ({error})")
        return "undo is off"

    def _store_losses(self, number: int, losses: Losses, is_confined: bool) -> str:
        log, root = self._open_contents().log, str(self._root)
        turn = log.get_open_turn(number)
        is_snapshot, gaps = bool(turn.root) and not turn.is_partial, set[str]()
        if losses.needs_tree or losses.replaced:
            gaps = {path for path, state in turn.before.items() if not state.is_stored and "/.git/" not in path}
        statuses = dict.fromkeys(turn.ignored, "!!")
        if not is_snapshot or (gaps and losses.resets_tree):
            changed = self._wait_for(list_changed_paths(self._root, self._run)) if losses.needs_tree else {}
            if changed is None:
                return "git can't list the files"
            statuses |= changed if not is_snapshot else {path: changed[path] for path in gaps & changed.keys()}
        candidates = {*statuses, *gaps, *self._list_repositories(turn, losses)}

        def list_meant(names: Sequence[UnknownName]) -> list[str]:
            return [path for name in dict.fromkeys(names) for path in name.find(sorted(candidates))]

        away = {path for path, end in losses.moved.items() if is_confined and end and not _is_below(end, root)}
        spared = [*(path for path in losses.moved if path not in away), *list_meant(losses.replaced)]
        asked = [*losses.paths, *sorted(away)]
        asked = [path for path in asked if not is_confined or _is_below(path, root)]
        asked += [path for path in sorted(statuses) if losses.clears(path, statuses[path])]
        asked += list_meant(losses.unknown)
        excluded = _StoredPaths(turn.before, self._list_own_folders())
        for path in spared if not is_confined else (path for path in spared if _is_below(path, root)):
            with suppress(OSError):  # nobody is asked about these: a copy may be elsewhere
                states, problem = read_losses([path], excluded, log.store_blob)
                log.record_originals(number, {} if problem else states)
        states, problem = read_losses(dict.fromkeys(asked), excluded, log.store_blob)
        log.record_originals(number, states)
        return "its files are only known while it runs" if losses.is_unknown and not is_snapshot else problem

    def _list_repositories(self, turn: OpenTurn, losses: Losses) -> list[str]:
        """List the repositories that a folder of unknown name might be, or contain."""
        if not losses.is_unknown:
            return []
        folders = [str(self._root), *(path for path, state in turn.before.items() if stat.S_ISDIR(state.mode))]
        return [git for folder in folders if os.path.lexists(git := os.path.join(folder, ".git"))]

    def _read_state(self, path: str, *expected: FileState) -> FileState:
        """Read the state of a path. The state of HEAD includes the commit of its branch."""
        contents, data = self._open_contents(), None
        if self._git and path == str(self._git / "HEAD"):
            if (data := read_head(self._git)) is None:
                return ABSENT
        elif self._git and path == str(self._git / "index"):  # it may be larger than other files
            with suppress(OSError, ValueError):
                data, _ = read_index(path, _LIMIT_INDEX_BYTES)
        if data is not None:
            return FileState(stat.S_IFREG | 0o644, contents.log.store_or_hash_blob(data))
        return contents.read_state(path, *expected)

    def _is_same(self, path: str, one: FileState, two: FileState) -> bool:
        """Compare two states of a path. `git status` rewrites the index without a change of its entries."""
        contents = self._open_contents()
        if not self._git or path != str(self._git / "index") or ABSENT in (one, two):
            return contents.is_same(one, two)
        with suppress(OSError):
            return one == two or is_same_index(contents.log.read_blob(one.content), contents.log.read_blob(two.content))
        return False

    def _list_ignored(self, root: str) -> frozenset[str]:
        return self._wait_for(list_ignored_paths(Path(root), self._run))

    def _list_filtered(self, folder: Path) -> frozenset[str] | None:
        return self._wait_for(list_filtered_paths(folder, self._run))

    def _wait_for(self, work: Coroutine[Any, Any, _T]) -> _T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _list_own_folders(self) -> frozenset[str]:
        return frozenset(os.path.realpath(folder) for folder in (state_folder(), self._folder.parent))

    def _read_tree(
        self, log: UndoLog, root: str, ignored: frozenset[str], tracked: TrackedFiles
    ) -> tuple[dict[str, FileState], bool]:
        """Read the states of all files, or of the tracked ones: the second result is False then."""
        put = log.store_or_hash_blob if self._is_off else log.store_blob
        excluded = ignored | self._list_own_folders()
        self._known, is_complete = take_snapshot(Path(root), excluded, put, self._known, tracked)
        self._open_contents().known = self._known
        return {path: cached.state for path, cached in self._known.items()}, is_complete

    def _record_open_turn(self, *, is_ours: bool) -> None:
        """Compare the files with their state before the open turn, if there is one, and record the changes.

        Files that git ignored at the snapshot do not count, even if it tracks them now.
        """
        if (contents := self._contents) is None or (turn := contents.log.open_turn) is None:
            return
        log, after = contents.log, dict[str, FileState]()
        self._snapshot_turn = 0
        if turn.root:  # if the tree has become too large, this finds no new files
            newly_ignored = {path for path in self._list_ignored(turn.root) if path not in log.snapshot}
            tracked = TrackedFiles(Path(turn.root), self._list_filtered)
            after, is_complete = self._read_tree(log, turn.root, turn.ignored | newly_ignored, tracked)
            if turn.is_partial or not is_complete:  # a new file may have been there before
                after = {path: state for path, state in after.items() if path in turn.before}
            if not turn.is_partial and not is_complete:
                fact, kind = "undo can't remove the files that commands have made", "files that git does not track"
                self._tell_once(fact, f"{turn.root} has over {LIMIT_ENTRIES:,} {kind}")
        after |= {path: self._read_state(path, turn.before[path]) for path in turn.before.keys() - after.keys()}
        pairs = ((path, turn.before.get(path, ABSENT), state) for path, state in after.items())
        changes = {path: (old, new) for path, old, new in pairs if old != new and not self._is_same(path, old, new)}
        log.record_changes(turn.turn, changes, is_ours=is_ours)

    # --- in the thread: going back

    def _update_contents(self) -> Contents:
        self._git = self._git or find_git_folder(self._root)
        contents = self._open_contents()
        with suppress(OSError):  # the state in memory is complete all the same
            self._record_open_turn(is_ours=not self._is_off)
        return contents

    def _list_turn_changes(self) -> dict[int, list[Path]]:
        turns: dict[int, list[Path]] = {}
        for path, changes in sorted(self._update_contents().log.changes.items()):
            for turn in {change.turn for change in changes}:
                turns.setdefault(turn, []).append(Path(path))
        return turns

    def _plan(self, number: int) -> RestorePlan:
        contents, planned = self._update_contents(), []
        for path, history in contents.log.changes.items():
            if changes := [change for change in history if change.turn >= number]:
                last, target = changes[-1].after, changes[0].before
                now = self._read_state(path, target, *([last] if last else []))
                pairs = chain([(last, now)], ((one.after, two.before) for one, two in pairwise(changes)))
                is_edited = any(one is None or not self._is_same(path, one, two) for one, two in pairs)
                if not self._is_same(path, now, target):
                    planned.append(FileChange(Path(path), is_edited, now, target))
        return self._finish_plan(contents, planned)

    def _plan_redo(self) -> RestorePlan:
        contents = self._update_contents()
        planned = []
        for path, (target, restored) in self._restored.items():
            now = self._read_state(path, restored, target)
            if not self._is_same(path, now, target):
                is_edited = not self._is_same(path, now, restored)
                planned.append(FileChange(Path(path), is_edited, now, target))
        return self._finish_plan(contents, planned)

    def _finish_plan(self, contents: Contents, planned: list[FileChange]) -> RestorePlan:
        """Sort the changes, and find those whose former content is lost."""
        planned.sort(key=lambda change: change.path)
        contents.expect((str(change.path), change.target) for change in planned)
        if missing := contents.find_missing():
            planned = [_drop_content(change) if str(change.path) in missing else change for change in planned]
        if any(change.kind == "lost" for change in planned):  # a large new file may be the lost one, moved
            planned = [change for change in planned if change.kind != "remove" or change.now.is_stored]
        return RestorePlan(tuple(planned), contents, self._queue)

    def _restore(self, changes: list[FileChange]) -> list[str]:
        contents = self._update_contents()
        heads = [change for change in changes if self._git and change.path == self._git / "HEAD"]
        notes = [note for change in heads if (note := self._restore_head(contents.log, change))]
        notes += restore_files((change for change in changes if change not in heads), contents, self._read_state)
        done = {}
        for change in changes:
            if (after := self._read_state(str(change.path), change.target, change.now)) != change.now:
                done[str(change.path)] = (change.now, after)
        with suppress(OSError):
            contents.log.record_changes(self._history.turn_count, done)
        self._restored = done
        return notes

    def _restore_head(self, log: UndoLog, change: FileChange) -> str:
        """Restore HEAD and its branch. Return a sentence if that failed."""
        if self._read_state(str(change.path)) != change.now:
            return "HEAD was changed just now: it is left as it is"
        try:
            data = log.read_blob(change.target.content)
            self._wait_for(restore_head(self._root, data, self._run))
        except (OSError, GooseLikeError) as error:
            return f"HEAD is left as it is: {error}"
        return ""

    def _close(self) -> None:
        self._is_off = True
        self._worker.shutdown(wait=False)
        if self._contents is not None:
            self._contents.log.close()


@dataclass(frozen=True, slots=True)
class _StoredPaths:
    """The paths that a destructive command cannot lose, without a pass over all files of a large repository."""

    before: Mapping[str, FileState]
    own_folders: frozenset[str]

    def __contains__(self, path: object) -> bool:
        state = self.before.get(str(path))
        return path in self.own_folders or bool(state and state.is_stored and not stat.S_ISDIR(state.mode))


def _drop_content(change: FileChange) -> FileChange:
    """Mark the former content as lost."""
    return replace(change, target=change.target._replace(content="\0"))


def _is_below(path: str, folder: str) -> bool:
    return Path(path).is_relative_to(folder)
