"""JSON of other programs, whose strings may hold what UTF-8 cannot encode."""

import json

from .message import replace_surrogates


def repair_json(data: bytes) -> bytes:
    """Return JSON without surrogate halves, which JavaScript writes when it cuts a string within a character.

    Raises:
        ValueError: the data is no JSON.
        RecursionError: it is nested too deeply.
    """
    if b"\\ud" not in data and b"\\uD" not in data:
        return data
    text = json.dumps(json.loads(data), ensure_ascii=False)
    return replace_surrogates(text).encode()
