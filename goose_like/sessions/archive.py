"""Archives: export a session with its outputs and assets as one JSON object, and import it again."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import starmap
from pathlib import Path
from typing import Literal

from pydantic import Field, JsonValue, ValidationError

from goose_like.config.secrets import register_keys
from goose_like.core.errors import GooseLikeError, SessionError
from goose_like.core.events import (
    CommandFinished,
    MessageCompleted,
    ModeRestricted,
    PromptChanged,
    PromptRecorded,
    Reminded,
    SavedEvent,
    SessionStarted,
    StateSaved,
    saved_event_adapter,
)
from goose_like.core.format_version import SESSION_FORMAT, describe_newer_format
from goose_like.core.history import PROMPT_STATE_KEY
from goose_like.core.masking import mask_bytes, mask_value

from .fork import SessionFiles, read_files
from .goose09 import cut_torn_line, read_goose09_events
from .index import SessionInfo
from .jsonl import format_line, read_lines
from .session import Session


class _Archive(SessionFiles):
    format: Literal["goose-like session"]
    version: int = Field(ge=1, le=SESSION_FORMAT)
    name: str = ""
    events: list[dict[str, JsonValue]]


def export_archive(info: SessionInfo) -> str:
    """Export a session as a JSON object with one event per line. Secrets are masked, unreadable lines are left out."""
    register_keys()
    events = read_lines(info.file.read_bytes(), info.file, [])
    lines = b",\n".join(starmap(_mask_line, events))
    found = read_files(info, lines)
    outputs = {}
    for name, data in found.outputs.items():
        if name.endswith(".txt"):
            data = mask_bytes(data)
        outputs[name] = data
    files = found.model_copy(update={"outputs": outputs}).model_dump(mode="json")
    fields = {"format": "goose-like session", "version": SESSION_FORMAT, "name": info.name, **files}
    head = json.dumps(fields, ensure_ascii=False)
    return f'{head[:-1]}, "events": [\n{lines.decode()}\n]}}\n'


def import_file(file: Path, name: str | None = None) -> Session:
    """Import an archive, or a session of goose 0.9, as a new open session.

    Without `name`, the session keeps its former name (or gets the file's name) if it is free. It belongs to the current
    folder, and has no profile and no models: the file may be somebody else's.

    Raises:
        SessionError: the file cannot be read or has another format; the message has the place.
    """
    try:
        found = _read_file(file)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        reason = ": ".join(filter(None, [place, first["msg"]]))
        raise SessionError(
            f"{file} is no session of goose-like or goose 0.9 ({reason}); nothing was imported"
        ) from None
    except (OSError, ValueError) as error:
        raise SessionError(f"{file} can't be read: {error}; give a file of `session export --format json`") from None
    try:
        session = Session.create(name or found.name)
    except GooseLikeError:
        if name:
            raise
        session = Session.create()  # the former name is taken or invalid
    files = found.files
    session.copy_from(found.lines, files.folder, files.outputs, files.assets)
    if found.is_torn:
        session.damage.append(f"{file}: the last line was torn and is left out")
    return session


@dataclass(frozen=True, slots=True)
class _Found:
    """The content of a file: the lines of a session, its former name and its files. `is_torn`: the last line is out."""

    lines: bytes
    name: str
    files: SessionFiles
    is_torn: bool = False


def _read_file(file: Path) -> _Found:
    text = file.read_text(encoding="utf-8")
    is_goose09 = re.match(r'\s*\{\s*"(?:role|id|created|content)"\s*:', text)
    if is_goose09:
        text, is_torn = cut_torn_line(text)
        lines = b"".join(starmap(format_line, read_goose09_events(text)))
        return _Found(lines, file.stem, SessionFiles(), is_torn)
    _check_format(file, text)
    archive = _Archive.model_validate_json(text)
    lines = b"".join(_format_records(archive.events))
    return _Found(lines, archive.name, archive)


def _check_format(file: Path, text: str) -> None:
    """Check that no newer goose-like exported a file. Other problems are found later.

    Raises:
        SessionError: one did.
    """
    try:
        archive = json.loads(text)
    except (ValueError, RecursionError):
        return
    if not isinstance(archive, dict):
        return
    versions = [archive.get("version")]
    events = archive.get("events")
    if not isinstance(events, list):
        events = []
    for event in events:
        if isinstance(event, dict) and event.get("type") == "session_started":
            versions.append(event.get("format"))
    for version in versions:
        if refusal := describe_newer_format(str(file), version, SESSION_FORMAT):
            raise SessionError(f"{refusal}. Nothing was imported")


def _mask_line(line: bytes, event: SavedEvent) -> bytes:
    masked = mask_value(event)
    if masked is event:
        return line
    fields = masked.model_dump_json()[:-1].encode()
    _, key, at = line.rpartition(b',"at":"')
    end = key + at if key else b"}"
    return fields + end


def _format_records(records: Sequence[dict[str, JsonValue]]) -> Iterator[bytes]:
    # A change of the prompt becomes a note, and thinking after another text would be refused.
    keeps_digest = all(record.get("type") != "prompt_changed" for record in records)
    processor = ""
    for number, record in enumerate(records, 1):
        try:
            at = datetime.fromisoformat(str(record.pop("at", "")))
            event = saved_event_adapter.validate_python(record)
            if isinstance(event, SessionStarted):
                processor = event.models.get("processor", "")
            if isinstance(event, PromptRecorded):
                continue  # somebody else's; the next turn records that of this machine
            if isinstance(event, CommandFinished):
                continue  # it proves nothing about the files here
            if isinstance(event, StateSaved) and event.toolkit == PROMPT_STATE_KEY and not keeps_digest:
                continue
            yield format_line(_adopt_event(event, processor), at)
        except ValueError as error:
            reason = str(error).splitlines()[0]
            raise ValueError(f"event {number}: {reason}") from None


def _adopt_event(event: SavedEvent, processor: str) -> SavedEvent:
    """Adopt an event of somebody else: it may restrict the session, but chooses no profile, model or folder.

    A message names its model, so that the costs of the session stay known.
    """
    match event:
        case SessionStarted():
            return SessionStarted(
                version=event.version,
                name="",
                cwd=str(Path.cwd()),
                profile="",
                models={},
                tools=(),
                is_resumed=event.is_resumed,
                sandbox=_keep_strict(event.sandbox, "read-only"),
                approval=_keep_strict(event.approval, "plan", "ask"),
            )
        case ModeRestricted():
            sandbox = _keep_strict(event.sandbox, "read-only")
            approval = _keep_strict(event.approval, "plan", "ask")
            return ModeRestricted(sandbox=sandbox, approval=approval)
        case PromptChanged():
            return Reminded(text="(Here the instructions of the session were changed.)")
        case MessageCompleted(model=""):
            return event.model_copy(update={"model": processor})
    return event


def _keep_strict(mode: str, *strict_modes: str) -> str:
    return mode if mode in strict_modes else ""
