"""What we send along with a call for ourselves: small, and worthless to anyone who changes it."""

import base64
import hashlib
import hmac
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from pydantic import JsonValue

_THINKING = ("thinking", "redacted_thinking")
_OUTPUTS_CHARACTERS = (4_000, 500)
_MAC_BYTES = 32


@dataclass(frozen=True, slots=True)
class Seal:
    """Signs with `key`, which every process of a service must know. A sealed text has at most `limit_bytes`."""

    key: bytes = field(repr=False)
    limit_bytes: int = 48_000

    def close(self, value: JsonValue, about: str) -> str:
        """The value as text that only `open` with the same `about` reads.

        One that is too long goes without thinking, then with the beginnings of what tools gave; an empty text stands
        for one that is too long even so.
        """
        for lighter in _ever_lighter(value):
            data = zlib.compress(json.dumps(lighter, separators=(",", ":")).encode())
            text = base64.urlsafe_b64encode(self._mac(data, about) + data).decode()
            if len(text) <= self.limit_bytes:
                return text
        return ""

    def open(self, text: object, about: str) -> JsonValue:
        """The value, or None where the text is cut, forged, another one's or about something else."""
        if not isinstance(text, str) or not text.isascii() or len(text) > self.limit_bytes:
            return None
        try:
            sealed = base64.b64decode(text, altchars=b"-_", validate=True)
        except ValueError:
            return None
        mac, data = sealed[:_MAC_BYTES], sealed[_MAC_BYTES:]
        if not hmac.compare_digest(mac, self._mac(data, about)):
            return None
        value: JsonValue = json.loads(zlib.decompress(data))
        return value

    def _mac(self, data: bytes, about: str) -> bytes:
        # The digest has one length, so no other pair of texts is signed by the same bytes.
        return hmac.digest(self.key, hashlib.sha256(about.encode()).digest() + data, "sha256")


def _ever_lighter(value: JsonValue) -> Iterator[JsonValue]:
    yield value
    yield _without_thinking(value)
    for characters in _OUTPUTS_CHARACTERS:
        yield _with_short_outputs(_without_thinking(value), characters)


def _without_thinking(value: JsonValue) -> JsonValue:
    match value:
        case list():
            kept = (one for one in value if not (isinstance(one, dict) and one.get("type") in _THINKING))
            return [_without_thinking(one) for one in kept]
        case dict():
            return {key: _without_thinking(one) for key, one in value.items()}
    return value


def _with_short_outputs(value: JsonValue, characters: int) -> JsonValue:
    match value:
        case list():
            return [_with_short_outputs(one, characters) for one in value]
        case dict():
            output = value.get("output")
            if isinstance(output, str) and len(output) > characters:
                note = f"\n[{len(output) - characters:,} more characters were left out since]"
                return {**value, "output": output[:characters] + note}
            return {key: _with_short_outputs(one, characters) for key, one in value.items()}
    return value
