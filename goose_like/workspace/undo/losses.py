"""Losses: the paths that a shell line would delete or overwrite."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import PurePath

from .names import UnknownName, WorkingFolder, resolve_link_itself


@dataclass(slots=True)
class Losses:
    """The paths that a line would delete or overwrite, whether they exist or not.

    git deletes or overwrites files in folders: the ignored files of `cleaned`, the untracked files of `untracked`,
    except those that match one of `kept`, and the changes in `changed`. `moved` maps paths to where they go.
    `replaced` are unknown names that are overwritten: files are stored if possible, without a question.
    """

    paths: dict[str, None] = field(default_factory=dict)
    unknown: list[UnknownName] = field(default_factory=list)
    replaced: list[UnknownName] = field(default_factory=list)
    moved: dict[str, str] = field(default_factory=dict)
    cleaned: list[str] = field(default_factory=list)
    untracked: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return any((self.paths, self.unknown, self.replaced, self.moved, self.cleaned, self.resets_tree))

    @property
    def resets_tree(self) -> bool:
        """True if git deletes or overwrites files that it does not ignore."""
        return bool(self.untracked or self.changed)

    @property
    def needs_tree(self) -> bool:
        """True if the lost paths depend on the files that there are."""
        return bool(self.resets_tree or self.cleaned or self.unknown)

    @property
    def is_unknown(self) -> bool:
        """True if folders are deleted whose names are only known while the line runs."""
        return any(name.is_recursive for name in self.unknown)

    def clears(self, path: str, status: str = "!!") -> bool:
        """Check whether git may delete or overwrite this path of a `git status`, or something in it."""
        match status:
            case "!!":
                folders = self.cleaned
            case "??":
                folders = self.untracked
            case _:
                return _touches(path, self.changed)
        return _touches(path, folders) and not self._keeps(path)

    def _keeps(self, path: str) -> bool:
        name = os.path.basename(path)
        return any(fnmatch(name, pattern) for pattern in self.kept)

    def add_written(self, folder: WorkingFolder, words: Iterable[str | None]) -> None:
        """Add files that are truncated. The file behind a link is the one that loses its content."""
        for word in words:
            if not folder.is_known(word):
                self.replaced.append(folder.describe_unknown(word))
                continue
            for name in folder.expand(word):
                path = os.path.realpath(name)
                if os.path.isfile(path):
                    self.paths[path] = None

    def add_removed(self, folder: WorkingFolder, words: Iterable[str | None], *, is_recursive: bool = False) -> None:
        """Add paths that are removed, or replaced by another file. A link itself is the one that is lost."""
        for word in words:
            if not folder.is_known(word):
                self.unknown.append(folder.describe_unknown(word, is_recursive=is_recursive))
                continue
            for path in folder.expand(word):
                self.paths[resolve_link_itself(path)] = None

    def add_replaced(self, path: str) -> None:
        """Add a file that is replaced. `cp` writes through a link, and others replace it."""
        self.paths[resolve_link_itself(path)] = None
        real = os.path.realpath(path)
        if os.path.isfile(real):
            self.paths[real] = None

    def add_operands(self, folder: WorkingFolder, words: Iterable[str | None]) -> None:
        """Add what a program with an unknown name may change. Nobody is asked, since it may only read."""
        for word in words:
            if word and not word.startswith("-"):
                self.replaced.append(folder.describe_unknown(word, is_recursive=True))


def _touches(path: str, folders: Iterable[str]) -> bool:
    """Check for a folder that contains the path, or lies in it."""
    for folder in folders:
        if PurePath(path).is_relative_to(folder) or PurePath(folder).is_relative_to(path):
            return True
    return False
