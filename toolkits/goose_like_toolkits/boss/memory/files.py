"""Memory files: plain files that people may read and edit while the boss works."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from goose_like.core.errors import DeniedError, GooseLikeError, ProfileError
from goose_like.core.message import FrozenModel
from goose_like.core.notifier import Notifier
from goose_like.sessions.session import Session
from goose_like.workspace.diff import format_diff
from goose_like.workspace.files import ContentUpdate
from goose_like.workspace.workspace import Workspace

MAX_BYTES = 4_000_000
_SEARCHED_BYTES = 64 * 1024
_MAX_DIFF_CHARACTERS = 4_000


class Contents(FrozenModel):
    """The texts of all memory files by name. `edits` are diffs of the files that others changed since the last read."""

    texts: dict[str, str] = {}
    edits: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class _SeenFiles:
    """The text of each file when one boss last read or wrote it, and diffs not yet shown to that boss."""

    texts: dict[Path, str] = field(default_factory=dict)
    diffs: dict[Path, list[str]] = field(default_factory=dict)

    def compare(self, path: Path, text: str) -> None:
        known = self.texts.setdefault(path, text)
        if known != text:
            self.diffs.setdefault(path, []).append(format_diff(known.encode(), text.encode()))
            self.texts[path] = text

    def take_diff(self, path: Path) -> str:
        diff = "\n".join(self.diffs.pop(path, ()))
        return diff if len(diff) <= _MAX_DIFF_CHARACTERS else f"{diff[:_MAX_DIFF_CHARACTERS]}\n[... cut off here ...]"


class MemoryFiles:
    """The memory files of one boss by name. Paths follow the rules of the workspace.

    Files in the session's own folder are the exception: the workspace hides that folder, so they have a port of their
    own. `parent` is the memory of the calling boss; a write of this boss is no edit for the caller, and vice versa.

    Raises:
        ProfileError: a file would vanish with the sandbox.
    """

    def __init__(
        self,
        files: Mapping[str, str],
        workspace: Workspace,
        session: Session,
        parent: "MemoryFiles | None" = None,
    ) -> None:
        self._workspace = workspace
        self._session_port = Workspace(session.folder, mode="full", approval="yolo", notifier=Notifier())
        self._session_folders: list[Path] = [
            session.folder,
            self._session_port.root,
            *(parent._session_folders if parent else ()),
        ]
        # Links are not resolved: a command could have made one that leads into the session's folder.
        self._paths = {
            name: Path(os.path.normpath(workspace.root / os.path.expanduser(path))) for name, path in files.items()
        }
        for name, path in self._paths.items():
            if not self.is_in_session(name) and workspace.is_private(path):
                raise ProfileError(
                    f"the memory file {name!r}: {path} would lie in the sandbox's own /tmp and vanish with it; "
                    f"give a path elsewhere for {name!r}"
                )
        self._seen = _SeenFiles()
        self._all_seen: list[_SeenFiles] = parent._all_seen if parent else []
        self._all_seen.append(self._seen)

    def get_path(self, name: str) -> Path:
        """Return the path of a file. Raise GooseLikeError if no memory file has that name."""
        if name not in self._paths:
            raise GooseLikeError(f"no memory file {name!r}; there are: {', '.join(self._paths) or 'none'}")
        return self._paths[name]

    def is_in_session(self, name: str) -> bool:
        """Tell whether a file lies in the folder of this session or a caller's session, hidden from commands."""
        return any(self.get_path(name).is_relative_to(folder) for folder in self._session_folders)

    def read(self) -> Contents:
        """Read all files. A missing file is empty.

        Raises:
            GooseLikeError: a file is no UTF-8 text, no regular file, a secret, or larger than 4 MB.
        """
        texts, edits = dict[str, str](), dict[str, str]()
        for name in self._paths:
            path = self._get_port(name).resolve(self.get_path(name))
            texts[name] = self._decode(name, self._read_bytes(name))
            self._seen.compare(path, texts[name])
            if diff := self._seen.take_diff(path):
                edits[name] = diff
        return Contents(texts=texts, edits=edits)

    def get_size(self, name: str) -> int:
        """Return the size of a file in bytes. Raise GooseLikeError like `read`."""
        return len(self._read_bytes(name))

    async def append_once(self, name: str, entry: str, size_bytes: int) -> None:
        """Append lines, unless a killed process already did. Complete lines that it wrote in part.

        Call this before reading the file again. `size_bytes` is the size of the file when the entry was composed.

        Raises:
            GooseLikeError: the file can't be written, or the user refused.
        """
        data = (entry.removesuffix("\n") + "\n").encode(errors="replace")

        def change(held: bytes) -> bytes | None:
            rest = find_missing_part(held, data, size_bytes)
            return held + rest if rest else None

        await self._write(name, change, at_end=True)

    async def replace(self, name: str, text: str, previous: str) -> bool:
        """Replace the whole text of a file at once. Return False if the file no longer holds `previous`.

        Raises:
            GooseLikeError: the file can't be written, or the user refused.
        """
        new, old = text.encode(errors="replace"), previous.encode(errors="replace")
        is_written = await self._write(name, lambda held: new if held == old != new else None)
        return is_written or self._read_bytes(name) == new

    async def _write(self, name: str, change: ContentUpdate, *, at_end: bool = False) -> bool:
        before = after = b""

        def apply_change(held: bytes) -> bytes | None:
            nonlocal before, after
            data = change(held)
            if data is not None:
                if len(data) > MAX_BYTES:
                    raise _make_error(name, f"it would have {len(data):,} bytes, more than {MAX_BYTES:,}")
                before, after = held, data
            return data

        port, path = self._get_port(name), self.get_path(name)
        try:
            is_written = await port.update_own_file(path, apply_change, at_end=at_end)
        except OSError as error:
            raise _make_error(name, str(error)) from error
        except DeniedError as error:
            reason = f"{name!r}: {str(error).partition(';')[0]}"
            raise DeniedError(f"the memory file {reason}; allow it, or give another path for {name!r}") from error
        if is_written:
            real_path = port.resolve(path)
            for seen in self._all_seen:
                if real_path in seen.texts:
                    seen.compare(real_path, before.decode(errors="replace"))
                    seen.texts[real_path] = after.decode(errors="replace")
        return is_written

    def _get_port(self, name: str) -> Workspace:
        return self._session_port if self.is_in_session(name) else self._workspace

    def _read_bytes(self, name: str) -> bytes:
        port, path = self._get_port(name), self.get_path(name)
        try:
            return port.read_bytes(path, MAX_BYTES)
        except FileNotFoundError:
            return b""
        except (OSError, GooseLikeError) as error:
            raise _make_error(name, str(error).partition(";")[0]) from error

    def _decode(self, name: str, data: bytes) -> str:
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise _make_error(name, f"{self.get_path(name)}, line {line}, is no UTF-8 text") from error


def find_missing_part(held: bytes, entry: bytes, size_bytes: int) -> bytes:
    """Return the part of an entry to append to a file that had `size_bytes` when the entry was composed.

    If someone else changed the file since, search the last 64 KiB for the lines of the entry.
    """
    whole = _end_line(held[:size_bytes]) + entry
    if len(held) >= size_bytes:
        added = held[size_bytes:]
        if added.startswith(whole):
            return b""
        if whole.startswith(added):
            return whole[len(added) :]
    is_there = b"\n" + entry in (b"\n" + held)[-_SEARCHED_BYTES:]
    return b"" if is_there else _end_line(held) + entry


def _end_line(held: bytes) -> bytes:
    return b"" if not held or held.endswith(b"\n") else b"\n"


def _make_error(name: str, problem: str) -> GooseLikeError:
    return GooseLikeError(f"the memory file {name!r}: {problem}; repair or move it, or give another path for {name!r}")
