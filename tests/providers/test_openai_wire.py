"""Tests of the wire format of chat completions: requests and parsed chunks."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goose_like.core.errors import BrokenStreamError, ContextLengthError, CredentialError, ProviderError, RateLimitError
from goose_like.core.events import MessageCompleted, TextDelta, ThinkingDelta
from goose_like.core.message import Image, Message, Part, Text, Thinking, ToolCall, ToolResult, Usage
from goose_like.core.tool import ToolSpec
from goose_like.providers.base import Request
from goose_like.providers.openai_wire import (
    OpenAIEncoder,
    OpenAIStreamParser,
    apply_strict_roles,
    build_message_entries,
)
from goose_like.providers.wire import build_status_error, build_stream_error, extract_error_text
from tests.loopback import called, chunk, said, usage

SHELL = ToolSpec("shell", "Runs a command.", {"type": "object", "properties": {"command": {"type": "string"}}})


def parse_answer(*chunks: Any) -> MessageCompleted:
    parser = OpenAIStreamParser()
    for entry in chunks:
        parser.feed(entry)
    return parser.build_message()


def parse_calls(*items: Any, finish: str = "tool_calls") -> list[tuple[str, str, str]]:
    """Parse tool call deltas. Each item is the list of one chunk."""
    message = parse_answer(*(chunk({"tool_calls": item}) for item in items), chunk(finish=finish)).message
    return [(call.id, call.name, call.arguments) for call in message.tool_calls]


def item(index: Any = None, id: Any = None, name: Any = None, arguments: Any = None) -> dict[str, Any]:
    keys = {"index": index, "id": id, "function": {"name": name, "arguments": arguments}}
    return {key: value for key, value in keys.items() if value is not None}


# --- requests

texts = st.text(st.characters(codec=None), max_size=20)
parts: st.SearchStrategy[Part] = st.one_of(
    st.builds(Text, text=texts),
    st.builds(Thinking, text=texts),
    st.builds(ToolCall, id=texts, name=texts, arguments=texts | st.just('{"a": 1}')),
)
messages = st.one_of(
    st.builds(Message.user, texts),
    st.builds(Message, role=st.just("assistant"), parts=st.lists(parts, max_size=4).map(tuple)),
    st.builds(
        Message,
        role=st.just("tool"),
        parts=st.lists(st.builds(ToolResult, call_id=texts, output=texts, is_error=st.booleans()), max_size=3).map(
            tuple
        ),
    ),
)


@given(st.lists(messages, max_size=8), texts, st.booleans())
def test_each_request_is_a_prefix_of_the_next(history: list[Message], system: str, has_tools: bool) -> None:
    encoder, before, extras = OpenAIEncoder(), b"", {"temperature": 0}
    for end in range(len(history) + 1):
        request = Request("m", system, history[:end], (SHELL,) if has_tools else ())
        body = encoder.encode_request(request, extras)
        assert body.startswith(before)
        assert body == OpenAIEncoder().encode_request(request, extras)
        assert [*json.loads(body)][-1] == "messages"
        before = body.removesuffix(b"]}")


@given(st.lists(messages, min_size=1, max_size=6), st.lists(messages, max_size=6))
def test_another_history_is_encoded_again(history: list[Message], other: list[Message]) -> None:
    encoder = OpenAIEncoder()
    for sent in (history, other, history[:1] + other, history):
        assert encoder.encode_request(Request("m", "s", sent)) == OpenAIEncoder().encode_request(
            Request("m", "s", sent)
        )


def test_a_changed_tool_or_prompt_is_sent() -> None:
    encoder = OpenAIEncoder()
    encoder.encode_request(Request("m", "old", [], (SHELL,)))
    body = json.loads(encoder.encode_request(Request("m", "new", [], ())))
    assert body["messages"] == [{"role": "system", "content": "new"}]
    assert "tools" not in body


def test_the_body_of_a_whole_turn() -> None:
    history = [
        Message.user("go"),
        Message.user("now"),
        Message(
            role="assistant",
            parts=(
                Thinking(text="hm"),
                Text(text="on it"),
                ToolCall(id="1", name="shell", arguments='{"command": "ls"}'),
                ToolCall(id="2", name="sh ell", arguments='{"command": '),
                ToolCall(id="3", name="shell", arguments=""),
                ToolCall(id="4", name="shell", arguments='{"a": NaN}'),
            ),
        ),
        Message(
            role="tool",
            parts=(ToolResult(call_id="1", output="a b"), ToolResult(call_id="2", output="broken", is_error=True)),
        ),
        Message(role="tool", parts=(ToolResult(call_id="3", output="Error: no", is_error=True),)),
        Message(role="assistant", parts=()),
    ]
    body = json.loads(OpenAIEncoder().encode_request(Request("m", "be good", history, (SHELL,)), {"max_tokens": 9}))
    sent = body.pop("messages")
    assert [*body] == ["model", "stream", "stream_options", "max_tokens", "tools"]
    assert body["tools"][0]["function"]["parameters"] == SHELL.schema
    assert sent[:3] == [
        {"role": "system", "content": "be good"},
        {"role": "user", "content": "go"},
        {"role": "user", "content": "now"},
    ]
    assert sent[3]["content"] == "on it"
    assert [call["function"] for call in sent[3]["tool_calls"]] == [
        {"name": "shell", "arguments": '{"command": "ls"}'},
        {"name": "sh_ell", "arguments": '{"invalid_json": "{\\"command\\": "}'},
        {"name": "shell", "arguments": "{}"},
        {"name": "shell", "arguments": '{"invalid_json": "{\\"a\\": NaN}"}'},
    ]
    assert [entry["content"] for entry in sent[4:]] == ["a b", "error: broken", "Error: no", ""]
    assert [entry.get("tool_call_id") for entry in sent[4:]] == ["1", "2", "3", None]


def test_arguments_nested_without_end_are_wrapped() -> None:
    history = [Message.assistant("", [ToolCall(id="1", name="t", arguments='{"a":' * 100_000)])]
    body = json.loads(OpenAIEncoder().encode_request(Request("m", "", history)))
    assert "invalid_json" in body["messages"][0]["tool_calls"][0]["function"]["arguments"]


def test_half_a_character_does_not_refuse_the_request() -> None:
    body = json.loads(OpenAIEncoder().encode_request(Request("m", "in /tmp/a\udc80b", [])))
    assert body["messages"][0]["content"] == "in /tmp/a?b"


# --- answers


def test_text_thinking_and_usage() -> None:
    parser = OpenAIStreamParser()
    deltas = [
        delta
        for entry in (
            chunk({"role": "assistant"}),
            chunk({"reasoning_content": "h", "reasoning": "h"}),
            chunk({"reasoning": "m"}),
            chunk({"content": "a"}),
            chunk({"content": [{"type": "text", "text": "b"}, {"type": "image"}]}),
            chunk({"content": None, "refusal": "c"}, usage=None),
            {"choices": [{"delta": None, "finish_reason": "stop"}]},
            {"choices": None},
            usage(7, 3, 2),
        )
        for delta in parser.feed(entry)
    ]
    assert deltas == [*(ThinkingDelta(text=t) for t in "hm"), *(TextDelta(text=t) for t in "abc")]
    done = parser.build_message()
    assert done.message.parts == (Thinking(text="hm"), Text(text="abc"))
    assert done.usage == Usage(input_tokens=7, output_tokens=3, cache_read_tokens=2)
    assert not done.is_cut


@pytest.mark.parametrize(
    "sent",
    [
        {"prompt_tokens": 4, "completion_tokens": None},
        {"prompt_tokens": 4, "prompt_tokens_details": None},
        {"prompt_tokens": 4, "prompt_tokens_details": {}},
        {"prompt_tokens": 4.0, "completion_tokens": float("nan")},
        {"prompt_tokens": "4", "completion_tokens": -1},
        {"prompt_tokens": 4, "completion_tokens": {}, "prompt_tokens_details": 5},
    ],
)
def test_usage_with_holes(sent: Any) -> None:
    assert parse_answer(chunk({"content": "x"}, usage=sent), chunk(finish="stop", usage=None)).usage == Usage(
        input_tokens=4
    )


def test_a_character_split_between_chunks_is_shown_whole() -> None:
    parser = OpenAIStreamParser()
    deltas = parser.feed(chunk({"content": "a\ud83d"})) + parser.feed(chunk({"content": "\ude00b\udc00"}))
    parser.feed(chunk({"content": "\ud83d"}, finish="stop"))
    assert [delta.text for delta in deltas if isinstance(delta, TextDelta)] == ["a", "\U0001f600b\ufffd"]
    done = parser.build_message()
    assert done.message.text == "a\U0001f600b\ufffd\ufffd"
    done.model_dump_json()


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        pytest.param(
            [[item(0, "a", "f", "{")], [item(1, "b", "g", "")], [item(0, arguments="}")], [item(1, arguments="{}")]],
            [("a", "f", "{}"), ("b", "g", "{}")],
            id="as the reference has it",
        ),
        pytest.param(
            [[item(0, "a", "f", "{}"), item(1, "b", "g", "{}")]], [("a", "f", "{}"), ("b", "g", "{}")], id="whole"
        ),
        pytest.param([[item(None, "a", "f", "{")], [item(arguments="}")]], [("a", "f", "{}")], id="no index"),
        pytest.param(
            [[item(None, "a", "f", "{}"), item(None, "b", "f", "{}")]],
            [("a", "f", "{}"), ("b", "f", "{}")],
            id="only ids",
        ),
        pytest.param(
            [[item(None, None, "f", "{}"), item(None, None, "g", "{}"), item(None, None, "g", "{}")]],
            [("", "f", "{}"), ("", "g", "{}"), ("", "g", "{}")],
            id="neither index nor id",
        ),
        pytest.param(
            [[item(0, "a", "f", "{}")], [item(0, "b", "g", "{}")], [item(0, "c", "g", '{"x":1}')]],
            [("a", "f", "{}"), ("b", "g", "{}"), ("c", "g", '{"x":1}')],
            id="index always 0",
        ),
        pytest.param(
            [[item(0, None, "f", "{}")], [item(0, None, "f", "{}")]], [("", "f", "{}"), ("", "f", "{}")], id="0, no ids"
        ),
        pytest.param(
            [[item(0, "a", "f", "{")], [item(1, "a", None, "}")]],
            [("a", "f", "{}")],
            id="an id goes on at another index",
        ),
        pytest.param(
            [[item(0, "a", "f", "{}")], [item(1, "a", "f", "{}")]],
            [("a", "f", "{}"), ("a", "f", "{}")],
            id="an id twice",
        ),
        pytest.param([[item(0, "a", "f", "{")], [item(3, None, None, "}")]], [("a", "f", "{}")], id="the index drifts"),
        pytest.param([[item(0, "a", "f", "{")], [item(0, "z", None, "}")]], [("a", "f", "{}")], id="the id drifts"),
        pytest.param(
            [[item(0, "a", "f", "{")], [item(0, "a", "f", '"x":1')], [item(0, "a", "f", "}")], [item(0, "a", "f", "")]],
            [("a", "f", '{"x":1}')],
            id="id and name in each",
        ),
        pytest.param(
            [[item(0, "a", "sh", "")], [item(0, "a", "shell", "{}")]], [("a", "shell", "{}")], id="name grows"
        ),
        pytest.param([[item(0, "a", "f", {"x": 1})]], [("a", "f", '{"x": 1}')], id="arguments as an object"),
        pytest.param([[item(0, "a", "f", None)]], [("a", "f", "")], id="no arguments"),
        pytest.param([[item(0, None, "f", "{}")]], [("", "f", "{}")], id="no id"),
        pytest.param(
            [[item(0, "a", "f")], [item(0, "b", "f")]], [("a", "f", ""), ("b", "f", "")], id="index 0, no arguments"
        ),
        pytest.param([None, [], [item(0, "a", "f", "{}")]], [("a", "f", "{}")], id="null and empty lists"),
    ],
)
def test_tool_calls_as_servers_send_them(items: list[Any], expected: list[tuple[str, str, str]]) -> None:
    assert parse_calls(*items) == expected


def test_the_older_function_call() -> None:
    done = parse_answer(
        chunk({"function_call": {"name": "f", "arguments": "{"}}),
        chunk({"function_call": {"arguments": "}"}}),
        chunk(finish="function_call"),
    )
    assert done.message.tool_calls == (ToolCall(id="", name="f", arguments="{}"),)


def test_a_length_stop_keeps_broken_arguments() -> None:
    done = parse_answer(chunk({"tool_calls": [item(0, "a", "f", '{"x": "unfin')]}), chunk(finish="length"))
    assert done.is_cut
    assert done.message.tool_calls[0].arguments == '{"x": "unfin'


@pytest.mark.parametrize("pieces", [("",), ("{",), ("{", "}")])
def test_a_call_cut_before_its_arguments_is_no_call_without_arguments(pieces: tuple[str, ...]) -> None:
    first, *others = ([item(0, "a", "f", piece)] for piece in pieces)
    chunks = [chunk({"tool_calls": calls}) for calls in (first, *others)]
    done = parse_answer(*chunks, chunk(finish="length"))
    assert [call.arguments for call in done.message.tool_calls] == ["{"]


@pytest.mark.parametrize(
    ("chunks", "words"),
    [
        ([chunk({"content": "half"})], "without a finish reason"),
        ([usage()], "without a finish reason"),
        ([chunk(finish="stop"), usage()], "empty"),
        ([chunk(finish="length")], "max_output_tokens"),
        ([chunk({"reasoning": "hm"}), chunk(finish="length")], "max_output_tokens"),
        ([chunk({"reasoning": "hm"}), chunk(finish="stop")], "empty"),
        ([chunk({"content": "x"}, finish="error")], "gave up"),
        ([chunk({"tool_calls": [item(0, "a")]}), chunk(finish="tool_calls")], "without a name"),
    ],
)
def test_invalid_answers(chunks: list[Any], words: str) -> None:
    with pytest.raises(BrokenStreamError, match=words):
        parse_answer(*chunks)


def test_an_error_in_a_chunk() -> None:
    with pytest.raises(BrokenStreamError, match="boom"):
        OpenAIStreamParser().feed({"error": {"message": "boom"}})


def test_a_call_cut_before_its_name_is_dropped() -> None:
    done = parse_answer(chunk({"content": "x"}), chunk({"tool_calls": [item(0, "a")]}, finish="length"))
    assert done.is_cut
    assert done.message.tool_calls == ()


def test_the_content_filter_is_not_retried() -> None:
    with pytest.raises(ProviderError, match="content filter") as caught:
        parse_answer(chunk({"content": "x"}, finish="content_filter"))
    assert not caught.value.is_retryable


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
KEYS = """choices delta content tool_calls index id function name arguments finish_reason usage prompt_tokens
    reasoning function_call prompt_tokens_details cached_tokens text error"""
keys = st.sampled_from(KEYS.split())
wire_junk = st.recursive(
    junk, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(keys, inner, max_size=4), max_leaves=20
)


def graft_value(template: Any, graft: Any, at: int) -> Any:
    """Return the template with another value at its `at`th place."""
    places: list[tuple[Any, Any]] = []

    def walk(node: Any) -> None:
        for key in list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ():
            places.append((node, key))
            walk(node[key])

    copy = json.loads(json.dumps(template))
    walk(copy)
    node, key = places[at % len(places)]
    node[key] = graft
    return copy


@given(wire_junk, st.integers(0, 100), st.sampled_from([*said("hi"), *called(("1", "f", "{}")), usage(1, 2, 3)]))
def test_junk_anywhere_is_an_answer_or_one_of_our_errors(graft: Any, at: int, template: Any) -> None:
    with suppress(ProviderError):
        parse_answer(graft_value(template, graft, at), chunk({"content": "x"}, finish="stop")).model_dump_json()


@pytest.mark.parametrize(
    "sent",
    [
        [],
        "x",
        5,
        {"choices": {}},
        {"choices": [5]},
        chunk([]),
        chunk({"content": 5.5}),
        chunk({"tool_calls": {}}),
        chunk({"tool_calls": [5]}),
        chunk({"tool_calls": [item("first")]}),
        chunk({"tool_calls": [item(True)]}),
        chunk({"tool_calls": [{"function": "f"}]}),
        {"choices": [{"finish_reason": True}]},
        chunk({"reasoning": {"a": 1}}),
    ],
)
def test_a_wrong_type_is_named(sent: Any) -> None:
    with pytest.raises(BrokenStreamError, match="belongs"):
        OpenAIStreamParser().feed(sent)


# --- refusals


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"error": {"message": "no"}}, "no"),
        ({"message": "no"}, "no"),
        ({"detail": [{"msg": "no"}]}, "no"),
        ({"error": "no"}, "no"),
        ("  no\n way ", "no way"),
        ("<html>no</html>", "the server sent a web page, not the API's answer"),
        (None, ""),
        ({}, "{}"),
        ("x" * 1000, "x" * 299 + "…"),
    ],
)
def test_error_texts_of_servers(body: Any, words: str) -> None:
    assert extract_error_text(body) == words


@pytest.mark.parametrize(
    "body",
    [
        {"message": "This model's maximum context length is 8192 tokens", "code": "context_length_exceeded"},
        {"message": "the request exceeds the available context size", "type": "exceed_context_size_error"},
        {"message": "prompt is too long: 300000 tokens"},
    ],
)
def test_too_long_a_request(body: Any) -> None:
    assert isinstance(build_status_error(400, body, "m", "KEY"), ContextLengthError)
    assert isinstance(build_stream_error(body), ContextLengthError)


def test_missing_credit_is_not_retried() -> None:
    error = build_status_error(429, {"code": "insufficient_quota", "message": "x"}, "m", "KEY")
    assert isinstance(error, RateLimitError)
    assert not error.is_retryable


def test_a_refused_key_names_the_variable() -> None:
    error = build_status_error(401, {"message": "bad"}, "m", "SOME_KEY")
    assert isinstance(error, CredentialError)
    assert "SOME_KEY" in str(error)


def test_strict_roles():
    picture = Image(name="p.png", media_type="image/png", source="p.png")
    results = (
        ToolResult(call_id="a", output="one"),
        ToolResult(call_id="b", output="two", images=(picture,)),
    )
    wanted = [ToolCall(id=id, name="look", arguments="{}") for id in "ab"]
    messages = [
        Message.user("date: today"),
        Message.user("look"),
        Message.assistant("I look", wanted),
        Message(role="tool", parts=(ToolResult(call_id="a", output="one"), ToolResult(call_id="b", output="two"))),
        Message.user("your plan"),
        Message.assistant("again", wanted),
        Message(role="tool", parts=results),
        Message.user("your plan"),
    ]
    joined = apply_strict_roles(messages)
    roles = [entry["role"] for message in joined for entry in build_message_entries(message)]
    assert roles == ["user", "assistant", "tool", "tool", "assistant", "tool", "tool", "assistant", "user"]
    assert joined[0].text == "date: today\n\nlook"
    assert joined[2].tool_results[-1].output == "two\n\nyour plan"
    assert joined[-1].images == (picture,)
    assert joined[-1].text.endswith("your plan")
