"""The check of both stream parsers: any bytes of a server, in any pieces."""

import json
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from goose_like.core.errors import BrokenStreamError, ProviderError
from goose_like.core.events import MessageCompleted, TextDelta
from goose_like.core.tool import ToolSpec
from goose_like.providers.base import Request, StreamParser
from goose_like.providers.event_stream import EventDecoder
from goose_like.providers.text_markup import TaggedCallParser
from goose_like.sessions.jsonl import format_line, parse_line
from tests.fuzz.source import Source

AT = datetime(2026, 1, 1, tzinfo=UTC)
TOOLS = (ToolSpec("shell", "Runs.", {"type": "object", "properties": {"command": {"type": "string"}}}),)
TEXTS = (
    "hello", "", " ", "grüße 😀", "\ud83d", "\ude00", "<think>", "</think>", "<thinking>hm</thinking>\n", "<", "<th",
    "\n", "<tool_call>", '{"name":"shell","arguments":{"command":"ls"}}', "</tool_call>",
    "\n<tool_call>\n<function=shell>\n", "<parameter=command>\nls\n</parameter>\n</function>\n</tool_call>", "```\n",
    '{"a":', "1}", "data: x\n\n", "\r", "\0",
)  # fmt: skip
KEYS = (
    "index", "id", "type", "name", "function", "arguments", "delta", "content", "text", "thinking", "reasoning",
    "error", "usage", "message", "finish_reason", "stop_reason", "choices", "content_block", "input", "partial_json",
    "tool_calls",
)  # fmt: skip
PIECES = (
    b"\n", b"\r", b"\r\n", b"\n\n", b"data: ", b"data:", b"event: x\n", b": ping\n\n", b"id: 7\n",
    b"data: [DONE]\n\n", b"{", b'"', b"}", b"]", b"\0", b"\xff", b"\xef\xbb\xbf", b"\xf0\x9f", b"\\ud83d", b"null",
    b"9" * 400, b"\x0b", b"\xc2\x85",
)  # fmt: skip

Result = tuple[str, str, object]
"""The shown text, the shown thinking, and the message or the error."""


def create_stream(source: Source, events: Sequence[Any], encode: Callable[[Sequence[Any]], bytes]) -> Any:
    """Create the bytes of an answer, in pieces; whether text may hold calls; whether all is intact."""
    events, is_whole = list(events), source.happens(0.3)
    for _ in range(source.below(3) if events and not is_whole else 0):
        at = source.below(len(events))
        match source.below(6):
            case 0:
                del events[at]
                if not events:
                    break
            case 1:
                events.insert(at, events[source.below(len(events))])
            case _:
                events[at] = source.graft(events[at], KEYS)
    if source.long_size and events:
        at = source.below(len(events))
        events[at:at] = [events[at]] * (source.long_size // (len(repr(events[at])) + 20))
    data = encode(events)
    if not is_whole and source.happens(0.3):
        data = source.mutate(data, PIECES)
    pieces = [data[at : at + 1] for at in range(len(data))] if source.happens(0.2) else source.split(data)
    return pieces, source.happens(0.3), is_whole


def check_stream(
    create_parser: Callable[[], StreamParser], encode_request: Callable[[Request], bytes], value: Any
) -> None:
    """Check that an answer is read alike in one piece and in some, and that its message can be saved and sent."""
    pieces, has_tags, is_whole = value

    def create() -> StreamParser:
        return TaggedCallParser.create(create_parser(), TOOLS) if has_tags else create_parser()

    whole = b"".join(pieces)
    result = read(create(), [whole])
    assert read(create(), pieces) == result
    shown, _, done = result
    if not isinstance(done, MessageCompleted):
        return
    if is_whole and not has_tags and "</think" not in shown + done.message.text:
        assert done.message.text.startswith(shown), (shown, done)
    line = format_line(done, AT)
    assert parse_line(line[:-1]) == done
    json.loads(encode_request(Request("m", "s", [done.message])))


def read(parser: StreamParser, pieces: Iterable[bytes]) -> Result:
    """Read an answer as a provider does. A documented error is a result too."""
    decoder, shown = EventDecoder(), {True: "", False: ""}
    try:
        try:
            for piece in [*pieces, None]:
                for event in decoder.finish() if piece is None else decoder.feed(piece):
                    for delta in parser.feed(event.value):
                        shown[isinstance(delta, TextDelta)] += delta.text  # type: ignore[union-attr]
        except BrokenStreamError:
            if not parser.has_ended:
                raise
        return shown[True], shown[False], parser.build_message()
    except ProviderError as error:
        return shown[True], shown[False], (type(error), str(error))
