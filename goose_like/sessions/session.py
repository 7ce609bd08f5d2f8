"""A session's folder: its events, one JSON object a line, appended and never rewritten; its outputs beside them.

Layout of `sessions/<id>/`: `events.jsonl` (each line a durable event with an added `at`, RFC 3339 in UTC),
`outputs/` (tool output that was too long for a model), `assets/` (values that toolkits keep), `undo/` (former contents
of files), `nested/<call_id>/` (sessions of nested exchanges), `name` (when it was given another one later), `holder`
(who opened it last).
"""

import fcntl
import hashlib
import json
import os
import random
import re
import secrets
import shlex
import shutil
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from goose_like.config.paths import sessions_folder
from goose_like.core.errors import SessionError
from goose_like.core.events import Durable, TurnStarted
from goose_like.core.gc_pause import pause_gc
from goose_like.core.history import History
from goose_like.core.message import ToolResult
from goose_like.workspace.policy import Grant

from .index import (
    ASSETS,
    EVENTS,
    NESTED,
    Listed,
    checked_name,
    find_session,
    given_name,
    sessions,
    short_names,
    write_name,
)
from .jsonl import line_of, read_lines

_RECENT = 300
_HOLDER = "holder"


class Session:
    """One session, open for appending by this process alone. `history` is what its file says so far.

    Of a resumed one `recent` has the last events of the file, from which a screen is drawn again. `grants` is what a
    person allowed for as long as it is open here. One that is not `is_kept` is deleted by `close`; one that `goes_on`
    was opened in the middle of a turn.
    """

    def __init__(self, folder: Path, name: str, history: History, *, is_kept: bool = True) -> None:
        self.folder = folder
        self.history = history
        self.damage: list[str] = []
        self.recent: deque[Durable] = deque(maxlen=_RECENT)
        self.grants: set[Grant] = set()
        self.is_kept = is_kept
        self.goes_on = False
        self._name = name
        self._is_empty = False
        self._descriptor = -1

    @property
    def name(self) -> str:
        """Its name now: it may be renamed while it is open."""
        return given_name(self.folder) or self._name

    @property
    def outputs(self) -> Path:
        """The folder for tool output that is too long for a model."""
        return self.folder / "outputs"

    @property
    def assets(self) -> Path:
        """The folder for values that toolkits keep; a fork has copies of its files."""
        return self.folder / ASSETS

    @property
    def file(self) -> Path:
        """The events, one JSON object a line."""
        return self.folder / EVENTS

    def output_of(self, call_id: str) -> Path:
        """The file in `outputs` for this call. Ids are the vendor's: long ones and those with `/` are hashed."""
        return self.outputs / f"{_file_name(call_id)}.txt"

    def nested(self, call_id: str) -> "Session":
        """The session for the exchange that this call runs, in a folder below; deleted with this one.

        It is there already where the call was cut off by the end of a process, and then goes on.

        Raises:
            SessionError: when the folder can't be written.
        """
        name = _file_name(call_id)
        session = Session(self.folder / NESTED / name, f"{self.name}/{name}", History(), is_kept=self.is_kept)
        session._is_empty = not session.file.exists()
        session._open(is_new=session._is_empty)
        session._replay(goes_on=True)
        return session

    def keep_result(self, result: ToolResult) -> str:
        """The path of the file with a result's whole output, written now if it is not there yet.

        Raises:
            SessionError: it can't be written.
        """
        file = self.output_of(result.call_id)
        try:
            if not file.exists():
                file.parent.mkdir(exist_ok=True)
                file.write_text(result.output, encoding="utf-8", errors="replace")
        except OSError as error:
            raise SessionError(f"{file} can't be written: {error}; free some space") from error
        return str(file)

    @classmethod
    def create(cls, name: str | None = None) -> Self:
        """A new session; without a name it gets a short one that no other has.

        Raises:
            UsageError: when that is no name.
            SessionError: when the name is taken or the folder can't be written.
        """
        taken = short_names()
        if name is None:
            name = last = _short_name(taken)
        else:  # a session that was renamed keeps its folder's name
            is_free = re.fullmatch(r"[a-z0-9]{1,40}", checked_name(name)) and name not in taken
            last = name if is_free else secrets.token_hex(3)
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
    def resume(cls, name: str | None = None, *, cwd: str | None = None, goes_on: bool = False) -> Self:
        """The session of that name, or else the newest one (of the folder `cwd`, when given).

        `damage` tells what in the file could not be read. With `goes_on` a turn that was cut off is left open, for
        `Exchange.go_on`.

        Raises:
            SessionError: unknown name (with the nearest one), none there, or held by another process.
        """
        if name is None:
            found = next((listed for listed in sessions() if cwd in (None, listed.cwd)), None)
            if found is None:
                raise SessionError(
                    f"no session to resume{f' in {cwd}' if cwd else ''}; start one: goose-like session start"
                )
        else:
            found = find_session(name)
        session = cls(found.folder, found.name, History())
        session._open(is_new=False)
        session._replay(goes_on=goes_on)
        return session

    def _replay(self, *, goes_on: bool) -> None:
        with pause_gc():
            self.history = History.replay(self.read(), goes_on=goes_on)
        self.goes_on = goes_on and self.history.in_turn

    def _open(self, *, is_new: bool) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | (os.O_CREAT | os.O_EXCL if is_new else 0)
            self._descriptor = os.open(self.file, flags, 0o600)
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with suppress(OSError):  # a full disk: the lock is held all the same
                (self.folder / _HOLDER).write_text(f"{os.getpid()}\n")
        except BlockingIOError as error:
            os.close(self._descriptor)
            raise SessionError(
                f"session {self.name!r} is open in another process ({self._holder()}); leave it there first, "
                f"or go on with a copy: goose-like session fork {shlex.quote(self.name)}"
            ) from error
        except OSError as error:
            raise SessionError(
                f"the session can't be written: {error}; make that folder writable or point GOOSE_LIKE_HOME elsewhere"
            ) from error

    def _holder(self) -> str:
        try:
            return f"process {int((self.folder / _HOLDER).read_text())}"
        except (OSError, ValueError):
            return "its number is not known"

    def read(self) -> Iterator[Durable]:
        """The events in the file. A torn last line is cut off; others that can't be read are told in `damage`."""
        data = self.file.read_bytes()
        end = data.rfind(b"\n") + 1
        if end != len(data):
            os.ftruncate(self._descriptor, end)
            self.damage.append(f"{self.file}: the last line was torn and is left out")
        for _, event in read_lines(data[:end], self.file, self.damage):
            self.recent.append(event)
            yield event

    def append(self, event: Durable) -> None:
        """Writes one event, whole or not at all.

        Raises:
            SessionError: when the disk is full or gone, or the session closed.
        """
        self._write(line_of(event, datetime.now(UTC)))
        self._is_empty = self._is_empty and not isinstance(event, TurnStarted)

    def take_over(
        self,
        lines: bytes,
        outputs: str,
        files: Iterable[tuple[str, bytes]],
        assets: Iterable[tuple[str, bytes]] = (),
    ) -> None:
        """Begins a new session with another's lines, the files by name that these name in its folder `outputs`, and
        those of its assets.

        They are copies of this session's own, and the lines name them as such: the other one may be deleted.

        Raises:
            SessionError: when the disk is full or gone.
        """
        _fill(self.outputs, files)
        _fill(self.assets, assets)
        self._write(lines.replace(_in_json(f"{outputs}/"), _in_json(f"{self.outputs}/")) if outputs else lines)
        write_name(self.folder, self._name)
        self._is_empty = False

    def _write(self, lines: bytes) -> None:
        try:
            before = os.fstat(self._descriptor).st_size
            try:
                if os.write(self._descriptor, lines) != len(lines):
                    raise OSError("no space left on the device")
            except OSError:
                os.ftruncate(self._descriptor, before)
                raise
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


def _fill(folder: Path, files: Iterable[tuple[str, bytes]]) -> None:
    """Writes files by their names into a folder of a session."""
    try:
        for name, data in files:
            folder.mkdir(exist_ok=True, mode=0o700)
            (folder / name).write_bytes(data)
    except OSError as error:
        raise SessionError(f"{folder} can't be written: {error}; free some space") from error


def _short_name(taken: set[str]) -> str:
    """A letter, a digit, a letter, a digit, until nobody has it."""
    while (name := "".join(random.choice(kind) for kind in ("bcdfghjklmnpqrstvwxz", "23456789") * 2)) in taken:
        pass
    return name


def _file_name(call_id: str) -> str:
    is_name = re.fullmatch(r"[\w-]{1,80}", call_id, re.ASCII)
    return call_id if is_name else hashlib.sha256(call_id.encode()).hexdigest()


def _in_json(text: str) -> bytes:
    return json.dumps(text, ensure_ascii=False)[1:-1].encode()


def delete_session(listed: Listed) -> bool:
    """Deletes all of a session; False when it is open in a process, which keeps it.

    Raises:
        SessionError: when the folder can't be changed.
    """
    try:
        with listed.file.open("rb") as held:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(listed.folder)
    except BlockingIOError:
        return False
    except OSError as error:
        raise SessionError(f"session {listed.name!r} can't be deleted: {error}; make its folder writable") from error
    return True
