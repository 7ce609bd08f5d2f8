"""Deferred tools in the requests of each provider, and servers that refuse them."""

import json
from typing import Any

import pytest

from goose_like.config.profile import ModelChoice
from goose_like.core.message import Message, Text, ToolCall, ToolResult, ToolSpec, Verbatim
from goose_like.providers.anthropic import AnthropicProvider
from goose_like.providers.base import Provider, Request
from goose_like.providers.openai import OpenAIProvider
from goose_like.providers.responses_tools import build_namespaces
from tests.loopback import Loopback, answer, refusal, words
from tests.providers.test_server_compaction import OwnAnthropic
from tests.providers.vendor_rules import valid_for_anthropic
from tests.providers.vendors import set_keys_only
from tests.responses_events import respond, speak

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
    assert not provider.can_search_tools("gpt-6-sol")


# --- Responses


def open_responses(base_url: str = "http://127.0.0.1:1") -> OpenAIProvider:
    return OpenAIProvider(ModelChoice(model="openai:gpt-6-sol", base_url=base_url, wire="responses"))


@pytest.mark.parametrize(
    ("model", "can_search"), [("gpt-5.3", False), ("gpt-5.4", True), ("gpt-6-sol", True), ("gpt-6.2-sol", True)]
)
def test_models_of_openai(model: str, can_search: bool) -> None:
    assert open_responses().can_search_tools(model) == can_search


def test_deferred_functions_are_in_small_namespaces() -> None:
    tools = [ToolSpec(f"tool_{number}", "A tool.", SCHEMA, deferred_group="a.b") for number in range(25)]
    tools += [ToolSpec("other", "Another.", SCHEMA, deferred_group="c")]
    namespaces = build_namespaces(tools)
    assert [(space["name"], len(list(space["tools"]))) for space in namespaces] == [
        ("a_b_1", 10),
        ("a_b_2", 10),
        ("a_b_3", 5),
        ("c_1", 1),
    ]
    many = [ToolSpec(f"mcp__server__tool_{number}", "A tool.", SCHEMA, deferred_group="s") for number in range(2_000)]
    namespaces = build_namespaces(many)
    assert len(namespaces) == 16
    assert max(len(space["description"]) for space in namespaces) < 200


async def test_a_server_of_openai_that_refuses_the_search_gets_our_own() -> None:
    call_of_far = {"type": "function_call", "call_id": "c1", "name": "far", "arguments": "{}", "namespace": "things_1"}
    search: tuple[Any, ...] = (
        {"type": "tool_search_call", "id": "t1", "arguments": {}, "execution": "server"},
        call_of_far,
    )
    parts = (ToolCall(id="c1", name="far", arguments="{}"),)
    verbatim = Verbatim(wire="responses", origin="127.0.0.1", items=search)
    result = Message(role="tool", parts=(ToolResult(call_id="c1", output="far"),))
    request = make_request("gpt-6-sol", Message(role="assistant", parts=parts, verbatim=verbatim), result)
    refused = refusal(400, "Tool 'tool_search' is not supported with this model")
    async with Loopback([refused, respond(speak(0, "msg_1", "done"))]) as server:
        provider = open_responses(server.base_url)
        await ask(provider, request)
        await provider.close()
        first, second = [asked.json for asked in server.requests]
    assert [tool.get("name", tool["type"]) for tool in first["tools"]] == ["look", "tool_search", "things_1"]
    assert first["input"][2:4] == list(search)
    assert [tool["name"] for tool in second["tools"]] == ["look", "find_tools", "call_tool"]
    assert second["input"][2] == {key: value for key, value in call_of_far.items() if key != "namespace"}


def test_a_call_of_another_server_names_its_namespace() -> None:
    said = Message.assistant(
        "", [ToolCall(id="c1", name="far", arguments="{}"), ToolCall(id="c2", name="look", arguments="{}")]
    )
    body = json.loads(open_responses()._encode_body(make_request("gpt-6-sol", said)))
    assert [item.get("namespace") for item in body["input"][2:]] == ["things_1", None]


def test_what_the_model_may_not_use_does_not_hide_the_search() -> None:
    body = json.loads(open_responses()._encode_body(make_request("gpt-6-sol", allowed_tools=("look", "far"))))
    assert "tool_choice" not in body
