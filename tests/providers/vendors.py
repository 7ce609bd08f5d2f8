"""Both vendors side by side, for tests that check the same for both: each provider and its wire format."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from goose_like.config.profile import ModelChoice
from goose_like.core.events import MessageCompleted
from goose_like.core.message import Message
from goose_like.core.tool import ToolSpec
from goose_like.providers.anthropic import AnthropicProvider
from goose_like.providers.base import Delta, Request
from goose_like.providers.openai import OpenAIProvider
from goose_like.providers.retry import RetryPolicy, stream_with_retries
from tests.loopback import Response, block, chunk, ended, events, named, raw, started, usage, words

KEY = "sk-secret-1234567890"
QUICK_RETRIES = RetryPolicy(max_attempts=3, first_wait_s=0.001, max_wait_s=0.01)
REQUEST = Request("m1", "be good", [Message.user("hi")], [ToolSpec("shell", "Runs.", {"type": "object"})])


@dataclass(frozen=True)
class Vendor:
    """A provider and the events of its server. `said` and `called` build the events between the first and the last."""

    name: str
    provider: type[OpenAIProvider] | type[AnthropicProvider]
    path: str
    first: Sequence[Any]
    said: Callable[..., list[Any]]
    called: Callable[[str], list[Any]]
    last: Callable[[Any], list[Any]]
    encode: Callable[[Sequence[Any]], bytes]
    done: bytes
    stop: str
    cut: str
    unfinished: str

    @property
    def key_variable(self) -> str:
        return f"{self.name.upper()}_API_KEY"

    @property
    def url_variable(self) -> str:
        return f"{self.name.upper()}_BASE_URL"

    @property
    def half(self) -> bytes:
        """An answer that breaks off inside an event."""
        return self.stream(*self.said("hel", "lo"))[:-30]

    def stream(self, *entries: Any) -> bytes:
        """Encode the first events and these."""
        return self.encode([*self.first, *entries])

    def whole(self, *pieces: str) -> bytes:
        """Encode an answer from its first event to its last."""
        return self.stream(*self.said(*pieces), *self.last(self.stop)) + self.done

    def answer(self, text: str) -> Response:
        return raw(self.whole(text))

    def choice(self, base_url: str, **choice: Any) -> ModelChoice:
        return ModelChoice(model=f"{self.name}:m1", base_url=base_url, **choice)

    async def ask(self, base_url: str, request: Request = REQUEST, **choice: Any) -> list[Delta]:
        """Return all deltas of the provider, with quick retries."""
        provider = self.provider(self.choice(base_url, **choice))
        try:
            return [delta async for delta in stream_with_retries(provider, request, QUICK_RETRIES)]
        finally:
            await provider.close()


def _chunks(*pieces: str) -> list[Any]:
    return [chunk({"content": piece}) for piece in pieces]


def _openai_call(arguments: str) -> list[Any]:
    function = {"name": "shell", "arguments": arguments}
    return [chunk({"tool_calls": [{"index": 0, "id": "1", "function": function}]})]


def _anthropic_call(arguments: str) -> list[Any]:
    piece = {"type": "input_json_delta", "partial_json": arguments}
    return block(0, {"type": "tool_use", "id": "1", "name": "shell", "input": {}}, piece)


OPENAI = Vendor(
    name="openai",
    provider=OpenAIProvider,
    path="/v1/chat/completions",
    first=(),
    said=_chunks,
    called=_openai_call,
    last=lambda stop: [chunk(finish=stop), usage()],
    encode=partial(events, is_done=False),
    done=b"data: [DONE]\n\n",
    stop="stop",
    cut="length",
    unfinished="finish reason",
)

ANTHROPIC = Vendor(
    name="anthropic",
    provider=AnthropicProvider,
    path="/v1/messages",
    first=(started(),),
    said=partial(words, 0),
    called=_anthropic_call,
    last=ended,
    encode=named,
    done=b"",
    stop="end_turn",
    cut="max_tokens",
    unfinished="stop reason",
)


def get_text(deltas: Sequence[Delta]) -> str:
    """Return the text of the final message."""
    done = deltas[-1]
    assert isinstance(done, MessageCompleted)
    return done.message.text


def set_keys_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set both keys, and remove addresses and proxies from the environment."""
    proxies = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
    for name in (OPENAI.url_variable, ANTHROPIC.url_variable, "AWS_REGION", "CLOUD_ML_REGION", *proxies):
        monkeypatch.delenv(name, raising=False)
    for vendor in (OPENAI, ANTHROPIC):
        monkeypatch.setenv(vendor.key_variable, KEY)
