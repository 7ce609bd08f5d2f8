"""Event streams (text/event-stream) from servers that follow the format loosely. Source: WHATWG HTML, 9.2.6."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Any, NamedTuple

from goose_like.core.dataclass import dataclass
from goose_like.core.errors import BrokenStreamError

from .wire import clip

DONE = "[DONE]"
"""The text with which a chat completion ends its stream. It is no JSON."""

_BOM = b"\xef\xbb\xbf"
_KEY = re.compile(rb"[\w-]*")
"""A key of an event's line; a comment has an empty one. Unknown keys are ignored."""

_NAME = re.compile(rb"[ -~]*")


class StreamEvent(NamedTuple):
    """An event: its name, which may be empty, and its decoded JSON or `DONE`."""

    name: str
    value: Any


@dataclass(slots=True)
class EventDecoder:
    """A decoder of the bytes of one answer. A body that is one JSON document counts as one event."""

    _half_line: list[bytes] = field(default_factory=list)
    _name: str = ""
    _data: list[bytes] = field(default_factory=list)
    _garbage: bytes = b""
    _skips_line_feed: bool = False
    _has_begun: bool = False
    _is_document: bool = False

    def feed(self, piece: bytes) -> Iterator[StreamEvent]:
        """Take bytes and yield the events that they complete.

        Raises:
            BrokenStreamError: An event is no valid JSON.
        """
        if self._skips_line_feed and piece[:1] == b"\n":  # CRLF, split between two pieces
            piece = piece[1:]
            self._skips_line_feed = False
        for line in piece.splitlines(keepends=True):
            self._half_line.append(line)
            if line.endswith((b"\r", b"\n")):
                yield from self._take_line()
        if piece:
            self._skips_line_feed = piece.endswith(b"\r")

    def finish(self) -> Iterator[StreamEvent]:
        """Yield the last event, whose final empty line some servers leave out.

        Raises:
            BrokenStreamError: The bytes ended within an event.
        """
        if self._half_line:
            yield from self._take_line()
        try:
            yield from self._dispatch()
        except BrokenStreamError as error:
            raise BrokenStreamError("the answer ended within an event; it is incomplete") from error

    def _take_line(self) -> Sequence[StreamEvent]:
        line = b"".join(self._half_line).rstrip(b"\r\n")
        self._half_line.clear()
        if not self._has_begun:
            line = line.removeprefix(_BOM)
            self._has_begun = bool(line.strip())
            self._is_document = line.lstrip().startswith(b"{")
        if self._is_document:
            self._data.append(line)
            return ()
        if not line:
            return self._dispatch()
        key, _, value = line.partition(b":")
        if key == b"data":
            self._data.append(value.removeprefix(b" "))
        elif not _KEY.fullmatch(key) or (key == b"event" and not _NAME.fullmatch(value)):
            self._garbage = line
        elif key == b"event":
            self._name = value.strip().decode()
        return ()

    def _dispatch(self) -> Sequence[StreamEvent]:
        name = self._name
        data = self._data
        self._name = ""
        self._data = []
        if not any(data):
            return ()
        if self._garbage:  # perhaps it replaced an event
            garbage = clip(repr(self._garbage[:40]), 60)
            raise BrokenStreamError(f"the stream holds {garbage}, which is no line of an event stream")
        try:
            return [StreamEvent(name, _decode(b"\n".join(data)))]
        except BrokenStreamError:
            if len(data) == 1 or self._is_document:
                raise
            return [StreamEvent(name, _decode(line)) for line in data]  # no empty lines between the events


def _decode(data: bytes) -> Any:
    try:
        text = data.decode()
        if text.startswith(DONE):
            return DONE
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BrokenStreamError(f"the stream is no valid JSON ({clip(str(error), 80)})") from error
