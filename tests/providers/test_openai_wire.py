"""Tests of the wire format of chat completions: requests and parsed chunks."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goose_like.core.errors import BrokenStreamError, ContextLengthError, CredentialError, ProviderError, RateLimitError
from goose_like.core.events import MessageCompleted, TextDelta, ThinkingDelta
from goose_like.core.message import EffortChange, Image, Message, Part, Text, Thinking, ToolCall, ToolResult, Usage
from goose_like.core.tool import ToolSpec
from goose_like.providers.base import Embeddings, Request
from goose_like.providers.openai_wire import (
    OpenAIEncoder,
    OpenAIStreamParser,
    apply_strict_roles,
    build_message_entries,
    parse_embeddings,
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
        newest_roles = [message.role for message in history[:end]][-2:]
        is_joined = newest_roles == ["user", "user"]
        assert is_joined or body.startswith(before)
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
    assert (body["model"], body["stream"], body["stream_options"]) == ("m", True, {"include_usage": True})
    function = {"name": "shell", "description": "Runs a command.", "parameters": SHELL.schema}
    assert body["tools"] == [{"type": "function", "function": function}]
    assert sent[:2] == [
        {"role": "system", "content": "be good"},
        {"role": "user", "content": "go\n\nnow"},
    ]
    assert (sent[2]["role"], sent[2]["content"]) == ("assistant", "on it")
    assert [(call["id"], call["type"]) for call in sent[2]["tool_calls"]] == [(id_, "function") for id_ in "1234"]
    assert [call["function"] for call in sent[2]["tool_calls"]] == [
        {"name": "shell", "arguments": '{"command": "ls"}'},
        {"name": "sh_ell", "arguments": '{"invalid_json": "{\\"command\\": "}'},
        {"name": "shell", "arguments": "{}"},
        {"name": "shell", "arguments": '{"invalid_json": "{\\"a\\": NaN}"}'},
    ]
    assert [entry["content"] for entry in sent[3:]] == ["a b", "error: broken", "Error: no", ""]
    assert [entry.get("tool_call_id") for entry in sent[3:]] == ["1", "2", "3", None]


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
            chunk({"content": "c", "refusal": None}, usage=None),
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


def test_tokens_written_to_the_cache() -> None:
    counts = {"prompt_tokens": 9, "completion_tokens": 3, "prompt_tokens_details": {"cache_write_tokens": 4}}
    found = parse_answer(chunk({"content": "x"}, finish="stop", usage=counts)).usage
    assert found == Usage(input_tokens=9, output_tokens=3, cache_write_tokens=4)


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning"])
@pytest.mark.parametrize("finish", [None, "stop", "length"])
def test_a_whole_message_is_an_answer(key: str, finish: str | None) -> None:
    message = {"role": "assistant", "content": "hi", key: "hm"}
    done = parse_answer({"choices": [{"message": message, "finish_reason": finish}]})
    assert done.message.parts == (Thinking(text="hm"), Text(text="hi"))
    assert done.is_cut == (finish == "length")


def test_a_whole_message_after_its_deltas_counts_once() -> None:
    repeated = {"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]}
    assert parse_answer(chunk({"content": "hi"}), repeated).message.text == "hi"
    wanted = [item(0, "a", "f", "{}")]
    repeated = {"choices": [{"message": {"tool_calls": wanted}, "finish_reason": "tool_calls"}]}
    assert len(parse_answer(chunk({"tool_calls": wanted}), repeated).message.tool_calls) == 1


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


@pytest.mark.parametrize("character", ["\U00010000", "\U0001f600", "\U0010ffff"])
def test_a_character_split_between_chunks_is_shown_whole(character: str) -> None:
    code = ord(character) - 0x10000
    first, second = chr(0xD800 + (code >> 10)), chr(0xDC00 + (code & 0x3FF))
    parser = OpenAIStreamParser()
    deltas = parser.feed(chunk({"content": f"abc{first}"})) + parser.feed(chunk({"content": f"{second}b\udc00"}))
    parser.feed(chunk({"content": first}, finish="stop"))
    assert [delta.text for delta in deltas if isinstance(delta, TextDelta)] == ["abc", f"{character}b\ufffd"]
    done = parser.build_message()
    assert done.message.text == f"abc{character}b\ufffd\ufffd"
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
        pytest.param([[item("0", 5, "f", "{")], [item(0.0, None, None, "}")]], [("5", "f", "{}")], id="loose types"),
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


WHOLE = {"choices": [{"message": {"content": "x", "reasoning": "y", "refusal": "z"}, "finish_reason": "stop"}]}
OLDER = chunk({"function_call": {"name": "f", "arguments": "{}"}})
LISTED = chunk({"content": [{"type": "text", "text": "b"}]})


@pytest.mark.parametrize("template", [chunk({"content": "x"}), *called(("1", "f", "{}"))[:1], WHOLE, OLDER, LISTED])
def test_an_error_names_the_key_of_the_wrong_value(template: Any) -> None:
    names = [(key, name_wrong_value(graft_value(template, 5.5, at))) for at, key in enumerate(list_keys(template))]
    wrong = [(key, name) for key, name in names if name]
    assert len(wrong) >= 4
    others = {0: ("a choice", "a tool call", "content"), "text": ("content",), "function_call": ("function",)}
    for key, name in wrong:
        assert name in others.get(key, (key,))


def list_keys(node: Any) -> list[Any]:
    pairs = list(node.items()) if isinstance(node, dict) else list(enumerate(node)) if isinstance(node, list) else []
    return [key for own, inner in pairs for key in (own, *list_keys(inner))]


def name_wrong_value(sent: Any) -> str:
    try:
        OpenAIStreamParser().feed(sent)
    except BrokenStreamError as error:
        return str(error).split(" as ")[1].split(" where ")[0]
    return ""


# --- embeddings


def vector(index: Any, *numbers: Any) -> dict[str, Any]:
    return {"index": index, "embedding": [*numbers]}


def test_vectors_come_in_the_order_of_the_texts() -> None:
    counts = {"prompt_tokens": 7}
    found = parse_embeddings({"data": [vector(1, 2, 0.5), vector(0, 1.5), vector(2, 3)], "usage": counts}, 3)
    assert found == Embeddings([[1.5], [2, 0.5], [3]], Usage(input_tokens=7))


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (5, "as the answer where an object belongs"),
        ({}, "0 vectors came for 2 texts"),
        ({"data": {}}, "as data where a list belongs"),
        ({"data": [5]}, "as data where an object belongs"),
        ({"data": [vector(0, 1)]}, "1 vectors came for 2 texts"),
        ({"data": [vector(0, 1), vector(1, 1), vector(2, 1)]}, "3 vectors came for 2 texts"),
        ({"data": [vector(0, 1), vector(1)]}, "some are empty"),
        ({"data": [vector(0, 1), vector("second", 1)]}, "as index where a number belongs"),
        ({"data": [vector(0, 1), {"index": 1, "embedding": {}}]}, "as embedding where a list belongs"),
        ({"data": [vector(0, 1), vector(1, 1, "2")]}, "something else than numbers"),
    ],
)
def test_vectors_that_is_empty(answer: Any, said: str) -> None:
    with pytest.raises(BrokenStreamError, match=said):
        parse_embeddings(answer, 2)


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


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 503, 529])
def test_the_wish_of_a_busy_server_is_kept(status: int) -> None:
    error = build_status_error(status, {"message": "busy"}, "m", "KEY", 7.5)
    assert (error.is_retryable, error.retry_after_s) == (True, 7.5)


@pytest.mark.parametrize("key", ["code", "type"])
def test_the_kind_of_a_refusal_counts_too(key: str) -> None:
    assert not build_status_error(429, {key: "insufficient_quota", "message": "x"}, "m", "KEY").is_retryable
    body = {key: "context_length_exceeded", "message": "x"}
    assert isinstance(build_status_error(400, body, "m", "KEY"), ContextLengthError)


def test_a_refusal_without_a_text_names_the_status() -> None:
    assert "(HTTP 500)" in str(build_status_error(500, None, "m", "KEY"))


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


def test_strict_roles_have_no_place_for_a_message_without_text() -> None:
    effort = Message(role="system", parts=(EffortChange(effort="low"),))
    done = Message(role="tool", parts=(ToolResult(call_id="a", output="one"),))
    messages = [Message.user("hi"), Message.assistant("one"), effort, Message.user("go"), done, effort]
    assert apply_strict_roles(messages) == [*messages[:2], *messages[3:5]]


def test_strict_roles_ask_for_the_image_of_a_message_after_results() -> None:
    picture = Image(name="p.png", media_type="image/png", source="p.png")
    joined = apply_strict_roles(
        [
            Message.assistant("", [ToolCall(id="a", name="look", arguments="{}")]),
            Message(role="tool", parts=(ToolResult(call_id="a", output="one"),)),
            Message(role="user", parts=(Text(text="see"), picture)),
        ]
    )
    assert [message.role for message in joined] == ["assistant", "tool", "assistant", "user"]
    assert joined[1].tool_results[0].output == "one\n\nsee"
    assert joined[3].images == (picture,)
