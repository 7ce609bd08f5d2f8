"""Tests of thinking in chat completions: it returns to its server under the key it came in, byte for byte."""

import json
from typing import Any

import pytest

from goose_like.config.profile import ModelChoice
from goose_like.core.errors import BrokenStreamError
from goose_like.core.events import MessageCompleted
from goose_like.core.message import Message, Thinking, ToolResult, Verbatim
from goose_like.providers.base import Request
from goose_like.providers.openai import OpenAIProvider
from goose_like.providers.openai_wire import HistoryRules, OpenAIStreamParser, build_message_entries
from goose_like.providers.registry import find_provider_class
from tests.chat_types import check_chunk
from tests.loopback import Loopback, chunk, refusal, said, sse

CALL = {"index": 0, "id": "c1", "type": "function", "function": {"name": "shell", "arguments": "{}"}}
SIGNATURE = {"google": {"thought_signature": "SIG+/=="}}


def detail(kind: str, index: int = 0, **keys: Any) -> dict[str, Any]:
    return {"type": f"reasoning.{kind}", "index": index, "format": "anthropic-claude-v1", **keys}


def stream(*deltas: Any) -> list[dict[str, Any]]:
    return [*map(chunk, deltas), chunk({"tool_calls": [CALL]}), chunk(finish="tool_calls")]


def parse(chunks: list[dict[str, Any]], origin: str = "here") -> Message:
    parser = OpenAIStreamParser(origin=origin)
    for entry in chunks:
        check_chunk(entry)
        parser.feed(entry)
    return parser.build_message().message


CASES: dict[str, tuple[list[dict[str, Any]], str, dict[str, Any]]] = {
    "reasoning_content": (
        [{"reasoning_content": "I "}, {"reasoning_content": "lôok\n"}],
        "I lôok\n",
        {"content": "", "reasoning_content": "I lôok\n"},
    ),
    "reasoning": ([{"reasoning": " a"}, {"reasoning": "b "}], " ab ", {"content": "", "reasoning": " ab "}),
    "both keys": (
        [{"reasoning": "a", "reasoning_content": "a"}],
        "a",
        {"content": "", "reasoning": "a", "reasoning_content": "a"},
    ),
    "details with a signature": (
        [
            {"reasoning": "I ", "reasoning_details": [detail("text", text="I ", signature=None)]},
            {"reasoning": "see", "reasoning_details": [detail("text", text="see")]},
            {"reasoning_details": [detail("text", signature="SIG==")]},
            {"reasoning_details": [detail("encrypted", 1, id="e1", data="SECRET")]},
            {"reasoning_details": [detail("summary", 2, summary="do")]},
            {"reasoning_details": [detail("summary", 2, summary="ne")]},
        ],
        "I see" + "done",
        {
            "content": "",
            "reasoning": "I see",
            "reasoning_details": [
                detail("text", text="I see", signature="SIG=="),
                detail("encrypted", 1, id="e1", data="SECRET"),
                detail("summary", 2, summary="done"),
            ],
        },
    ),
    "parts of the content": (
        [
            {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "I "}]}]},
            {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "see"}]}]},
            {"content": [{"type": "text", "text": "no"}]},
            {"content": "w "},
            {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": " more"}]}]},
            {"content": "then"},
        ],
        "I see more",
        {
            "content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": "I see"}], "closed": True},
                {"type": "text", "text": "now "},
                {"type": "thinking", "thinking": [{"type": "text", "text": " more"}], "closed": True},
                {"type": "text", "text": "then"},
            ]
        },
    ),
}


@pytest.mark.parametrize(("deltas", "shown", "expected"), CASES.values(), ids=CASES.keys())
def test_thinking_returns_as_it_came(deltas: list[Any], shown: str, expected: dict[str, Any]) -> None:
    message = parse(stream(*deltas)) if "content" not in deltas[0] else parse_list(stream(*deltas))
    assert "".join(part.text for part in message.parts if isinstance(part, Thinking)) == shown
    saved = Message.model_validate_json(message.model_dump_json())
    (entry,) = build_message_entries(saved, rules=HistoryRules("here"))
    assert [call["id"] for call in entry.pop("tool_calls")] == ["c1"]  # type: ignore[misc, typeddict-item]
    assert entry == {"role": "assistant", **expected}


def parse_list(chunks: list[dict[str, Any]]) -> Message:
    """Parse chunks whose content is a list, which the SDK's types do not have."""
    parser = OpenAIStreamParser(origin="here")
    for entry in chunks:
        parser.feed(entry)
    return parser.build_message().message


@pytest.mark.parametrize("origin", ["elsewhere", None])
@pytest.mark.parametrize(("deltas", "shown", "expected"), CASES.values(), ids=CASES.keys())
def test_another_server_gets_no_thinking(deltas: Any, shown: str, expected: Any, origin: str | None) -> None:
    message = parse_list(stream(*deltas))
    (entry,) = build_message_entries(message, rules=HistoryRules(origin))
    assert entry["content"] == message.text
    assert entry.keys() == {"role", "content", "tool_calls"}


def test_the_signature_of_a_call_replaces_the_text_for_it() -> None:
    second = {**CALL, "index": 1, "id": "c2"}
    signed = {**CALL, "extra_content": SIGNATURE}
    message = parse([chunk({"tool_calls": [signed]}), chunk({"tool_calls": [second]}), chunk(finish="tool_calls")])
    rules = HistoryRules("here", call={"extra_content": {"google": {"thought_signature": "skip"}}})
    (entry,) = build_message_entries(message, rules=rules)
    # Parallel calls have one signature, at the first of them.
    assert [call.get("extra_content") for call in entry["tool_calls"]] == [SIGNATURE, None]  # type: ignore[typeddict-item]
    (elsewhere,) = build_message_entries(message, rules=HistoryRules("there", rules.call))
    assert all(call["extra_content"] == rules.call["extra_content"] for call in elsewhere["tool_calls"])  # type: ignore[typeddict-item]


def test_an_answer_without_thinking_keeps_nothing() -> None:
    assert parse(said("hi")).verbatim is None
    assert parse(stream({"reasoning_details": [], "reasoning": ""})).verbatim is None


def test_thinking_of_chat_completions_survives_another_prefix() -> None:
    message = parse(stream({"reasoning": "a"}))
    assert message.verbatim == Verbatim(wire="chat", origin="here", items=({"reasoning": "a"},))
    assert message.strip_thinking({}) is message


@pytest.mark.parametrize(
    "delta",
    [
        {"reasoning_details": {}},
        {"reasoning_details": [5]},
        {"reasoning_details": [{"text": []}]},
        {"content": [{"type": "thinking", "thinking": 5.5}]},
        {"content": [{"type": "thinking", "thinking": [5]}]},
    ],
)
def test_a_wrong_type_is_named(delta: Any) -> None:
    with pytest.raises(BrokenStreamError, match="belongs"):
        OpenAIStreamParser().feed(chunk(delta))


@pytest.mark.parametrize("name", ["openrouter", "groq", "vllm", "mistral", "openai"])
async def test_thinking_comes_back_to_a_server(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("OPENROUTER_API_KEY", "GROQ_API_KEY", "MISTRAL_API_KEY"):
        monkeypatch.setenv(variable, "sk-0123456789")
    async with Loopback([sse(stream({"reasoning": "one"})), sse(said("done"))]) as server:
        provider = find_provider_class(name)(ModelChoice(model=f"{name}:m1", base_url=server.base_url))
        first = [delta async for delta in provider.stream(Request("m1", "", [Message.user("go")]))][-1]
        assert isinstance(first, MessageCompleted)
        result = Message(role="tool", parts=(ToolResult(call_id="c1", output="ok"),))
        history = [Message.user("go"), first.message, result]
        [_ async for _ in provider.stream(Request("m1", "", history))]
        await provider.close()
        assert server.requests[1].json["messages"][1]["reasoning"] == "one"


async def test_a_server_that_refuses_thinking_gets_none_from_then_on() -> None:
    refused = refusal(400, "messages.1: unknown field `reasoning_content`")
    async with Loopback([sse(stream({"reasoning_content": "one"})), refused, sse(said("done"))]) as server:
        provider = OpenAIProvider(ModelChoice(model="openai:m1", base_url=server.base_url))
        first = [delta async for delta in provider.stream(Request("m1", "", [Message.user("go")]))][-1]
        assert isinstance(first, MessageCompleted)
        result = Message(role="tool", parts=(ToolResult(call_id="c1", output="ok"),))
        request = Request("m1", "", [Message.user("go"), first.message, result])
        for _ in range(2):
            done = [delta async for delta in provider.stream(request)][-1]
            assert isinstance(done, MessageCompleted)
        await provider.close()
    sent = ["reasoning_content" in json.dumps(asked.json) for asked in server.requests]
    assert sent == [False, True, False, False]
