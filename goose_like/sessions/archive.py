"""Archives: export a session with its outputs and assets as one JSON object, and import it again."""

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from goose_like import __version__
from goose_like.core.errors import GooseLikeError, SessionError
from goose_like.core.events import SessionStarted, durable_event_adapter

from .fork import read_assets, read_named_outputs
from .goose09 import read_goose09_events
from .index import ASSETS_FOLDER, SessionInfo
from .jsonl import format_line, read_lines
from .session import Session

FORMAT = "goose-like session"
VERSION = 1


def export_archive(info: SessionInfo) -> str:
    """Export a session as a JSON object with one event per line. Unreadable lines are left out."""
    lines = [line for line, _ in read_lines(info.file.read_bytes(), info.file, [])]
    folder = info.folder / "outputs"
    head = {
        "format": FORMAT,
        "version": VERSION,
        "name": info.name,
        "folder": str(folder),
        "outputs": _encode_files(read_named_outputs(folder, b"\n".join(lines))),
        "assets": _encode_files(read_assets(info.folder / ASSETS_FOLDER)),
    }
    events = ",\n".join(line.decode() for line in lines)
    return f'{json.dumps(head, ensure_ascii=False)[:-1]}, "events": [\n{events}\n]}}\n'


def _encode_files(files: Iterable[tuple[str, bytes]]) -> dict[str, str]:
    return {name: b64encode(data).decode() for name, data in files}


def import_file(file: Path, name: str | None = None) -> Session:
    """Import an archive, or a session of goose 0.9, as a new open session.

    Without `name`, the session keeps its former name (or gets the file's name) if it is free.

    Raises:
        SessionError: the file cannot be read or has another format; the message has the line.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SessionError(
            f"{str(file)!r} can't be read: {error}; give a file of `session export --format json`"
        ) from None
    first = text.lstrip().partition("\n")[0]
    if re.match(r'\{\s*"(?:role|id|created|content)"\s*:', first):
        return _import_goose09(text, file, name)
    head, lines = _parse_archive(text, str(file))
    session = _create_session(name, str(head.get("name", "")))
    outputs, assets = (_decode_files(head, kind, str(file)) for kind in ("output", "asset"))
    session.copy_from(lines, str(head.get("folder", "")), outputs, assets)
    return session


def _parse_archive(text: str, file: str) -> tuple[dict[str, Any], bytes]:
    try:
        head = json.loads(text)
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", 1)
        raise SessionError(f"{file}, line {line} is no JSON ({error}); nothing was imported") from None
    if not isinstance(head, dict) or head.get("format") != FORMAT or not isinstance(head.get("events"), list):
        raise SessionError(f"{file}, line 1: neither a session of goose-like nor of goose 0.9; nothing was imported")
    if head.get("version") != VERSION:
        mismatch = f"{file}, line 1: version {head.get('version')!r} of the format, and this goose-like reads {VERSION}"
        raise SessionError(f"{mismatch}; import it with a newer one")
    lines = []
    for number, record in enumerate(head["events"]):
        try:
            at = datetime.fromisoformat(record.pop("at"))
            lines.append(format_line(durable_event_adapter.validate_python(record), at))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            reason = str(error).splitlines()[0]
            where = f"{file}, line {_find_event_line(text, number)}"
            raise SessionError(f"{where}: event {number + 1} can't be read ({reason}); nothing was imported") from None
    return head, b"".join(lines)


def _find_event_line(text: str, number: int) -> int:
    """Find the line where an event begins. Another program may have reformatted the file."""
    found = re.search(r'"events"\s*:\s*\[\s*', text)
    at = found.end() if found else 0
    for _ in range(number):
        at = json.JSONDecoder().raw_decode(text, at)[1]
        at += len(text[at:]) - len(text[at:].lstrip(", \t\r\n"))
    return text.count("\n", 0, at) + 1


def _decode_files(head: dict[str, Any], kind: str, file: str) -> Iterator[tuple[str, bytes]]:
    files = head.get(f"{kind}s", {})
    if not isinstance(files, dict):
        raise SessionError(f"{file}, line 1: `{kind}s` is no object; nothing was imported")
    for name, data in files.items():
        if not re.fullmatch(r"[\w-][\w.-]*", name):
            raise SessionError(f"{file}, line 1: {name!r} is no name of an {kind}; nothing was imported")
        try:
            yield name, b64decode(data, validate=True)
        except (ValueError, TypeError):
            raise SessionError(f"{file}, line 1: the {kind} {name!r} is no base64; nothing was imported") from None


def _import_goose09(text: str, file: Path, name: str | None) -> Session:
    events = list(read_goose09_events(text, str(file)))
    if not events:
        raise SessionError(f"{file}, line 1: the file has no messages; nothing was imported")
    session = _create_session(name, file.stem)
    header = SessionStarted(
        version=__version__, name=session.name, cwd=str(Path.cwd()), profile="", models={}, tools=()
    )
    lines = [format_line(header, events[0][1]), *(format_line(event, at) for event, at in events)]
    session.copy_from(b"".join(lines), "", ())
    return session


def _create_session(name: str | None, wanted: str) -> Session:
    if name is not None:
        return Session.create(name)
    try:
        return Session.create(wanted)
    except GooseLikeError:  # the name is taken or invalid
        return Session.create()
