"""A session's folder: its events, one JSON object a line, appended and never rewritten; its outputs beside them.

Layout of `sessions/<id>/`: `events.jsonl` (each line a durable event with an added `at`, RFC 3339 in UTC),
`outputs/` (tool output that was too long for a model), `undo/` (former contents of files), `nested/<call_id>/`
(sessions of nested exchanges).
"""

import fcntl
import hashlib
import json
import os
import random
import re
import secrets
import shutil
import tempfile
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from .errors import SessionError, UsageError
from .events import Durable, SessionStarted, TurnStarted, durable_json
from .history import History
from .places import sessions_folder
from .plugins import did_you_mean

RECENT_EVENTS = 300
"""How many of a resumed session's events are kept for its screen."""

_EVENTS = "events.jsonl"


@dataclass(frozen=True, slots=True)
class Listed:
    """What `session list` shows of a session."""

    folder: Path
    name: str
    cwd: str
    first_words: str
    changed: datetime


class Session:
    """One session, open for appending by this process alone. `history` is what its file says so far.

    One that is not `is_kept` is deleted by `close`.
    """

    def __init__(self, folder: Path, name: str, history: History, *, is_kept: bool = True) -> None:
        self.folder = folder
        self.name = name
        self.history = history
        self.damage: list[str] = []
        self.recent: deque[Durable] = deque(maxlen=RECENT_EVENTS)
        self.is_kept = is_kept
        self._is_empty = False
        self._descriptor = -1

    @property
    def outputs(self) -> Path:
        """The folder for tool output that is too long for a model."""
        return self.folder / "outputs"

    @property
    def file(self) -> Path:
        """The events, one JSON object a line."""
        return self.folder / _EVENTS

    def output_of(self, call_id: str) -> Path:
        """The file in `outputs` for this call. Ids are the vendor's: long ones and those with `/` are hashed."""
        is_name = re.fullmatch(r"[\w-]{1,80}", call_id, re.ASCII)
        return self.outputs / f"{call_id if is_name else hashlib.sha256(call_id.encode()).hexdigest()}.txt"

    @classmethod
    def create(cls, name: str | None = None) -> Self:
        """A new session; without a name it gets a short one that no other has.

        Raises:
            UsageError: when that is no name.
            SessionError: when the name is taken or the folder can't be written.
        """
        if name is not None and not re.fullmatch(r"\w[\w.-]{0,63}", name):
            raise UsageError(f"{name!r} is no name for a session; use up to 64 letters, digits, '-', '_' and '.'")
        if name in {listed.name for listed in list_sessions()}:
            raise SessionError(f"there is a session {name!r} already; resume it: goose-like session resume {name}")
        # A short name is the end of its folder's name as well: to find a free one, no file need be read.
        name = name or _short_name({folder.name.rpartition("-")[2] for folder in sessions_folder().glob("*-*")})
        last = name if re.fullmatch(r"[a-z0-9]{1,40}", name) else secrets.token_hex(3)
        session = cls(sessions_folder() / f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{last}", name, History())
        session._open(is_new=True)
        session._is_empty = True
        return session

    @classmethod
    def temporary(cls) -> Self:
        """A session that `close` deletes."""
        session = cls(Path(tempfile.mkdtemp(prefix="goose-like-session-")), "temporary", History(), is_kept=False)
        session._open(is_new=True)
        return session

    @classmethod
    def resume(cls, name: str | None = None, *, cwd: str | None = None) -> Self:
        """The session of that name, or else the newest one (of the folder `cwd`, when given).

        `damage` tells what in the file could not be read.

        Raises:
            SessionError: unknown name (with the nearest one), none there, or held by another process.
        """
        every = list_sessions()
        if name is None:
            here = [listed for listed in every if cwd in (None, listed.cwd)]
            if not here:
                raise SessionError(
                    f"no session to resume{f' in {cwd}' if cwd else ''}; start one: goose-like session start"
                )
            found = here[0]
        else:
            named = [listed for listed in every if name in (listed.name, listed.folder.name)]
            if not named:
                raise SessionError(f"no session {name!r}; {did_you_mean(name, [listed.name for listed in every])}")
            found = named[0]
        session = cls(found.folder, found.name, History())
        session._open(is_new=False)
        session.history = History.replay(session.read())
        return session

    def _open(self, *, is_new: bool) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | (os.O_CREAT | os.O_EXCL if is_new else 0)
            self._descriptor = os.open(self.file, flags, 0o600)
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._descriptor)
            raise SessionError(f"session {self.name!r} is open in another process; leave that one first") from error
        except OSError as error:
            raise SessionError(
                f"the session can't be written: {error}; make that folder writable or point GOOSE_LIKE_HOME elsewhere"
            ) from error

    def read(self) -> Iterator[Durable]:
        """The events in the file. A torn last line is cut off; others that can't be read are told in `damage`."""
        data = self.file.read_bytes()
        end = data.rfind(b"\n") + 1
        if end != len(data):
            os.ftruncate(self._descriptor, end)
            self.damage.append(f"{self.file}: the last line was torn and is left out")
        for number, line in enumerate(data[:end].splitlines(), 1):
            try:
                event = _read_event(line)
                self.recent.append(event)
                yield event
            except ValueError as error:
                reason = str(error).splitlines()[0]
                self.damage.append(f"{self.file}, line {number}: left out, it can't be read ({reason})")

    def append(self, event: Durable) -> None:
        """Writes one event, whole or not at all.

        Raises:
            SessionError: when the disk is full or gone, or the session closed.
        """
        stamp = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line = f'{event.model_dump_json()[:-1]},"at":"{stamp}"}}\n'.encode()
        try:
            before = os.fstat(self._descriptor).st_size
            try:
                if os.write(self._descriptor, line) != len(line):
                    raise OSError("no space left on the device")
            except OSError:
                os.ftruncate(self._descriptor, before)
                raise
            self._is_empty = self._is_empty and not isinstance(event, TurnStarted)
        except OSError as error:
            raise SessionError(f"the session file {self.file} can't be written: {error}; free some space") from error

    def close(self) -> None:
        """Lets other processes open it; a temporary session, and a new one in which nothing was said, is deleted."""
        if self._descriptor >= 0:
            self.is_kept = self.is_kept and not self._is_empty
            os.close(self._descriptor)
            self._descriptor = -1
        if not self.is_kept:
            shutil.rmtree(self.folder, ignore_errors=True)


def _short_name(taken: set[str]) -> str:
    """A letter, a digit, a letter, a digit, until nobody has it."""
    while (name := "".join(random.choice(kind) for kind in ("bcdfghjklmnpqrstvwxz", "23456789") * 2)) in taken:
        pass
    return name


def list_sessions() -> list[Listed]:
    """Every session that said something, the newest first. Files that can't be read are left out."""
    listed = [entry for file in sessions_folder().glob(f"*/{_EVENTS}") if (entry := _listed(file))]
    return sorted(listed, key=lambda entry: entry.changed, reverse=True)


def _listed(file: Path) -> Listed | None:
    """Reads only as far as the first message. None: nothing was said in it, or it can't be read."""
    name, cwd, words = file.parent.name, "", None
    try:
        changed = datetime.fromtimestamp(file.stat().st_mtime, UTC)
        with file.open("rb") as lines:
            for event in map(_event, lines):
                if event is None:
                    words = ""  # there may have been some in this line
                elif isinstance(event, SessionStarted) and not cwd:
                    name, cwd = event.name, event.cwd
                elif isinstance(event, TurnStarted):
                    words = " ".join(event.message.text.split())
                    break
    except OSError:
        return None
    return None if words is None else Listed(file.parent, name, cwd, words, changed)


def _event(line: bytes) -> Durable | None:
    """The event of a line, or None when it can't be read."""
    try:
        return _read_event(line)
    except ValueError:
        return None


def _read_event(line: bytes) -> Durable:
    """Raises: ValueError: when the line is no event (pydantic's and JSON's own errors are such)."""
    record = json.loads(line)
    if not isinstance(record, dict):
        raise ValueError("it is no object")
    record.pop("at", None)
    return durable_json.validate_python(record)
