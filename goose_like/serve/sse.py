"""Server-sent events as bytes, such that the protocol's own naive parsers read them as well."""

import json
import math
from typing import Any

Frame = tuple[str, dict[str, Any]]
"""An event's name and its data."""

_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_BEGINNING = b"event: copilot"
_COMMENT = b":\n\n"

# The same JSON in other letters. The test clients of both eras cut lines at `data:` wherever it stands, and take a
# stream that has the name of the call's event anywhere for a call; others end lines where Unicode does.
_DISGUISES = (
    ("data:", r"data\u003a"),
    ("event:", r"event\u003a"),
    ("copilotFunctionCall", r"copilot\u0046unctionCall"),
    ("\x85", r"\u0085"),
    ("\u2028", r"\u2028"),
    ("\u2029", r"\u2029"),
)


def framed(frame: Frame) -> bytes:
    """The event on two lines: its name, and its data as JSON that has neither nulls nor NaN."""
    name, data = frame
    text = _JSON.encode(_without_nulls(data))
    for suspect, disguise in _DISGUISES:
        text = text.replace(suspect, disguise)
    event = f"event: {name}\ndata: {text}\n\n"
    try:
        return event.encode()
    except UnicodeEncodeError:  # halves of surrogate pairs; those that are neighbours are joined
        return event.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def _without_nulls(value: Any) -> Any:
    """The value without what is null in it: upstream leaves nulls out, and its test client can't read them."""
    if isinstance(value, dict):
        return {key: _without_nulls(entry) for key, entry in value.items() if not _is_null(entry)}
    if isinstance(value, list | tuple):
        return [_without_nulls(entry) for entry in value if not _is_null(entry)]
    return value


def _is_null(value: Any) -> bool:
    return value is None or (isinstance(value, float) and not math.isfinite(value))


class Wire:
    """One stream's bytes: its frames, and what keeps it open while there are none.

    A comment keeps a stream open, but not as its first line, which the naive parsers can't read. Until there is a
    frame, the stream is kept open by the letters that all of them begin with, one at a time.
    """

    def __init__(self) -> None:
        self._ahead = 0
        self._is_begun = False

    def frame(self, frame: Frame) -> bytes:
        """The frame, without those of its bytes that went ahead."""
        ahead, self._ahead, self._is_begun = self._ahead, 0, True
        return framed(frame)[ahead:]

    def tick(self) -> bytes:
        """A sign of life; empty when all that could go ahead has gone."""
        if self._is_begun:
            return _COMMENT
        letter = _BEGINNING[self._ahead : self._ahead + 1]
        self._ahead += len(letter)
        return letter
