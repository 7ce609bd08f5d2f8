"""The stream parser of OpenAI's chat completions."""

from functools import partial
from pathlib import Path
from typing import Any

from goose_like.providers.openai_wire import OpenAIEncoder, OpenAIStreamParser
from tests.fuzz.source import Source
from tests.fuzz.streams import TEXTS, check_stream, create_stream
from tests.loopback import called, chunk, events, usage

CALLS = (
    *called(("1", "shell", '{"command":'), ("2", "read_file", "{}"))[:2],
    chunk({"tool_calls": [{"index": 0, "function": {"arguments": '"ls"}'}}]}),
    chunk({"tool_calls": [{"id": "3", "function": {"name": "shell", "arguments": {"command": "ls"}}}]}),
    chunk({"function_call": {"name": "shell", "arguments": "{}"}}),
)
OTHERS = (
    *(
        chunk({"role": "assistant", "content": ""}),
        usage(),
        {"error": {"message": "boom", "code": 500}},
        {"choices": []},
    ),
    {"choices": [{"message": {"role": "assistant", "content": "whole"}, "finish_reason": "stop"}]},
    chunk({"content": [{"type": "text", "text": "part"}]}),
)


class FuzzTarget:
    """Answers of chat completions, whole and damaged."""

    def __init__(self, folder: Path) -> None:
        self._check = partial(check_stream, OpenAIStreamParser, lambda request: OpenAIEncoder().encode_request(request))

    def create(self, source: Source) -> Any:
        key = source.choice(("content", "content", "reasoning_content", "reasoning", "refusal"))
        said = [chunk({key if source.happens(0.3) else "content": text}) for text in source.some(TEXTS, 4)]
        entries = [*source.some(OTHERS, 1), *said, *source.some(CALLS, 3)]
        if source.happens(0.8):
            entries.append(
                chunk(finish=source.choice(("stop", "stop", "tool_calls", "length", "content_filter", "error")))
            )
        line_end = source.choice(("\n", "\n", "\r\n", "\r"))
        encode = partial(events, end=line_end, is_done=source.happens(0.5))
        return create_stream(source, entries, encode)

    def check(self, value: Any) -> None:
        self._check(value)
