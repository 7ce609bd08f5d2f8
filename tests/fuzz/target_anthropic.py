"""The stream parser of Anthropic's messages."""

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from goose_like.providers.anthropic_wire import AnthropicEncoder, AnthropicStreamParser
from tests.fuzz.source import Source
from tests.fuzz.streams import TEXTS, check_stream, create_stream
from tests.loopback import block, ended, started, thought, wish, words

WHOLE = {"type": "message", "content": [{"type": "text", "text": "whole"}], "stop_reason": "end_turn"}
OTHERS = ({"type": "ping"}, started(), {"type": "error", "error": {"type": "api_error", "message": "boom"}}, WHOLE)


class FuzzTarget:
    """Answers of the messages API, whole and damaged."""

    def __init__(self, folder: Path) -> None:
        encode = lambda request: AnthropicEncoder().encode_request(request)  # noqa: E731
        self._check = partial(check_stream, AnthropicStreamParser, encode)

    def create(self, source: Source) -> Any:
        entries: list[Any] = [started(), *source.some(OTHERS, 1)]
        for index in range(source.below(4)):
            match source.below(5):
                case 0:
                    entries += thought(index, "hm", "SIG")
                case 1:
                    entries += wish(index, str(index), "shell", '{"command":', '"ls"}')
                case 2:
                    entries += block(index, {"type": "redacted_thinking", "data": "x"})
                case _:
                    entries += words(index, *source.some(TEXTS, 4))
        if source.happens(0.8):
            entries += ended(
                source.choice(("end_turn", "end_turn", "tool_use", "max_tokens", "refusal", "pause_turn", "bored"))
            )
        line_end = source.choice(("\n", "\n", "\r\n", "\r"))
        return create_stream(source, entries, partial(encode_events, line_end=line_end))

    def check(self, value: Any) -> None:
        self._check(value)


def encode_events(entries: Sequence[Any], line_end: str) -> bytes:
    """Encode events, also those that are no objects."""
    lines = []
    for entry in entries:
        name = (
            f"event: {entry['type']}{line_end}"
            if isinstance(entry, dict) and isinstance(entry.get("type"), str)
            else ""
        )
        lines.append(f"{name}data: {json.dumps(entry, ensure_ascii=False)}{line_end}{line_end}")
    return "".join(lines).encode("utf-8", "surrogatepass")
