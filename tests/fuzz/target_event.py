"""The parser of one line of a session file."""

import json
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from goose_like.core.events import SavedEvent
from goose_like.sessions.jsonl import format_line, parse_line
from tests.core.test_events import PINNED
from tests.fuzz.source import Source

AT = datetime(2026, 1, 1, tzinfo=UTC)
EVENTS = [json.loads(text) for event, text in PINNED if isinstance(event, SavedEvent)]
LINES = [format_line(event, AT)[:-1] for event, _ in PINNED if isinstance(event, SavedEvent)]
KEYS = ("type", "text", "message", "usage", "value", "call_id", "at", "")
PIECES = (
    b'"', b"\\", b"{", b"}", b"[", b"]", b":", b",", b"\0", b"\x7f", b"\xff", b"\xc3", b"\xed\xa0\x80",
    b"\xf0\x9f\x98\x80", b"null", b"true", b"1e999", b"NaN", b"-Infinity", b"9" * 400, b"-0.0", b"0.1", b"\\ud800",
    b"\\u0000", b',"at":"', b'"type":"text"', b'"type":"logged"', b'"text":""', b'"value":NaN', b"1.", b"\n", b"\r",
)  # fmt: skip


class FuzzTarget:
    """Lines of a session file. An event that was read is written and read again without a difference."""

    def __init__(self, folder: Path) -> None:
        pass

    def create(self, source: Source) -> bytes:
        if source.happens(0.5):
            return source.stretch(json.dumps(source.graft(source.choice(EVENTS), KEYS), separators=(",", ":")).encode())
        line = source.choice(LINES)
        if source.happens(0.3):  # a part of another line in place of a part of this one
            other, at = source.choice(LINES), source.below(len(line))
            line = line[:at] + source.cut(other, 60) + line[at + source.below(60) :]
        return source.mutate(line, PIECES)

    def check(self, line: bytes) -> None:
        with suppress(ValueError):
            event = parse_line(line)
            written = format_line(event, AT)
            try:
                again = parse_line(written[:-1])
            except ValueError as error:
                raise AssertionError(f"{written!r} can't be read again") from error
            assert repr(again) == repr(event)
            assert format_line(again, AT) == written
            assert b"\n" not in written[:-1]
