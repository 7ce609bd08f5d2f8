"""Lines of a session file: a durable event as JSON, with the time `at` of writing as its last field."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from goose_like.core.events import DurableEvent, durable_event_adapter

_AT = b',"at":"'
_TIME_BYTES = len(',"at":"2026-11-30T12:00:00.000Z"}')


def format_line(event: DurableEvent, at: datetime) -> bytes:
    """Format an event as a line with its newline."""
    stamp = at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return f'{event.model_dump_json()[:-1]},"at":"{stamp}"}}\n'.encode()


def parse_line(line: bytes) -> DurableEvent:
    """Parse the event of a line.

    Raises:
        ValueError: the line is no event (the errors of pydantic and JSON are subclasses).
    """
    if line.startswith(_AT, -_TIME_BYTES):  # the form of `format_line`, which parses three times as fast
        try:
            return durable_event_adapter.validate_json(line[:-_TIME_BYTES] + b"}")
        except ValueError:
            pass
    record = json.loads(line)
    if not isinstance(record, dict):
        raise ValueError("it is no object")
    record.pop("at", None)
    return durable_event_adapter.validate_python(record)


def read_lines(data: bytes, file: Path, damage: list[str]) -> Iterator[tuple[bytes, DurableEvent]]:
    """Yield each complete line without its newline, and its event. Note unreadable lines in `damage`."""
    for number, line in enumerate(data.split(b"\n")[:-1], 1):
        try:
            event = parse_line(line)
        except ValueError as error:
            reason = str(error).splitlines()[0]
            damage.append(f"{file}, line {number}: left out, it can't be read ({reason})")
        else:
            yield line, event
