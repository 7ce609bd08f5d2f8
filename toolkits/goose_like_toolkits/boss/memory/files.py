"""Memory files: plain files that people may read and edit while the boss works."""

import os
from collections.abc import Mapping
from pathlib import Path

from goose_like.core.errors import DeniedError, GooseLikeError, ProfileError
from goose_like.core.notifier import Notifier
from goose_like.sessions.session import Session
from goose_like.workspace.diff import format_diff
from goose_like.workspace.files import ContentUpdate
from goose_like.workspace.workspace import Workspace

MAX_BYTES = 4_000_000
_SEARCHED_BYTES = 64 * 1024
_MAX_DIFF_CHARACTERS = 4_000


class MemoryFiles:
    """The memory files of one boss by name. Paths follow the rules of the workspace.

    Files in the session's own folder are the exception: the workspace hides that folder, so they have a port of their
    own. `parent` is the memory of the calling boss. A write of one of them is no edit for the other one, and an edit by
    somebody else is reported to the one that reads the file first. Raise ProfileError for a file in a private folder.
    """

    def __init__(
        self, files: Mapping[str, str], workspace: Workspace, session: Session, parent: "MemoryFiles | None" = None
    ) -> None:
        session_port = Workspace(session.folder, mode="full", approval="yolo", notifier=Notifier())
        self._session_folders: list[Path] = [session.folder, session_port.root]
        # The texts when a boss last read or wrote them.
        self._known: dict[Path, str] = {}
        if parent:
            self._session_folders += parent._session_folders
            self._known = parent._known
        self._edits: dict[str, list[str]] = {}
        self.paths: dict[str, Path] = {}
        self._ports: dict[str, Workspace] = {}
        for name, file in files.items():
            # Links are not resolved: a command could have made one that leads into the session's folder.
            path = Path(os.path.normpath(workspace.root / os.path.expanduser(file)))
            is_in_session = any(map(path.is_relative_to, self._session_folders))
            port = session_port if is_in_session else workspace
            port.show_path(path)
            if not is_in_session and workspace.is_private(path):
                raise ProfileError(
                    f"the memory file {name!r}: {path} would lie in the sandbox's own /tmp and vanish with it; "
                    f"give a path elsewhere for {name!r}"
                )
            self.paths[name] = path
            self._ports[name] = port

    def read(self) -> dict[str, str]:
        """Read all files by name. A missing file is empty. Raise GooseLikeError if one is no text of at most 4 MB."""
        texts = dict[str, str]()
        for name in self.paths:
            text = self._decode(name, self._read_bytes(name))
            texts[name] = text
            path = self._resolve(name)
            known = self._known.setdefault(path, text)
            if known != text:
                diff = format_diff(known.encode(), text.encode())
                self._edits.setdefault(name, []).append(diff)
                self._known[path] = text
        return texts

    def take_edits(self) -> dict[str, str]:
        """Return diffs of the files that others changed since the last call, by name."""
        edits = {}
        for name, diffs in self._edits.items():
            text = "\n".join(diffs)
            if len(text) > _MAX_DIFF_CHARACTERS:
                text = f"{text[:_MAX_DIFF_CHARACTERS]}\n[... cut off here ...]"
            edits[name] = text
        self._edits.clear()
        return edits

    def get_size(self, name: str) -> int:
        """Return the size of a file in bytes. Raise GooseLikeError like `read`."""
        return len(self._read_bytes(name))

    async def append_once(self, name: str, entry: str, size_bytes: int) -> None:
        """Append lines, unless a killed process already did. Complete lines that it wrote in part.

        Call this before reading the file again. `size_bytes` is the size of the file when the entry was composed. Raise
        GooseLikeError if the file can't be written, or the user refused.
        """
        data = (entry.removesuffix("\n") + "\n").encode(errors="replace")
        added = b""

        def change(held: bytes) -> bytes | None:
            nonlocal added
            added = find_missing_part(held, data, size_bytes)
            return held + added if added else None

        path = self._resolve(name)
        if await self._write(name, change, at_end=True) and path in self._known:
            self._known[path] += added.decode(errors="replace")

    async def replace(self, name: str, text: str, previous: str) -> bool:
        """Replace the text of a file if it is still `previous`. Raise GooseLikeError if it can't be written."""
        new = text.encode(errors="replace")
        old = previous.encode(errors="replace")

        def change(held: bytes) -> bytes | None:
            return new if held == old != new else None

        is_written = await self._write(name, change)
        if is_written:
            self._known[self._resolve(name)] = new.decode()
        return is_written or self._read_bytes(name) == new

    async def _write(self, name: str, change: ContentUpdate, *, at_end: bool = False) -> bool:
        def check(held: bytes) -> bytes | None:
            data = change(held)
            if data is not None and len(data) > MAX_BYTES:
                raise _make_error(name, f"it would have {len(data):,} bytes, more than {MAX_BYTES:,}")
            return data

        try:
            return await self._ports[name].update_own_file(self.paths[name], check, at_end=at_end)
        except OSError as error:
            raise _make_error(name, str(error)) from error
        except DeniedError as error:
            reason = f"{name!r}: {str(error).partition(';')[0]}"
            raise DeniedError(f"the memory file {reason}; allow it, or give another path for {name!r}") from error

    def _resolve(self, name: str) -> Path:
        return self._ports[name].resolve(self.paths[name])

    def _read_bytes(self, name: str) -> bytes:
        try:
            return self._ports[name].read_bytes(self.paths[name], MAX_BYTES)
        except FileNotFoundError:
            return b""
        except (OSError, GooseLikeError) as error:
            raise _make_error(name, str(error).partition(";")[0]) from error

    def _decode(self, name: str, data: bytes) -> str:
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise _make_error(name, f"{self.paths[name]}, line {line}, is no UTF-8 text") from error


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
    searched = (b"\n" + held)[-_SEARCHED_BYTES:]
    if b"\n" + entry in searched:
        return b""
    return _end_line(held) + entry


def _end_line(held: bytes) -> bytes:
    """Return the line break that is missing at the end of a file."""
    if not held or held.endswith(b"\n"):
        return b""
    return b"\n"


def _make_error(name: str, problem: str) -> GooseLikeError:
    return GooseLikeError(f"the memory file {name!r}: {problem}; repair or move it, or give another path for {name!r}")
