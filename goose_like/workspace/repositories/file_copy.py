"""Copies of small files in memory: read what a command left without trust, compare it, and write it back."""

import os
import stat
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from goose_like.config.paths import create_private_folder, is_closed_error, state_folder
from goose_like.core.errors import GooseLikeError
from goose_like.workspace.descriptors import PATH_ONLY, read_descriptor_path, set_mode
from goose_like.workspace.diff import format_diff
from goose_like.workspace.files import open_folder, replace_file, temporary_name

_MAX_FILES = 500
_MAX_BYTES = 1_000_000
_MAX_BYTES_TOGETHER = 5_000_000
_CLOCK_TICK_NS = 50_000_000

REFUSED_FOLDER = "refused"
"""The folder in goose_like's state with the content of files that was refused."""

Mark = tuple[int, int, int]
"""Device, inode and change time of a file or folder."""


class FileCopy(NamedTuple):
    """A file or link. `mode` is that of stat(2); `data` is None if the content cannot be read or is too large."""

    mode: int
    data: bytes | None
    changed_ns: int = 0
    """The change time of a file without `data`, since another content must not look equal."""

    def describe(self) -> str:
        """Describe in words a file that has no diff; empty for an ordinary one."""
        if stat.S_ISLNK(self.mode):
            return f"a link to {os.fsdecode(self.data or b'')}"
        return "it can't be read" if self.data is None else ""


FileCopies = dict[Path, FileCopy]


class FileEdit(NamedTuple):
    """A file before and after a change; None where there is no file."""

    path: Path
    old: FileCopy | None
    new: FileCopy | None


class AcceptedFiles:
    """The files that the person accepted, by the place that they belong to, such as a repository."""

    def __init__(self) -> None:
        self.places: dict[Path, FileCopies] = {}
        self._marks: dict[Path, Mark] = {}
        """Files that were seen as accepted. Such a file is not read again."""

    def find_edits(self, place: Path, files: Iterable[Path]) -> list[FileEdit]:
        """Compare the accepted files of a place, and the files that are there now, with the file system."""
        accepted = self.places.get(place, {})
        edits = []
        for path in sorted({*files, *accepted}):
            edit = self._compare(path, accepted.get(path))
            if edit:
                edits.append(edit)
        return edits

    def _compare(self, path: Path, old: FileCopy | None) -> FileEdit | None:
        mark = read_mark(path)  # before the content, so that a change in between shows the next time
        if mark and mark == self._marks.get(path):
            return None
        new = read_copy(path)
        if new != old:
            return FileEdit(path, old, new)
        if mark:
            self._marks[path] = mark
        return None

    def accept(self, place: Path, edit: FileEdit) -> None:
        """Accept a file of a place as it was read."""
        self._marks.pop(edit.path, None)
        files = self.places.setdefault(place, {})
        files.pop(edit.path, None)
        if edit.new:
            files[edit.path] = edit.new

    def revert(self, place: Path, edit: FileEdit, to: FileCopy | None, roots: Iterable[Path]) -> None:
        """Give a file other content, and keep the refused content in goose_like's state: a person may have written it.

        A link that a command put in the place of a folder below `roots` is removed. Raise OSError or GooseLikeError if
        the file cannot be written.
        """
        if edit.new and edit.new.data is not None:
            _keep_refused(edit.path.name, edit.new.data)
        for above in reversed(edit.path.parents):
            if above.is_symlink() and any(root in above.parents for root in roots):
                write_copy(above, None)
        write_copy(edit.path, to)
        if edit.new and stat.S_ISDIR(edit.new.mode):  # it was renamed with everything below
            for path, copy in self.places.get(place, {}).items():
                if edit.path in path.parents:
                    write_copy(path, copy)


def _keep_refused(name: str, data: bytes) -> None:
    try:
        folder = create_private_folder(state_folder() / REFUSED_FOLDER)
        kept = folder / temporary_name(name).removeprefix(".")
        kept.touch(0o600)
    except OSError as error:
        if not is_closed_error(error):
            raise
        return  # the audit has warned about it, and the change must not stay
    kept.write_bytes(data)


class FilePins:
    """Keeps files open, so that no other file can get their inode numbers, and a replaced file shows."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._descriptors: dict[Path, int] = {}
        for path in paths:
            self.renew(path)

    def renew(self, path: Path) -> None:
        """Keep the file that has the place of a file now."""
        descriptor = self._descriptors.pop(path, None)
        if descriptor is not None:
            os.close(descriptor)
        with suppress(OSError):
            self._descriptors[path] = os.open(path, PATH_ONLY | os.O_NOFOLLOW | os.O_CLOEXEC)

    def has_moved(self, path: Path) -> bool:
        """Check whether another file, or none, has the place of a file. An unknown file has moved."""
        descriptor = self._descriptors.get(path)
        if descriptor is None:
            return True
        with suppress(OSError):
            return not os.path.samestat(os.fstat(descriptor), os.lstat(path))
        return True

    def close(self) -> None:
        """Release the files."""
        while self._descriptors:
            _, descriptor = self._descriptors.popitem()
            os.close(descriptor)


def read_mark(path: str | Path) -> Mark | None:
    """Read the mark by which a later change shows; None if there is no file, or if a change would not show.

    A second change within one tick of the file system's clock does not show.
    """
    try:
        status = os.lstat(path)
    except OSError:
        return None
    if time.time_ns() - status.st_ctime_ns <= _CLOCK_TICK_NS:
        return None
    return status.st_dev, status.st_ino, status.st_ctime_ns


def list_files(place: Path, is_wanted: Callable[[str], bool] = bool, *, opens: bool = False) -> list[Path]:
    """List a file, or all files and links below a folder. A folder that cannot be listed is in the list itself.

    With `opens`, the owner's rights to such a folder are restored first. Raise GooseLikeError if there are more than
    500 files, or 5 MB.
    """
    if os.path.islink(place):
        return [place]
    found: list[str] = []
    size_bytes = 0
    pending = [str(place)]
    while pending:
        path = pending.pop()
        try:
            with os.scandir(path) as entries:
                for entry in filter(lambda entry: is_wanted(entry.name), entries):
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                        continue
                    found.append(entry.path)
                    with suppress(OSError):  # it was just removed
                        size_bytes += entry.stat(follow_symlinks=False).st_size
        except (FileNotFoundError, NotADirectoryError):
            if os.path.lexists(path):
                found.append(path)
        except OSError:
            if opens and open_closed_folder(path):
                pending.append(path)
            else:
                found.append(path)
        if len(found) > _MAX_FILES or size_bytes > _MAX_BYTES_TOGETHER:
            raise GooseLikeError(f"{place} has more than {_MAX_FILES} files or {_MAX_BYTES_TOGETHER:,} bytes")
    return list(map(Path, found))


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


def read_copy(path: str | Path) -> FileCopy | None:
    """Read a file or link at a real path without following links; None if there is none."""
    unknown = FileCopy(0, None)
    try:
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode):
            return FileCopy(status.st_mode, os.fsencode(os.readlink(path)))
        changed_ns = 0 if stat.S_ISDIR(status.st_mode) else status.st_ctime_ns
        unknown = FileCopy(status.st_mode, None, changed_ns)
        if not stat.S_ISREG(status.st_mode):
            return unknown
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            mode = os.fstat(descriptor).st_mode
            data = file.read(_MAX_BYTES + 1)
            is_here = read_descriptor_path(descriptor) == str(path)  # no folder became a link
        if not is_here or not stat.S_ISREG(mode) or len(data) > _MAX_BYTES:
            return unknown
        return FileCopy(mode, data)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return unknown


def find_edits(old: Mapping[Path, FileCopy], new: Mapping[Path, FileCopy]) -> list[FileEdit]:
    """Compare the files of two points in time."""
    edits = []
    for path in sorted(old.keys() | new.keys()):
        before = old.get(path)
        after = new.get(path)
        if before != after:
            edits.append(FileEdit(path, before, after))
    return edits


def format_edits(edits: Iterable[FileEdit]) -> str:
    """Format the whole content of changes for a question."""
    return "\n".join(map(_format_edit, edits))


def _format_edit(edit: FileEdit) -> str:
    new = edit.new
    if new is None:
        return f"{edit.path}: removed"
    words = new.describe()
    if words:
        return f"{edit.path}: {words}"
    old = edit.old or FileCopy(0, None)
    head = f"{edit.path}:"
    if new.mode & 0o111 and not old.mode & 0o111:
        head += " executable"
    before = old.data if stat.S_ISREG(old.mode) else None
    diff = format_diff(before, new.data or b"")
    return f"{head}\n{diff}".rstrip("\n")


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
            refused = f"{temporary_name(path.name)}.refused"
            os.rename(path.name, refused, src_dir_fd=folder, dst_dir_fd=folder)
            status = None
        if copy is None:
            if status:
                os.unlink(path.name, dir_fd=folder)
        elif copy.data is None:
            raise GooseLikeError(f"{path} can't be written: its content is unknown")
        elif in_place and status and stat.S_ISREG(status.st_mode):
            descriptor = os.open(path.name, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            with open(descriptor, "wb", buffering=0) as file:
                file.write(copy.data)
                file.truncate()
                os.fchmod(descriptor, copy.mode & 0o777)
        elif stat.S_ISLNK(copy.mode):
            temporary = temporary_name(path.name)
            os.symlink(copy.data, temporary, dir_fd=folder)
            os.rename(temporary, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        else:
            replace_file(folder, path.name, copy.data, status, copy.mode & 0o777)
