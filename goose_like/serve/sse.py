"""Server-sent events: their bytes, the signs of life between them, and the HTTP response that carries them."""

import contextlib
import json
import logging
import math
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any

from sse_starlette import EventSourceResponse
from sse_starlette.sse import SendTimeoutError
from starlette.types import Receive, Scope, Send
from typing_extensions import override

Frame = tuple[str, dict[str, Any]]
"""An event: its name and its data."""

_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_COMMENT = b":\n\n"

# Some clients cut lines at these field names wherever they stand, and end lines at these Unicode line breaks.
_ESCAPED = ("data:", "event:", "\x85", "\u2028", "\u2029")


def encode_frame(frame: Frame, escaped: Sequence[str] = ()) -> bytes:
    """Encode an event as two lines: its name, and its data as JSON without nulls and NaN.

    The JSON contains no word of `escaped`: the last letter of each is written as a Unicode escape.
    """
    name, data = frame
    text = _JSON.encode(_remove_nulls(data))
    for word in (*_ESCAPED, *escaped):
        text = text.replace(word, f"{word[:-1]}\\u{ord(word[-1]):04x}")
    event = f"event: {name}\ndata: {text}\n\n"
    try:
        return event.encode()
    except UnicodeEncodeError:  # lone surrogates; a pair that was split is joined again
        return event.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def _remove_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _remove_nulls(entry) for key, entry in value.items() if not _is_null(entry)}
    if isinstance(value, list | tuple):
        return [_remove_nulls(entry) for entry in value if not _is_null(entry)]
    return value


def _is_null(value: Any) -> bool:
    return value is None or (isinstance(value, float) and not math.isfinite(value))


class StreamEncoder:
    """An encoder for one stream that also keeps its connection open while there are no events.

    A comment keeps a connection open, but some clients fail if a comment is the first line. Before the first event,
    the encoder therefore sends single bytes of `prefix`, the bytes that every event of the stream starts with.
    """

    def __init__(self, prefix: bytes, escaped: Sequence[str] = ()) -> None:
        self._prefix = prefix
        self._escaped = escaped
        self._sent_ahead = 0
        self._has_begun = False

    def encode(self, frames: Iterable[Frame]) -> bytes:
        """Encode events, without the bytes that were already sent to keep the connection open."""
        return b"".join(map(self._encode_one, frames))

    def _encode_one(self, frame: Frame) -> bytes:
        start, self._sent_ahead, self._has_begun = self._sent_ahead, 0, True
        return encode_frame(frame, self._escaped)[start:]

    def keep_alive(self) -> bytes:
        """Return bytes that keep the connection open, or none if all of the prefix has been sent."""
        if self._has_begun:
            return _COMMENT
        byte = self._prefix[self._sent_ahead : self._sent_ahead + 1]
        self._sent_ahead += len(byte)
        return byte


class EventStream(EventSourceResponse):
    """A response that streams events and closes `resources` when the stream ends for any reason."""

    def __init__(self, content: AsyncIterator[bytes], resources: contextlib.ExitStack, send_timeout_s: float) -> None:
        super().__init__(content, sep="\n", ping=0, send_timeout=send_timeout_s)
        self._resources = resources

    @override
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        except SendTimeoutError:
            logging.getLogger(__name__).warning("closed a stream: the client stopped reading")
        finally:
            self._resources.close()
