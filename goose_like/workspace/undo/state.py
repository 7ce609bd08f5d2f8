"""The states of paths: files, folders and links, with the marks that tell a change without reading them again."""

import os
import stat
import time
from collections.abc import Iterator
from typing import NamedTuple

CLOCK_TICK_NS = 50_000_000
"""A change within this time after a look may leave the same times."""

UNKNOWN = "\0"  # no link leads to such a name

Marks = tuple[int, ...] | None
"""Numbers that differ after a change; None if a later change might leave the same ones."""


class FileState(NamedTuple):
    """The file, folder or link at a path: its `mode` with the kind, as in `stat`, and its content.

    `content` is the target of a link, or names the content of a file in the undo log or in git. If it could not be
    stored, `content` is a NUL followed by marks that differ after a change.
    """

    mode: int
    content: str = ""

    @property
    def is_stored(self) -> bool:
        """True if the content can be restored."""
        return not self.content.startswith(UNKNOWN)

    @property
    def is_in_git(self) -> bool:
        """True if git has the content."""
        return self.content.startswith("git:") and stat.S_ISREG(self.mode)


ABSENT = FileState(0)


class CachedState(NamedTuple):
    """A state with the marks that it had, and the reason why its content is not stored, if any.

    `size_bytes` is that of the stored content.
    """

    state: FileState
    size_bytes: int
    marks: Marks
    gap: str


Snapshot = dict[str, CachedState]
"""The states below a folder by path."""

Statuses = Iterator[tuple[str, os.stat_result | None]]
"""Paths that are found, each with its status; without one in a folder that cannot be listed."""


def get_marks(status: os.stat_result) -> tuple[int, ...]:
    """Return numbers that differ after a change."""
    return (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_mode)


def get_certain_marks(status: os.stat_result) -> Marks:
    """Return the marks of a path that was looked at just now."""
    if time.time_ns() - status.st_ctime_ns <= CLOCK_TICK_NS:
        return None
    return get_marks(status)


class Listing(NamedTuple):
    """The names in a folder, except those of clean files, and its marks when it was listed."""

    marks: Marks
    names: list[str]
