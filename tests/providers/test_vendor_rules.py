"""Tests of the vendors' rules: valid bodies pass, and each rule can refuse."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from tests.providers.vendor_rules import RefusedError, valid_for_anthropic, valid_for_openai

PIXEL = "iVBORw0KGgo="

OPENAI: dict[str, Any] = {
    "tools": [{"type": "function", "function": {"name": "shell", "description": "", "parameters": {}}}],
    "messages": [
        {"role": "system", "content": "be good"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "hi"},
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
            ],
        },
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {"id": id_, "type": "function", "function": {"name": "shell", "arguments": "{}"}} for id_ in ("a", "b")
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": "1"},
        {"role": "tool", "tool_call_id": "b", "content": ""},
        {"role": "assistant", "content": "done"},
        {"role": "user", "content": "more"},
    ],
}

ANTHROPIC: dict[str, Any] = {
    "tools": [{"name": "shell", "description": "", "input_schema": {}}],
    "thinking": {"type": "adaptive"},
    "system": [{"type": "text", "text": "be good", "cache_control": {"type": "ephemeral"}}],
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "hi"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "", "signature": "s"},
                *({"type": "tool_use", "id": id_, "name": "shell", "input": {}} for id_ in ("a", "b")),
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "1"},
                {"type": "tool_result", "tool_use_id": "b", "content": [{"type": "text", "text": "2"}]},
                {"type": "text", "text": "and more"},
            ],
        },
    ],
}


def test_valid_bodies_pass() -> None:
    assert valid_for_openai(OPENAI)
    assert valid_for_anthropic(ANTHROPIC)


def change_messages(body: dict[str, Any], change: Callable[[list[Any]], object]) -> dict[str, Any]:
    body = copy.deepcopy(body)
    change(body["messages"])
    return body


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda m: m[1].update(role="human"), "no such role"),
        (lambda m: m[5].update(reasoning_content="hm"), "reasoning_content"),
        (lambda m: m.insert(2, m[0]), "stands first"),
        (lambda m: m.pop(3), "in the order"),
        (lambda m: m.insert(3, m.pop(4)), "in the order"),
        (lambda m: m.pop(4), "no answer before it"),
        (lambda m: m.insert(6, m[4]), "to no call"),
        (lambda m: m[5].update(content=""), "it is empty"),
        (lambda m: m[5].update(tool_calls=[]), "an empty list"),
        (lambda m: m[1]["content"].clear(), "a list of parts"),
        (lambda m: m[1]["content"][0].update(text=""), "an empty text"),
        (lambda m: m[1]["content"][1]["image_url"].update(url="x.png"), "an image"),
        (lambda m: m[2]["tool_calls"][0]["function"].update(arguments="{"), "no JSON object"),
        (lambda m: m[2]["tool_calls"][0]["function"].update(name="a b"), "the name"),
        (lambda m: m[2]["tool_calls"][0].update(id="a.b"), "the id"),
        (lambda m: m[2]["tool_calls"].append(m[2]["tool_calls"][0]), "used before"),
        (lambda m: m.pop(), "nothing to answer"),
        (lambda m: m.__delitem__(slice(3, None)), "have no answer"),
    ],
)
def test_openai_refuses(change: Callable[[list[Any]], object], said: str) -> None:
    with pytest.raises(RefusedError, match=said):
        valid_for_openai(change_messages(OPENAI, change))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda m: m.pop(0), "speaks first"),
        (lambda m: m[0].update(role="system"), "speaks first"),
        (lambda m: m[2].update(role="tool"), "no such role"),
        (lambda m: m[0].update(name="x"), "keys"),
        (lambda m: m[0]["content"].clear(), "it is empty"),
        (lambda m: m[0]["content"][0].update(text=" \n"), "without a letter"),
        (lambda m: m[0]["content"][1]["source"].update(media_type="image/bmp"), "an image"),
        (lambda m: m[2]["content"].pop(0), "it answers"),
        (lambda m: m[2]["content"].reverse(), "it answers"),
        (lambda m: m[2]["content"].insert(0, m[2]["content"].pop()), "before all else"),
        (lambda m: m[2]["content"][0].update(content=""), "an empty result"),
        (lambda m: m[2]["content"][0].update(content=" "), "without a letter"),
        (lambda m: m.insert(2, m[0]), "it answers"),
        (lambda m: m[1]["content"][0].update(signature=""), "without its signature"),
        (lambda m: m[1]["content"][0].update(cache_control={}), "with a mark"),
        (lambda m: m[1]["content"].append(m[1]["content"].pop(0)), "ends with thinking"),
        (lambda m: m[1]["content"][1].update(id="a:b"), "it answers|the id"),
        (lambda m: m[1]["content"][1].update(input="{}"), "no such block"),
        (lambda m: m[1]["content"].append(m[1]["content"][1]), "used before"),
        (lambda m: m.pop(), "nothing to answer"),
        (lambda m: [b.update(cache_control={}) for b in (*m[0]["content"], *m[2]["content"])], "too many marks"),
    ],
)
def test_anthropic_refuses(change: Callable[[list[Any]], object], said: str) -> None:
    with pytest.raises(RefusedError, match=said):
        valid_for_anthropic(change_messages(ANTHROPIC, change))


def test_thinking_is_refused_where_none_is_asked_for() -> None:
    with pytest.raises(RefusedError, match="where none is asked for"):
        valid_for_anthropic({key: value for key, value in ANTHROPIC.items() if key != "thinking"})


SEARCH = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
FOUND = {"type": "tool_search_tool_search_result", "tool_references": [{"type": "tool_reference", "tool_name": "far"}]}


def build_search() -> dict[str, Any]:
    """A body with a deferred tool that was found."""
    body = copy.deepcopy(ANTHROPIC)
    body["tools"] += [SEARCH, {"name": "far", "description": "", "input_schema": {}, "defer_loading": True}]
    body["messages"][1]["content"][1:1] = [
        {"type": "server_tool_use", "id": "s1", "name": "tool_search_tool_bm25", "input": {"query": "x"}},
        {"type": "tool_search_tool_result", "tool_use_id": "s1", "content": FOUND},
    ]
    return body


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda body: body["tools"].__delitem__(slice(2)), "must not be deferred"),
        (lambda body: body["tools"][2].update(cache_control={"type": "ephemeral"}), "both defer_loading"),
        (lambda body: body["tools"].pop(1), "no tool 'tool_search_tool_bm25'"),
        (lambda body: body["tools"].pop(2), "'far' not found"),
        (lambda body: body["messages"][1]["content"].pop(1), "a result of no search"),
        (lambda body: body["messages"][1]["content"].pop(2), "have no result"),
    ],
)
def test_anthropic_refuses_a_search(change: Callable[[dict[str, Any]], object], said: str) -> None:
    body = build_search()
    assert valid_for_anthropic(body)
    change(body)
    with pytest.raises(RefusedError, match=said):
        valid_for_anthropic(body)
