"""Archives: export a session with its outputs and assets as one JSON object, and import it again."""

import json
import re
from datetime import datetime
from itertools import starmap
from pathlib import Path
from typing import Literal

from pydantic import JsonValue, ValidationError

from goose_like.config.secrets import register_keys
from goose_like.core.errors import GooseLikeError, SessionError
from goose_like.core.events import ModeRestricted, SavedEvent, SessionStarted, saved_event_adapter
from goose_like.core.masking import mask_bytes, mask_value

from .fork import SessionFiles, read_files
from .goose09 import read_goose09_events
from .index import SessionInfo
from .jsonl import format_line, read_lines
from .session import Session


class _Archive(SessionFiles):
    format: Literal["goose-like session"]
    version: Literal[1]
    name: str = ""
    events: list[dict[str, JsonValue]]


def export_archive(info: SessionInfo) -> str:
    """Export a session as a JSON object with one event per line. Secrets are masked, unreadable lines are left out."""
    register_keys()
    lines = b",\n".join(starmap(_mask_line, read_lines(info.file.read_bytes(), info.file, [])))
    found = read_files(info, lines)
    outputs = {name: mask_bytes(data) if name.endswith(".txt") else data for name, data in found.outputs.items()}
    files = found.model_copy(update={"outputs": outputs}).model_dump(mode="json")
    head = json.dumps({"format": "goose-like session", "version": 1, "name": info.name, **files}, ensure_ascii=False)
    return f'{head[:-1]}, "events": [\n{lines.decode()}\n]}}\n'


def import_file(file: Path, name: str | None = None) -> Session:
    """Import an archive, or a session of goose 0.9, as a new open session.

    Without `name`, the session keeps its former name (or gets the file's name) if it is free.

    Raises:
        SessionError: the file cannot be read or has another format; the message has the place.
    """
    try:
        text = file.read_text(encoding="utf-8")
        if re.match(r'\s*\{\s*"(?:role|id|created|content)"\s*:', text):
            lines = b"".join(starmap(format_line, read_goose09_events(text)))
            former_name, files = file.stem, SessionFiles()
        else:
            files = archive = _Archive.model_validate_json(text)
            lines = b"".join(starmap(_format_record, enumerate(archive.events, 1)))
            former_name = archive.name
    except ValidationError as error:
        first = error.errors()[0]
        reason = ": ".join(filter(None, [".".join(map(str, first["loc"])), first["msg"]]))
        raise SessionError(
            f"{file} is no session of goose-like or goose 0.9 ({reason}); nothing was imported"
        ) from None
    except (OSError, ValueError) as error:
        raise SessionError(f"{file} can't be read: {error}; give a file of `session export --format json`") from None
    try:
        session = Session.create(name or former_name)
    except GooseLikeError:
        if name:
            raise
        session = Session.create()  # the former name is taken or invalid
    session.copy_from(lines, files.folder, files.outputs, files.assets)
    return session


def _mask_line(line: bytes, event: SavedEvent) -> bytes:
    masked = mask_value(event)
    _, key, at = line.rpartition(b',"at":"')
    return line if masked is event else masked.model_dump_json()[:-1].encode() + (key + at or b"}")


def _format_record(number: int, record: dict[str, JsonValue]) -> bytes:
    try:
        at = datetime.fromisoformat(str(record.pop("at", "")))
        event = saved_event_adapter.validate_python(record)
        # The file may be somebody else's: it may only restrict the session.
        if isinstance(event, SessionStarted | ModeRestricted):
            sandbox = event.sandbox if event.sandbox == "read-only" else ""
            approval = event.approval if event.approval in ("plan", "ask") else ""
            event = event.model_copy(update={"sandbox": sandbox, "approval": approval})
        return format_line(event, at)
    except ValueError as error:
        raise ValueError(f"event {number}: {str(error).splitlines()[0]}") from None
