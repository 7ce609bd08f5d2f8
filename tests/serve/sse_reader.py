"""A reader of server-sent events that follows the standard (WHATWG HTML, 9.2.6)."""

import json
import re
from typing import Any


def read_events(stream: bytes) -> list[tuple[str, Any]]:
    """Read the events and their JSON data; like the standard, ignore an incomplete last event."""
    found, name, data = [], "", []
    *lines, _ = re.split("\r\n|\n|\r", stream.decode("utf-8").removeprefix("\ufeff"))
    for line in lines:
        if not line:
            if data:
                found.append((name, json.loads("\n".join(data), parse_constant=_refuse)))
            name, data = "", []
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            name = value
        elif field == "data":
            data.append(value)
    return found


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")
