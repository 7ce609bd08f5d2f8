"""Staged repositories: commands see private copies of git hooks and settings, and a change counts after it was allowed.

In the sandbox, a private folder is mounted over `hooks`, and a link over each settings file leads into that folder. A
link, because git replaces its settings by renaming, and no file can be renamed onto a mount.

A mount is lost when somebody outside replaces what it covers, for example with `git config`. A new sandbox has it
again.
"""

import shutil
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp

from goose_like.config.private_folder import PrivateFolder
from goose_like.core.errors import GooseLikeError

from . import git
from .file_copy import AcceptedFiles, FileCopies, FileCopy, FileEdit, find_edits, list_files, read_copy, write_copy

_MAX_STAGED = 100


class StagedFolder:
    """A folder of hooks, and the settings of its repository, with the copies that commands see.

    `place` is the repository, or the folder of hooks itself if it belongs to none.
    """

    def __init__(self, folder: Path, settings: Iterable[Path], place: Path, copy: Path) -> None:
        self.folder = folder
        self.settings = {path.name: path for path in settings}
        self.place = place
        self.copy = copy
        self._files = AcceptedFiles()

    def has_file(self, path: Path) -> bool:
        """Check whether a real file belongs to the folder or its settings."""
        return path.is_relative_to(self.folder) or path in self.settings.values()

    def update(self, real: FileCopies) -> None:
        """Copy the real files of the place that changed. Raise GooseLikeError if one cannot be copied."""
        wanted = {self._to_copy(path): copy for path, copy in real.items() if self.has_file(path)}
        known = self._files.places.get(self.copy, {})
        edits = find_edits(known, wanted)
        for edit in edits:
            self._files.accept(self.copy, edit)
        try:
            for edit in edits:
                write_copy(edit.path, edit.new)
        except (OSError, GooseLikeError):  # a command put something in the way
            self.reset()

    def find_edits(self) -> list[FileEdit]:
        """Find the changes of the copies, as changes of the real files."""
        is_wanted = git.is_hook_name if self.settings else bool
        try:
            files = list_files(self.copy, opens=True)
        except GooseLikeError:  # too many
            return [FileEdit(self.folder, None, FileCopy(0, None))]
        wanted = [path for path in files if is_wanted(path.name) or self._is_settings(path)]
        edits = []
        for edit in self._files.find_edits(self.copy, wanted):
            path = self._to_real(edit.path)
            edits.append(edit._replace(path=path))
        return edits

    def apply(self, edit: FileEdit) -> None:
        """Make a change of a copy real. Raise GooseLikeError for no ordinary file, or one that changed meanwhile."""
        if edit.new and (not stat.S_ISREG(edit.new.mode) or edit.new.data is None):
            self.reset()
            raise GooseLikeError("it is no ordinary file")
        if read_copy(edit.path) != edit.old:
            raise GooseLikeError("it was changed outside of the sandbox meanwhile; do it again")
        is_settings = edit.path in self.settings.values()
        write_copy(edit.path, edit.new, in_place=is_settings)  # another file would lose the mount
        copied = edit._replace(path=self._to_copy(edit.path))
        self._files.accept(self.copy, copied)

    def reset(self) -> None:
        """Undo all changes in the copies."""
        for path in list(self.copy.iterdir()):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
        for path, copy in self._files.places.get(self.copy, {}).items():
            write_copy(path, copy)

    def _is_settings(self, copy: Path) -> bool:
        return copy.parent == self.copy and copy.name in self.settings

    def _to_copy(self, path: Path) -> Path:
        if path in self.settings.values():
            return self.copy / path.name
        return self.copy / path.relative_to(self.folder)

    def _to_real(self, copy: Path) -> Path:
        if self._is_settings(copy):
            return self.settings[copy.name]
        return self.folder / copy.relative_to(self.copy)


class Staging:
    """All staged folders of a session."""

    def __init__(self) -> None:
        self.folders: dict[Path, StagedFolder] = {}
        self._tmp = PrivateFolder("tmp")

    def add(self, folder: Path, settings: Iterable[Path], place: Path, real: FileCopies) -> None:
        """Stage a folder of hooks. One that cannot be copied, and those above 100, stay read-only in the sandbox."""
        if len(self.folders) >= _MAX_STAGED:
            return
        own = [path for path in settings if not path.is_symlink()]
        copy = Path(mkdtemp(dir=self._tmp.path))
        staged = StagedFolder(folder, own, place, copy)
        with suppress(OSError, GooseLikeError):
            staged.update(real)
            self.folders[folder] = staged

    @property
    def mounts(self) -> Mapping[Path, Path]:
        """The folder to mount over each staged folder."""
        return {folder: staged.copy for folder, staged in self.folders.items()}

    @property
    def links(self) -> list[Path]:
        """The settings files over which the sandbox mounts a link to `hooks/NAME`."""
        links: list[Path] = []
        for staged in self.folders.values():
            links += staged.settings.values()
        return links

    def close(self) -> None:
        """Remove the copies."""
        self._tmp.remove()
