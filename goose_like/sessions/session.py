"""Sessions: a folder with an append-only file of events, and the files that belong to it.

Layout of `sessions/<id>/`:

- `events.jsonl`: one event per line, with an added time `at` (RFC 3339 in UTC). A finished text replaces its
  `text_shown` lines at the end of the file; all other lines are only appended
- `outputs/`: tool output that was too long for a model
- `assets/`: values that toolkits keep
- `undo/`: former contents of files
- `subagents/<call_id>/`: sessions of subagents
- `name`: the name, if it differs from the one in the first event
- `title`: a title by the fast model
- `holder`: the process that opened the session last
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
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, Self

from goose_like.config.paths import FOLDER_ADVICE, create_private_folder, sessions_folder
from goose_like.config.private_folder import PrivateFolder
from goose_like.core.errors import SessionError
from goose_like.core.events import (
    DurableEvent,
    MessageCompleted,
    SavedEvent,
    SessionStarted,
    TextShown,
    ToolFinished,
    TurnFinished,
    TurnStarted,
)
from goose_like.core.gc_pause import pause_gc
from goose_like.core.history import History
from goose_like.core.message import ToolResult
from goose_like.workspace.permissions.policy import Grant

from .index import (
    EVENTS_FILE,
    SUBAGENTS_FOLDER,
    SessionInfo,
    check_new_name,
    find_session_or_newest,
    list_taken_names,
    note_place,
    read_label,
    session_errors,
    write_label,
)
from .jsonl import check_format, format_line, measure_open_turn_s, read_lines

_LETTERS = "bcdfghjklmnpqrstvwxz"  # without vowels, so no name is a word
_DIGITS = "23456789"  # without those that look like letters


class _ShownLine(NamedTuple):
    """A `text_shown` line, which the text of its call or of the answer will replace."""

    call_id: str
    line: bytes


class Session:
    """A session that this process has open for appending. No other process can open it meanwhile.

    Attributes:
        file: the events, one JSON object per line.
        outputs: the folder for tool output that is too long for a model.
        history: the state after all events of the file.
        damage: a sentence for each line that could not be read.
        recent: the last events of a resumed session, from which a screen is drawn again.
        grants: permissions that the person gave for as long as the session is open here.
        is_kept: False for a session that `close` deletes.
        has_open_turn: the session was resumed in the middle of a turn.
        interrupted_turn_s: the seconds that a turn took which killed processes left.
    """

    def __init__(self, folder: Path, name: str, history: History, *, is_kept: bool = True) -> None:
        self.folder = folder
        self.file = folder / EVENTS_FILE
        self.outputs = folder / "outputs"
        self.history = history
        self.damage: list[str] = []
        self.recent: deque[DurableEvent] = deque(maxlen=300)
        self.grants: set[Grant] = set()
        self.is_kept = is_kept
        self.has_open_turn = False
        self.interrupted_turn_s = 0.0
        self._name = name
        self._is_empty = False
        self._descriptor = -1
        self._private_folder: PrivateFolder | None = None
        self._is_recorded = True
        self._shown_lines: list[_ShownLine] = []  # those at the end of the file

    @property
    def name(self) -> str:
        """The current name. A session may be renamed while it is open."""
        return read_label(self.folder, "name") or self._name

    @property
    def assets(self) -> Path:
        """The folder for values that toolkits keep. A fork gets copies of its files."""
        return self.folder / "assets"

    def output_path(self, call_id: str) -> Path:
        """Return the file in `outputs` for a call."""
        return self.outputs / f"{make_file_name(call_id)}.txt"

    def open_subagent_session(self, call_id: str) -> "Session":
        """Create the session of a subagent, or resume it if the process ended during the call.

        Raises:
            SessionError: the folder cannot be written.
        """
        name = make_file_name(call_id)
        folder = self.folder / SUBAGENTS_FOLDER / name
        session = Session(folder, f"{self.name}/{name}", History(), is_kept=self.is_kept)
        session._is_empty = not session.file.exists()
        session._open(is_new=session._is_empty)
        session._replay(keep_open_turn=True)
        return session

    def save_result(self, result: ToolResult) -> str:
        """Write a result's whole output to a file, if it is not there yet, and return the path.

        Raises:
            SessionError: the file cannot be written.
        """
        file = self.output_path(result.call_id)
        with session_errors(f"{file} can't be written"):
            if not file.exists():
                file.parent.mkdir(0o700, exist_ok=True)
                file.touch(0o600)
                file.write_text(result.output, encoding="utf-8", errors="replace")
        return str(file)

    @classmethod
    def create(cls, name: str | None = None) -> Self:
        """Create a session. Without a name, it gets a short one that is free.

        Raises:
            UsageError: the name is invalid.
            SessionError: the name is taken, or the folder cannot be written.
        """
        taken = list_taken_names()
        if name is None:
            name = _make_short_name(taken)
        else:
            check_new_name(name)
        end = name
        # A free name may still end the folder name of a renamed session.
        if not re.fullmatch(r"[a-z0-9]{1,40}", name) or name in taken:
            end = secrets.token_hex(3)
        time = f"{datetime.now(UTC):%Y%m%dT%H%M%S}"
        session = cls(sessions_folder() / f"{time}-{end}", name, History())
        session._open(is_new=True)
        session._is_empty = True
        return session

    @classmethod
    def temporary(cls) -> Self:
        """Create a session that `close` deletes."""
        folder = PrivateFolder("session")
        session = cls(folder.path, "temporary", History(), is_kept=False)
        session._private_folder = folder
        session._open(is_new=True)
        return session

    @classmethod
    def resume(
        cls,
        name: str | None = None,
        *,
        cwd: str | None = None,
        keep_open_turn: bool = False,
    ) -> Self:
        """Open an existing session: the one of this name, or the newest one (in the folder `cwd`, if given).

        With `keep_open_turn`, an interrupted turn stays open for `Exchange.resume_turn`.

        Raises:
            SessionError: there is no such session, another process has it open, or a newer goose-like wrote it.
        """
        found = find_session_or_newest(name, cwd)
        session = cls(found.folder, found.name, History())
        session._open(is_new=False)
        try:
            session._replay(keep_open_turn=keep_open_turn)
        except SessionError:
            session.close()
            raise
        return session

    def _replay(self, *, keep_open_turn: bool) -> None:
        with pause_gc():
            self.history = History()
            turn_count = 0
            for event in self.history.restore(self.read_events(), is_resumed=keep_open_turn):
                if event.type == "rewound":  # an `isinstance` that is false is slow here
                    self._forget_turns(turn_count - len(self.history.turns))
                self.recent.append(event)
                turn_count = len(self.history.turns)
        self.has_open_turn = keep_open_turn and self.history.is_in_turn
        if self.history.is_in_turn:
            self.interrupted_turn_s = measure_open_turn_s(self.file.read_bytes().splitlines())

    def _forget_turns(self, count: int) -> None:
        """Remove the newest turns from `recent`: the conversation went back to before them."""
        while count and self.recent:
            count -= isinstance(self.recent.pop(), TurnStarted)

    def _open(self, *, is_new: bool) -> None:
        with session_errors("the session can't be written", FOLDER_ADVICE):
            create_private_folder(self.folder)
            flags = os.O_RDWR | os.O_CLOEXEC
            if is_new:
                flags |= os.O_CREAT | os.O_EXCL
            self._descriptor = os.open(self.file, flags, 0o600)
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                os.close(self._descriptor)
                holder = read_label(self.folder, "holder")
                raise SessionError(
                    f"session {self.name!r} is open in another process (process {holder or 'unknown'}); leave it there "
                    f"first, or go on with a copy: goose-like session fork {shlex.quote(self.name)}"
                ) from error
            with suppress(OSError):  # on a full disk, the lock holds all the same
                (self.folder / "holder").touch(0o600)
                (self.folder / "holder").write_text(f"{os.getpid()}\n")

    def read_events(self) -> Iterator[SavedEvent]:
        """Read the events in the file. Cut off a torn last line, and note unreadable lines in `damage`."""
        data = self.file.read_bytes()
        check_format(data, self.file)
        end = data.rfind(b"\n") + 1
        if end != len(data):
            os.ftruncate(self._descriptor, end)
            self.damage.append(f"{self.file}: the last line was torn and is left out")
        for _, event in read_lines(data[:end], self.file, self.damage):
            yield event

    def detach(self, history: History) -> "Session":
        """Create a session that uses the folder of this one, has its own history and writes no events."""
        session = Session(self.folder, self._name, history)
        session._is_recorded = False
        return session

    def record(self, event: SavedEvent) -> None:
        """Fold one event into the history, then write it to the file.

        Raises:
            SessionError: the file cannot be written.
        """
        self.history.apply(event)
        if isinstance(event, TurnFinished):
            self.interrupted_turn_s = 0.0
        if self._is_recorded:
            self.append(event)

    def append(self, event: SavedEvent) -> None:
        """Write one event, completely or not at all. A finished text replaces its `text_shown` lines.

        Raises:
            SessionError: the disk is full or gone, or the session is closed.
        """
        line = format_line(event, datetime.now(UTC))
        kept = [shown for shown in self._shown_lines if not _is_replaced(shown.call_id, event)]
        if len(kept) == len(self._shown_lines):
            self._write(line)
        else:
            replaced_bytes = sum(len(shown.line) for shown in self._shown_lines)
            lines = [shown.line for shown in kept]
            self._write(b"".join([*lines, line]), replaced_bytes)
        if isinstance(event, TextShown):
            self._shown_lines = [*kept, _ShownLine(event.call_id, line)]
        else:
            # Lines before another event stay in the file, because replacing them would risk that event.
            self._shown_lines = []
        self._is_empty = self._is_empty and not isinstance(event, TurnStarted)
        if isinstance(event, SessionStarted):
            note_place(self.folder, event.cwd)

    def copy_from(
        self,
        lines: bytes,
        folder: str = "",
        outputs: Mapping[str, bytes] = {},
        assets: Mapping[str, bytes] = {},
    ) -> None:
        """Fill a new session with the lines and files of another one, which may be deleted later.

        `folder` is the path of the other session's `outputs`, which is replaced in the lines.

        Raises:
            SessionError: the disk is full or gone. The session is closed and deleted.
        """
        try:
            with session_errors("the files of the copy can't be written"):
                _write_files(self.outputs, outputs)
                _write_files(self.assets, assets)
            if folder:
                lines = lines.replace(_quote_folder(folder), _quote_folder(str(self.outputs)))
            self._write(lines)
            write_label(self.folder, "name", self._name)
            self._is_empty = False
        except BaseException:
            self.close()
            raise

    def _write(self, lines: bytes, replaced_bytes: int = 0) -> None:
        """Write lines over the last bytes of the file. It is one system call, so a kill loses no text."""
        with session_errors(f"the session file {self.file} can't be written"):
            size = os.fstat(self._descriptor).st_size
            start = size - replaced_bytes
            before = b""
            if replaced_bytes:
                before = os.pread(self._descriptor, replaced_bytes, start)
            try:
                if os.pwrite(self._descriptor, lines, start) != len(lines):
                    raise OSError("no space left on the device")
                if len(lines) < replaced_bytes:
                    os.ftruncate(self._descriptor, start + len(lines))
            except OSError:
                os.pwrite(self._descriptor, before, start)
                os.ftruncate(self._descriptor, size)
                raise

    def close(self) -> None:
        """Release the session for other processes. Delete a temporary session, and a new one without any turn."""
        if self._descriptor >= 0:
            self.is_kept = self.is_kept and not self._is_empty
            os.close(self._descriptor)
            self._descriptor = -1
        if self._private_folder:
            self._private_folder.remove()
        elif not self.is_kept:
            shutil.rmtree(self.folder, ignore_errors=True)


def _write_files(folder: Path, contents: Mapping[str, bytes]) -> None:
    for name, data in contents.items():
        folder.mkdir(exist_ok=True, mode=0o700)
        file = folder / name
        file.touch(0o600)
        file.write_bytes(data)


def _quote_folder(folder: str) -> bytes:
    """Write the path of a folder with a slash as it stands within a text in JSON."""
    quoted = json.dumps(f"{folder}/", ensure_ascii=False)
    return quoted[1:-1].encode()


def _is_replaced(call_id: str, event: SavedEvent) -> bool:
    """Return whether an event replaces the shown text of a call, or of the answer if the id is empty."""
    match event:
        case MessageCompleted():
            return not call_id
        case ToolFinished(result=result):
            return call_id == result.call_id
        case TextShown(text=""):
            return call_id == event.call_id
    return False


def _make_short_name(taken: set[str]) -> str:
    """Make a free name of the form letter, digit, letter, digit."""
    while True:
        characters = [random.choice(kind) for kind in (_LETTERS, _DIGITS, _LETTERS, _DIGITS)]
        name = "".join(characters)
        if name not in taken:
            return name


def make_file_name(call_id: str) -> str:
    """Return the name of the files and folders of a call: its id, or a hash if the id is long or no plain name."""
    is_name = re.fullmatch(r"[\w-]{1,80}", call_id, re.ASCII)
    if is_name:
        return call_id
    return hashlib.sha256(call_id.encode()).hexdigest()


def delete_session(info: SessionInfo) -> bool:
    """Delete a session. Return False, and keep the session, if a process has it open.

    Raises:
        SessionError: the folder cannot be changed.
    """
    errors = session_errors(f"session {info.name!r} can't be deleted", "make its folder writable")
    with errors, info.file.open("rb") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        shutil.rmtree(info.folder)
    return True
