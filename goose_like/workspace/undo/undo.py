"""Undo: keep the file changes of each turn, so that the person can go back to before any of them."""

import asyncio
import os
import stat
from collections.abc import Awaitable, Callable, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from goose_like.config.paths import WORKTREES_FOLDER, state_folder
from goose_like.core.errors import GooseLikeError
from goose_like.core.git_head import read_head
from goose_like.core.history import History
from goose_like.core.notifier import Notifier
from goose_like.core.threads import run_in_executor
from goose_like.workspace.repositories.git import RunCommand
from goose_like.workspace.repositories.git_index import read_index
from goose_like.workspace.repositories.ignore_check import IgnoreCheck

from ..evidence.folder_watch import FolderWatch
from ..evidence.tree_hash import TreeHash, TreeState
from .backup import BackupChoice, StoredPaths, get_line, read_losses
from .contents import Contents
from .gaps import find_gaps, format_gaps
from .git_calls import GitCalls
from .log import OpenTurn, PathChange, UndoLog
from .repository import find_git_folder, is_of_git, is_same_index
from .restore import FileChange, RestorePlan, restore_files
from .snapshot import LIMIT_ENTRIES, StoreBlob, read_state
from .state import ABSENT, FileState
from .trees import Trees

if TYPE_CHECKING:  # the parser of commands is slow to import, and the first request can do without it
    from .losses import Losses

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
        roots: Sequence[Path],
        history: History,
        run: RunCommand,
        notifier: Notifier,
        ask_loss: AskLoss | None = None,
    ) -> None:
        """Prepare undo without any work. The first change creates `folder`. `run` runs a short command of our own.

        `roots` are the folders that undo covers, the workspace first.
        """
        self._folder = folder
        self._root = roots[0]
        self._roots = tuple(roots)
        self._history = history
        self._git = GitCalls(run)
        self._notifier = notifier
        self._ask_loss = ask_loss
        self._loop = asyncio.get_running_loop()
        self._worker = ThreadPoolExecutor(1)
        self._ended_turn = history.turn_count
        self._snapshot_turn = 0
        self._gits: dict[Path, Path] = {}  # git folders, with the roots that they belong to
        self._contents: Contents | None = None
        self._trees = Trees(folder, tuple(map(str, roots)), self._git.list_filtered, self._list_own_folders())
        self._told: set[str] = set()
        self._restored: dict[str, tuple[FileState, FileState]] = {}  # by the last restore, until the next turn ends
        self.watch = FolderWatch()
        self._checks = tuple(IgnoreCheck(str(root), self._git.serve) for root in roots)
        self._tree: TreeHash | None = None
        self._prepared_tree: TreeHash | None = None
        self._is_prepared = False
        self._listed_ahead: Callable[[], frozenset[str]] | None = None
        self._is_off = False
        self._is_too_large = False

    async def on_change(
        self, path: Path | None, argv: Sequence[str], folder: str = "", is_confined: bool = True
    ) -> None:
        """Store the state before a change. This is a change listener of the workspace.

        A change between two turns is the person's own and is not stored.

        Raises:
            DeniedError: the command would lose what undo cannot keep, and the person did not allow it.
        """
        if path is not None and self._is_in_worktree(path):
            return  # it belongs to a subagent or another session
        number = self._history.turn_count
        if number == self._ended_turn:
            await self._queue(lambda: None)  # otherwise the comparison would count this change as the turn's
        elif path is not None:
            await self._queue_unless_off(partial(self._store_original, number, path))
        else:
            await self._prepare_command(number, argv, folder or str(self._root), is_confined)

    async def keep_unsaved(self, path: Path, data: bytes) -> None:
        """Keep the text of a file in the person's editor before a turn changes the file that was saved."""
        number = self._history.turn_count
        if number != self._ended_turn:
            await self._queue_unless_off(partial(self._store_unsaved, number, path, data))

    async def _prepare_command(self, number: int, argv: Sequence[str], folder: str, is_confined: bool) -> None:
        """Take the snapshot of a turn, and store what a command would lose and the snapshot lacks."""
        if self._snapshot_turn != number:
            await self._queue_unless_off(partial(self._take_snapshot, number))
        line = get_line(argv)
        is_elsewhere = is_confined and self._is_in_worktree(Path(folder))
        from .destruction import may_lose

        if is_elsewhere or not may_lose(line):
            return  # most commands: a thread for nothing would delay them
        problem = await self._queue(partial(self._back_up, number, line, folder, is_confined))
        if problem and self._ask_loss:
            await self._ask_loss(line, folder, problem)

    def prepare(self) -> None:
        """Look at the files of a large repository in the background, so that the first command need not wait for it."""
        self._is_prepared = True
        self._queue_unless_off(self._prepare)

    def start_turn(self) -> None:
        """List what git ignores in a large repository while the model thinks. Before `prepare`, do nothing."""
        if self._is_prepared:
            self._queue_unless_off(self._list_ahead)

    async def hash_tree(self) -> TreeState:
        """Return the hash of the files and of git's index, and what has changed; empty if not all files are covered.

        In the first change of a turn, the snapshot of the turn serves both. Between turns the hash is empty if no turn
        has taken a snapshot.
        """
        number = self._history.turn_count
        if number == self._ended_turn:
            return await self._queue(self._rescan)
        return await self._queue(partial(self._hash_tree, number))

    def name_changes(self, signs: Set[str]) -> "asyncio.Future[tuple[str, ...] | None]":
        """Name those of the paths that differ from the last look; None if only a look at all files can tell."""
        return self._queue(partial(self._name_changes, signs))

    def is_hashed(self, path: Path) -> bool:
        """Return whether the hash of the files counts a path. Git may ignore it."""
        return self._tree is not None and self._tree.covers(path)

    def _is_in_worktree(self, path: Path) -> bool:
        """Check for a path in a worktree of a subagent or another session."""
        return any(path.is_relative_to(root / WORKTREES_FOLDER) for root in self._roots)

    def end_turn(self) -> None:
        """Start comparing the files in the background. Call this at the end of each turn."""
        self._ended_turn = self._history.turn_count
        self._restored = {}
        if not self._is_off:
            self._queue_unless_off(self._end_turn)

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

    def _queue_unless_off(self, work: Callable[[], None]) -> "asyncio.Future[None]":
        return self._queue(partial(self._run_unless_off, work))

    # --- in the thread: during a turn

    def _run_unless_off(self, work: Callable[[], None]) -> None:
        try:
            if not self._is_off:
                work()
        except (OSError, GooseLikeError) as error:
            self._turn_off(error)

    def _turn_off(self, error: Exception) -> None:
        self._is_off = True
        self._tell(f"undo is off from here on: what changes now can't be taken back ({error})")

    def _tell(self, text: str) -> None:
        self._loop.call_soon_threadsafe(self._notifier.log, text)

    def _open_contents(self) -> Contents:
        """Open the files. Record the turn that a killed process left open; anyone may have changed its files since."""
        if self._contents is None:
            try:
                log = UndoLog(self._folder, LIMIT_STORE_BYTES)
                if log.open_turn:
                    self._trees.load_clean(log.open_turn.clean)
            except OSError as error:
                raise GooseLikeError(f"{self._folder} can't be used: {error}") from error
            self._contents = Contents(log, self._git.read_output)
            self._record_open_turn(is_ours=False)
        return self._contents

    def _store_original(self, number: int, path: Path) -> None:
        self._listed_ahead = None  # this file may decide what git ignores
        log = self._open_contents().log
        turn = log.get_open_turn(number)
        missing_folders = [folder for folder in path.parents if not os.path.lexists(folder)]
        states = {}
        for one in (path, *missing_folders):
            name = str(one)
            if self._find_before(turn, name):
                continue
            # What the snapshot would contain, and does not, was not there.
            states[name] = ABSENT if turn.covers(one) else read_state(name, log.store_blob)
        log.record_originals(number, states)

    def _store_unsaved(self, number: int, path: Path, data: bytes) -> None:
        """Let the turn begin with unsaved text, unless the turn has changed the file already."""
        log = self._open_contents().log
        name = str(path)
        before = self._find_before(log.get_open_turn(number), name) or ABSENT
        now = self._read_state(name, before)
        if before != ABSENT and self._is_same(name, before, now):
            log.record_unsaved(number, name, FileState(now.mode, log.store_blob(data)))

    def _prepare(self) -> None:
        if self._trees.has_many_files():
            self._open_contents()
            self._find_git_folders()
            if self._trees.prepare():
                self._list_ahead()
                self._prepared_tree = self._create_tree()
                self._prepared_tree.prepare()

    def _list_ahead(self) -> None:
        """List for the turn that runs, if there is one: until the next turn, the list would become wrong."""
        is_in_turn = self._history.turn_count != self._ended_turn
        if is_in_turn and self._trees.has_many_files():
            self._listed_ahead = self._git.start_listing_ignored(tuple(map(str, self._roots)))

    def _take_snapshot(self, number: int) -> None:
        if self._snapshot_turn == number:
            return
        log = self._open_contents().log
        self._find_git_folders()
        git_states = {}
        for git in self._gits:
            for path in (str(git / "HEAD"), str(git / "index")):
                git_states[path] = self._read_state(path)
        if git_states:
            log.record_originals(number, git_states)
        self._snapshot_turn = number
        if self._is_too_large:
            return
        roots = tuple(map(str, self._roots))
        wait_for_ignored = self._listed_ahead or self._git.start_listing_ignored(roots)
        self._listed_ahead = None
        own_folders = self._list_own_folders()
        look = self._trees.look_before(lambda: wait_for_ignored() | own_folders, self._choose_store(log))
        ignored = wait_for_ignored()
        self._open_contents().known = self._trees.known
        self._update_tree(ignored, is_complete=not look.large)
        has_files = bool(look.states or self._trees.clean)
        if not look.large or has_files:
            log.record_snapshot(number, roots, ignored, look.states, self._trees.clean, is_partial=bool(look.large))
            self._trees.remove_unused()
        for root in look.large:
            count = f"{root} has over {LIMIT_ENTRIES:,}"
            if has_files:
                fact = "undo does not cover what commands do to files that git does not track"
                self._tell_once(fact, f"{count} of them")
            else:
                self._is_too_large = True
                self._tell_once("undo does not cover what commands do", f"{count} files and folders")
        for problem in look.problems:
            self._tell_once("undo can't use what git has", problem)
        self._tell_gaps(frozenset() if look.large else ignored)

    def _find_git_folders(self) -> None:
        for root in self._roots:
            git = find_git_folder(root)
            if git:
                self._gits.setdefault(git, root)

    def _hash_tree(self, number: int) -> TreeState:
        if self._snapshot_turn == number:
            return self._rescan()
        self._run_unless_off(partial(self._take_snapshot, number))
        return self._get_tree_state()

    def _rescan(self) -> TreeState:
        if self._tree is not None:
            self._run_unless_off(self._tree.rescan)
        return self._get_tree_state()

    def _name_changes(self, signs: Set[str]) -> tuple[str, ...] | None:
        if self._is_off or self._tree is None:
            return None
        return self._tree.name_signs(signs)

    def _get_tree_state(self) -> TreeState:
        if self._is_off or self._tree is None:
            return TreeState()
        return TreeState(self._tree.value, self._tree.take_changes())

    def _update_tree(self, ignored: frozenset[str], *, is_complete: bool) -> None:
        """Bring the hash of the tree to the state of the snapshot."""
        if not is_complete:
            self._tree = None
            return
        if self._tree is None:
            self._tree = self._prepared_tree or self._create_tree()
        self._tree.load(self._trees.known, ignored, self._list_own_folders())

    def _create_tree(self) -> TreeHash:
        list_ignored = partial(self._git.list_ignored, tuple(map(str, self._roots)))
        return TreeHash(self._roots, self._trees, tuple(self._gits), list_ignored, self.watch, self._checks)

    def _tell_gaps(self, ignored: frozenset[str]) -> None:
        """Tell the person which files are not covered, once for each reason."""
        gaps = find_gaps(self._trees.known, ignored, self._roots)
        reasons = set(gaps.values())
        if reasons <= self._told:
            return
        self._told |= reasons
        self._tell(f"undo does not cover what commands do to {format_gaps(gaps, self._root)}")

    def _tell_once(self, fact: str, reason: str) -> None:
        if fact not in self._told:
            self._told.add(fact)
            self._tell(f"{fact}: {reason}")

    # --- in the thread: destructive commands

    def _back_up(self, number: int, line: str, folder: str, is_confined: bool) -> str:
        """Store what a line would lose and the snapshot lacks. Return what cannot be stored, for the person."""
        from .destruction import find_losses, is_destructive

        try:
            if self._is_off:
                return "undo is off" if is_destructive(line) else ""
            losses = find_losses(line, folder)
            if not losses:
                return ""
            return self._store_losses(number, losses, is_confined)
        except (OSError, GooseLikeError) as error:
            self._turn_off(error)
        return "undo is off"

    def _store_losses(self, number: int, losses: "Losses", is_confined: bool) -> str:
        log = self._open_contents().log
        turn = log.get_open_turn(number)
        choice = BackupChoice(tuple(map(str, self._roots)), turn, losses, is_confined)
        if choice.needs_status:
            for root in dict.fromkeys((self._root, *self._gits.values())):
                changed = self._git.list_changed(root)
                if changed is None:
                    return "git can't list the files"
                choice.add_status(changed)
        spared = choice.list_spared()
        asked = choice.list_asked()
        stored = StoredPaths(partial(self._find_before, turn), self._list_own_folders())
        for path in spared:
            with suppress(OSError):  # nobody is asked about these: a copy may be elsewhere
                states, problem = read_losses([path], stored, log.store_blob)
                if not problem:
                    log.record_originals(number, states)
        states, problem = read_losses(asked, stored, log.store_blob)
        log.record_originals(number, states)
        if losses.is_unknown and not choice.has_snapshot:
            return "its files are only known while it runs"
        return problem

    def _read_state(self, path: str, *expected: FileState) -> FileState:
        """Read the state of a path. The state of HEAD includes the commit of its branch."""
        contents = self._open_contents()
        data = None
        place = Path(path)
        if place.name == "HEAD" and place.parent in self._gits:
            data = read_head(place.parent)
            if data is None:
                return ABSENT
        elif self._is_index(path):  # it may be larger than other files
            with suppress(OSError, ValueError):
                data, _ = read_index(path, _LIMIT_INDEX_BYTES)
        if data is None:
            return contents.read_state(path, *expected)
        content = contents.log.store_or_hash_blob(data)
        return FileState(stat.S_IFREG | 0o644, content)

    def _is_index(self, path: str) -> bool:
        return any(path == str(git / "index") for git in self._gits)

    def _is_same(self, path: str, one: FileState, two: FileState) -> bool:
        """Compare two states of a path. `git status` rewrites the index without a change of its entries."""
        contents = self._open_contents()
        if not self._is_index(path) or ABSENT in (one, two):
            return contents.is_same(one, two)
        if one == two:
            return True
        with suppress(OSError):
            one_index = contents.log.read_blob(one.content)
            two_index = contents.log.read_blob(two.content)
            return is_same_index(one_index, two_index)
        return False

    def _list_own_folders(self) -> frozenset[str]:
        return frozenset(os.path.realpath(folder) for folder in (state_folder(), self._folder.parent))

    def _choose_store(self, log: UndoLog) -> StoreBlob:
        return log.store_or_hash_blob if self._is_off else log.store_blob

    def _find_before(self, turn: OpenTurn, path: str) -> FileState | None:
        """Return the state of a path before the open turn, if it is known; None if there was nothing."""
        state = turn.before.get(path)
        if state is None and turn.roots:
            return self._trees.find_clean(path)
        return state

    def _end_turn(self) -> None:
        self._listed_ahead = None
        self._record_open_turn(is_ours=True)

    def _record_open_turn(self, *, is_ours: bool) -> None:
        """Compare the files with their state before the open turn, if there is one, and record the changes."""
        contents = self._contents
        if contents is None or contents.log.open_turn is None:
            return
        turn = contents.log.open_turn
        self._snapshot_turn = 0
        after: dict[str, FileState] = {}
        if turn.roots:
            after = self._read_trees_again(contents.log, turn)
        for path in turn.before.keys() - after.keys():
            after[path] = self._read_state(path, turn.before[path])
        changes = {}
        for path, new in after.items():
            old = self._find_before(turn, path) or ABSENT
            if old != new and not self._is_same(path, old, new):
                changes[path] = (old, new)
        contents.log.record_changes(turn.turn, changes, is_ours=is_ours)

    def _read_trees_again(self, log: UndoLog, turn: OpenTurn) -> dict[str, FileState]:
        """Read the states of the files that the snapshot of a turn covers. A tree that is too large has no new files.

        Files that git ignored at the snapshot do not count, even if it tracks them now.
        """
        newly_ignored = {path for path in self._git.list_ignored(turn.roots) if path not in log.snapshot}
        excluded = turn.ignored | newly_ignored | self._list_own_folders()
        look = self._trees.look_after(turn.roots, excluded, self._choose_store(log))
        self._open_contents().known = self._trees.known
        if look.large and not turn.is_partial:
            count = f"{look.large[0]} has over {LIMIT_ENTRIES:,} files that git does not track"
            self._tell_once("undo can't remove the files that commands have made", count)
        if not look.large and not turn.is_partial:
            return look.states
        # A new file may have been there before.
        return {path: state for path, state in look.states.items() if self._find_before(turn, path)}

    # --- in the thread: going back

    def _update_contents(self) -> Contents:
        self._find_git_folders()
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
        contents = self._update_contents()
        planned = []
        for path, history in contents.log.changes.items():
            changes = [change for change in history if change.turn >= number]
            is_of_left_folder = is_of_git(Path(path)) and Path(path).parent not in self._gits
            if not changes or is_of_left_folder:
                continue
            target = changes[0].before
            last = changes[-1].after
            expected = [target] if last is None else [target, last]
            now = self._read_state(path, *expected)
            if not self._is_same(path, now, target):
                is_edited = self._is_edited(path, changes, now)
                planned.append(FileChange(Path(path), is_edited, now, target))
        return self._finish_plan(contents, planned)

    def _is_edited(self, path: str, changes: Sequence[PathChange], now: FileState) -> bool:
        """Check whether somebody else changed a path between the changes of turns, or after the last one."""
        next_states = [change.before for change in changes[1:]]
        next_states.append(now)
        for change, state in zip(changes, next_states, strict=True):
            if change.after is None or not self._is_same(path, change.after, state):
                return True
        return False

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
        missing = contents.find_missing()
        for index, change in enumerate(planned):
            if str(change.path) in missing:
                planned[index] = change.without_content()
        if any(change.kind == "lost" for change in planned):  # a large new file may be the lost one, moved
            planned = [change for change in planned if change.kind != "remove" or change.now.is_stored]
        return RestorePlan(tuple(planned), contents, self._queue)

    def _restore(self, changes: list[FileChange]) -> list[str]:
        contents = self._update_contents()
        notes = []
        files = []
        for change in changes:
            is_head = change.path.name == "HEAD" and change.path.parent in self._gits
            if not is_head:
                files.append(change)
            elif note := self._restore_head(contents.log, change):
                notes.append(note)
        notes += restore_files(files, contents, self._read_state)
        done = {}
        for change in changes:
            path = str(change.path)
            after = self._read_state(path, change.target, change.now)
            if after != change.now:
                done[path] = (change.now, after)
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
            root = self._gits[change.path.parent]
            self._git.restore_head(root, data)
        except (OSError, GooseLikeError) as error:
            return f"HEAD is left as it is: {error}"
        return ""

    def _close(self) -> None:
        self._is_off = True
        self.watch.close()
        for check in self._checks:
            check.stop()
        self._worker.shutdown(wait=False)
        if self._contents is not None:
            if self._contents.log.open_turn is None:
                self._trees.remove_all()
            self._contents.log.close()
