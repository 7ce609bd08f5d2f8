"""Deferred tools in the requests of each provider, and servers that refuse them."""

import json
from typing import Any

import pytest

from goose_like.config.profile import ModelChoice
from goose_like.core.message import Message, Text, ToolSpec, Verbatim
from goose_like.providers.anthropic import AnthropicProvider
from goose_like.providers.base import Provider, Request
from goose_like.providers.openai import OpenAIProvider
from tests.loopback import Loopback, answer, refusal, words
from tests.providers.test_server_compaction import OwnAnthropic
from tests.providers.vendor_rules import valid_for_anthropic
from tests.providers.vendors import set_keys_only

SCHEMA = {"type": "object", "properties": {}}
LOOK = ToolSpec("look", "Look.", SCHEMA)
FIND = ToolSpec("find_tools", "Find.", SCHEMA, native="tool_search")
CALL = ToolSpec("call_tool", "Call.", SCHEMA, native="tool_search")
FAR = ToolSpec("far", "Far.", SCHEMA, deferred_group="things")
LATER = ToolSpec("later", "Later.", SCHEMA, deferred_group="things")
SEARCH = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
BLOCKS: tuple[Any, ...] = (
    {"type": "server_tool_use", "id": "s1", "name": "tool_search_tool_bm25", "input": {"query": "far"}},
    {
        "type": "tool_search_tool_result",
        "tool_use_id": "s1",
        "content": {
            "type": "tool_search_tool_search_result",
            "tool_references": [{"type": "tool_reference", "tool_name": "far"}],
        },
    },
    {"type": "text", "text": "found"},
)


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    set_keys_only(monkeypatch)


def make_request(model: str, *messages: Message, **keys: Any) -> Request:
    return Request(model, "be good", (Message.user("go"), *messages), (LOOK, FIND, CALL), deferred_tools=(FAR,), **keys)


async def ask(provider: Provider, request: Request) -> None:
    async for _ in provider.stream(request):
        pass


def test_requests_tell_deferred_tools_apart() -> None:
    request = make_request("m", added_tools=[LATER, ToolSpec("more", "More.", SCHEMA)])
    assert [tool.name for tool in request.all_tools] == ["look", "find_tools", "call_tool", "more"]
    assert [tool.name for tool in request.all_deferred_tools] == ["far", "later"]


@pytest.mark.parametrize(
    ("model", "can_search"),
    [("claude-opus-5-5", True), ("claude-haiku-5-5", True), ("claude-opus-4-5", True), ("claude-opus-4-1", False)],
)
def test_models_of_anthropic(model: str, can_search: bool) -> None:
    own = AnthropicProvider(ModelChoice(model=f"anthropic:{model}"))
    other = AnthropicProvider(ModelChoice(model=f"anthropic:{model}", base_url="http://127.0.0.1:1"))
    assert (own.can_search_tools(model), other.can_search_tools(model)) == (can_search, False)


async def test_a_server_that_refuses_the_search_gets_our_own() -> None:
    said = Message(
        role="assistant",
        parts=(Text(text="found"),),
        verbatim=Verbatim(wire="messages", origin="127.0.0.1", items=BLOCKS),
    )
    request = make_request("claude-opus-5-5", said, Message.user("go on"), added_tools=[LATER])
    refused = refusal(400, "tools.0: tool_search_tool_bm25_20251119 is not supported for this model")
    async with Loopback([refused, answer(words(0, "done"))]) as server:
        provider = OwnAnthropic(ModelChoice(model="anthropic:claude-opus-5-5", base_url=server.base_url))
        await ask(provider, request)
        await provider.close()
        first, second = [asked.json for asked in server.requests]
        assert not provider.can_search_tools("claude-opus-5-5")
    assert first["tools"][1] == SEARCH
    assert [(tool["name"], tool.get("defer_loading")) for tool in first["tools"][2:]] == [
        ("far", True),
        ("later", True),
    ]
    assert first["messages"][1]["content"] == list(BLOCKS)
    assert valid_for_anthropic(first)
    assert [tool["name"] for tool in second["tools"]] == ["look", "find_tools", "call_tool"]
    assert second["messages"][1]["content"] == [{"type": "text", "text": "found"}]


def test_without_a_system_prompt_the_mark_is_before_the_deferred_tools() -> None:
    provider = OwnAnthropic(ModelChoice(model="anthropic:claude-opus-5-5", base_url="http://127.0.0.1:1"))
    request = Request("claude-opus-5-5", "", (Message.user("go"),), (LOOK,), deferred_tools=(FAR,))
    body = json.loads(provider._encode_body(request))
    assert ["cache_control" in tool for tool in body["tools"]] == [False, True, False]
    assert valid_for_anthropic(body)


def test_chat_completions_do_not_get_deferred_tools() -> None:
    provider = OpenAIProvider(ModelChoice(model="openai:gpt-6-sol", base_url="http://127.0.0.1:1", wire="chat"))
    body = json.loads(provider._encode_body(make_request("gpt-6-sol")))
    assert [tool["function"]["name"] for tool in body["tools"]] == ["look", "find_tools", "call_tool"]
