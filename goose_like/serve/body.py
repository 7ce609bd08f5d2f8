"""The JSON object in the body of a request."""

import json
from typing import Any

from pydantic_core import from_json


def parse_object(body: bytes) -> dict[str, Any]:
    """Parse a JSON object. Lone surrogates, which JavaScript strings may contain and UTF-8 may not, are replaced.

    Raises:
        ValueError: the body is something else.
    """
    try:
        if b"\\ud" in body.lower():
            text = json.dumps(json.loads(body), ensure_ascii=False)
            body = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
        data = from_json(body)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"invalid JSON: {error}") from None
    if not isinstance(data, dict):
        raise ValueError("expected a JSON object")
    return data
