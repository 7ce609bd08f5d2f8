"""Refusals that name their remedy: the request is changed, sent again once, and later requests stay changed."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from goose_like.config.profile import ModelChoice
from goose_like.core.errors import ProviderError
from goose_like.core.events import Retrying, TextDelta
from goose_like.core.message import Message, ToolSpec
from goose_like.providers.base import Request
from goose_like.providers.openai import OpenAIProvider
from goose_like.providers.remedies import find_remedy
from tests import responses_events as responses
from tests.loopback import Loopback, Response, refusal, said, sse
from tests.providers.vendors import ANTHROPIC, REQUEST, RESPONSES, set_keys_only

ANSWER = sse(said("fine"))


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    set_keys_only(monkeypatch)


async def converse(*responses: Response, request: Request = REQUEST, **choice: Any) -> tuple[list[str], list[Any]]:
    """Send a request twice to one provider. Return the notes for the person, and all bodies."""
    async with Loopback(responses) as server:
        provider = OpenAIProvider(ModelChoice(model="openai:m1", base_url=server.base_url, **choice))
        deltas = [delta for _ in range(2) async for delta in provider.stream(request)]
        await provider.close()
        bodies = [asked.json for asked in server.requests]
    assert [delta.text for delta in deltas if isinstance(delta, TextDelta)] == ["fine", "fine"]
    return [delta.text for delta in deltas if isinstance(delta, Retrying)], bodies


HAS_KEY: dict[str, Callable[[Any], bool]] = {
    "stream_options": lambda body: "stream_options" in body,
    "temperature": lambda body: "temperature" in body,
    "reasoning_effort": lambda body: "reasoning_effort" in body,
    "max_tokens": lambda body: "max_tokens" in body,
}


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("Unrecognized request argument supplied: stream_options", "stream_options"),
        ("[{'loc': ['body', 'stream_options'], 'msg': 'Extra inputs are not permitted'}]", "stream_options"),
        ("Unsupported parameter: 'temperature' is not supported with this model.", "temperature"),
        ("`temperature` is not supported with this model", "temperature"),
        ("This server does not support temperature. See the manual.", "temperature"),
        ("Unknown parameter: 'reasoning_effort'", "reasoning_effort"),
        ("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", "max_tokens"),
    ],
)
async def test_a_key_that_a_server_does_not_know(text: str, key: str) -> None:
    choice = {"temperature": 0.5, "effort": "low", "max_output_tokens": 9}
    notes, bodies = await converse(refusal(400, text), ANSWER, **choice)
    assert [HAS_KEY[key](body) for body in bodies] == [True, False, False]
    assert len(notes) == 1
    first = {name: value for name, value in bodies[0].items() if name != key}
    later = {name: value for name, value in bodies[1].items() if name != "max_completion_tokens"}
    assert later == first
    if key == "max_tokens":
        assert bodies[2]["max_completion_tokens"] == 9


@pytest.mark.parametrize(
    "text",
    [
        "Conversation roles must alternate user/assistant/user/assistant/...",
        "After the optional system message, conversation roles must alternate",
        "Only user and assistant roles are supported! consecutive user messages",
    ],
)
async def test_roles_that_must_alternate(text: str) -> None:
    messages = [Message.user("a"), Message.assistant("b"), Message.user("c")]
    notes, bodies = await converse(refusal(400, text), ANSWER, request=Request("m1", "s", messages))
    assert len(bodies) == 3
    assert "strict_roles" in notes[0]


async def test_a_model_without_system_prompts() -> None:
    notes, bodies = await converse(refusal(400, "System role not supported"), ANSWER)
    assert [entry["role"] for entry in bodies[0]["messages"]] == ["system", "user"]
    assert bodies[1]["messages"] == [{"role": "user", "content": "be good\n\nhi"}]
    assert "system prompt" in notes[0]


@pytest.mark.parametrize(
    "text",
    ["registry.ollama.ai/library/x does not support tools", "tools are not supported", "tool use is not supported"],
)
async def test_a_model_without_tools_gets_a_schema(text: str) -> None:
    constrained = sse(said('{"tool": "finish", "arguments": {"text": "fine"}}'))
    async with Loopback([refusal(400, text), constrained]) as server:
        provider = OpenAIProvider(ModelChoice(model="openai:m1", base_url=server.base_url))
        deltas = [delta async for delta in provider.stream(REQUEST)]
        await provider.close()
        bodies = [asked.json for asked in server.requests]
    assert "tools" in bodies[0]
    assert "tools" not in bodies[1]
    assert "response_format" in bodies[1]
    assert [delta.text for delta in deltas if isinstance(delta, Retrying)] == [
        "the model has no tool calls; it answers in JSON (`tools: constrained`)"
    ]


FOREIGN = {
    "llama3 does not support tools: shell, web_search, read_file": "constrained",
    "llama3 does not support tools: shell, web_fetch, apply_patch": "constrained",
    "tools[7].function.web_search: tool calls are not supported": "constrained",
    "tools[0].function.tool_search: function calling is not supported": "constrained",
    "Unsupported parameter: 'temperature' is not supported with web_search": "leave_out",
    "Unsupported parameter: 'temperature' is not supported with apply_patch or tool_search": "leave_out",
}


@pytest.mark.parametrize(("text", "kind"), FOREIGN.items())
async def test_a_tool_of_ours_with_the_name_of_the_vendors(text: str, kind: str) -> None:
    """Neither functions nor tools in words of a message are tools of the vendor."""
    names = ("web_search", "web_fetch", "apply_patch", "tool_search")
    functions = [{"type": "function", "function": {"name": name}, "name": name} for name in names]
    ours = [{"name": name, "input_schema": {"type": "web_search"}} for name in names]
    said = [{"role": "user", "content": '"type": "web_search"'}]
    for tools in (functions, ours, []):
        body = json.dumps({"tools": tools, "messages": said, "input": said}).encode()
        remedy = find_remedy(text, [], body)
        assert remedy is not None
        assert remedy.kind == kind


@pytest.mark.parametrize(
    ("key", "tool"),
    [
        ("web_search", {"type": "web_search_20260318", "name": "web_search"}),
        ("web_search", {"type": "web_search"}),
        ("web_fetch", {"type": "web_fetch_20260318", "name": "web_fetch"}),
        ("apply_patch", {"type": "apply_patch"}),
        ("tool_search", {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}),
        ("tool_search", {"type": "tool_search"}),
    ],
)
def test_a_tool_of_the_vendor_that_the_request_has(key: str, tool: dict[str, Any]) -> None:
    for body in ({"tools": [tool]}, {"input": [{"type": "additional_tools", "tools": [tool]}]}):
        remedy = find_remedy(f"{key} is not supported with this model", [], json.dumps(body).encode())
        assert remedy is not None
        assert (remedy.kind, remedy.key) == ("no_native_tool", key)


async def test_a_server_refuses_tools_of_which_one_is_our_search() -> None:
    search = ToolSpec("web_search", "Search.", {"type": "object", "properties": {}}, native="web_search")
    request = Request("m1", "s", [Message.user("x")], (search,))
    refused = refusal(400, "llama3 does not support tools: shell, web_search, read_file")
    constrained = sse(said('{"tool": "finish", "arguments": {"text": "fine"}}'))
    async with Loopback([refused, constrained]) as server:
        provider = OpenAIProvider(ModelChoice(model="openai:m1", base_url=server.base_url))
        deltas = [delta async for delta in provider.stream(request)]
        await provider.close()
        bodies = [asked.json for asked in server.requests]
    assert ["tools" in body for body in bodies] == [True, False]
    assert [delta.text for delta in deltas if isinstance(delta, Retrying)] == [
        "the model has no tool calls; it answers in JSON (`tools: constrained`)"
    ]


async def test_a_server_without_apply_patch_gets_the_schema() -> None:
    """Once it refused the tool, each later request describes ours."""
    tool = ToolSpec("patch_file", "Patch.", {"type": "object", "properties": {}}, native="apply_patch")
    refused = refusal(400, "Tool 'apply_patch' is not supported with this model.")
    answers = [refused, responses.respond(responses.speak(0, "msg_1", "fine"))]
    async with Loopback([*answers, answers[1]]) as server:
        provider = OpenAIProvider(ModelChoice(model="openai:gpt-6-sol", base_url=server.base_url, wire="responses"))
        request = Request("gpt-6-sol", "s", [Message.user("x")], (tool,))
        deltas = [delta for _ in range(2) async for delta in provider.stream(request)]
        await provider.close()
        kinds = [asked.json["tools"][0]["type"] for asked in server.requests]
    assert kinds == ["apply_patch", "function", "function"]
    assert [delta.text for delta in deltas if isinstance(delta, Retrying)] == [
        "the server has no `apply_patch` for this model; it gets our tool"
    ]


async def test_a_model_with_tools_on_another_api() -> None:
    text = "Function tools with reasoning_effort are not supported for m1 in /v1/chat/completions. Use /v1/responses"
    async with Loopback([refusal(400, text), RESPONSES.answer("fine")]) as server:
        provider = OpenAIProvider(ModelChoice(model="openai:m1", base_url=server.base_url))
        deltas = [delta async for delta in provider.stream(REQUEST)]
        await provider.close()
        paths = [asked.head.split()[1] for asked in server.requests]
    assert paths == [b"/v1/chat/completions", b"/v1/responses"]
    assert [delta.text for delta in deltas if isinstance(delta, TextDelta)] == ["fine"]


async def test_a_remedy_is_tried_once() -> None:
    text = "Unrecognized request argument supplied: stream_options"
    async with Loopback([refusal(400, text)]) as server:
        provider = OpenAIProvider(ModelChoice(model="openai:m1", base_url=server.base_url))
        with pytest.raises(ProviderError, match="Unrecognized request argument"):
            _ = [delta async for delta in provider.stream(REQUEST)]
        await provider.close()
        assert len(server.requests) == 2


async def test_remedies_add_up() -> None:
    texts = ("Unknown parameter: 'temperature'", "System role not supported", "Unknown parameter: 'stream_options'")
    notes, bodies = await converse(*(refusal(400, text) for text in texts), ANSWER, temperature=0.5)
    assert len(notes) == 3
    assert set(bodies[-1]) == {"model", "stream", "tools", "messages"}


@pytest.mark.parametrize(
    "text",
    [
        "the temperature in the file notes.txt is wrong",
        "messages: content must be non-empty",
        "Could not process image",
        "",
    ],
)
def test_another_refusal_has_no_remedy(text: str) -> None:
    assert find_remedy(text, [], b"{}") is None


async def test_a_summary_that_needs_a_verified_organization() -> None:
    text = "Your organization must be verified to generate reasoning summaries: reasoning.summary"
    async with Loopback([refusal(400, text), RESPONSES.answer("fine")]) as server:
        deltas = await RESPONSES.ask(server.base_url, effort="high")
        bodies = [asked.json for asked in server.requests]
    assert [body["reasoning"] for body in bodies] == [{"summary": "auto", "effort": "high"}, {"effort": "high"}]
    assert any(isinstance(delta, Retrying) for delta in deltas)


async def test_a_server_of_messages_without_effort() -> None:
    text = "output_config: Extra inputs are not permitted"
    async with Loopback([refusal(400, text), ANTHROPIC.answer("fine")]) as server:
        await ANTHROPIC.ask(server.base_url, effort="high")
        bodies = [asked.json for asked in server.requests]
    assert ["output_config" in body for body in bodies] == [True, False]
