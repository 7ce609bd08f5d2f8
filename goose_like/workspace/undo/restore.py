"""Restore files: the planned changes with their diffs, and their execution."""

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from goose_like.core.errors import GooseLikeError
from goose_like.workspace.diff import format_diff
from goose_like.workspace.files import FOLDER_FLAGS, open_folder, replace_file, temporary_name

from .snapshot import ABSENT, FileState, StoreBlob, read_state

GetBlob = Callable[[str], bytes]
"""Returns a stored content by its name; raises OSError if it cannot."""


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
    def kind(self) -> Literal["restore", "remove", "recreate"]:
        """The kind of change for people."""
        if self.target == ABSENT:
            return "remove"
        return "recreate" if self.now == ABSENT else "restore"


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """The changes that restore the state before a turn, sorted by path."""

    changes: tuple[FileChange, ...]
    get_blob: GetBlob

    def format_diff(self, change: FileChange) -> str:
        """Format one change as a diff; folders, links and other non-text content as a line with their kind."""
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
            old, new = (b"" if state == ABSENT else self.get_blob(state.content) for state in (now, target))
        except OSError as error:
            return f"the difference can't be shown: {error}"
        if old != new or not lines:
            lines.append(format_diff(None if now == ABSENT else old, new) or "an empty file")
        return "\n".join(lines)


def _describe_state(state: FileState) -> str:
    if stat.S_ISLNK(state.mode):
        return f"link to {state.content}"
    return f"{'folder' if stat.S_ISDIR(state.mode) else 'file'} of mode {stat.S_IMODE(state.mode):o}"


def restore_files(changes: Iterable[FileChange], get_blob: GetBlob, store: StoreBlob) -> list[str]:
    """Carry out changes, each file atomically, and follow no link on the way.

    A path that differs from the change's `now` is left alone, and so are folders that hold other files.

    Returns:
        A sentence for each path that could not be restored.
    """
    notes: list[str] = []
    pending = []
    for change in changes:
        if read_state(str(change.path), store) != change.now:
            notes.append(f"{change.path} was changed just now: it is left as it is")
        elif not change.target.is_stored:
            notes.append(f"{change.path} can't be put back: its content was not kept, it was too large or unreadable")
        else:
            pending.append(change)
    by_depth = sorted(pending, key=lambda change: len(change.path.parts))
    failed: set[Path] = set()

    def each(chosen: Iterable[FileChange], act: Callable[[int, FileChange], None]) -> None:
        for change in chosen:
            if change.path not in failed:
                try:
                    with open_folder(change.path.parent) as folder:
                        act(folder, change)
                except (OSError, GooseLikeError) as error:
                    failed.add(change.path)
                    notes.append(f"{change.path} is left as it is: {getattr(error, 'strerror', None) or error}")

    folders = {change.path: change.target.mode for change in pending if stat.S_ISDIR(change.target.mode)}
    with _make_writable({change.path.parent for change in pending}, folders):
        each((change for change in reversed(by_depth) if _must_be_removed(change)), _remove)
        each((change for change in by_depth if stat.S_ISDIR(change.target.mode)), _create_folder)
        each((change for change in by_depth if stat.S_ISLNK(change.target.mode)), _create_link)
        each(
            (change for change in by_depth if stat.S_ISREG(change.target.mode)),
            lambda folder, change: _write_file(folder, change, get_blob(change.target.content)),
        )
        each((change for change in reversed(by_depth) if stat.S_ISDIR(change.target.mode)), _set_mode)
    return notes


def _must_be_removed(change: FileChange) -> bool:
    return change.now != ABSENT and stat.S_IFMT(change.now.mode) != stat.S_IFMT(change.target.mode)


@contextmanager
def _make_writable(folders: Iterable[Path], modes: Mapping[Path, int]) -> Iterator[None]:
    """Make the user's own folders writable within the block. Afterwards set the given modes or the former ones."""
    closed: list[tuple[Path, int]] = []
    for folder in sorted(folders):
        with suppress(OSError):
            mode = folder.lstat().st_mode
            if stat.S_ISDIR(mode) and mode & 0o700 != 0o700:
                _chmod(folder, mode | 0o700)
                closed.append((folder, mode))
    try:
        yield
    finally:
        for folder, mode in reversed(closed):
            with suppress(OSError):
                _chmod(folder, modes.get(folder, mode))


def _chmod(folder: Path, mode: int) -> None:
    descriptor = os.open(folder, FOLDER_FLAGS)  # the path itself may have become a link
    try:
        os.chmod(f"/proc/self/fd/{descriptor}", stat.S_IMODE(mode))
    finally:
        os.close(descriptor)


def _remove(folder: int, change: FileChange) -> None:
    if stat.S_ISDIR(change.now.mode):
        os.rmdir(change.path.name, dir_fd=folder)
    else:
        os.unlink(change.path.name, dir_fd=folder)


def _create_folder(folder: int, change: FileChange) -> None:
    with suppress(FileExistsError):
        os.mkdir(change.path.name, 0o700, dir_fd=folder)


def _set_mode(folder: int, change: FileChange) -> None:
    _chmod(Path(f"/proc/self/fd/{folder}", change.path.name), change.target.mode)


def _create_link(folder: int, change: FileChange) -> None:
    temporary = temporary_name(change.path.name)
    os.symlink(change.target.content, temporary, dir_fd=folder)
    os.rename(temporary, change.path.name, src_dir_fd=folder, dst_dir_fd=folder)


def _write_file(folder: int, change: FileChange, data: bytes) -> None:
    old = None
    with suppress(OSError):
        old = os.stat(change.path.name, dir_fd=folder, follow_symlinks=False)
    replace_file(folder, change.path.name, data, old, change.target.mode)
