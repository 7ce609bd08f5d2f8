"""Conversations that a server shortens: what it gets, what it gives, and in which form it gets that back."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from goose_like.config.profile import ModelChoice
from goose_like.core.errors import ProviderError
from goose_like.core.events import Compacted, StateSaved
from goose_like.core.history import PROMPT_STATE_KEY, History
from goose_like.core.message import Message, ToolSpec, Verbatim
from goose_like.providers.anthropic import AnthropicProvider
from goose_like.providers.base import Request, ServerCompaction
from goose_like.providers.openai import OpenAIProvider
from tests.loopback import Loopback, Response, refusal
from tests.providers.vendors import set_keys_only
from tests.responses_events import build_usage
from tests.sdk_types import check_body, check_compact_body

LOOK = ToolSpec("look", "Look.", {"type": "object", "properties": {}})
SAID = (Message.user("make it"), Message.assistant("made"))
PACKED = {"type": "compaction", "id": "cmp_1", "encrypted_content": "PACKED"}
KEPT = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "make it"}]}
BLOCK = {"type": "compaction", "content": "It was made.", "signature": "SIGNED", "tool_changes": []}
ANTHROPIC_USAGE = {"input_tokens": 9, "output_tokens": 3}


class OwnAnthropic(AnthropicProvider):
    """A provider for which the loopback server is Anthropic's own."""

    host = "127.0.0.1"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    set_keys_only(monkeypatch)


def give(answer: Any) -> Response:
    return Response(200, {}, [json.dumps(answer).encode()])


def open_openai(server: Loopback, model: str = "gpt-6-sol") -> OpenAIProvider:
    return OpenAIProvider(ModelChoice(model=f"openai:{model}", base_url=server.base_url, wire="responses"))


def open_anthropic(server: Loopback) -> AnthropicProvider:
    return OwnAnthropic(ModelChoice(model="anthropic:claude-opus-5-5", base_url=server.base_url))


def ask(messages: Sequence[Message], model: str) -> Request:
    return Request(model, "be good", messages, (LOOK,), session="s1")


def shorten(found: ServerCompaction) -> list[Message]:
    """Return what a model gets after a conversation was shortened, with one more message."""
    history = History()
    history.messages += SAID
    history.apply(Compacted(summary="Notes.", kept_count=0, verbatim=found.verbatim))
    return [*history.context.messages, Message.user("more")]


async def test_openai_gets_its_own_items_back() -> None:
    answer = {"object": "response.compaction", "output": [KEPT, PACKED], "usage": build_usage()}
    async with Loopback([give(answer)]) as server:
        provider = open_openai(server)
        assert provider.can_compact("gpt-6-sol")
        found = await provider.compact(ask(SAID, "gpt-6-sol"))
        next_body = json.loads(provider._encode_body(ask(shorten(found), "gpt-6-sol")))
        await provider.close()
        (asked,) = server.requests
    assert asked.path.endswith("/responses/compact")
    check_compact_body(asked.json)
    assert [item["role"] for item in asked.json["input"]] == ["developer", "user", "assistant"]
    assert (found.summary, found.usage.input_tokens) == ("", 10)
    check_body("/v1/responses", next_body)
    assert next_body["input"][1:3] == [KEPT, PACKED]


async def test_anthropic_gets_its_block_first() -> None:
    answer = {"content": [BLOCK], "stop_reason": "compaction", "usage": ANTHROPIC_USAGE}
    async with Loopback([give(answer)]) as server:
        provider = open_anthropic(server)
        assert provider.can_compact("claude-opus-5-5")
        assert "anthropic-beta" not in provider._build_headers()
        found = await provider.compact(ask(SAID, "claude-opus-5-5"))
        await provider.close()
        (asked,) = server.requests
        later = open_anthropic(server)
        next_body = json.loads(later._encode_body(ask(shorten(found), "claude-opus-5-5")))
    check_body("/v1/messages", asked.json, is_beta=True)
    assert asked.json["compaction"] == {"type": "summarize"}
    assert "stream" not in asked.json
    assert b"anthropic-beta: compact-2026-09-04" in asked.head
    assert later._build_headers()["anthropic-beta"] == "compact-2026-09-04"
    assert (found.summary, found.usage.input_tokens) == ("It was made.", 9)
    check_body("/v1/messages", next_body, is_beta=True)
    first, second = next_body["messages"]
    assert first["role"] == "assistant"
    assert first["content"][0].items() >= BLOCK.items()
    assert second["role"] == "user"


async def test_another_server_gets_the_summary() -> None:
    answer = {"content": [BLOCK], "usage": ANTHROPIC_USAGE}
    async with Loopback([give(answer)]) as server:
        provider = open_anthropic(server)
        found = await provider.compact(ask(SAID, "claude-opus-5-5"))
        await provider.close()
        body = json.loads(open_openai(server)._encode_body(ask(shorten(found), "gpt-6-sol")))
    assert body["input"][1] == {"role": "user", "content": "Notes."}


@pytest.mark.parametrize(
    "answer",
    [{"content": [{**BLOCK, "content": None}]}, {"content": []}, {"content": "x"}, ["x"]],
)
async def test_an_answer_without_a_summary_is_an_error(answer: Any) -> None:
    async with Loopback([give(answer)]) as server:
        provider = open_anthropic(server)
        with pytest.raises(ProviderError):
            await provider.compact(ask(SAID, "claude-opus-5-5"))
        await provider.close()


async def test_servers_of_others_and_older_models_do_not_shorten() -> None:
    async with Loopback([refusal(404, "x")]) as server:
        other = AnthropicProvider(ModelChoice(model="anthropic:claude-opus-5-5", base_url=server.base_url))
        assert not other.can_compact("claude-opus-5-5")
        assert not open_anthropic(server).can_compact("claude-opus-4-5")
        assert not open_openai(server, "gpt-4.1").can_compact("gpt-4.1")
        chat = OpenAIProvider(ModelChoice(model="openai:gpt-6-sol", base_url=server.base_url))
        assert not chat.can_compact("gpt-6-sol")


def test_a_refused_summary_of_a_server_is_left_out() -> None:
    """Leave out such a summary like refused thinking: the session must not be blocked for good."""
    history = History()
    history.messages += SAID
    verbatim = Verbatim(wire="responses", origin="x", items=(PACKED,))
    history.apply(Compacted(summary="Notes.", kept_count=0, verbatim=verbatim))
    for _ in range(2):
        history.apply(StateSaved(toolkit=PROMPT_STATE_KEY, value="p"))
    assert history.context.messages == [Message.user("Notes.")]
