"""Marks of folders: texts that change with any file in a folder, by which a change after the person's trust is seen."""

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from goose_like.core.errors import GooseLikeError

_MAX_FILES = 1_000
_MAX_BYTES = 200_000_000


def mark_folder(folder: Path, besides: str) -> str:
    """Return one line for each file in a folder: its SHA-256, its size, its path. Leave out the file `besides`.

    A link counts with its target as a text; it is not followed.

    Raises:
        GooseLikeError: the folder has too many files, more than 200 MB, or a file that cannot be read.
    """
    lines: list[str] = []
    size = 0
    for path in _list_files(str(folder)):
        name = os.path.relpath(path, folder)
        if name == besides:
            continue
        status = os.lstat(path)
        size += status.st_size
        if len(lines) == _MAX_FILES or size > _MAX_BYTES:
            limits = f"{_MAX_FILES:,} files and {_MAX_BYTES // 1_000_000} MB"
            raise GooseLikeError(f"{folder} has more than {limits}; remove what it does not need")
        mark = _mark_file(path, status)
        lines.append(f"{mark} {status.st_size} {name}")
    return "\n".join(sorted(lines))


def _list_files(folder: str) -> Iterator[str]:
    """Yield the paths of all files and links below a folder. Python's caches are left out: they change at each run."""
    for top, folders, names in os.walk(folder):
        folders[:] = sorted(set(folders) - {"__pycache__"})
        for name in names:
            yield f"{top}/{name}"
        for name in folders:
            if os.path.islink(f"{top}/{name}"):
                yield f"{top}/{name}"


def _mark_file(path: str, status: os.stat_result) -> str:
    if stat.S_ISLNK(status.st_mode):
        return f"link:{os.readlink(path)}"
    if not stat.S_ISREG(status.st_mode):  # opening a pipe would wait for a writer
        return "no-file"
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise GooseLikeError(f"{path} can't be read: {error.strerror}; make it readable or remove it") from error


def describe_difference(before: str, after: str) -> str:
    """Describe how two marks of a folder differ: `scripts/a.sh (changed), b.txt (new)`."""
    old = _split_mark(before)
    new = _split_mark(after)
    parts: list[str] = []
    for name in sorted({*old, *new}):
        if name not in old:
            parts.append(f"{name} (new)")
        elif name not in new:
            parts.append(f"{name} (deleted)")
        elif old[name] != new[name]:
            parts.append(f"{name} (changed)")
    return ", ".join(parts)


def _split_mark(text: str) -> Mapping[str, str]:
    """Return the mark of each file by its path."""
    marks: dict[str, str] = {}
    for line in text.splitlines():
        mark, _, rest = line.partition(" ")
        _, _, name = rest.partition(" ")
        marks[name] = mark
    return marks
