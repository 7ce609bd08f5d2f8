"""Copies of sessions: forks, and the files beside the events that forks and archives carry."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from goose_like.core.errors import UsageError
from goose_like.core.events import ModeRestricted, SessionStarted, TurnStarted
from goose_like.core.spelling import format_count

from .index import SessionInfo
from .jsonl import read_lines
from .session import Session

_FileName = Annotated[str, Field(pattern=r"^[\w-][\w.-]*$")]


class SessionFiles(BaseModel):
    """The outputs and assets of a session by file name, base64 in JSON. `folder` is the path of `outputs`."""

    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

    folder: str = ""
    outputs: dict[_FileName, bytes] = {}
    assets: dict[_FileName, bytes] = {}


def read_files(info: SessionInfo, lines: bytes) -> SessionFiles:
    """Read the outputs that the lines of a session name, and all assets."""
    folder = info.folder / "outputs"
    named = [file for file in folder.glob("*") if file.name.encode() in lines]
    outputs = _read_all(named)
    assets = _read_all((info.folder / "assets").glob("[!.]*"))
    return SessionFiles.model_construct(folder=str(folder), outputs=outputs, assets=assets)


def _read_all(files: Iterable[Path]) -> dict[str, bytes]:
    contents = {}
    for file in sorted(files):
        with suppress(FileNotFoundError):  # an asset may be removed meanwhile
            if file.is_file() and not file.is_symlink():
                contents[file.name] = file.read_bytes()
    return contents


def fork(info: SessionInfo, *, at: int | None = None, name: str | None = None) -> Session:
    """Create an open session with the conversation before turn `at`, or with the whole conversation.

    The fork gets copies of all assets and of the outputs that its events name. The other session may be open: a line
    that is being written is left out. Unreadable lines are left out too, and listed in `damage`.

    Raises:
        UsageError: there is no such turn, there is nothing before it, or the name is invalid.
        SessionError: the name is taken, or the new session cannot be written.
    """
    damage: list[str] = []
    lines: list[bytes] = []
    turns = 0
    start = b""
    for line, event in read_lines(info.file.read_bytes(), info.file, damage):
        turns += isinstance(event, TurnStarted)
        if at is None or turns < at:
            lines.append(line + b"\n")
        elif isinstance(event, SessionStarted):
            start = line + b"\n"
        elif isinstance(event, ModeRestricted):
            start += line + b"\n"
    if at is not None and not 2 <= at <= turns:
        has = f"{info.name!r} has {format_count(turns, 'turn')}"
        advice = "copy all of it, without --at"
        if turns > 1:
            advice = f"choose one from 2 to {turns}"
        raise UsageError(f"there is nothing to copy before turn {at}: {has}; {advice}")
    data = b"".join(lines) + start  # the copy has the modes in which the session ended
    files = read_files(info, data)
    session = Session.create(name)
    session.copy_from(data, files.folder, files.outputs, files.assets)
    session.damage += damage
    return session
