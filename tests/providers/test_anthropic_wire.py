"""Tests of the wire format of Anthropic: requests with cache marks, and parsed events."""

import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goose_like.core.errors import (
    BrokenStreamError,
    ContextLengthError,
    CredentialError,
    ModelUnavailableError,
    ProviderError,
    RateLimitError,
)
from goose_like.core.events import MessageCompleted, TextDelta, ThinkingDelta
from goose_like.core.images import save_image
from goose_like.core.message import (
    Image,
    Message,
    Part,
    RedactedThinking,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    Verbatim,
)
from goose_like.core.tool import ToolSpec
from goose_like.providers.anthropic_wire import (
    AnthropicEncoder,
    AnthropicStreamParser,
    encode_message,
    get_error_status,
)
from goose_like.providers.base import Request
from goose_like.providers.wire import build_status_error
from tests.loopback import block, ended, started, thought, wish, words

SHELL = ToolSpec("shell", "Runs a command.", {"type": "object", "properties": {"command": {"type": "string"}}})
MARK = b',"cache_control":{"type":"ephemeral"}'


def parse_answer(*events: Any) -> MessageCompleted:
    parser = AnthropicStreamParser()
    for event in events:
        parser.feed(event)
    return parser.build_message()


def whole(*blocks: list[Any], stop: Any = "end_turn") -> MessageCompleted:
    return parse_answer(started(), *(event for events in blocks for event in events), *ended(stop))


# --- requests

texts = st.text(st.characters(codec=None), max_size=20)
parts: st.SearchStrategy[Part] = st.one_of(
    st.builds(Text, text=texts),
    st.builds(Thinking, text=texts, signature=st.none() | st.just("sig")),
    st.builds(RedactedThinking, data=st.just("enc")),
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


@given(st.lists(messages, max_size=8), st.sampled_from(["", "be good"]), st.booleans())
def test_each_request_is_a_prefix_of_the_next_except_for_marks(
    history: list[Message], system: str, has_tools: bool
) -> None:
    encoder, before = AnthropicEncoder(), b""
    for end in range(len(history) + 1):
        request = Request("m", system, history[:end], (SHELL,) if has_tools else ())
        body = encoder.encode_request(request, {"max_tokens": 9})
        assert body == AnthropicEncoder().encode_request(request, {"max_tokens": 9})  # the cache changes nothing
        assert body.count(MARK) <= 3
        assert [*json.loads(body)][-1] == "messages"
        bare = body.replace(MARK, b"").removesuffix(b"]}")
        assert bare.startswith(before)
        before = bare


def find_marks(body: bytes) -> list[tuple[str, int]]:
    """Return the marks: the role of the message, and the mark's place."""
    entries = json.loads(body)["messages"]
    for entry in entries:
        assert not any("cache_control" in part for part in entry["content"][:-1])
    return [(entry["role"], at) for at, entry in enumerate(entries) if "cache_control" in entry["content"][-1]]


def test_every_request_has_a_mark_at_the_end_of_the_previous_one() -> None:
    encoder, history = AnthropicEncoder(), [Message.user("go")]
    end = 0
    for step in range(6):
        body = encoder.encode_request(Request("m", "be good", history, (SHELL,)))
        places = [at for _, at in find_marks(body)]
        assert places == ([end, len(history) - 1] if step else [0])
        assert json.loads(body)["system"] == [
            {"type": "text", "text": "be good", "cache_control": {"type": "ephemeral"}}
        ]
        end = len(history) - 1
        calls = [ToolCall(id=f"{step}_{n}", name="shell", arguments="{}") for n in range(15)]
        results = tuple(ToolResult(call_id=call.id, output="x") for call in calls)
        history += [Message.assistant("", calls), Message(role="tool", parts=results)]
        if step % 2:
            history.append(Message.user("a reminder"))


def test_a_long_cache_has_marks_of_an_hour() -> None:
    """All marks are alike, as those of an hour must stand before the others."""
    history = [Message.user("go"), Message.assistant("yes"), Message.user("on")]
    request = Request("m", "be good", history, (SHELL,))
    body = AnthropicEncoder(has_long_cache=True).encode_request(request)
    long_mark = b',"cache_control":{"type":"ephemeral","ttl":"1h"}'
    assert body.count(b"cache_control") == body.count(long_mark) == 3
    assert body.replace(long_mark, MARK) == AnthropicEncoder().encode_request(request)


def test_long_arguments_are_streamed_where_the_server_knows_how() -> None:
    long_tool = replace(SHELL, has_long_arguments=True)
    request = Request("m", "s", [Message.user("x")], (SHELL, long_tool))
    sent = json.loads(AnthropicEncoder(streams_arguments=True).encode_request(request))["tools"]
    assert [tool.get("eager_input_streaming") for tool in sent] == [None, True]
    assert b"eager" not in AnthropicEncoder().encode_request(request)


def test_the_first_request_has_one_mark_in_its_messages() -> None:
    history = [Message.user("go"), Message.user("now")]
    assert find_marks(AnthropicEncoder().encode_request(Request("m", "s", history))) == [("user", 1)]


def test_marks_without_a_system_prompt_and_without_tools() -> None:
    body = json.loads(AnthropicEncoder().encode_request(Request("m", " ", [Message.user("x")], (SHELL, SHELL))))
    assert ["cache_control" in tool for tool in body["tools"]] == [False, True]
    assert "system" not in body
    assert "tools" not in json.loads(AnthropicEncoder().encode_request(Request("m", "s", [Message.user("x")])))


@given(st.lists(messages, min_size=1, max_size=6), st.lists(messages, max_size=6))
def test_another_history_is_encoded_again(history: list[Message], other: list[Message]) -> None:
    encoder = AnthropicEncoder()
    for sent in (history, other, history[:1] + other, history):
        assert encoder.encode_request(Request("m", "s", sent)) == AnthropicEncoder().encode_request(
            Request("m", "s", sent)
        )


def test_a_changed_tool_or_prompt_is_sent() -> None:
    encoder = AnthropicEncoder()
    encoder.encode_request(Request("m", "old", [Message.user("x")], (SHELL,)))
    body = json.loads(encoder.encode_request(Request("m", "new", [Message.user("x")])))
    assert body["system"][0]["text"] == "new"
    assert "tools" not in body


ALL_PARTS = (
    Thinking(text="hm", signature="S"),
    RedactedThinking(data="E"),
    Thinking(text="", signature="hidden"),
    Thinking(text="another vendor's"),
    Text(text="on it"),
    Text(text=" \n"),
    ToolCall(id="1", name="shell", arguments='{"command":  "ls"}'),
    ToolCall(id="functions.x:2", name="sh ell", arguments='{"command": '),
    ToolCall(id="3", name="shell", arguments=""),
)


def test_the_body_of_a_whole_turn() -> None:
    history = [
        Message.user("go"),
        Message(role="assistant", parts=ALL_PARTS),
        Message(
            role="tool",
            parts=(
                ToolResult(call_id="1", output="a b"),
                ToolResult(call_id="functions.x:2", output="broken", is_error=True),
                ToolResult(call_id="3", output="", is_error=True),
            ),
        ),
        Message(role="assistant", parts=(Thinking(text="broke off"),)),
        Message.user("  "),
    ]
    sent = AnthropicEncoder().encode_request(Request("m", "be good", history, (SHELL,)), {"max_tokens": 9})
    body = json.loads(sent.replace(MARK, b""))
    assert [*body] == ["model", "stream", "max_tokens", "tools", "system", "messages"]
    assert body["tools"] == [{"name": "shell", "description": "Runs a command.", "input_schema": SHELL.schema}]
    assert body["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "go"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "on it"},
                {"type": "tool_use", "id": "1", "name": "shell", "input": {"command": "ls"}},
                {
                    "type": "tool_use",
                    "id": "functions_x_2",
                    "name": "sh_ell",
                    "input": {"invalid_json": '{"command": '},
                },
                {"type": "tool_use", "id": "3", "name": "shell", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "1", "content": "a b"},
                {"type": "tool_result", "tool_use_id": "functions_x_2", "content": "broken", "is_error": True},
                {"type": "tool_result", "tool_use_id": "3", "content": "(no output)", "is_error": True},
            ],
        },
        {"role": "user", "content": [{"type": "text", "text": "(nothing)"}]},
    ]
    assert b'"input":{"command":  "ls"}' in sent  # unchanged


def test_half_a_character_in_arguments_does_not_refuse_the_request() -> None:
    message = Message.assistant("", [ToolCall(id="1", name="t", arguments='{"path": "/tmp/a\udc80"}')])
    assert json.loads(encode_message(message))["content"][0]["input"] == {"path": "/tmp/a\ufffd"}


def test_images_of_users_and_results(tmp_path: Path) -> None:
    image = save_image(b"\x89PNG\r\n\x1a\n1", "a.png", tmp_path)
    lost = Image(name="lost.png", media_type="image/png", source="b.png")
    history = [
        Message(role="user", parts=(Text(text="see"), image)),
        Message.assistant("", [ToolCall(id="1", name="shell", arguments="")]),
        Message(role="tool", parts=(ToolResult(call_id="1", output="here", images=(image, lost)),)),
    ]
    body = AnthropicEncoder().encode_request(Request("m", "s", history, images=tmp_path))
    said, _, result = (entry["content"] for entry in json.loads(body.replace(MARK, b""))["messages"])
    source = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgox"}
    assert said == [{"type": "text", "text": "see"}, {"type": "image", "source": source}]
    assert result[0]["content"] == [
        {"type": "text", "text": "here"},
        {"type": "image", "source": source},
        {"type": "text", "text": "[image b.png: its file is gone]"},
    ]
    assert [at for _, at in find_marks(body)] == [0, 2]


def test_images_lie_in_another_folder_after_it_was_changed(tmp_path: Path) -> None:
    image = save_image(b"\x89PNG\r\n\x1a\n1", "a.png", tmp_path)
    encoder, history = AnthropicEncoder(), [Message(role="user", parts=(image,))]
    assert b"file is gone" in encoder.encode_request(Request("m", "s", history))
    assert b"iVBORw0KGgox" in encoder.encode_request(Request("m", "s", history, images=tmp_path))


# --- answers


def test_thinking_text_calls_and_usage() -> None:
    parser = AnthropicStreamParser()
    events = [
        started(cache_read_input_tokens=100, cache_creation_input_tokens=20, output_tokens=1),
        {"type": "ping"},
        *thought(0, "hm", "SIG"),
        *block(1, {"type": "redacted_thinking", "data": "ENC"}),
        *words(2, "a", "b"),
        *wish(3, "t1", "shell", "", '{"comm', 'and": "ls"}'),
        *words(4, "c"),
        *wish(5, "t2", "shell"),
        *block(6, {"type": "tool_use", "id": "t3", "name": "shell", "input": {"x": 1}}),
        *ended("tool_use", input_tokens=11),
    ]
    deltas = [delta for event in events for delta in parser.feed(event)]
    assert deltas == [ThinkingDelta(text="hm"), *(TextDelta(text=t) for t in "abc")]
    done = parser.build_message()
    assert done.message.parts == (
        Thinking(text="hm"),
        Text(text="ab"),
        ToolCall(id="t1", name="shell", arguments='{"command": "ls"}'),
        Text(text="c"),
        ToolCall(id="t2", name="shell", arguments="{}"),
        ToolCall(id="t3", name="shell", arguments='{"x":1}'),
    )
    assert done.usage == Usage(input_tokens=131, output_tokens=5, cache_read_tokens=100, cache_write_tokens=20)
    assert not done.is_cut


def test_tokens_that_stay_in_the_cache_for_an_hour() -> None:
    written = {"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 30}
    usage = {"cache_creation_input_tokens": 40, "cache_creation": written}
    begin = {"type": "message_start", "message": {"usage": {"input_tokens": 5, **usage}}}
    found = parse_answer(begin, *words(0, "x"), *ended()).usage
    assert found == Usage(input_tokens=45, output_tokens=5, cache_write_tokens=40, cache_write_long_tokens=30)


def test_a_whole_message_is_an_answer() -> None:
    usage = {"input_tokens": 7, "output_tokens": 3}
    content = [{"type": "thinking", "thinking": "hm", "signature": "S"}, {"type": "text", "text": "hi"}]
    event = {"type": "message", "content": content, "usage": usage}
    parser = AnthropicStreamParser()
    assert parser.feed(event) == [ThinkingDelta(text="hm"), TextDelta(text="hi")]
    done = parser.build_message()
    assert done.message.parts == (Thinking(text="hm"), Text(text="hi"))
    assert done.message.verbatim == Verbatim(wire="messages", origin="", items=tuple(content))
    assert done.usage == Usage(input_tokens=7, output_tokens=3)
    assert parse_answer(event | {"stop_reason": "max_tokens"}).is_cut


def test_a_stream_may_end_without_a_reason() -> None:
    assert parse_answer(started(), *words(0, "hi"), {"type": "message_stop"}).message.text == "hi"


def test_blocks_and_deltas_without_a_type() -> None:
    events = [started(), *thought(0, "hm", "S"), *words(1, "hi"), *wish(2, "a", "f", "{}"), *ended("tool_use")]
    for event in events:
        for key in ("content_block", "delta"):
            event.get(key, {}).pop("type", None)
    assert parse_answer(*events).message.parts == (
        Thinking(text="hm"),
        Text(text="hi"),
        ToolCall(id="a", name="f", arguments="{}"),
    )


def give_back(done: MessageCompleted, origin: str = "", **how: bool) -> list[Any]:
    """Return the blocks of an answer as they are sent again."""
    sent = encode_message(done.message, None, origin, **how)
    return list(json.loads(sent)["content"]) if sent else []


@pytest.mark.parametrize(("text", "signature"), [("hm", ""), ("", "S"), ("", "")])
def test_thinking_without_text_or_signature_returns_as_it_came(text: str, signature: str) -> None:
    done = whole(thought(0, text, signature), words(1, "hi"))
    assert done.message.text == "hi"
    assert give_back(done) == [
        {"type": "thinking", "thinking": text, "signature": signature},
        {"type": "text", "text": "hi"},
    ]


CALLER = {"type": "code_execution_20260120", "tool_id": "s1"}
RESULT = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"encrypted_content": "E", "url": "u"}]}


def test_every_block_returns_as_it_came() -> None:
    search = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}
    cited = [{"type": "citations_delta", "citation": {"url": "u"}}, {"type": "text_delta", "text": "b"}]
    done = whole(
        thought(0, "hm", "S"),
        words(1, " \n"),
        block(2, {"type": "redacted_thinking", "data": "E"}),
        block(3, search, {"type": "input_json_delta", "partial_json": '{"query": "x"}'}),
        block(4, RESULT),
        block(5, {"type": "text", "text": "a", "citations": None}, *cited),
        block(6, {"type": "new", "note": "N", "data": "x"}, {"type": "new_delta", "note": "o", "size": 1}),
        block(
            7,
            {"type": "tool_use", "id": "t:1", "name": "shell", "input": {}, "caller": CALLER},
            {"type": "input_json_delta", "partial_json": '{"command":  "ls", "x": 1.0}'},
        ),
        stop="tool_use",
    )
    assert [part.type for part in done.message.parts] == ["thinking", "text", "text", "tool_call"]
    assert done.message.text == " \n\n\nab"  # after a search begins a paragraph
    assert give_back(done) == [
        {"type": "thinking", "thinking": "hm", "signature": "S"},
        {"type": "text", "text": " \n"},
        {"type": "redacted_thinking", "data": "E"},
        {**search, "input": {"query": "x"}},
        RESULT,
        {"type": "text", "text": "ab", "citations": [{"url": "u"}]},
        {"type": "new", "note": "No", "data": "x"},
        {
            "type": "tool_use",
            "id": "t_1",
            "name": "shell",
            "caller": CALLER,
            "input": {"command": "ls", "x": 1.0},
        },
    ]
    assert b'"input":{"command":  "ls", "x": 1.0}' in encode_message(done.message)
    assert [item["type"] for item in give_back(done, keeps_blanks=False)] == [
        *("thinking", "redacted_thinking", "server_tool_use", "web_search_tool_result", "text", "new", "tool_use")
    ]


def test_another_server_gets_no_thinking_and_no_foreign_block() -> None:
    done = whole(thought(0, "hm", "S"), block(1, RESULT), words(2, "hi"), wish(3, "t1", "shell", "{}"))
    assert [item["type"] for item in give_back(done, "elsewhere")] == ["text", "tool_use"]
    assert json.loads(encode_message(done.message.strip_thinking({})))["content"] == give_back(done, "elsewhere")


def test_a_call_returns_under_its_new_id() -> None:
    done = whole(wish(0, "t1", "a", "{}"), wish(1, "t1", "b", "{}"), stop="tool_use")
    parts = (done.message.tool_calls[0], done.message.tool_calls[1].model_copy(update={"id": "call_2"}))
    changed = done.model_copy(update={"message": done.message.model_copy(update={"parts": parts})})
    assert [(item["id"], item["name"]) for item in give_back(changed)] == [("t1", "a"), ("call_2", "b")]


def test_what_is_left_of_a_cut_answer_is_valid() -> None:
    search = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}
    done = whole(
        thought(0, "hm", "S"),
        words(1, "hi"),
        block(2, search),
        block(3, RESULT),
        thought(4, "half a thou", ""),
        block(5, search | {"id": "s2"}, {"type": "input_json_delta", "partial_json": '{"que'}),
        wish(6, "t1", "shell", '{"comm'),
        stop="max_tokens",
    )
    assert give_back(done) == [
        {"type": "thinking", "thinking": "hm", "signature": "S"},
        {"type": "text", "text": "hi"},
        search,
        RESULT,
        {"type": "tool_use", "id": "t1", "name": "shell", "input": {"invalid_json": '{"comm'}},
    ]


@pytest.mark.parametrize("last", ["<", "<thi", "a <"])
def test_what_may_be_the_start_of_a_tag_is_kept(last: str) -> None:
    done = whole(words(0, "1 ", last), wish(1, "a", "f"), words(2, "2 ", last), thought(3, "hm", "S"))
    assert [part.text for part in done.message.parts if isinstance(part, Text)] == [f"1 {last}", f"2 {last}"]


def test_all_text_is_shown_before_the_next_block() -> None:
    parser = AnthropicStreamParser()
    shown = [delta for event in [started(), *words(0, "\n"), *words(1, "hi")] for delta in parser.feed(event)]
    assert shown == [TextDelta(text="\n"), TextDelta(text="hi")]


def test_blocks_side_by_side_are_put_in_the_order_of_their_indexes() -> None:
    first, second = wish(1, "a", "f", "{", "}"), words(0, "x", "y")
    mixed = [event for pair in zip(first, second, strict=True) for event in pair]
    assert [part.type for part in whole(mixed).message.parts] == ["text", "tool_call"]


def test_unknown_events_are_ignored() -> None:
    done = parse_answer(
        {"type": "fanfare", "index": 7},
        started(),
        {"type": "fanfare"},
        *block(0, {"type": "server_tool_use", "id": "s", "input": {}}, {"type": "input_json_delta_2", "x": 1}),
        *block(1, {"type": "text", "text": "he"}, {"type": "citations_delta", "citation": {}}),
        *words(2, "llo"),
        *ended(),
    )
    assert done.message.parts == (Text(text="he"), Text(text="llo"))


@pytest.mark.parametrize("stop", ["max_tokens", "model_context_window_exceeded", "pause_turn"])
def test_cut_answers(stop: str) -> None:
    done = whole(words(0, "half an ans"), stop=stop)
    assert done.is_cut
    assert done.message.text == "half an ans"


@pytest.mark.parametrize(
    ("pieces", "arguments"), [(('{"x": "unfin',), '{"x": "unfin'), ((), "{"), (("{", "}"), "{"), (("",), "{")]
)
def test_a_cut_call_never_looks_complete(pieces: tuple[str, ...], arguments: str) -> None:
    done = whole(wish(0, "a", "f", '{"ok": 1}'), wish(1, "b", "g", *pieces), stop="max_tokens")
    assert done.is_cut
    assert [call.arguments for call in done.message.tool_calls] == ['{"ok": 1}', arguments]


@pytest.mark.parametrize("stop", ["end_turn", "stop_sequence", "tool_use"])
def test_complete_answers(stop: str) -> None:
    assert not whole(words(0, "x"), stop=stop).is_cut


def delta(index: Any, **keys: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": keys}


@pytest.mark.parametrize(
    ("events", "said"),
    [
        pytest.param([started(), *words(0, "x")], "stop reason", id="no end"),
        pytest.param([started(), *words(0, "x"), *ended("bored")], "'bored'", id="an unknown stop reason"),
        pytest.param([], "stop reason", id="nothing at all"),
        pytest.param([started(), *ended()], "empty", id="no content"),
        pytest.param([started(), *thought(0, "hm", "S"), *ended()], "empty", id="only thinking"),
        pytest.param([started(), *thought(0, "hm", "S"), *ended("max_tokens")], "max_output_tokens", id="only began"),
        pytest.param([started(), *words(0, "x"), started(), *words(0, "y")], "twice", id="two answers"),
        pytest.param([started(), delta(0, type="text_delta", text="x")], "never began", id="no block"),
        pytest.param([started(), *words(0, "x"), delta(1, type="text_delta", text="x")], "block 1", id="another block"),
        pytest.param([started(), *words(0, "x"), *words(0, "y")], "twice", id="an index twice"),
        pytest.param([started(), *words(0, "x"), delta(0, type="thinking_delta")], "within a block", id="wrong delta"),
        pytest.param([started(), *wish(0, "a", ""), *ended()], "without a name", id="no name"),
        pytest.param([started(), *block(0, {"data": 1})], "without a type", id="no type"),
    ],
)
def test_invalid_answers(events: list[Any], said: str) -> None:
    with pytest.raises(BrokenStreamError, match=said):
        parse_answer(*events)


def test_a_refusal_is_not_retried_and_gives_the_reason() -> None:
    stop = {"stop_reason": "refusal", "stop_details": {"category": "cyber", "explanation": "no malware"}}
    with pytest.raises(ProviderError, match="declined to answer: cyber: no malware; ") as caught:
        parse_answer(started(), *words(0, "I"), {"type": "message_delta", "delta": stop}, {"type": "message_stop"})
    assert not caught.value.is_retryable
    with pytest.raises(ProviderError, match="declined to answer; "):
        whole(stop="refusal")


@pytest.mark.parametrize(
    "sent",
    [
        [],
        "x",
        5,
        {"type": []},
        {"type": "message_start", "message": []},
        {**words(0)[0], "index": "first"},
        {**words(0)[0], "index": True},
        {"type": "content_block_start", "index": 0, "content_block": "text"},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": 5.5}},
        {"type": "content_block_delta", "index": 0, "delta": []},
        {"type": "message_delta", "delta": {"stop_reason": True}},
    ],
)
def test_a_wrong_type_is_named(sent: Any) -> None:
    parser = AnthropicStreamParser()
    if not (isinstance(sent, dict) and sent["type"] == "message_start"):
        parser.feed(started())
    with pytest.raises(BrokenStreamError, match="belongs"):
        parser.feed(sent)


@pytest.mark.parametrize(
    ("event", "key", "name"),
    [
        ({}, None, "an event"),
        ({"type": 5.5}, None, "type"),
        ({"type": "message_start"}, "message", "message"),
        ({"type": "message_delta"}, "delta", "delta"),
        ({"type": "message_delta", "delta": {"stop_reason": 5.5}}, None, "stop_reason"),
        ({"type": "message_delta", "delta": {"stop_details": 5.5}}, None, "stop_details"),
        ({"type": "message"}, "content", "content"),
        ({"type": "message", "content": [5.5]}, None, "content_block"),
        ({"type": "content_block_start"}, "index", "index"),
        ({"type": "content_block_start"}, "content_block", "content_block"),
        ({"type": "content_block_start", "content_block": {"type": 5.5}}, None, "type"),
        ({"type": "content_block_start", "content_block": {"type": "text", "text": 5.5}}, None, "text"),
        ({"type": "content_block_start", "content_block": {"type": "text", "signature": 5.5}}, None, "signature"),
        ({"type": "content_block_delta"}, "delta", "delta"),
        ({"type": "content_block_delta"}, "index", "index"),
        ({"type": "content_block_delta", "delta": {"type": 5.5}}, None, "type"),
        ({"type": "content_block_delta", "delta": {"type": "text_delta", "text": 5.5}}, None, "text"),
    ],
)
def test_an_error_names_the_key_of_the_wrong_value(event: Any, key: str | None, name: str) -> None:
    parser = AnthropicStreamParser()
    parser.feed(words(0)[0])
    with pytest.raises(BrokenStreamError, match=f" has 5.5 as {name} where "):
        parser.feed(event | {key: 5.5} if key else event or 5.5)


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
EXAMPLE = [started(), *thought(0, "t", "S"), *words(1, "x"), *wish(2, "a", "f", "{}"), *ended("tool_use")]


@given(junk, st.integers(0, 200))
def test_junk_anywhere_is_an_answer_or_one_of_our_errors(graft: Any, at: int) -> None:
    places: list[tuple[Any, Any]] = []

    def walk(node: Any) -> None:
        for key in list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ():
            places.append((node, key))
            walk(node[key])

    events = json.loads(json.dumps(EXAMPLE))
    walk(events)
    node, key = places[at % len(places)]
    node[key] = graft
    with suppress(ProviderError):
        parse_answer(*events).model_dump_json()


# --- refusals


def error(kind: str, message: str = "no way") -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}}


def build_error(body: Any) -> ProviderError:
    return build_status_error(get_error_status(body), body, "m", "KEY")


@pytest.mark.parametrize(
    ("kind", "expected", "is_retryable", "exit_code"),
    [
        ("invalid_request_error", ProviderError, False, 1),
        ("authentication_error", CredentialError, False, 76),
        ("billing_error", RateLimitError, False, 75),
        ("permission_error", CredentialError, False, 76),
        ("not_found_error", ModelUnavailableError, False, 77),
        ("request_too_large", ContextLengthError, False, 1),
        ("rate_limit_error", RateLimitError, True, 75),
        ("overloaded_error", ModelUnavailableError, True, 77),
        ("api_error", ModelUnavailableError, True, 77),
        ("made_up_error", ModelUnavailableError, True, 77),
    ],
)
def test_an_error_within_the_stream(
    kind: str, expected: type[ProviderError], is_retryable: bool, exit_code: int
) -> None:
    found = build_error(error(kind))
    assert (type(found), found.is_retryable, found.exit_code) == (expected, is_retryable, exit_code)
    assert "no way" in str(found)


@pytest.mark.parametrize(
    "message",
    [
        "prompt is too long: 1000001 tokens > 1000000 maximum",
        "input length and `max_tokens` exceed context limit: 1 + 2 > 2",
    ],
)
def test_too_long_a_request(message: str) -> None:
    assert isinstance(build_error(error("invalid_request_error", message)), ContextLengthError)


def test_missing_credit_is_not_retried() -> None:
    message = "Your credit balance is too low to access the Anthropic API."
    found = build_error(error("invalid_request_error", message))
    assert isinstance(found, RateLimitError)
    assert not found.is_retryable


@pytest.mark.parametrize("body", [None, "", "<html>", [], {"error": "x"}, {"error": None}, 5])
def test_a_refusal_without_sense_in_its_body(body: Any) -> None:
    assert isinstance(build_error(body), ModelUnavailableError)
