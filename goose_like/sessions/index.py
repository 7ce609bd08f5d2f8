"""The sessions that there are: found by name, searched and counted, with no more read than that takes."""

import json
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from goose_like.config.paths import sessions_folder
from goose_like.core.entry_points import did_you_mean
from goose_like.core.errors import SessionError, UsageError
from goose_like.core.message import Usage

EVENTS = "events.jsonl"
NESTED = "nested"
ASSETS = "assets"

_NAME = "name"
"""The file beside the events with the name of a session that has another than its first event says."""

_TITLE = "title"
"""The file with what it is about in a few words, where the fast model was asked."""

_PERSONS = ("turn_started", "interjected")

_UNREADABLE = (ValueError, LookupError, TypeError, AttributeError)
"""What JSON of another form than ours raises when its fields are read."""


@dataclass(frozen=True, slots=True)
class Listed:
    """What the beginning of a session's file says, and when it was last written. `title` may be empty."""

    folder: Path
    name: str
    cwd: str
    first_words: str
    changed: datetime
    title: str = ""

    @property
    def about(self) -> str:
        """What to show of it in a line."""
        return self.title or self.first_words

    @property
    def file(self) -> Path:
        """The events, one JSON object a line."""
        return self.folder / EVENTS


@dataclass(frozen=True, slots=True)
class Tally:
    """The turns that were begun, and the tokens by model (`provider:name`)."""

    turns: int
    usage: dict[str, Usage]


def sessions() -> Iterator[Listed]:
    """Every session in which something was said, the newest first, each read when it is asked for.

    Files that can't be read are left out.
    """
    return _sessions_in(sessions_folder())


def nested_sessions(listed: Listed) -> list[Listed]:
    """Those of the exchanges that calls of this session ran, the oldest first, and behind each its own."""
    found = list(_sessions_in(listed.folder / NESTED))[::-1]
    return [below for each in found for below in (each, *nested_sessions(each))]


def _sessions_in(folder: Path) -> Iterator[Listed]:
    times: list[tuple[float, Path]] = []
    for file in folder.glob(f"*/{EVENTS}"):
        try:
            times.append((file.stat().st_mtime, file))
        except OSError:
            continue
    for time, file in sorted(times, reverse=True):
        if listed := _listed(file, datetime.fromtimestamp(time, UTC)):
            yield listed


def list_sessions() -> list[Listed]:
    """All of `sessions`."""
    return list(sessions())


def find_session(name: str) -> Listed:
    """The session of that name, or of the folder of that name.

    Raises:
        SessionError: there is none; the text has the nearest name.
    """
    names = []
    for listed in sessions():
        if name in (listed.name, listed.folder.name):
            return listed
        names.append(listed.name)
    raise SessionError(f"no session {name!r}; {did_you_mean(name, names)}")


def search(words: Sequence[str], cwd: str | None = None) -> Iterator[Listed]:
    """The sessions of the folder `cwd` (of any, without) with all words in name, folder or what the person said."""
    for listed in sessions():
        if cwd in (None, listed.cwd) and _has(listed, [word.casefold() for word in words]):
            yield listed


def _has(listed: Listed, words: Sequence[str]) -> bool:
    known = f"{listed.name} {listed.cwd} {listed.title} {listed.first_words}".casefold()
    missing = [word for word in words if word not in known]
    if not missing:
        return True
    said = "\n".join(_words(line) for line in _lines(listed.file, _PERSONS)).casefold()
    return all(word in said for word in missing)


def tally(listed: Listed) -> Tally:
    """What `history.History` would count, read off the lines that have numbers, of which only these are parsed."""
    turns, model, usage = 0, "", dict[str, Usage]()
    kinds = ("turn_started", "session_started", "profile_changed", "message_completed", "usage_recorded")
    for line in _lines(listed.file, kinds):
        kind = _kind(line)
        try:
            if kind == "turn_started":
                turns += 1
            elif kind == "message_completed":
                # The message itself can be long. Within it `"` is written `\"`, so this is the event's own field.
                record = json.loads(b"{" + line[line.rindex(b',"usage":{') + 1 :])
                usage[model] = usage.get(model, Usage()) + Usage.model_validate(record["usage"])
            elif kind == "usage_recorded":
                record = json.loads(line)
                spent = Usage.model_validate(record["usage"])
                usage[record["model"]] = usage.get(record["model"], Usage()) + spent
            else:
                model = json.loads(line)["models"].get("processor", "")
        except _UNREADABLE:
            continue
    return Tally(turns, usage)


def rename(name: str, new: str) -> Listed:
    """Gives the session another name; its events stay as they are, and who has it open keeps it.

    Raises:
        UsageError: the new one is no name.
        SessionError: there is no such session, the new name is taken, or the folder can't be written.
    """
    listed = find_session(name)
    write_name(listed.folder, checked_name(new))
    return listed


def checked_name(name: str) -> str:
    """The name, which no session has.

    Raises:
        UsageError: when that is no name.
        SessionError: when it is taken.
    """
    if not re.fullmatch(r"\w[\w.-]{0,63}", name):
        raise UsageError(f"{name!r} is no name for a session; use up to 64 letters, digits, '-', '_' and '.'")
    if any(name == listed.name for listed in sessions()):
        resume = f"goose-like session resume {shlex.quote(name)}"
        raise SessionError(f"there is a session {name!r} already; resume it: {resume}")
    return name


def given_name(folder: Path) -> str | None:
    """The name that the session in the folder was given later than by its first event; None when it was given none."""
    return _read(folder / _NAME) or None


def write_name(folder: Path, name: str) -> None:
    """Keeps a name for `given_name`. Raises SessionError when that can't be written."""
    _write(folder / _NAME, name)


def write_title(folder: Path, title: str) -> None:
    """Keeps what the session is about, for lists. Raises SessionError when that can't be written."""
    _write(folder / _TITLE, title)


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _write(file: Path, text: str) -> None:
    draft = file.with_name(f".{file.name}-{os.getpid()}")
    try:
        draft.write_text(f"{text}\n", encoding="utf-8")
        draft.replace(file)
    except OSError as error:
        raise SessionError(f"the {file.name} can't be written: {error}; make that folder writable") from error


def short_names() -> set[str]:
    """Names that a made-up one must not have: the ends of folders' names, and those given later. Reads no events."""
    folder = sessions_folder()
    given = (given_name(file.parent) for file in folder.glob(f"*/{_NAME}"))
    return {*(each.name.rpartition("-")[2] for each in folder.glob("*-*")), *filter(None, given)}


def _listed(file: Path, changed: datetime) -> Listed | None:
    """Reads only as far as the first message. None: nothing was said in it, or it can't be read."""
    name, cwd, words = "", "", None
    try:
        with file.open("rb") as lines:
            for line in lines:
                kind = _kind(line)
                if kind == "session_started" and not cwd:
                    name, cwd = _header(line)
                elif kind == "turn_started":
                    words = _words(line)
                    break
                elif not kind:
                    words = ""  # there may have been some in this line
    except OSError:
        return None
    if words is None:
        return None
    name = given_name(file.parent) or name or file.parent.name
    return Listed(file.parent, name, cwd, " ".join(words.split()), changed, _read(file.parent / _TITLE))


def _lines(file: Path, kinds: Sequence[str]) -> Iterator[bytes]:
    """The lines of these events in the file; none of one that can't be read."""
    try:
        data = b"\n" + file.read_bytes()
    except OSError:
        return
    wanted = re.compile(rb'\n(\{"type":"(?:%s)".*)' % "|".join(kinds).encode())
    for found in wanted.finditer(data):
        yield found[1]


def _kind(line: bytes) -> str:
    """The type of a line's event, which stands first in it; '' when none does."""
    found = re.match(rb'\{"type":"(\w+)"', line)
    return found[1].decode() if found else ""


def _words(line: bytes) -> str:
    """What the person said in a line, '' when that can't be read."""
    try:
        return next((part["text"] for part in json.loads(line)["message"]["parts"] if part["type"] == "text"), "")
    except _UNREADABLE:
        return ""


def _header(line: bytes) -> tuple[str, str]:
    """Name and folder of a `session_started`, '' where they can't be read."""
    try:
        record = json.loads(line)
        return str(record["name"]), str(record["cwd"])
    except _UNREADABLE:
        return "", ""
