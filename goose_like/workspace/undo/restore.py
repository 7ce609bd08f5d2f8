"""A reversal: what going back would change of files, shown word for word before it is done."""

import os
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from goose_like.core.errors import GooseLikeError
from goose_like.workspace.diff import difference

from .snapshot import ABSENT, FOLDER, Node, node_at, open_folder

Get = Callable[[str], bytes]
"""Gives a content that was kept by its name; raises OSError where it can't."""


@dataclass(frozen=True, slots=True)
class Change:
    """One path. `is_edited`: somebody else changed it, too, since our session first did; `now` and `target` are what
    stands there and what would."""

    path: Path
    is_edited: bool
    now: Node
    target: Node

    @property
    def kind(self) -> Literal["restore", "remove", "recreate"]:
        if self.target == ABSENT:
            return "remove"
        return "recreate" if self.now == ABSENT else "restore"


@dataclass(frozen=True, slots=True)
class Reversal:
    """What going back to before turn `number` would change, sorted by path."""

    number: int
    changes: tuple[Change, ...]
    get: Get

    def difference(self, change: Change) -> str:
        """All of one change as a diff; of folders, links and what is no text a line that says what it is."""
        now, target = change.now, change.target
        if not (now.is_kept and target.is_kept):
            return "its content was not kept" if change.kind != "remove" else "its content is not shown"
        if any(node != ABSENT and not stat.S_ISREG(node.mode) for node in (now, target)):
            return "\n".join(
                f"{sign}{_described(node)}" for sign, node in (("-", now), ("+", target)) if node != ABSENT
            )
        lines = []
        if ABSENT not in (now, target) and now.mode != target.mode:
            lines.append(f"mode {stat.S_IMODE(now.mode):o}, then {stat.S_IMODE(target.mode):o}")
        try:
            old, new = (b"" if node == ABSENT else self.get(node.content) for node in (now, target))
        except OSError as error:
            return f"the difference can't be shown: {error}"
        if old != new or not lines:
            lines.append(difference(None if now == ABSENT else old, new) or "an empty file")
        return "\n".join(lines)


def _described(node: Node) -> str:
    if stat.S_ISLNK(node.mode):
        return f"link to {node.content}"
    return f"{'folder' if stat.S_ISDIR(node.mode) else 'file'} of mode {stat.S_IMODE(node.mode):o}"


def put_back(changes: Iterable[Change], get: Get, keep: Callable[[bytes], str]) -> list[str]:
    """Does it, each file at once or not at all, and follows no link on the way. Gives sentences for what it could not.

    What is no longer as the change says is left alone, and so are folders that hold something else.
    """
    told: list[str] = []
    to_do = []
    for change in changes:
        if node_at(str(change.path), keep) != change.now:
            told.append(f"{change.path} was changed just now: it is left as it is")
        elif not change.target.is_kept:
            told.append(f"{change.path} can't be put back: its content was not kept, it was too large or unreadable")
        else:
            to_do.append(change)
    by_depth = sorted(to_do, key=lambda change: len(change.path.parts))
    failed: set[Path] = set()

    def each(chosen: Iterable[Change], act: Callable[[int, Change], None]) -> None:
        for change in chosen:
            if change.path not in failed:
                try:
                    with _folder_of(change.path) as folder:
                        act(folder, change)
                except (OSError, GooseLikeError) as error:
                    failed.add(change.path)
                    told.append(f"{change.path} is left as it is: {getattr(error, 'strerror', None) or error}")

    folders = {change.path: change.target.mode for change in to_do if stat.S_ISDIR(change.target.mode)}
    with _opened({change.path.parent for change in to_do}, folders):
        each((change for change in reversed(by_depth) if _must_go(change)), _remove)
        each((change for change in by_depth if stat.S_ISDIR(change.target.mode)), _make_folder)
        each((change for change in by_depth if stat.S_ISLNK(change.target.mode)), _link)
        each(
            (change for change in by_depth if stat.S_ISREG(change.target.mode)),
            lambda folder, change: _write(folder, change, get(change.target.content)),
        )
        each((change for change in reversed(by_depth) if stat.S_ISDIR(change.target.mode)), _set_mode)
    return told


def _must_go(change: Change) -> bool:
    return change.now != ABSENT and stat.S_IFMT(change.now.mode) != stat.S_IFMT(change.target.mode)


@contextmanager
def _folder_of(path: Path) -> Iterator[int]:
    folder = open_folder(path.parent)
    try:
        yield folder
    finally:
        os.close(folder)


@contextmanager
def _opened(folders: Iterable[Path], modes: Mapping[Path, int]) -> Iterator[None]:
    """Within, these folders can be written, where they are ours; after it they have these modes, or their own."""
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
    """Not by its path, where a link may stand by now."""
    descriptor = os.open(folder, FOLDER)
    try:
        os.chmod(f"/proc/self/fd/{descriptor}", stat.S_IMODE(mode))
    finally:
        os.close(descriptor)


def _remove(folder: int, change: Change) -> None:
    if stat.S_ISDIR(change.now.mode):
        os.rmdir(change.path.name, dir_fd=folder)
    else:
        os.unlink(change.path.name, dir_fd=folder)


def _make_folder(folder: int, change: Change) -> None:
    with suppress(FileExistsError):
        os.mkdir(change.path.name, 0o700, dir_fd=folder)


def _set_mode(folder: int, change: Change) -> None:
    _chmod(Path(f"/proc/self/fd/{folder}", change.path.name), change.target.mode)


def _link(folder: int, change: Change) -> None:
    temporary = _temporary(change)
    os.symlink(change.target.content, temporary, dir_fd=folder)
    os.rename(temporary, change.path.name, src_dir_fd=folder, dst_dir_fd=folder)


def _write(folder: int, change: Change, data: bytes) -> None:
    temporary = _temporary(change)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(temporary, flags, 0o600, dir_fd=folder), "wb") as file:
        try:
            file.write(data)
            file.flush()
            with suppress(OSError):  # it stays with its owner, where we may give it away
                owner = os.stat(change.path.name, dir_fd=folder, follow_symlinks=False)
                os.fchown(file.fileno(), owner.st_uid, owner.st_gid)
            os.fchmod(file.fileno(), stat.S_IMODE(change.target.mode))
            os.rename(temporary, change.path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=folder)
            raise


def _temporary(change: Change) -> str:
    return f".{os.fsdecode(os.fsencode(change.path.name)[:80])}.{secrets.token_hex(6)}"
