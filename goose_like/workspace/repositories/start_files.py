"""Start files: settings in a project by which editors, shells and agents run programs."""

import os
import stat
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from goose_like.core.errors import GooseLikeError

from .file_copy import (
    FileCopies,
    FileCopy,
    FileEdit,
    find_edits,
    keep_refused,
    list_files,
    read_copy,
    read_marks,
    write_copy,
)

_CLOCK_TICK_NS = 50_000_000
_MAX_BYTES = 5_000_000
_UNKNOWN: dict[str, tuple[int, ...]] = {"": ()}
"""Marks that no file has, so that the files are compared."""

# Below the workspace, or the top of a repository in it.
_NAMES = (
    *(".claude/settings.json", ".claude/settings.local.json", ".claude/commands", ".claude/agents", ".claude/hooks"),
    *(".claude/skills", ".mcp.json", ".codex", ".cursor", ".gemini", ".opencode", "opencode.json", ".goose-like"),
    *(".continue", ".windsurf", ".roo", ".kiro", ".aider.conf.yml", ".vscode", ".idea", ".run", ".zed", ".fleet"),
    *(".devcontainer", ".devcontainer.json", ".husky", ".gitmodules", ".envrc", ".mise.toml", "mise.toml"),
    *(".dir-locals.el", ".exrc", ".nvimrc", ".nvim.lua", ".lvimrc", ".gdbinit", ".lldbinit"),
)


def list_start_files(folder: Path) -> list[Path]:
    """List the start files that a project can have, existing or not."""
    return [folder / name for name in _NAMES]


class StartFiles:
    """Remembers the content of start files, in order to find and undo changes."""

    def __init__(self, paths: Iterable[Path], recorded: Mapping[Path, FileCopies] | None = None) -> None:
        """Read the files. With `recorded`, they count as they were then."""
        self._paths = dict.fromkeys(paths)
        self._marks = {path: _read_place_marks(path) for path in self._paths if os.path.lexists(path)}
        self._absent: dict[Path, tuple[int, list[Path]]] = {}
        """Paths that do not exist, by the folder in which a name would have to appear, with its change time."""
        self.accepted = {path: _read_place(path) for path in self._marks}
        if recorded is not None:
            self.accepted = {path: recorded[path] for path in self._paths if recorded.get(path)}
            self._marks = dict.fromkeys(self.accepted, _UNKNOWN)
        self._sort_absent(path for path in self._paths if not self.accepted.get(path))

    def find_unreadable(self) -> list[Path]:
        """Find watched folders with too much content, in which a change does not show."""
        return [path for path, files in self.accepted.items() if path in files and stat.S_ISDIR(files[path].mode)]

    def find_path(self, file: Path) -> Path | None:
        """Return the watched path that a file belongs to."""
        return next((path for path in (file, *file.parents) if path in self._paths), None)

    def find_edits(self) -> dict[Path, list[FileEdit]]:
        """Find the changes since the files were accepted, by watched path."""
        found: dict[Path, list[FileEdit]] = {}
        changed = [folder for folder, (at_ns, _) in self._absent.items() if _read_change_time(folder) != at_ns]
        self._sort_absent([path for folder in changed for path in self._absent.pop(folder)[1]])
        for path in list(self._marks):
            marks = _read_place_marks(path)
            if marks != self._marks.get(path):
                if edits := find_edits(self.accepted.get(path, {}), _read_place(path)):
                    found[path] = edits
                elif marks:
                    self._marks[path] = marks
                else:
                    del self._marks[path]
                    self._sort_absent([path])
        return found

    def _sort_absent(self, paths: Iterable[Path]) -> None:
        """Sort paths into those that exist, and those that can only appear when a folder changes."""
        for path in paths:
            if os.path.lexists(path):
                self._marks[path] = _UNKNOWN
                continue
            folder = next(above for above in path.parents if above.is_dir())
            at_ns = _read_change_time(folder)
            # A change within the clock tick after this look would not show.
            is_lasting = time.time_ns() - at_ns > _CLOCK_TICK_NS
            old_ns, others = self._absent.get(folder, (at_ns, []))
            self._absent[folder] = at_ns if is_lasting and old_ns == at_ns else 0, [*others, path]

    def accept(self, path: Path, edits: Iterable[FileEdit]) -> None:
        """Accept changes below a watched path."""
        files = self.accepted.setdefault(path, {})
        for edit in edits:
            files.pop(edit.path, None)
            files |= {edit.path: edit.new} if edit.new else {}


def revert_files(edits: Iterable[FileEdit]) -> None:
    """Give files their former content. Raise OSError or GooseLikeError if that is impossible."""
    for edit in edits:
        keep_refused(edit)
        for above in reversed(edit.path.parents):
            if above.is_symlink():  # it was none when the file was accepted
                write_copy(above, None)
        write_copy(edit.path, edit.old)


def _read_place(path: Path) -> FileCopies:
    try:
        files = list(map(Path, list_files(path, opens=True)))
        if sum(file.lstat().st_size for file in files if os.path.lexists(file)) > _MAX_BYTES:
            raise GooseLikeError(f"{path} is too large")
    except GooseLikeError:
        return {path: FileCopy(path.lstat().st_mode, None)}
    return {file: copy for file in files if (copy := read_copy(file))}


def _read_place_marks(path: Path) -> dict[str, tuple[int, ...]]:
    try:
        return read_marks(list_files(path, opens=True))
    except GooseLikeError:
        return read_marks([str(path)])


def _read_change_time(path: Path) -> int:
    try:
        return os.lstat(path).st_ctime_ns
    except OSError:
        return 0
