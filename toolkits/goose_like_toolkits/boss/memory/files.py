"""A boss's memory: plain files that people may read and edit while it works."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from goose_like.core.errors import DeniedError, GooseLikeError, ProfileError
from goose_like.core.message import FrozenModel
from goose_like.core.notifier import Notifier
from goose_like.sessions.session import Session
from goose_like.workspace.diff import format_diff
from goose_like.workspace.workspace import ContentUpdate, Workspace

LIMIT_BYTES = 4_000_000
_LOOKED_BYTES = 64 * 1024
_EDIT_CHARACTERS = 4_000


class Contents(FrozenModel):
    """What the files hold, by their names; of those that others changed since the last look the diff, in `edits`."""

    texts: dict[str, str] = {}
    edits: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class _Known:
    """What one boss knows of files: each as it was last read or written, and diffs that it was not told yet."""

    texts: dict[Path, str] = field(default_factory=dict)
    edits: dict[Path, list[str]] = field(default_factory=dict)

    def look(self, place: Path, text: str) -> None:
        known = self.texts.setdefault(place, text)
        if known != text:
            self.edits.setdefault(place, []).append(format_diff(known.encode(), text.encode()))
            self.texts[place] = text

    def take(self, place: Path) -> str:
        diff = "\n".join(self.edits.pop(place, ()))
        return diff if len(diff) <= _EDIT_CHARACTERS else f"{diff[:_EDIT_CHARACTERS]}\n[... cut off here ...]"


class Memory:
    """Files by their names. What is written here is told to nobody as an edit: not to `within`, its caller's, either.

    Paths are those of the workspace. What lies in the session's own folder is reached without its rules, which hide it.

    Raises:
        ProfileError: a file would not outlast the session.
    """

    def __init__(
        self, files: Mapping[str, str], workspace: Workspace, session: Session, within: "Memory | None" = None
    ) -> None:
        self._workspace = workspace
        self._ours = Workspace(session.folder, mode="full", approval="yolo", notifier=Notifier())
        self._our_folders: list[Path] = [session.folder, self._ours.root, *(within._our_folders if within else ())]
        # As spelt, not where links lead: a command could have made one to the session's folder.
        self._paths = {
            name: Path(os.path.normpath(workspace.root / os.path.expanduser(path))) for name, path in files.items()
        }
        for name, path in self._paths.items():
            if self._port(name) is workspace and workspace.is_private(path):
                raise ProfileError(
                    f"the memory file {name!r}: {path} would lie in the sandbox's own /tmp, which goes with it; "
                    f"give a path elsewhere for {name!r}"
                )
        self._known = _Known()
        self._all: list[_Known] = within._all if within else []
        self._all.append(self._known)

    def path(self, name: str) -> Path:
        """Where a file lies. Raises: GooseLikeError: there is none of that name."""
        if name not in self._paths:
            raise GooseLikeError(f"no memory file {name!r}; there are: {', '.join(self._paths) or 'none'}")
        return self._paths[name]

    def is_ours(self, name: str) -> bool:
        """Whether it lies in the session's folder or its caller's, where commands can't see it."""
        return self._port(name) is self._ours

    def read(self) -> Contents:
        """All files as they are now; one that is missing is empty.

        Raises:
            GooseLikeError: one is no UTF-8 text, no file, a secret, or larger than 4 MB.
        """
        texts, edits = dict[str, str](), dict[str, str]()
        for name in self._paths:
            place = self._port(name).resolve(self.path(name))
            texts[name] = self._text(name, self._bytes(name))
            self._known.look(place, texts[name])
            if edit := self._known.take(place):
                edits[name] = edit
        return Contents(texts=texts, edits=edits)

    def size_bytes(self, name: str) -> int:
        """How much a file holds now. Raises: GooseLikeError: as `read`."""
        return len(self._bytes(name))

    async def append(self, name: str, entry: str) -> None:
        """Adds lines at the end, in one write; makes the file and its folders.

        Raises:
            GooseLikeError: it can't be written, or was not allowed.
        """
        data = _lines(entry)
        await self._write(name, lambda held: held + _end_of_line(held) + data, at_end=True)

    async def append_once(self, name: str, entry: str, at: int) -> None:
        """Adds lines that may have been added before, wholly or in part, by a process that was killed.

        `at` is the file's size as it was when the entry was decided on. To be called before the file is read again.

        Raises:
            GooseLikeError: it can't be written, or was not allowed.
        """
        data = _lines(entry)

        def change(held: bytes) -> bytes | None:
            rest = missing(held, data, at)
            return held + rest if rest else None

        await self._write(name, change, at_end=True)

    async def replace(self, name: str, text: str, was: str) -> bool:
        """Puts a text in the place of `was`, at once or not at all; false where the file holds something else by now.

        Raises:
            GooseLikeError: it can't be written, or was not allowed.
        """
        wanted, old = _encoded(text), _encoded(was)
        wrote = await self._write(name, lambda held: wanted if held == old != wanted else None)
        return wrote or self._bytes(name) == wanted

    async def _write(self, name: str, change: ContentUpdate, *, at_end: bool = False) -> bool:
        before = after = b""

        def noted(held: bytes) -> bytes | None:
            nonlocal before, after
            data = change(held)
            if data is not None:
                if len(data) > LIMIT_BYTES:
                    raise self._fault(name, f"it would have {len(data):,} bytes, more than {LIMIT_BYTES:,}")
                before, after = held, data
            return data

        port, path = self._port(name), self.path(name)
        try:
            wrote = await port.update_own_file(path, noted, at_end=at_end)
        except OSError as error:
            raise self._fault(name, str(error)) from error
        except DeniedError as error:
            why = f"{name!r}: {str(error).partition(';')[0]}"
            raise DeniedError(f"the memory file {why}; allow it, or give another path for {name!r}") from error
        if wrote:
            place = port.resolve(path)
            for known in self._all:
                if place in known.texts:
                    known.look(place, before.decode(errors="replace"))
                    known.texts[place] = after.decode(errors="replace")
        return wrote

    def _port(self, name: str) -> Workspace:
        is_ours = any(self.path(name).is_relative_to(folder) for folder in self._our_folders)
        return self._ours if is_ours else self._workspace

    def _bytes(self, name: str) -> bytes:
        try:
            return self._port(name).read_bytes(self.path(name), LIMIT_BYTES)
        except FileNotFoundError:
            return b""
        except (OSError, GooseLikeError) as error:
            raise self._fault(name, str(error).partition(";")[0]) from error

    def _text(self, name: str, data: bytes) -> str:
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise self._fault(name, f"{self.path(name)}, line {line}, is no UTF-8 text") from error

    @staticmethod
    def _fault(name: str, why: str) -> GooseLikeError:
        return GooseLikeError(f"the memory file {name!r}: {why}; mend or move it, or give another path for {name!r}")


def missing(held: bytes, entry: bytes, at: int) -> bytes:
    """What of an entry is yet to be added to a file that had `at` bytes when the entry was decided on.

    Where somebody else changed the file since, the entry counts as there if its lines stand in the last 64 KiB.
    """
    whole = _end_of_line(held[:at]) + entry
    if len(held) >= at:
        came = held[at:]
        if came.startswith(whole):
            return b""
        if whole.startswith(came):
            return whole[len(came) :]
    is_there = b"\n" + entry in (b"\n" + held)[-_LOOKED_BYTES:]
    return b"" if is_there else _end_of_line(held) + entry


def _lines(entry: str) -> bytes:
    return _encoded(entry.removesuffix("\n") + "\n")


def _encoded(text: str) -> bytes:
    return text.encode(errors="replace")


def _end_of_line(held: bytes) -> bytes:
    return b"" if not held or held.endswith(b"\n") else b"\n"
