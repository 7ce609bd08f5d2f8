"""Clean files: those that are as git has them. A list of our own, in the form of git's index, lets git find changes.

Git runs outside the sandbox here, with a repository and settings of our own: of the person's repository it sees only
the status of files. The time of our index is in the future. So git never compares contents, and runs no filter.
"""

import os
import stat
import struct
import subprocess
import time
from array import array
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from goose_like.config.paths import create_private_folder
from goose_like.core.errors import GooseLikeError
from goose_like.workspace.files import temporary_name
from goose_like.workspace.programs import find_program
from goose_like.workspace.repositories.git_index import GitIndex, format_index, is_safe_name, read_index

from .state import FileState, Listing, Marks, get_certain_marks
from .tracked import TrackedRepository, name_content

_LIMIT_INDEX_BYTES = 1 << 30
_FUTURE_S = 0x7FFFFFFF
"""A time after that of all files: git compares the contents of files that are as young as the index."""

_TOO_LARGE_BYTES = 1 << 32  # the index has no room for such a size
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

# Among the facts of an index entry.
_MODE_BYTES = 4
_FLAGS_PLACE = 24
_NAME_PLACE = 26

_NS_PER_S = 1_000_000_000
_TIMEOUT_S = 120.0
_DIFF = ("diff-files", "--name-status", "-z")


class CleanFiles:
    """The files of a repository that were as git has them at one moment, in an index of our own."""

    def __init__(self, file: Path, top: str, roots: Collection[Path], index: GitIndex | None = None) -> None:
        """Open the index in a file, unless it is known. Raise OSError if it cannot be read.

        `top` is the folder of the repository. Git is not run from one of `roots`.
        """
        self.file = file
        self.top = top
        self._roots = roots
        try:
            self._index = index or GitIndex(read_index(str(file), _LIMIT_INDEX_BYTES)[0])
        except (ValueError, IndexError, struct.error) as error:
            raise OSError(f"{file}: it can't be read") from error

    def __contains__(self, path: str) -> bool:
        return self._find_place(path) is not None

    def find(self, path: str) -> FileState | None:
        """Return the state that a path had if it was clean."""
        place = self._find_place(path)
        if place is None:
            return None
        entry = self._index.read_entry(place)
        return FileState(entry.mode, name_content(entry, entry.size))

    def _find_place(self, path: str) -> int | None:
        if not path.startswith(f"{self.top}/"):
            return None
        return self._index.find(os.fsencode(path[len(self.top) + 1 :]))

    def iterate(self) -> Iterator[tuple[bytes, int, bytes]]:
        """Yield the files: name below the repository, mode, and digest of the content in git."""
        for facts in self._index.iterate_facts():
            mode = int.from_bytes(facts[:_MODE_BYTES])
            name = facts[_NAME_PLACE:].rstrip(b"\0")
            yield name, mode, facts[_MODE_BYTES:_FLAGS_PLACE]

    def start_search(self) -> "ChangeSearch":
        """Start to search for the files that are not clean any more."""
        return ChangeSearch(self.file, self.top, self._roots)

    def drop(self, paths: Collection[str], file: Path) -> "CleanFiles":
        """Write a list without these files to another file, and return it."""
        names = [os.fsencode(path[len(self.top) + 1 :]) for path in paths]
        write_index(file, self._index.copy_without(names), len(self._index) - len(names))
        return CleanFiles(file, self.top, self._roots)


class ChangeSearch:
    """A running search of git for files that have changed."""

    def __init__(self, file: Path, top: str, roots: Collection[Path]) -> None:
        self._top = top
        self._file = file
        program = find_program("git", *roots)
        if program is None:
            raise GooseLikeError("there is no git on the PATH outside the workspace")
        self._process = subprocess.Popen(
            [program, *_DIFF],
            env=_build_environment(file, top),
            cwd=file.parent,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def read(self) -> dict[str, bool]:
        """Return the changed paths, each with False if it is gone. Raise OSError if git fails."""
        try:
            output, _ = self._process.communicate(timeout=_TIMEOUT_S)
        except subprocess.TimeoutExpired as error:
            raise OSError(f"git takes over {_TIMEOUT_S:.0f} seconds") from error
        finally:
            self.stop()
        if self._process.returncode != 0:
            raise OSError(f"git can't compare the files of {self._top}")
        words = iter(output.split(b"\0"))
        changed = {}
        for status, name in zip(words, words, strict=False):
            if is_safe_name(name):
                changed[f"{self._top}/{os.fsdecode(name)}"] = status != b"D"
        return changed

    def stop(self) -> None:
        """End the search."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()


def _build_environment(file: Path, top: str) -> dict[str, str]:
    """Build variables that keep git from the person's settings, and from those of the repository."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    own = {
        "GIT_DIR": str(_create_git_folder(file.parent)),
        "GIT_WORK_TREE": top,
        "GIT_INDEX_FILE": str(file),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_OPTIONAL_LOCKS": "0",
    }
    return variables | own


def _create_git_folder(folder: Path) -> Path:
    """Create the least that git takes for a repository."""
    git = folder / "git"
    if not (git / "HEAD").exists():
        for name in ("objects", "refs"):
            create_private_folder(git / name)
        (git / "HEAD").write_text("ref: refs/heads/none\n")
    return git


def write_index(file: Path, parts: Sequence[bytes | bytearray], count: int) -> None:
    """Write an index of our own, whole or not at all. Raise OSError if the disk is full."""
    temporary = file.with_name(temporary_name(file.name))
    try:
        temporary.touch(0o600, exist_ok=False)
        with temporary.open("wb") as output:
            for part in format_index(parts, count):
                output.write(part)
        os.utime(temporary, (_FUTURE_S, _FUTURE_S))
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)


class _Folder(NamedTuple):
    """An open folder, its name below the root, its device and marks, and the names in it that are no clean files."""

    name: str
    descriptor: int
    device: int
    marks: Marks
    names: set[str]

    def is_around(self, name: str) -> bool:
        """Check for the folder with this name, or one above it."""
        return self.name in ("", name) or name.startswith(f"{self.name}/")


class CleanSearch:
    """The first look at the tracked files below a folder. It finds the clean ones, and lists folders on the way.

    A command may have written the index: names that lead into a `.git` or out of the folder do not count.

    `entries` are their index entries. `listings` hold the other names in the folders of tracked files. Files
    that are too young are counted.
    """

    def __init__(self, root: str, repository: TrackedRepository, left_out: Collection[str] = ()) -> None:
        """Prepare a look without any work. Files in the folders of `left_out` do not count."""
        self.entries = bytearray()
        self._starts = array("Q")
        self.listings: dict[str, Listing] = {}
        self.young_count = 0
        self._root = root
        self._repository = repository
        self._left_out = left_out
        self._open: list[_Folder] = []
        # Git compares whole seconds. A later change of a file that is as young as this might not show.
        self._now_ns = int(time.time()) * _NS_PER_S

    def run(self) -> None:
        """Look at all files. Raise OSError if the folder cannot be opened."""
        repository = self._repository
        start = os.fsencode(f"{self._root}/"[len(repository.top) + 1 :])
        root = os.open(self._root, _FOLDER)
        self._open = [self._read_folder("", root)]
        try:
            folder: bytes | None = None
            is_open = False
            for name, place in repository.index.iterate_below(start):
                last = name[name.rfind(b"/") + 1 :]
                next_folder = name[: -len(last) - 1]
                if next_folder != folder:
                    folder = next_folder
                    is_open = is_safe_name(folder or b"a") and self._enter(os.fsdecode(folder[len(start) :]))
                if is_open and is_safe_name(last):
                    self._look(last, name, place)
        finally:
            while self._open:
                self._leave()

    @property
    def count(self) -> int:
        """The number of clean files."""
        return len(self._starts)

    def build_index(self) -> GitIndex:
        """Build the index of the clean files, as `write_index` writes it."""
        return GitIndex.from_copies(self.entries, self._starts)

    def _enter(self, name: str) -> bool:
        """Open a folder and those above it, after leaving others. Return False if it is gone, or behind a link."""
        while not self._open[-1].is_around(name):
            self._leave()
        while self._open[-1].name != name:
            above = self._open[-1]
            rest = name[len(above.name) :].removeprefix("/")
            part = rest.partition("/")[0]
            next_name = f"{above.name}/{part}".removeprefix("/")
            if f"{self._root}/{next_name}" in self._left_out:
                return False
            try:
                descriptor = os.open(part, _FOLDER, dir_fd=above.descriptor)
                self._open.append(self._read_folder(next_name, descriptor))
            except OSError:
                return False
        return True

    def _read_folder(self, name: str, descriptor: int) -> _Folder:
        status = os.fstat(descriptor)
        marks = get_certain_marks(status)
        with os.scandir(descriptor) as entries:
            names = {entry.name for entry in entries}
        return _Folder(name, descriptor, status.st_dev, marks, names)

    def _leave(self) -> None:
        folder = self._open.pop()
        os.close(folder.descriptor)
        path = f"{self._root}/{folder.name}".removesuffix("/")
        self.listings[path] = Listing(folder.marks, list(folder.names))

    def _look(self, last: bytes, name: bytes, place: int) -> None:
        """Take a file for clean if it is certain that git has it."""
        folder = self._open[-1]
        try:
            status = os.stat(last, dir_fd=folder.descriptor, follow_symlinks=False)
        except OSError:
            return
        if not self._repository.is_as_git_saw(name, place, status):
            return
        mode = status.st_mode
        if not stat.S_ISREG(mode) or status.st_size >= _TOO_LARGE_BYTES or folder.device != self._open[0].device:
            return
        if status.st_ctime_ns >= self._now_ns:
            self.young_count += 1
            return
        self._starts.append(len(self.entries))
        self.entries += self._repository.index.copy_entry(place, status)
        folder.names.discard(os.fsdecode(last))
