"""Lines of a session file: an event as JSON, with the time `at` of writing as its last field."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from goose_like.core.events import SavedEvent, saved_event_adapter


def format_line(event: SavedEvent, at: datetime) -> bytes:
    """Format an event as a line with its newline."""
    stamp = at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return f'{event.model_dump_json()[:-1]},"at":"{stamp}"}}\n'.encode()


def parse_line(line: bytes) -> SavedEvent:
    """Parse the event of a line.

    Raises:
        ValueError: the line is no event (the errors of pydantic are subclasses).
    """
    event, _, _ = line.rpartition(b',"at":"')
    return saved_event_adapter.validate_json(event + b"}" if event else line)


def read_lines(data: bytes, file: Path, damage: list[str]) -> Iterator[tuple[bytes, SavedEvent]]:
    """Yield each complete line without its newline, and its event. Note unreadable lines in `damage`."""
    for number, line in enumerate(data.split(b"\n")[:-1], 1):
        try:
            event = parse_line(line)
        except ValueError as error:
            reason = str(error).splitlines()[0]
            damage.append(f"{file}, line {number}: left out, it can't be read ({reason})")
        else:
            yield line, event
