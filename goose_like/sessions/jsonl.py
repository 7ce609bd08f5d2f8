"""Lines of a session file: an event as JSON, with the time `at` of writing as its last field."""

import json
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from goose_like.core.errors import SessionError
from goose_like.core.events import SavedEvent, saved_event_adapter
from goose_like.core.format_version import SESSION_FORMAT, describe_newer_format
from goose_like.core.pattern import compile_later

_STAMPED = compile_later(rb'\{"type":"(\w+)".*,"at":"([^"]+)"\}$', re.DOTALL)
_HEADER = compile_later(rb'^\{"type":"session_started".*$', re.MULTILINE)


def format_line(event: SavedEvent, at: datetime) -> bytes:
    """Format an event as a line with its newline."""
    stamp = at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    fields = event.model_dump_json()[:-1]
    return f'{fields},"at":"{stamp}"}}\n'.encode()


def parse_line(line: bytes) -> SavedEvent:
    """Parse the event of a line.

    Raises:
        ValueError: the line is no event (the errors of pydantic are subclasses).
    """
    fields, _, _ = line.rpartition(b',"at":"')
    if fields:
        line = fields + b"}"
    return saved_event_adapter.validate_json(line)


def read_time(line: bytes) -> str:
    """Return the time of a line in ISO format. A damaged line has none."""
    match = _STAMPED.match(line)
    return match[2].decode() if match else ""


def read_header(line: bytes) -> dict[str, Any]:
    """Return the fields of a line with a SessionStarted, also of another format. Another line has none."""
    if not _HEADER.match(line):
        return {}
    try:
        return dict(json.loads(line))
    except (ValueError, RecursionError):  # a torn or damaged line
        return {}


def check_format(data: bytes, file: Path) -> None:
    """Check that this version can read the lines of a session file.

    Raises:
        SessionError: a newer goose-like wrote some of them.
    """
    for line in _HEADER.findall(data):
        version = read_header(line).get("format")
        if refusal := describe_newer_format(f"the session file {file}", version, SESSION_FORMAT):
            raise SessionError(refusal)


def read_lines(data: bytes, file: Path, damage: list[str]) -> Iterator[tuple[bytes, SavedEvent]]:
    """Yield each complete line without its newline, and its event. Note unreadable lines in `damage`.

    Raises:
        SessionError: a newer goose-like wrote some of the lines.
    """
    check_format(data, file)
    complete = data.split(b"\n")[:-1]
    for number, line in enumerate(complete, 1):
        try:
            event = parse_line(line)
        except ValueError as error:
            reason = str(error).splitlines()[0]
            damage.append(f"{file}, line {number}: left out, it can't be read ({reason})")
        else:
            yield line, event


def measure_open_turn_s(lines: Iterable[bytes]) -> float:
    """Measure the seconds that a turn took which killed processes left, without the time between the processes."""
    taken_s = 0.0
    is_open = False
    before = datetime.max
    for line in lines:
        match = _STAMPED.match(line)
        if match is None:
            continue
        kind = match[1]
        at = datetime.fromisoformat(match[2].decode()).replace(tzinfo=None)
        if kind in (b"turn_finished", b"rewound"):
            is_open = False
            taken_s = 0.0
        elif kind == b"turn_started":
            is_open = True
        elif kind != b"session_started" and is_open:
            taken_s += (at - before).total_seconds()
        before = at
    return taken_s
