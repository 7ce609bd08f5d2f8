"""A new session that begins as another one did: with its lines, or those before one of its turns."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from goose_like.core.errors import UsageError
from goose_like.core.events import TurnStarted

from .index import ASSETS, Listed
from .jsonl import read_lines
from .session import Session


def fork(listed: Listed, *, at: int | None = None, name: str | None = None) -> Session:
    """A new, open session with the conversation up to before turn `at`, or all of it; with it go copies of the outputs
    that it names, and of all assets.

    The other one may be open, in this process or another: a line that is being written is left out. Lines that can't
    be read are left behind, and told in `damage`.

    Raises:
        UsageError: there is no such turn, nothing stands before it, or `name` is none.
        SessionError: the name is taken, or the new one can't be written.
    """
    if at is not None and at < 2:
        raise UsageError(
            f"nothing stands before turn {at}; fork before a later one, or begin: goose-like session start"
        )
    damage: list[str] = []
    lines: list[bytes] = []
    turns = 0
    for line, event in read_lines(listed.file.read_bytes(), listed.file, damage):
        turns += isinstance(event, TurnStarted)
        if turns == at:
            break
        lines.append(line + b"\n")
    if at is not None and turns < at:
        told = f"{turns} turn{'s' * (turns != 1)}"
        raise UsageError(f"session {listed.name!r} has {told}, no turn {at}; see goose-like session show")
    data = b"".join(lines)
    session = Session.create(name)
    try:
        folder = listed.folder / "outputs"
        session.take_over(data, str(folder), named_outputs(folder, data), assets_of(listed.folder / ASSETS))
    except BaseException:
        session.close()
        raise
    session.damage += damage
    return session


def named_outputs(folder: Path, lines: bytes) -> Iterator[tuple[str, bytes]]:
    """The files of a session's `outputs` that the lines name, and what is in them. They are small beside a disk."""
    for file in sorted(folder.glob("*")):
        if file.is_file() and file.name.encode() in lines:
            yield file.name, file.read_bytes()


def assets_of(folder: Path) -> Iterator[tuple[str, bytes]]:
    """The files of a session's `assets` and what is in them, but for those that are being written or are gone."""
    for file in sorted(folder.glob("[!.]*")):
        with suppress(FileNotFoundError):
            if file.is_file() and not file.is_symlink():
                yield file.name, file.read_bytes()
