"""The sessions on disk: find them by name, search them, and count their turns and tokens.

Each function reads only the lines that it needs, and parses only some of these.
"""

import json
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, NamedTuple

from goose_like.config.paths import describe_file_error, home_folder, sessions_folder
from goose_like.core.dataclass import dataclass
from goose_like.core.errors import SessionError, UsageError
from goose_like.core.events import Interjected, MessageCompleted, SavedEvent, TurnStarted
from goose_like.core.history import History
from goose_like.core.message import Usage
from goose_like.core.spelling import did_you_mean

from .jsonl import parse_line, read_header

EVENTS_FILE = "events.jsonl"
SUBAGENTS_FOLDER = "subagents"


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """The first lines of a session, and the time of its last change. `summary` is the title, or the first words."""

    folder: Path
    name: str
    cwd: str
    first_words: str
    summary: str
    changed_at: datetime

    def ran_in(self, cwd: str) -> bool:
        """Check whether the session ever ran in a folder, also if that has another name since."""
        if cwd == self.cwd:
            return True
        places = _read_places(self.folder)
        if any(place.path == cwd for place in places):
            return True
        try:
            status = os.stat(cwd)
        except OSError:
            return False
        for place in places:
            is_same_folder = place.device == status.st_dev and place.number == status.st_ino
            if is_same_folder and not os.path.exists(place.path):
                return True
        return False

    @property
    def file(self) -> Path:
        """The events, one JSON object per line."""
        return self.folder / EVENTS_FILE


def iterate_sessions(folder: Path | None = None) -> Iterator[SessionInfo]:
    """Yield the sessions with at least one turn, the newest first. Read each on demand, and skip unreadable ones."""
    times: list[tuple[float, Path]] = []
    for file in (folder or sessions_folder()).glob(f"*/{EVENTS_FILE}"):
        with suppress(OSError):
            times.append((file.stat().st_mtime, file))
    for time, file in sorted(times, reverse=True):
        if info := _read_info(file, datetime.fromtimestamp(time, UTC)):
            yield info


def list_sessions() -> list[SessionInfo]:
    """List all sessions with at least one turn, the newest first."""
    return list(iterate_sessions())


def list_subagent_sessions(info: SessionInfo) -> list[SessionInfo]:
    """List the sessions of a session's subagents, the oldest first, each followed by its own subagents."""
    newest_first = list(iterate_sessions(info.folder / SUBAGENTS_FOLDER))
    sessions = []
    for child in reversed(newest_first):
        sessions.append(child)
        sessions += list_subagent_sessions(child)
    return sessions


def find_session(name: str) -> SessionInfo:
    """Find the session with this name or folder name, else the only one with all these words in its title.

    Raises:
        SessionError: there is none, or several have such a title; the message has the nearest names.
    """
    names: list[str] = []
    titled: list[SessionInfo] = []
    wanted = _split_words(name)
    for info in iterate_sessions():
        if name in (info.name, info.folder.name):
            return info
        names.append(info.name)
        if wanted and wanted <= _split_words(info.summary):
            titled.append(info)
    exact = [info for info in titled if info.summary.casefold() == name.casefold()]
    if exact:
        return exact[0]  # the newest one
    if len(titled) == 1:
        return titled[0]
    if titled:
        first = titled[:_MAX_NAMED]
        listed = [f"{info.name} ({info.summary[:_MAX_TITLE_CHARS]})" for info in first]
        problem = f"{len(titled)} sessions have {name!r} in their title"
        raise SessionError(f"{problem}: {', '.join(listed)}; give the name of one")
    old = home_folder() / f".config/goose/sessions/{name}.jsonl"
    if os.path.isfile(old):
        raise SessionError(f"no session {name!r}; take over that of goose 0.9: goose-like session import {old}")
    raise SessionError(f"no session {name!r}; {did_you_mean(name, names)}")


def _split_words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold()))


def find_newest_session(cwd: str | None = None) -> SessionInfo:
    """Find the newest session, or the newest of a folder.

    Raises:
        SessionError: there is none.
    """
    for info in iterate_sessions_in(cwd):
        return info
    place = f" in {cwd}" if cwd else ""
    raise SessionError(f"there is no session{place}; start one: goose-like session start")


def find_session_or_newest(name: str | None, cwd: str | None) -> SessionInfo:
    """Find the session that `find_session` finds; without a name, the newest one of a folder.

    Raises:
        SessionError: there is none, or the name fits several.
    """
    if name is None:
        return find_newest_session(cwd)
    return find_session(name)


def search_sessions(words: Sequence[str], cwd: str | None = None) -> Iterator[SessionInfo]:
    """Yield the sessions that have all words in their name, folder or user messages. `cwd` restricts the folder."""
    folded = [word.casefold() for word in words]
    for info in iterate_sessions_in(cwd):
        if _has_words(info, folded):
            yield info


def iterate_sessions_in(cwd: str | None) -> Iterator[SessionInfo]:
    """Yield the sessions of a folder, or all sessions, the newest first."""
    for info in iterate_sessions():
        if cwd is None or info.ran_in(cwd):
            yield info


def _has_words(info: SessionInfo, words: Sequence[str]) -> bool:
    head = " ".join((info.name, info.cwd, info.summary, info.first_words)).casefold()
    missing = [word for word in words if word not in head]
    if not missing:
        return True
    texts = []
    for _, line in iterate_lines(info.file, "turn_started", "interjected"):
        event = try_parse(line)
        if isinstance(event, TurnStarted | Interjected):
            texts.append(event.message.first_text)
    text = "\n".join(texts).casefold()
    return all(word in text for word in missing)


def count_totals(info: SessionInfo) -> tuple[int, dict[str, Usage]]:
    """Count turns, and tokens by model, like `core.history.History`, but parse only the lines with numbers."""
    turns = 0
    processor = ""
    usage: dict[str, Usage] = {}
    counted = ("turn_started", "session_started", "message_completed", "usage_recorded")
    for kind, line in iterate_lines(info.file, *counted):
        try:
            if kind == "turn_started":
                turns += 1
                continue
            if kind == "message_completed":
                # The message may be long. A `"` inside it is written as `\"`, so this finds the event's own field.
                start = line.rindex(b',"usage":{') + 1
                line = b"{" + line[start:]
            record = json.loads(line)
            if kind == "session_started":
                processor = record["models"].get("processor", "")
            else:
                model = record.get("model", processor)
                new = Usage.model_validate(record["usage"])
                usage[model] = usage.get(model, Usage()) + new
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):  # a damaged line
            continue
    return turns, usage


def read_last_words(info: SessionInfo) -> tuple[str, str]:
    """Return the last message of the person and the last answer to it, each empty without one.

    Messages that were rewound do not count.
    """
    lines = list(iterate_lines(info.file, "turn_started", "interjected", "message_completed", "rewound"))
    if any(kind == "rewound" for kind, _ in lines):
        return _replay_last_words(info)
    answer = ""
    for _, line in reversed(lines):
        event = try_parse(line)
        if isinstance(event, MessageCompleted):
            answer = answer or event.message.text
        elif isinstance(event, TurnStarted | Interjected):
            return event.message.first_text, answer
    return "", answer


def _replay_last_words(info: SessionInfo) -> tuple[str, str]:
    """Find the last words in the whole history: it alone tells which messages a rewound session has left."""
    lines = info.file.read_bytes().splitlines()
    history = History.replay(filter(None, map(try_parse, lines)))
    if not history.user_message_indexes:
        return "", ""
    last = history.user_message_indexes[-1]
    answer = ""
    for message in history.messages[last + 1 :]:
        if message.role == "assistant":
            answer = message.text or answer
    return history.messages[last].first_text, answer


def read_messages(folder: Path) -> list[list[str]]:
    """Return the messages of the person by turn: the first of each turn, then those that were sent while it ran."""
    turns: list[list[str]] = []
    for _, line in iterate_lines(folder / EVENTS_FILE, "turn_started", "interjected"):
        event = try_parse(line)
        if isinstance(event, Interjected) and turns:
            turns[-1].append(event.message.first_text)
            continue
        # An unreadable line may have started a turn.
        first_text = ""
        if isinstance(event, TurnStarted):
            first_text = event.message.first_text
        turns.append([first_text])
    return turns


def list_texts(folder: Path) -> list[str]:
    """List the messages of the person in their order."""
    texts: list[str] = []
    for turn in read_messages(folder):
        texts += turn
    return texts


def rename_session(name: str, new: str) -> str:
    """Rename a session, which may be open in a process, or give it a title of several words. The events do not change.

    Return the words by which it can be resumed.

    Raises:
        UsageError: the new name is invalid.
        SessionError: there is no such session, the new name is taken, or the folder cannot be written.
    """
    folder = find_session(name).folder
    words = new.split()
    title = " ".join(words)
    if len(words) > 1:
        write_label(folder, "title", title)
    else:
        write_label(folder, "name", check_new_name(title))
    return title


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
    names = set()
    for folder in sessions_folder().glob("*-*"):
        end = folder.name.rpartition("-")[2]
        names.add(end)
        names.add(read_label(folder, "name"))
    return names


Label = Literal["name", "title", "holder", "places"]
"""A file beside the events with one line: a new name, a title for lists, the number of the last process, folders."""

_MAX_PLACES = 20
_MAX_NAMED = 3
_MAX_TITLE_CHARS = 40


def read_label(folder: Path, label: Label) -> str:
    """Read a label of a session; empty if there is none."""
    try:
        return (folder / label).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def write_label(folder: Path, label: Label, text: str) -> None:
    """Write a label of a session.

    Raises:
        SessionError: the file cannot be written.
    """
    draft = folder / f".{label}-{os.getpid()}"
    with session_errors(f"the {label} can't be written", "make that folder writable"):
        draft.touch(0o600)
        draft.write_text(f"{text}\n", encoding="utf-8")
        draft.replace(folder / label)


class _Place(NamedTuple):
    """A folder in which a session ran: its path, device and number. A tuple, as it is a list in the file."""

    path: str
    device: int
    number: int


def _read_places(folder: Path) -> list[_Place]:
    """Read the folders of a session. Without the label, or with a damaged one, only its first folder counts."""
    try:
        places = []
        for path, device, number in json.loads(read_label(folder, "places")):
            places.append(_Place(str(path), int(device), int(number)))
        return places
    except (TypeError, ValueError):
        return []


def note_place(folder: Path, cwd: str) -> None:
    """Note that a session runs in a folder: its path, device and number, which stay when the folder is renamed."""
    places = [place for place in _read_places(folder) if place.path != cwd]
    with suppress(OSError, SessionError):  # a session works without this
        status = os.stat(cwd)
        places.insert(0, _Place(cwd, status.st_dev, status.st_ino))
        write_label(folder, "places", json.dumps(places[:_MAX_PLACES]))


@contextmanager
def session_errors(failure: str, hint: str = "free some space") -> Iterator[None]:
    """Turn an OSError into a SessionError that says what failed, and how to repair it."""
    try:
        yield
    except OSError as error:
        raise SessionError(f"{failure}: {describe_file_error(error)}; {hint}") from error


def _read_info(file: Path, changed_at: datetime) -> SessionInfo | None:
    """Read a session up to its first message; None if there is no message or the file is unreadable."""
    name = ""
    cwd = ""
    words = None
    try:
        with file.open("rb") as lines:
            for line in lines:
                event = try_parse(line)
                header = {} if cwd else read_header(line)
                if header:  # also of a newer format, which is refused when the session is opened
                    name = str(header.get("name", ""))
                    cwd = str(header.get("cwd", ""))
                elif isinstance(event, TurnStarted):
                    words = event.message.first_text
                    break
                elif event is None:
                    words = ""  # this damaged line may have held a message
    except OSError:
        return None
    if words is None:
        return None
    folder = file.parent
    name = read_label(folder, "name") or name or folder.name
    words = " ".join(words.split())
    summary = read_label(folder, "title") or words
    return SessionInfo(folder, name, cwd, words, summary, changed_at)


def iterate_lines(file: Path, *kinds: str) -> Iterator[tuple[str, bytes]]:
    """Yield the event type and the line of all events of some types; nothing if the file is unreadable."""
    pattern = rb'\n(\{"type":"(%s)".*)' % "|".join(kinds).encode()
    with suppress(OSError):
        for found in re.finditer(pattern, b"\n" + file.read_bytes()):
            yield found[2].decode(), found[1]


def try_parse(line: bytes) -> SavedEvent | None:
    """Parse a line of a session file, or return None for a damaged one."""
    try:
        return parse_line(line)
    except ValueError:
        return None
