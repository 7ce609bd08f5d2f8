"""Restore files: the planned changes with their diffs, and their execution."""

import os
import stat
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from goose_like.core.errors import GooseLikeError
from goose_like.workspace.descriptors import set_mode
from goose_like.workspace.diff import format_diff
from goose_like.workspace.files import open_folder, replace_file, temporary_name

from .contents import Contents
from .repository import describe_commit, is_of_git
from .snapshot import ABSENT, FileState


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
            if change.is_of_git and change.path.name == "HEAD":
                with suppress(OSError):
                    path, states = str(change.path), (change.target, change.now)
                    old, new = (describe_commit(self.contents.read(path, state)) for state in states)
                    return f"HEAD moved from {old} to {new}" if old and new and old != new else ""
        return ""

    def _format_diff(self, change: FileChange) -> str:
        now, target = change.now, change.target
        if not (now.is_stored and target.is_stored):
            return "its content was not kept" if change.kind != "remove" else "its content is not shown"
        if any(state != ABSENT and not stat.S_ISREG(state.mode) for state in (now, target)):
            signed = (("-", now), ("+", target))
            return "\n".join(f"{sign}{_describe_state(state)}" for sign, state in signed if state != ABSENT)
        lines = []
        if ABSENT not in (now, target) and now.mode != target.mode:
            lines.append(f"mode {stat.S_IMODE(now.mode):o}, then {stat.S_IMODE(target.mode):o}")
        try:
            path, states = str(change.path), (now, target)
            old, new = (b"" if state == ABSENT else self.contents.read(path, state) for state in states)
        except OSError as error:
            return f"the difference can't be shown: {error}"
        if old != new or not lines:
            lines.append(format_diff(None if now == ABSENT else old, new) or "an empty file")
        return "\n".join(lines)


def _describe_state(state: FileState) -> str:
    if stat.S_ISLNK(state.mode):
        return f"link to {state.content}"
    return f"{'folder' if stat.S_ISDIR(state.mode) else 'file'} of mode {stat.S_IMODE(state.mode):o}"


def restore_files(changes: Iterable[FileChange], contents: Contents, read_state: Callable[..., FileState]) -> list[str]:
    """Carry out changes, each file atomically, and follow no link on the way.

    Return a sentence for each path that is left alone: it differs from `now`, holds other files, or caused an error.
    """
    notes: list[str] = []
    pending = []
    for change in sorted(changes, key=lambda change: len(change.path.parts)):
        state = read_state(str(change.path), change.now, change.target)
        if not contents.is_same(state, change.now):
            notes.append(f"{change.path} was changed just now: it is left as it is")
        elif not change.target.is_stored:
            notes.append(f"{change.path} can't be put back: its content was too large or unreadable, or git lost it")
        else:
            pending.append(change)
    contents.expect((str(change.path), change.target) for change in pending)
    failed: set[Path] = set()

    def each(chosen: Iterable[FileChange], act: Callable[[int, FileChange], None]) -> None:
        for change in chosen:
            if change.path not in failed:
                try:
                    with _open_writable(change.path.parent) as folder:
                        act(folder, change)
                except (OSError, GooseLikeError) as error:
                    failed.add(change.path)
                    notes.append(f"{change.path} is left as it is: {getattr(error, 'strerror', None) or error}")

    # A folder is emptied before it is removed, and created before its content.
    existing = (change for change in reversed(pending) if change.now != ABSENT)
    each((change for change in existing if stat.S_IFMT(change.now.mode) != stat.S_IFMT(change.target.mode)), _remove)
    each((change for change in pending if change.target != ABSENT), partial(_create, contents))
    each((change for change in reversed(pending) if stat.S_ISDIR(change.target.mode)), _set_mode)
    return notes


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
    name, target = change.path.name, change.target
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
        replace_file(folder, name, contents.read(str(change.path), target), old, target.mode)


def _set_mode(folder: int, change: FileChange) -> None:
    with open_folder(change.path) as own:
        set_mode(own, stat.S_IMODE(change.target.mode))
