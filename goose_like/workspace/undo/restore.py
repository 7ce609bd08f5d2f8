"""Restore files: the planned changes with their diffs, and their execution."""

import os
import stat
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal

from goose_like.core.dataclass import dataclass
from goose_like.core.errors import GooseLikeError
from goose_like.core.git_head import describe_commit
from goose_like.workspace.descriptors import set_mode
from goose_like.workspace.diff import format_diff
from goose_like.workspace.files import open_folder, replace_file, temporary_name
from goose_like.workspace.repositories.git_index import is_safe_name

from .contents import Contents
from .repository import is_of_git
from .state import ABSENT, FileState


@dataclass(frozen=True, slots=True)
class FileChange:
    """The planned change of one path, from the state `now` to the state `target`.

    `is_edited`: somebody else changed the path too, after the session's first change.
    """

    path: Path
    is_edited: bool
    now: FileState
    target: FileState

    @property
    def is_of_git(self) -> bool:
        """True if the file is git's record of the commit and of what is staged."""
        return is_of_git(self.path)

    @property
    def kind(self) -> Literal["restore", "remove", "recreate", "lost"]:
        """The kind of change for people; `lost` if the former content was not kept."""
        if not self.target.is_stored:
            return "lost"
        if self.target == ABSENT:
            return "remove"
        return "recreate" if self.now == ABSENT else "restore"

    def without_content(self) -> "FileChange":
        """Return the change with its former content marked as lost."""
        return replace(self, target=self.target._replace(content="\0"))


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """The changes that restore the state before a turn, sorted by path. `run` runs what takes time in a thread."""

    changes: tuple[FileChange, ...]
    contents: Contents
    run: Callable[[Callable[[], str]], Awaitable[str]]

    async def format_diff(self, change: FileChange) -> str:
        """Format one change as a diff; folders, links and other non-text content as a line with their kind."""
        return await self.run(partial(self._format_diff, change))

    async def describe_head(self) -> str:
        """Return a line with the commits if HEAD is at another one since then, else an empty text."""
        return await self.run(self._describe_head)

    def _describe_head(self) -> str:
        for change in self.changes:
            if not change.is_of_git or change.path.name != "HEAD":
                continue
            with suppress(OSError):
                old = describe_commit(self._read_content(change, change.target))
                new = describe_commit(self._read_content(change, change.now))
                if old and new and old != new:
                    return f"HEAD moved from {old} to {new}"
        return ""

    def _format_diff(self, change: FileChange) -> str:
        now = change.now
        target = change.target
        if not now.is_stored or not target.is_stored:
            return "its content is not shown" if change.kind == "remove" else "its content was not kept"
        if _is_special(now) or _is_special(target):
            return _describe_states(now, target)
        lines = []
        if ABSENT not in (now, target) and now.mode != target.mode:
            old_mode = stat.S_IMODE(now.mode)
            new_mode = stat.S_IMODE(target.mode)
            lines.append(f"mode {old_mode:o}, then {new_mode:o}")
        try:
            old = self._read_content(change, now)
            new = self._read_content(change, target)
        except OSError as error:
            return f"the difference can't be shown: {error}"
        if old != new or not lines:
            diff = format_diff(None if now == ABSENT else old, new)
            lines.append(diff or "an empty file")
        return "\n".join(lines)

    def _read_content(self, change: FileChange, state: FileState) -> bytes:
        if state == ABSENT:
            return b""
        return self.contents.read(str(change.path), state)


def _is_special(state: FileState) -> bool:
    """Check for a folder or a link."""
    return state != ABSENT and not stat.S_ISREG(state.mode)


def _describe_states(now: FileState, target: FileState) -> str:
    lines = []
    if now != ABSENT:
        lines.append(f"-{_describe_state(now)}")
    if target != ABSENT:
        lines.append(f"+{_describe_state(target)}")
    return "\n".join(lines)


def _describe_state(state: FileState) -> str:
    if stat.S_ISLNK(state.mode):
        return f"link to {state.content}"
    kind = "folder" if stat.S_ISDIR(state.mode) else "file"
    return f"{kind} of mode {stat.S_IMODE(state.mode):o}"


def restore_files(changes: Iterable[FileChange], contents: Contents, read_state: Callable[..., FileState]) -> list[str]:
    """Carry out changes, each file atomically, and follow no link on the way.

    Return a sentence for each path that is left alone: it differs from `now`, holds other files, or caused an error.
    """
    steps = _Steps()
    pending = []
    for change in sorted(changes, key=lambda change: len(change.path.parts)):
        state = read_state(str(change.path), change.now, change.target)
        if problem := _find_problem(change, state, contents):
            steps.notes.append(f"{change.path} {problem}")
        else:
            pending.append(change)
    contents.expect((str(change.path), change.target) for change in pending)
    # A folder is emptied before it is removed, and created before its content.
    for change in reversed(pending):
        has_other_kind = stat.S_IFMT(change.now.mode) != stat.S_IFMT(change.target.mode)
        if change.now != ABSENT and has_other_kind:
            steps.take(change, _remove)
    for change in pending:
        if change.target != ABSENT:
            steps.take(change, partial(_create, contents))
    for change in reversed(pending):
        if stat.S_ISDIR(change.target.mode):
            steps.take(change, _set_mode)
    return steps.notes


def _find_problem(change: FileChange, state: FileState, contents: Contents) -> str:
    """Find out why a path in this state is left alone. Return an empty text if it can be restored."""
    if not contents.is_same(state, change.now):
        return "was changed just now: it is left as it is"
    if not change.target.is_stored:
        return "can't be put back: its content was too large or unreadable, or git lost it"
    if change.target.is_in_git and not is_safe_name(os.fsencode(change.path)[1:]):
        # Git tracks no such file. A command may have written its name and content into the index.
        return "is left as it is: git has no files of a repository itself"
    return ""


class _Steps:
    """The steps of a restore. A path is left alone after the first step that fails, and `notes` says so."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self._failed: set[Path] = set()

    def take(self, change: FileChange, act: Callable[[int, FileChange], None]) -> None:
        """Take one step, with the open folder of the path."""
        if change.path in self._failed:
            return
        try:
            with _open_writable(change.path.parent) as folder:
                act(folder, change)
        except (OSError, GooseLikeError) as error:
            self._failed.add(change.path)
            reason = getattr(error, "strerror", None) or error
            blocker = _find_blocker(change.path)
            if blocker is not None:
                reason = f"{blocker} is no folder any more"
            self.notes.append(f"{change.path} is left as it is: {reason}")


def _find_blocker(path: Path) -> Path | None:
    """Return the file or link that is in the place of a folder above a path."""
    for folder in reversed(path.parents):
        if os.path.lexists(folder) and not stat.S_ISDIR(os.lstat(folder).st_mode):
            return folder
    return None


@contextmanager
def _open_writable(path: Path) -> Iterator[int]:
    """Open a folder without following links. A folder of the user is writable within the block."""
    with open_folder(path) as folder:
        mode = stat.S_IMODE(os.fstat(folder).st_mode)
        is_opened = False
        if mode & 0o700 != 0o700:
            with suppress(PermissionError):  # the folder of somebody else
                set_mode(folder, mode | 0o700)
                is_opened = True
        try:
            yield folder
        finally:
            if is_opened:
                set_mode(folder, mode)


def _remove(folder: int, change: FileChange) -> None:
    remove = os.rmdir if stat.S_ISDIR(change.now.mode) else os.unlink
    remove(change.path.name, dir_fd=folder)


def _create(contents: Contents, folder: int, change: FileChange) -> None:
    name = change.path.name
    target = change.target
    if stat.S_ISDIR(target.mode):
        with suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=folder)
    elif stat.S_ISLNK(target.mode):
        temporary = temporary_name(name)
        os.symlink(target.content, temporary, dir_fd=folder)
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    else:
        old = None
        with suppress(OSError):
            old = os.stat(name, dir_fd=folder, follow_symlinks=False)
        data = contents.read(str(change.path), target)
        replace_file(folder, name, data, old, target.mode)


def _set_mode(folder: int, change: FileChange) -> None:
    with open_folder(change.path) as own:
        set_mode(own, stat.S_IMODE(change.target.mode))
