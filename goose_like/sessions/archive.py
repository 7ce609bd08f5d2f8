"""A session as one JSON object with all of its events, the outputs that they name and its assets, and back."""

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from goose_like import __version__
from goose_like.core.errors import GooseLikeError, SessionError
from goose_like.core.events import SessionStarted, durable_json

from .fork import assets_of, named_outputs
from .goose09 import goose09_events
from .index import ASSETS, Listed
from .jsonl import line_of, read_lines
from .session import Session

FORMAT = "goose-like session"
VERSION = 1


def archive(listed: Listed) -> str:
    """The object, an event a line. What can't be read of the session is left out."""
    lines = [line for line, _ in read_lines(listed.file.read_bytes(), listed.file, [])]
    folder = listed.folder / "outputs"
    head = {
        "format": FORMAT,
        "version": VERSION,
        "name": listed.name,
        "folder": str(folder),
        "outputs": _in_base64(named_outputs(folder, b"\n".join(lines))),
        "assets": _in_base64(assets_of(listed.folder / ASSETS)),
    }
    events = ",\n".join(line.decode() for line in lines)
    return f'{json.dumps(head, ensure_ascii=False)[:-1]}, "events": [\n{events}\n]}}\n'


def _in_base64(files: Iterable[tuple[str, bytes]]) -> dict[str, str]:
    return {name: b64encode(data).decode() for name, data in files}


def take_in(file: Path, name: str | None = None) -> Session:
    """A new, open session with what is in the file: what `archive` wrote, or a session of goose 0.9.

    Without a name it has its former one, or the file's, where no other session has that.

    Raises:
        SessionError: the file can't be read or is neither; the text has the line.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SessionError(
            f"{str(file)!r} can't be read: {error}; give a file of `session export --format json`"
        ) from None
    first = text.lstrip().partition("\n")[0]
    if re.match(r'\{\s*"(?:role|id|created|content)"\s*:', first):
        return _from_goose09(text, file, name)
    head, lines = _opened(text, str(file))
    session = _created(name, str(head.get("name", "")))
    outputs, assets = (_files(head, kind, str(file)) for kind in ("output", "asset"))
    return _filled(session, lines, str(head.get("folder", "")), outputs, assets)


def _opened(text: str, file: str) -> tuple[dict[str, Any], bytes]:
    """The object, and its events as lines of a session's file."""
    try:
        head = json.loads(text)
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", 1)
        raise SessionError(f"{file}, line {line} is no JSON ({error}); nothing was imported") from None
    if not isinstance(head, dict) or head.get("format") != FORMAT or not isinstance(head.get("events"), list):
        raise SessionError(f"{file}, line 1: neither a session of goose-like nor of goose 0.9; nothing was imported")
    if head.get("version") != VERSION:
        told = f"{file}, line 1: version {head.get('version')!r} of the format, and this goose-like reads {VERSION}"
        raise SessionError(f"{told}; import it with a newer one")
    lines = []
    for number, record in enumerate(head["events"]):
        try:
            at = datetime.fromisoformat(record.pop("at"))
            lines.append(line_of(durable_json.validate_python(record), at))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            reason = str(error).splitlines()[0]
            where = f"{file}, line {_line_of_event(text, number)}"
            raise SessionError(f"{where}: event {number + 1} can't be read ({reason}); nothing was imported") from None
    return head, b"".join(lines)


def _line_of_event(text: str, number: int) -> int:
    """Where the event begins, as the object may have been written anew by another program."""
    found = re.search(r'"events"\s*:\s*\[\s*', text)
    at = found.end() if found else 0
    for _ in range(number):
        at = json.JSONDecoder().raw_decode(text, at)[1]
        at += len(text[at:]) - len(text[at:].lstrip(", \t\r\n"))
    return text.count("\n", 0, at) + 1


def _files(head: dict[str, Any], kind: str, file: str) -> Iterator[tuple[str, bytes]]:
    """What stands under `outputs`, or `assets`: files by their names."""
    given = head.get(f"{kind}s", {})
    if not isinstance(given, dict):
        raise SessionError(f"{file}, line 1: `{kind}s` is no object; nothing was imported")
    for name, data in given.items():
        if not re.fullmatch(r"[\w-][\w.-]*", name):
            raise SessionError(f"{file}, line 1: {name!r} is no name of an {kind}; nothing was imported")
        try:
            yield name, b64decode(data, validate=True)
        except (ValueError, TypeError):
            raise SessionError(f"{file}, line 1: the {kind} {name!r} is no base64; nothing was imported") from None


def _from_goose09(text: str, file: Path, name: str | None) -> Session:
    events = list(goose09_events(text, str(file)))
    if not events:
        raise SessionError(f"{file}, line 1: nobody says anything in it; nothing was imported")
    session = _created(name, file.stem)
    header = SessionStarted(
        version=__version__, name=session.name, cwd=str(Path.cwd()), profile="", models={}, tools=()
    )
    lines = [line_of(header, events[0][1]), *(line_of(event, at) for event, at in events)]
    return _filled(session, b"".join(lines), "")


def _created(name: str | None, wish: str) -> Session:
    if name is not None:
        return Session.create(name)
    try:
        return Session.create(wish)
    except GooseLikeError:  # it is taken, or no name
        return Session.create()


def _filled(
    session: Session,
    lines: bytes,
    folder: str,
    outputs: Iterable[tuple[str, bytes]] = (),
    assets: Iterable[tuple[str, bytes]] = (),
) -> Session:
    try:
        session.take_over(lines, folder, outputs, assets)
    except BaseException:
        session.close()
        raise
    return session
