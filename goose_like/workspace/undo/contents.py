"""Contents: what files held before a change, from the undo log and from the objects of git."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from itertools import islice
from pathlib import Path

from goose_like.config.paths import find_repository_root
from goose_like.core.pattern import compile_later

from .log import UndoLog
from .repository import find_git_folder
from .snapshot import read_state
from .state import ABSENT, CachedState, FileState, get_marks
from .tracked import find_common_folder, is_content, parse_content

_BATCH_BLOBS = 1_000
_BATCH_BYTES = 32 << 20
_NO_LIMIT = 1 << 60
_LFS_POINTER_BYTES = 1024
_READ = (
    'export GIT_NO_LAZY_FETCH=1; git=$1 way=$2; shift 2; printf "%s\\n" "$@" |'
    ' git --no-replace-objects --git-dir="$git" cat-file "$way" 2>/dev/null'
)
_LFS_POINTER = compile_later(rb"version https://git-lfs\S+\n(?:.*\n)*oid sha256:(?P<oid>[0-9a-f]{64})\nsize \d+\n")

RunGit = Callable[[list[str]], bytes]
"""Runs a command and returns its output. Raises OSError if it fails."""


class Contents:
    """The contents of earlier states. Those in git are read many at a time, in the order of `expect`."""

    def __init__(self, log: UndoLog, run: RunGit) -> None:
        """Wrap the log. `run` runs git. `known` are states with their marks, for files that are not read again."""
        self.log = log
        self.known: Mapping[str, CachedState] = {}
        self._run = run
        self._expected: list[tuple[str, str]] = []
        self._places: dict[tuple[str, str], int] = {}
        self._batch: dict[str, bytes] = {}
        self._folders: dict[str, Path | None] = {}

    def expect(self, states: Iterable[tuple[str, FileState]]) -> None:
        """Tell the paths and states whose contents will be read next, in order."""
        self._expected = [(path, state.content) for path, state in states if state.is_in_git]
        self._places = {key: place for place, key in enumerate(self._expected)}
        self._batch = {}

    def find_missing(self) -> set[str]:
        """Find the expected paths whose contents git does not have any more, or never fetched."""
        missing: set[str] = set()
        pending = iter(self._expected)
        while batch := self._take_batch(pending, _NO_LIMIT):
            found = self._find_blobs(batch)
            for path, content in batch:
                blob, _ = parse_content(content)
                if blob not in found:
                    missing.add(path)
        return missing

    def _find_blobs(self, batch: list[tuple[str, str]]) -> set[str]:
        """Find the blobs of a batch that git has."""
        found = set()
        for line in self._cat_file("--batch-check", batch).decode().splitlines():
            words = line.split()
            if words[1:2] == ["blob"]:
                found.add(words[0])
        return found

    def read(self, path: str, state: FileState) -> bytes:
        """Read the content of a file's state. Raise OSError if it is lost."""
        if not state.is_in_git:
            return self.log.read_blob(state.content)
        blob, size_bytes = parse_content(state.content)
        key = (path, state.content)
        if blob not in self._batch and key in self._places:
            following = islice(self._expected, self._places[key], None)
            self._batch = self._read_batch(following)
        data = self._batch.get(blob) or self._read_batch(iter([key])).get(blob)
        git = self._find_git(path)
        if data is None or git is None:
            raise OSError("git does not have its former content any more")
        return _convert(data, size_bytes, git)

    def read_state(self, path: str, *expected: FileState) -> FileState:
        """Read the state of a path now. Nothing is stored if it is one of the `expected` states."""
        try:
            status = os.lstat(path)
        except (OSError, ValueError):
            return ABSENT
        folder = os.path.dirname(path)
        if os.path.realpath(folder) != folder:  # a link in place of a folder leads to other files
            return ABSENT
        known = self.known.get(path)
        if known and known.marks == get_marks(status):
            return known.state
        marks = f"\0{get_marks(status)}"
        for state in expected:
            if not state.is_stored and state == (status.st_mode, marks):
                return state

        def store(data: bytes) -> str:
            for state in expected:
                if state.is_in_git and is_content(state.content, data):
                    return state.content
            return self.log.store_or_hash_blob(data)

        return read_state(path, store)

    def is_same(self, one: FileState, two: FileState) -> bool:
        """Compare two states. The log and git may have the same content."""
        if one == two or one.mode != two.mode or one.is_in_git == two.is_in_git:
            return one == two
        tracked, other = (one, two) if one.is_in_git else (two, one)
        try:
            data = self.log.read_blob(other.content)
        except OSError:
            return False
        return is_content(tracked.content, data) or _is_converted(tracked.content, data, other.content)

    def _read_batch(self, pending: Iterator[tuple[str, str]]) -> dict[str, bytes]:
        """Read the first of these contents, by blob."""
        batch = self._take_batch(pending, _BATCH_BYTES)
        data = self._cat_file("--batch", batch)
        blobs: dict[str, bytes] = {}
        start = 0
        while (end := data.find(b"\n", start)) != -1:
            words = data[start:end].decode().split()
            start = end + 1
            if words[1:2] == ["blob"]:
                size_bytes = int(words[2])
                blobs[words[0]] = data[start : start + size_bytes]
                start += size_bytes + 1  # a line feed follows the content
        return blobs

    def _take_batch(self, pending: Iterator[tuple[str, str]], limit_bytes: int) -> list[tuple[str, str]]:
        """Take contents of at most this size together, more only if the first one is larger."""
        batch: list[tuple[str, str]] = []
        size_bytes = 0
        for path, content in islice(pending, _BATCH_BLOBS):
            batch.append((path, content))
            _, content_bytes = parse_content(content)
            size_bytes += content_bytes
            if size_bytes > limit_bytes:
                break
        return batch

    def _cat_file(self, way: str, batch: list[tuple[str, str]]) -> bytes:
        """Run `git cat-file` in each repository of a batch, and join its outputs."""
        blobs: dict[Path, dict[str, None]] = {}
        for path, content in batch:
            git = self._find_git(path)
            if git:
                blob, _ = parse_content(content)
                blobs.setdefault(git, {})[blob] = None
        output = b""
        for git, names in blobs.items():
            output += self._run(["sh", "-c", _READ, "sh", str(git), way, *names])
        return output

    def _find_git(self, path: str) -> Path | None:
        folder = os.path.dirname(path)
        if folder not in self._folders:
            root = find_repository_root(Path(folder))
            self._folders[folder] = find_git_folder(root)
        return self._folders[folder]


def _is_converted(content: str, data: bytes, digest: str) -> bool:
    """Check that `_convert` makes these bytes, with their SHA-256, from the content in git. Read no blob for that."""
    blob, size_bytes = parse_content(content)
    if size_bytes != len(data):
        return False
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{digest}\nsize {size_bytes}\n".encode()
    if is_content(f"git:{blob}:{len(pointer)}", pointer):
        return True
    lines = data.replace(b"\r\n", b"\n")
    is_text = b"\r" not in lines and len(data) == len(lines) + lines.count(b"\n")
    return is_text and is_content(f"git:{blob}:{len(lines)}", lines)


def _convert(data: bytes, size_bytes: int, git: Path) -> bytes:
    """Convert a blob to the file that it was when git saw it. The size tells which conversion that was."""
    if len(data) == size_bytes:
        return data
    lines = data.replace(b"\n", b"\r\n")
    if len(lines) == size_bytes and b"\r" not in data:
        return lines
    pointer = _LFS_POINTER.fullmatch(data) if len(data) < _LFS_POINTER_BYTES else None
    if pointer:
        return _read_large_file(pointer["oid"].decode(), git)
    raise OSError("git has its former content only in another form")


def _read_large_file(oid: str, git: Path) -> bytes:
    """Read a file of git-lfs with this SHA-256."""
    objects = find_common_folder(git) / "lfs/objects"
    with suppress(OSError):
        data = (objects / oid[:2] / oid[2:4] / oid).read_bytes()
        if sha256(data).hexdigest() == oid:
            return data
    raise OSError("git-lfs does not have its former content here")
