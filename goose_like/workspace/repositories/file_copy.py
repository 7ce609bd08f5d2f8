"""Copies of small files in memory: read what a command left without trust, compare it, and write it back."""

import os
import secrets
import stat
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from goose_like.config.paths import state_folder
from goose_like.core.errors import GooseLikeError
from goose_like.workspace.descriptors import PATH_ONLY, read_descriptor_path, set_mode
from goose_like.workspace.diff import format_diff
from goose_like.workspace.files import open_folder, replace_file, temporary_name

_MAX_FILES = 500
_MAX_BYTES = 1_000_000


class FileCopy(NamedTuple):
    """A file or link. `mode` is that of stat(2); `data` is None if the content cannot be read or is too large."""

    mode: int
    data: bytes | None

    def describe(self) -> str:
        """Describe in words a file that has no diff; empty for an ordinary one."""
        if stat.S_ISLNK(self.mode):
            return f"a link to {os.fsdecode(self.data or b'')}"
        return "it can't be read" if self.data is None else ""


FileCopies = dict[Path, FileCopy]

NameFilter = Callable[[str], bool]


class FileEdit(NamedTuple):
    """A file before and after a change; None where there is no file."""

    path: Path
    old: FileCopy | None
    new: FileCopy | None


class FilePins:
    """Keeps files open, so that no other file can get their inode numbers, and a replaced file shows."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._descriptors: dict[Path, int] = {}
        for path in paths:
            with suppress(OSError):
                self._descriptors[path] = os.open(path, PATH_ONLY | os.O_NOFOLLOW | os.O_CLOEXEC)

    def has_moved(self, path: Path) -> bool:
        """Check whether another file, or none, has the place of a file. An unknown file has moved."""
        if (descriptor := self._descriptors.get(path)) is None:
            return True
        with suppress(OSError):
            return not os.path.samestat(os.fstat(descriptor), os.lstat(path))
        return True

    def close(self) -> None:
        """Release the files."""
        while self._descriptors:
            os.close(self._descriptors.popitem()[1])


def list_files(place: Path, is_wanted: NameFilter = bool, *, opens: bool = False) -> list[str]:
    """List a file, or all files and links below a folder. A folder that cannot be listed is in the list itself.

    With `opens`, the owner's rights to such a folder are restored first. Raise GooseLikeError if there are more than
    500 files.
    """
    found: list[str] = []
    pending = [str(place)]
    if os.path.islink(place):
        return pending
    while pending:
        path = pending.pop()
        try:
            with os.scandir(path) as entries:
                for entry in filter(lambda entry: is_wanted(entry.name), entries):
                    (pending if entry.is_dir(follow_symlinks=False) else found).append(entry.path)
        except (FileNotFoundError, NotADirectoryError):
            found += [path] if os.path.lexists(path) else []
        except OSError:
            (pending if opens and open_closed_folder(path) else found).append(path)
        if len(found) > _MAX_FILES:
            raise GooseLikeError(f"{place} has more than {_MAX_FILES} files")
    return found


def open_closed_folder(path: str) -> bool:
    """Let the owner list a folder that a command closed. Return False if it cannot be listed after all."""
    with suppress(OSError, GooseLikeError), open_folder(Path(path)) as folder:
        _open_rights(folder)
        return os.access(".", os.R_OK, dir_fd=folder)
    return False


def _open_rights(folder: int) -> None:
    mode = os.fstat(folder).st_mode
    if mode & 0o700 != 0o700:
        set_mode(folder, stat.S_IMODE(mode) | 0o700)


def read_marks(paths: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """Read the marks by which a change of these files shows."""
    marks: dict[str, tuple[int, ...]] = {}
    for path in paths:
        with suppress(FileNotFoundError, NotADirectoryError):
            status = os.lstat(path)
            marks[path] = status.st_ino, status.st_ctime_ns
    return marks


def read_copy(path: str | Path) -> FileCopy | None:
    """Read a file or link at a real path without following links; None if there is none."""
    try:
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode):
            return FileCopy(status.st_mode, os.fsencode(os.readlink(path)))
        if not stat.S_ISREG(status.st_mode):
            return FileCopy(status.st_mode, None)
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            mode, data = os.fstat(file.fileno()).st_mode, file.read(_MAX_BYTES + 1)
            is_here = read_descriptor_path(file.fileno()) == str(path)  # no folder became a link
        return FileCopy(mode, data if is_here and stat.S_ISREG(mode) and len(data) <= _MAX_BYTES else None)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return FileCopy(0, None)


def find_edits(old: Mapping[Path, FileCopy], new: Mapping[Path, FileCopy]) -> list[FileEdit]:
    """Compare the files of two points in time."""
    paths = sorted(old.keys() | new.keys())
    return [FileEdit(path, old.get(path), new.get(path)) for path in paths if old.get(path) != new.get(path)]


def format_edits(edits: Iterable[FileEdit]) -> str:
    """Format the whole content of changes for a question."""
    return "\n".join(map(_format_edit, edits))


def _format_edit(edit: FileEdit) -> str:
    if words := "removed" if edit.new is None else edit.new.describe():
        return f"{edit.path}: {words}"
    new, old = edit.new or FileCopy(0, None), edit.old or FileCopy(0, None)
    executable = " executable" if new.mode & 0o111 and not old.mode & 0o111 else ""
    before = old.data if stat.S_ISREG(old.mode) else None
    return f"{edit.path}:{executable}\n{format_diff(before, new.data or b'')}".rstrip("\n")


def keep_refused(edit: FileEdit) -> None:
    """Keep the new content of a file before it is reverted, because a person may have written it."""
    if edit.new and edit.new.data is not None:
        kept = state_folder() / "refused" / f"{edit.path.name}.{secrets.token_hex(4)}"
        kept.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        kept.write_bytes(edit.new.data)


def write_copy(path: Path, copy: FileCopy | None, *, in_place: bool = False) -> None:
    """Give a file the content and mode of a copy, or remove it. Follow no link. A folder in its place is renamed.

    A file that is replaced `in_place` stays the same file, but others may read a part of its content.
    """
    with open_folder(path.parent) as folder:
        status = None
        _open_rights(folder)
        with suppress(FileNotFoundError):
            status = os.stat(path.name, dir_fd=folder, follow_symlinks=False)
        if status and stat.S_ISDIR(status.st_mode):
            os.rename(path.name, f"{temporary_name(path.name)}.refused", src_dir_fd=folder, dst_dir_fd=folder)
            status = None
        if copy is None:
            if status:
                os.unlink(path.name, dir_fd=folder)
        elif copy.data is None:
            raise GooseLikeError(f"{path} can't be written: its content is unknown")
        elif in_place and status and stat.S_ISREG(status.st_mode):
            flags = os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
            with open(os.open(path.name, flags, dir_fd=folder), "wb", buffering=0) as file:
                file.write(copy.data)
                file.truncate()
                os.fchmod(file.fileno(), copy.mode & 0o777)
        elif stat.S_ISLNK(copy.mode):
            temporary = temporary_name(path.name)
            os.symlink(copy.data, temporary, dir_fd=folder)
            os.rename(temporary, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        else:
            replace_file(folder, path.name, copy.data, status, copy.mode & 0o777)
