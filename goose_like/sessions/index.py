"""The sessions on disk: find them by name, search them, and count their turns and tokens.

Each function reads only the lines that it needs, and parses only some of these.
"""

import json
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from goose_like.config.paths import sessions_folder
from goose_like.core.entry_points import did_you_mean
from goose_like.core.errors import SessionError, UsageError
from goose_like.core.message import Usage

EVENTS_FILE = "events.jsonl"
SUBAGENTS_FOLDER = "subagents"
ASSETS_FOLDER = "assets"

_USER_EVENTS = ("turn_started", "interjected")

_MALFORMED = (ValueError, LookupError, TypeError, AttributeError)
"""Errors that occur when a line is no JSON, or JSON of another form."""


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """The first lines of a session, and the time of its last change. `title` may be empty."""

    folder: Path
    name: str
    cwd: str
    first_words: str
    changed_at: datetime
    title: str = ""

    @property
    def summary(self) -> str:
        """The topic of the session in one line."""
        return self.title or self.first_words

    @property
    def file(self) -> Path:
        """The events, one JSON object per line."""
        return self.folder / EVENTS_FILE


@dataclass(frozen=True, slots=True)
class SessionTotals:
    """The number of turns, and the tokens by model (`provider:name`)."""

    turns: int
    usage: dict[str, Usage]


def iterate_sessions() -> Iterator[SessionInfo]:
    """Yield all sessions with at least one turn, the newest first. Read each on demand, and skip unreadable ones."""
    return _iterate_folder(sessions_folder())


def list_sessions() -> list[SessionInfo]:
    """List all sessions with at least one turn, the newest first."""
    return list(iterate_sessions())


def list_subagent_sessions(info: SessionInfo) -> list[SessionInfo]:
    """List the sessions of a session's subagents, the oldest first, each followed by its own subagents."""
    found = list(_iterate_folder(info.folder / SUBAGENTS_FOLDER))[::-1]
    return [below for each in found for below in (each, *list_subagent_sessions(each))]


def _iterate_folder(folder: Path) -> Iterator[SessionInfo]:
    times: list[tuple[float, Path]] = []
    for file in folder.glob(f"*/{EVENTS_FILE}"):
        try:
            times.append((file.stat().st_mtime, file))
        except OSError:
            continue
    for time, file in sorted(times, reverse=True):
        if info := _read_info(file, datetime.fromtimestamp(time, UTC)):
            yield info


def find_session(name: str) -> SessionInfo:
    """Find the session with this name or folder name.

    Raises:
        SessionError: there is none; the message has the nearest name.
    """
    names = []
    for info in iterate_sessions():
        if name in (info.name, info.folder.name):
            return info
        names.append(info.name)
    raise SessionError(f"no session {name!r}; {did_you_mean(name, names)}")


def search_sessions(words: Sequence[str], cwd: str | None = None) -> Iterator[SessionInfo]:
    """Yield the sessions that have all words in their name, folder or user messages. `cwd` restricts the folder."""
    for info in iterate_sessions():
        if cwd in (None, info.cwd) and _has_words(info, [word.casefold() for word in words]):
            yield info


def _has_words(info: SessionInfo, words: Sequence[str]) -> bool:
    head = f"{info.name} {info.cwd} {info.title} {info.first_words}".casefold()
    missing = [word for word in words if word not in head]
    if not missing:
        return True
    text = "\n".join(_read_user_text(line) for line in _iterate_lines(info.file, _USER_EVENTS)).casefold()
    return all(word in text for word in missing)


def count_totals(info: SessionInfo) -> SessionTotals:
    """Count turns and tokens like `core.history.History`, but parse only the lines with numbers."""
    turns, model, usage = 0, "", dict[str, Usage]()
    kinds = ("turn_started", "session_started", "message_completed", "usage_recorded")
    for line in _iterate_lines(info.file, kinds):
        kind = _get_kind(line)
        try:
            if kind == "turn_started":
                turns += 1
            elif kind == "message_completed":
                # The message may be long. A `"` inside it is written as `\"`, so this finds the event's own field.
                record = json.loads(b"{" + line[line.rindex(b',"usage":{') + 1 :])
                usage[model] = usage.get(model, Usage()) + Usage.model_validate(record["usage"])
            elif kind == "usage_recorded":
                record = json.loads(line)
                spent = Usage.model_validate(record["usage"])
                usage[record["model"]] = usage.get(record["model"], Usage()) + spent
            else:
                model = json.loads(line)["models"].get("processor", "")
        except _MALFORMED:
            continue
    return SessionTotals(turns, usage)


# --- names and titles


def rename_session(name: str, new: str) -> SessionInfo:
    """Rename a session, which may be open in a process. The events do not change.

    Raises:
        UsageError: the new name is invalid.
        SessionError: there is no such session, the new name is taken, or the folder cannot be written.
    """
    info = find_session(name)
    write_label(info.folder, "name", check_new_name(new))
    return info


def check_new_name(name: str) -> str:
    """Return the name if it is valid and free.

    Raises:
        UsageError: the name is invalid.
        SessionError: the name is taken.
    """
    if not re.fullmatch(r"\w[\w.-]{0,63}", name):
        raise UsageError(f"{name!r} is no name for a session; use up to 64 letters, digits, '-', '_' and '.'")
    if any(name == info.name for info in iterate_sessions()):
        resume = f"goose-like session resume {shlex.quote(name)}"
        raise SessionError(f"there is a session {name!r} already; resume it: {resume}")
    return name


def list_taken_names() -> set[str]:
    """List the names that a generated name must avoid: the ends of folder names, and names of renamed sessions."""
    folder = sessions_folder()
    renamed = (read_name(file.parent) for file in folder.glob("*/name"))
    return {*(each.name.rpartition("-")[2] for each in folder.glob("*-*")), *filter(None, renamed)}


def read_name(folder: Path) -> str | None:
    """Read the name of a renamed session; None if it was never renamed."""
    return _read_text(folder / "name") or None


def _read_text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def write_label(folder: Path, label: Literal["name", "title"], text: str) -> None:
    """Write the new name of a session, or its title for lists.

    Raises:
        SessionError: the file cannot be written.
    """
    file = folder / label
    draft = file.with_name(f".{file.name}-{os.getpid()}")
    try:
        draft.write_text(f"{text}\n", encoding="utf-8")
        draft.replace(file)
    except OSError as error:
        raise SessionError(f"the {label} can't be written: {error}; make that folder writable") from error


# --- lines


def _read_info(file: Path, changed_at: datetime) -> SessionInfo | None:
    """Read a session up to its first message; None if there is no message or the file is unreadable."""
    name, cwd, words = "", "", None
    try:
        with file.open("rb") as lines:
            for line in lines:
                kind = _get_kind(line)
                if kind == "session_started" and not cwd:
                    name, cwd = _read_header(line)
                elif kind == "turn_started":
                    words = _read_user_text(line)
                    break
                elif not kind:
                    words = ""  # this damaged line may have held a message
    except OSError:
        return None
    if words is None:
        return None
    name = read_name(file.parent) or name or file.parent.name
    return SessionInfo(file.parent, name, cwd, " ".join(words.split()), changed_at, _read_text(file.parent / "title"))


def _iterate_lines(file: Path, kinds: Sequence[str]) -> Iterator[bytes]:
    """Yield the lines of some event types; no line if the file is unreadable."""
    try:
        data = b"\n" + file.read_bytes()
    except OSError:
        return
    wanted = re.compile(rb'\n(\{"type":"(?:%s)".*)' % "|".join(kinds).encode())
    for found in wanted.finditer(data):
        yield found[1]


def _get_kind(line: bytes) -> str:
    """Return the event type, which comes first in a line; empty if there is none."""
    found = re.match(rb'\{"type":"(\w+)"', line)
    return found[1].decode() if found else ""


def _read_user_text(line: bytes) -> str:
    """Return the user's text in a line; empty if it cannot be read."""
    try:
        return next((part["text"] for part in json.loads(line)["message"]["parts"] if part["type"] == "text"), "")
    except _MALFORMED:
        return ""


def _read_header(line: bytes) -> tuple[str, str]:
    """Return the name and folder of a `session_started` line; empty if they cannot be read."""
    try:
        record = json.loads(line)
        return str(record["name"]), str(record["cwd"])
    except _MALFORMED:
        return "", ""
