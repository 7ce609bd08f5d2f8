"""Staged repositories: commands see private copies of git hooks and settings, and a change counts after it was allowed.

In the sandbox, a private folder is mounted over `hooks`, and a link over each settings file leads into that folder. A
link, because git replaces its settings by renaming, and no file can be renamed onto a mount.

A mount is lost when somebody outside replaces what it covers, for example with `git config`. A new sandbox has it
again.
"""

import os
import shutil
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from goose_like.core.errors import GooseLikeError
from goose_like.workspace.private_tmp import PrivateTmp

from . import git
from .file_copy import (
    FileCopies,
    FileCopy,
    FileEdit,
    FilePins,
    find_edits,
    keep_refused,
    list_files,
    read_copy,
    read_marks,
    write_copy,
)

_MAX_STAGED = 100  # each needs an open file for each of its settings files


class StagedFolder:
    """A folder of hooks, and the settings of its repository, with the copies that commands see."""

    def __init__(self, folder: Path, settings: Iterable[Path], copy: Path) -> None:
        """Copy the files. Raise GooseLikeError if there are too many, or if one cannot be copied."""
        self.folder = folder
        self.settings = tuple(settings)
        self.copy = copy
        self.losses = 0
        """How many times mounts were lost."""
        self._pins = FilePins((folder, *self.settings))
        self._base: FileCopies = {}
        self._marks: object = None
        self._is_wanted = git.is_hook_name if self.settings else bool
        copy.mkdir()
        self.find_edits()
        if any(one.data is None for one in self._base.values()):
            raise GooseLikeError(f"{folder} holds a file that can't be copied")

    def find_edits(self) -> tuple[list[FileEdit], list[FileEdit]]:
        """Find the changes of the copies, and those of the real files that commands may have made.

        Commands can have changed the real files once mounts are lost. Before that, the person's changes are copied.
        """
        if any(map(self._pins.has_moved, (self.folder, *self.settings))):
            self.losses += 1
            self._pins.close()
            self._pins = FilePins(filter(os.path.lexists, (self.folder, *self.settings)))
        try:
            marks = self._read_real_marks(), read_marks(list_files(self.copy, opens=True))
        except GooseLikeError:  # too many files
            return [FileEdit(self.folder, None, FileCopy(0, None))], []
        if marks == self._marks:
            return [], []
        hooks = map(Path, list_files(self.folder, self._is_wanted))
        real = {path: copy for path in (*hooks, *self.settings) if (copy := read_copy(path))}
        real_edits = find_edits(self._base, real)
        edits = find_edits(self._base, self._read_staged()) if self._marks else []
        edits = [one for one in edits if one.path not in {edit.path for edit in real_edits}]
        self._marks = (None, None) if edits or real_edits else marks
        if real_edits and not self.losses:
            self.adopt(real_edits)
            real_edits = []
        return edits, real_edits

    def _read_real_marks(self) -> dict[str, tuple[int, ...]]:
        return read_marks([str(self.folder), *map(str, self._base), *map(str, self.settings)])

    def adopt(self, edits: Iterable[FileEdit]) -> None:
        """Copy changes of the real files."""
        self._remember(edits)
        for edit in edits:
            self._write_staged(edit.path, edit.new)

    def apply(self, edits: Iterable[FileEdit]) -> None:
        """Make changes of the copies real. Raise GooseLikeError for a link or a file that cannot be read."""
        for edit in edits:
            if edit.new and (not stat.S_ISREG(edit.new.mode) or edit.new.data is None):
                self.reset()
                raise GooseLikeError(f"{edit.path} is no ordinary file, so it was not taken over")
            write_copy(edit.path, edit.new, in_place=edit.path in self.settings)  # another file would lose the mount
            self._remember([edit])

    def revert(self, edits: Iterable[FileEdit]) -> None:
        """Undo changes of the real files."""
        for edit in edits:
            keep_refused(edit)
            write_copy(edit.path, edit.old, in_place=True)

    def close(self) -> None:
        """Release the real files."""
        self._pins.close()

    def _remember(self, edits: Iterable[FileEdit]) -> None:
        for edit in edits:
            self._base.pop(edit.path, None)
            self._base |= {edit.path: edit.new} if edit.new else {}

    def reset(self) -> None:
        """Undo all changes in the copies."""
        for path in list(self.copy.iterdir()):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
        for path, copy in self._base.items():
            self._write_staged(path, copy)

    def _read_staged(self) -> FileCopies:
        found = {}
        for path in map(Path, list_files(self.copy, opens=True)):
            inside = path.relative_to(self.copy)
            is_settings = self.folder.parent / inside in self.settings
            if (is_settings or self._is_wanted(path.name)) and (copy := read_copy(path)):
                found[self.folder.parent / inside if is_settings else self.folder / inside] = copy
        return found

    def _write_staged(self, path: Path, copy: FileCopy | None) -> None:
        is_settings = path in self.settings
        write_copy(self.copy / (path.name if is_settings else path.relative_to(self.folder)), copy)


class Staging:
    """All staged folders of a session."""

    def __init__(self) -> None:
        self.folders: dict[Path, StagedFolder] = {}
        self._tmp = PrivateTmp()

    def add(self, folder: Path, settings: Iterable[Path] = ()) -> None:
        """Stage a folder of hooks. One that cannot be copied, and those above 100, stay read-only in the sandbox."""
        if len(self.folders) >= _MAX_STAGED:
            return
        own = [path for path in settings if not os.path.islink(path)]
        try:
            self.folders[folder] = StagedFolder(folder, own, self._tmp.path / str(len(self.folders)))
        except (OSError, GooseLikeError):
            return

    @property
    def mounts(self) -> Mapping[Path, Path]:
        """The folder to mount over each staged folder."""
        return {folder: staged.copy for folder, staged in self.folders.items()}

    @property
    def losses(self) -> int:
        """How many times mounts were lost, so that new commands need a new sandbox."""
        return sum(staged.losses for staged in self.folders.values())

    @property
    def links(self) -> list[Path]:
        """The settings files over which the sandbox mounts a link to `hooks/NAME`."""
        return [path for staged in self.folders.values() for path in staged.settings]

    def close(self) -> None:
        """Remove the copies."""
        for staged in self.folders.values():
            staged.close()
        self._tmp.remove()
