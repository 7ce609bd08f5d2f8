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
from tests.responses_events import build_response, call, encode, number, speak

KEY = "sk-secret-1234567890"
QUICK_RETRIES = RetryPolicy(max_attempts=3, first_wait_s=0.001, max_wait_s=0.01)
REQUEST = Request("m1", "be good", [Message.user("hi")], [ToolSpec("shell", "Runs.", {"type": "object"})])


@dataclass(frozen=True)
class Vendor:
    """A provider and the events of its server. `said` and `called` build the events between the first and the last."""

    name: str
    wire: str
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

    def number(self, entries: Sequence[Any]) -> list[Any]:
        """Number the events of a wire that numbers them."""
        return number(entries) if self.wire == "responses" else list(entries)

    def stream(self, *entries: Any) -> bytes:
        """Encode the first events and these."""
        return self.encode(self.number([*self.first, *entries]))

    def whole(self, *pieces: str) -> bytes:
        """Encode an answer from its first event to its last."""
        return self.stream(*self.said(*pieces), *self.last(self.stop)) + self.done

    def answer(self, text: str) -> Response:
        return raw(self.whole(text))

    def choice(self, base_url: str, **choice: Any) -> ModelChoice:
        wire = "responses" if self.wire == "responses" else None
        return ModelChoice(model=f"{self.name}:m1", base_url=base_url, wire=wire, **choice)

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
    wire="chat",
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


def _end_response(stop: Any) -> list[Any]:
    status, _, reason = str(stop).partition(":")
    details = {"reason": reason} if reason else None
    # The items came before; the last event repeats them only in part.
    return [{"type": f"response.{status}", "response": build_response([], status, incomplete_details=details)}]


def _begin_response() -> dict[str, Any]:
    return {"type": "response.created", "response": build_response([], "in_progress", usage=None)}


RESPONSES = Vendor(
    name="openai",
    wire="responses",
    provider=OpenAIProvider,
    path="/v1/responses",
    first=(_begin_response(),),
    said=partial(speak, 0, "msg_1"),
    called=partial(call, 0, "fc_1", "1", "shell", status="incomplete"),
    last=_end_response,
    encode=encode,
    done=b"",
    stop="completed",
    cut="incomplete:max_output_tokens",
    unfinished="`response.completed`",
)

ANTHROPIC = Vendor(
    name="anthropic",
    wire="messages",
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


VENDORS = {vendor.wire: vendor for vendor in (OPENAI, RESPONSES, ANTHROPIC)}
"""All vendors by their wire."""


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
