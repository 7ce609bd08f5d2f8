"""Forks: a new session with the events of another one, or with those before one of its turns."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from goose_like.core.errors import UsageError
from goose_like.core.events import TurnStarted

from .index import ASSETS_FOLDER, SessionInfo
from .jsonl import read_lines
from .session import Session


def fork(info: SessionInfo, *, at: int | None = None, name: str | None = None) -> Session:
    """Create an open session with the conversation before turn `at`, or with the whole conversation.

    The fork gets copies of all assets and of the outputs that its events name. The other session may be open: a line
    that is being written is left out. Unreadable lines are left out too, and listed in `damage`.

    Raises:
        UsageError: there is no such turn, there is nothing before it, or the name is invalid.
        SessionError: the name is taken, or the new session cannot be written.
    """
    if at is not None and at < 2:
        raise UsageError(
            f"nothing stands before turn {at}; fork before a later one, or begin: goose-like session start"
        )
    damage: list[str] = []
    lines: list[bytes] = []
    turns = 0
    for line, event in read_lines(info.file.read_bytes(), info.file, damage):
        turns += isinstance(event, TurnStarted)
        if turns == at:
            break
        lines.append(line + b"\n")
    if at is not None and turns < at:
        count = f"{turns} turn{'s' * (turns != 1)}"
        raise UsageError(f"session {info.name!r} has {count}, no turn {at}; see goose-like session show")
    data = b"".join(lines)
    session = Session.create(name)
    folder = info.folder / "outputs"
    session.copy_from(data, str(folder), read_named_outputs(folder, data), read_assets(info.folder / ASSETS_FOLDER))
    session.damage += damage
    return session


def read_named_outputs(folder: Path, lines: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of the files in `outputs` that the lines name."""
    for file in sorted(folder.glob("*")):
        if file.is_file() and file.name.encode() in lines:
            yield file.name, file.read_bytes()


def read_assets(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of the files in `assets`, except for files that are being written or removed."""
    for file in sorted(folder.glob("[!.]*")):
        with suppress(FileNotFoundError):
            if file.is_file() and not file.is_symlink():
                yield file.name, file.read_bytes()
