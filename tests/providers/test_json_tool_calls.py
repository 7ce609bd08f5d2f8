"""Tests of tool calls as JSON text: the instructions, the schema, and the parser with answers cut anywhere."""

import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel

from goose_like.core.errors import BrokenStreamError, ProviderError
from goose_like.core.events import MessageCompleted, TextDelta, ThinkingDelta
from goose_like.core.message import Message, Part, Text, Thinking, ToolCall, ToolResult, Usage
from goose_like.core.tool import ToolSpec, make_tool
from goose_like.providers.base import Request
from goose_like.providers.json_tool_calls import (
    FINISH,
    TextCallParser,
    build_answer_schema,
    convert_request,
    keep_required_arguments,
)
from goose_like.providers.openai_wire import OpenAIEncoder
from tests.loopback import chunk, usage

SHELL = ToolSpec(
    "shell",
    "Runs a command line.",
    {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
)
CLOCK = ToolSpec("clock", "Tells the time.", {"type": "object", "properties": {}})

texts = st.text(max_size=20)
parts: st.SearchStrategy[Part] = st.one_of(
    st.builds(Text, text=texts),
    st.builds(Thinking, text=texts),
    st.builds(ToolCall, id=st.sampled_from("abc"), name=texts, arguments=texts | st.just('{"a": 1}')),
)
results = st.builds(ToolResult, call_id=st.sampled_from("abc"), output=texts, is_error=st.booleans())
messages = st.one_of(
    st.builds(Message.user, texts),
    st.builds(Message, role=st.just("assistant"), parts=st.lists(parts, max_size=4).map(tuple)),
    st.builds(Message, role=st.just("tool"), parts=st.lists(results, max_size=3).map(tuple)),
)


def convert(*history: Message) -> list[Message]:
    return list(convert_request(Request("m", "be good", history, (SHELL, CLOCK))).messages)


# --- requests


@given(st.lists(messages, max_size=8))
def test_a_longer_history_only_adds(history: list[Message]) -> None:
    encoder, before = OpenAIEncoder(), b""
    for end in range(len(history) + 1):
        plain = convert_request(Request("m", "be good", history[:end], (SHELL, CLOCK)))
        body = encoder.encode_request(plain)
        newest_roles = [message.role for message in plain.messages][-2:]
        is_joined = newest_roles == ["user", "user"]
        assert is_joined or body.startswith(before)
        before = body.removesuffix(b"]}")


@given(st.lists(messages, max_size=8))
def test_the_request_is_plain_text(history: list[Message]) -> None:
    plain = convert_request(Request("m", "be good", history, (SHELL, CLOCK)))
    assert len(plain.messages) == len(history)
    assert plain.tools == ()
    for old, new in zip(history, plain.messages, strict=True):
        assert new.role == ("assistant" if old.role == "assistant" else "user")
        assert all(isinstance(part, Text) for part in new.parts)
        if old.role != "assistant":
            assert all(result.output in new.text for result in old.tool_results)


def test_the_system_prompt_describes_the_tools() -> None:
    asked = Request("m", "be good", [Message.user("go")], (SHELL, CLOCK))
    system = convert_request(asked).system
    assert system.startswith("be good")
    for tool in (SHELL, CLOCK, FINISH):
        assert tool.name in system
        assert tool.description in system
    assert "command" in system
    assert (
        convert_request(Request("m", "", [], (SHELL,))).system.strip()
        == convert_request(Request("m", "", [], (SHELL,))).system
    )
    plain = Request("m", "be good", [Message.user("go")], added_tools=())
    assert convert_request(plain) == plain


def test_results_name_their_tool_and_say_what_failed() -> None:
    calls = (
        ToolCall(id="1", name="shell", arguments='{"command": "ls"}'),
        ToolCall(id="2", name="clock", arguments=""),
    )
    answered = Message(
        role="tool",
        parts=(ToolResult(call_id="1", output="a b"), ToolResult(call_id="2", output="no battery", is_error=True)),
    )
    sent = convert(Message.user("go"), Message.assistant("on it", calls), answered)
    assert sent[0].text == "go"
    assert "on it" in sent[1].text
    assert [json.loads(line) for line in sent[1].text.splitlines() if line.startswith("{")] == [
        {"tool": "shell", "arguments": {"command": "ls"}},
        {"tool": "clock", "arguments": {}},
    ]
    first, second = sent[2].text.index("a b"), sent[2].text.index("no battery")
    assert "shell" in sent[2].text[:first]
    assert "error" not in sent[2].text[:first].lower()
    assert "clock" in sent[2].text[first:second]
    assert "error" in sent[2].text[first:second].lower()


def test_thinking_is_not_sent_back() -> None:
    thought = Message(role="assistant", parts=(Thinking(text="secret"), Text(text="words")))
    assert "secret" not in convert(thought)[0].text


# The history repeats the model's own text, so that the server's cache matches.


@given(st.dictionaries(texts, st.integers() | texts, max_size=3), st.booleans(), st.sampled_from([None, 1]))
def test_a_call_is_repeated_exactly(arguments: dict[str, Any], is_ascii: bool, indent: int | None) -> None:
    written = f'{{"tool": "shell", "arguments": {json.dumps(arguments, ensure_ascii=is_ascii, indent=indent)}}}'
    assert convert(parse_answer(written).message)[0].text == written


@given(texts)
def test_an_answer_is_repeated_exactly(answer: str) -> None:
    written = finish(answer)
    assert convert(parse_answer(written).message)[0].text == written


# --- the schema


class Tree(BaseModel):
    label: str
    children: list["Tree"] = []
    owner: "Person | None" = None


class Person(BaseModel):
    name: str
    tree: Tree | None = None


async def plant(
    tree: Tree, type: str, enum: dict[str, int], depth: int | str = 3, items: list[str] | None = None
) -> str:
    """Plants a tree.

    Args:
        tree: what to plant
        type: a name that is a word of JSON schema
        enum: another one
        depth: in metres
        items: the tools
    """
    return ""


PLANT = make_tool(plant).spec
ANYTHING = ToolSpec(
    "anything",
    "Takes what comes.",
    {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "a": True,
            "b": {"not": {"type": "null"}},
            "c": {"oneOf": [{"const": 1}, {"type": "string", "format": "uri", "pattern": "^x"}]},
            "d": {"allOf": [{"$ref": "#/$defs/Size"}], "default": 1},
            "e": {
                "type": "array",
                "items": {"type": ["string", "null"]},
                "uniqueItems": True,
                "contains": {"const": 1},
            },
            "f": {"enum": ["x", 1, None]},
        },
        "required": ["b", "f"],
        "if": {"required": ["a"]},
        "then": {"required": ["c"]},
        "$defs": {"Size": {"type": "integer", "multipleOf": 3}},
    },
)

# Source: llguidance's documentation ("JSON schema support"). All servers with `response_format` support them.
KNOWN = {"type", "const", "enum", "items", "anyOf", "properties", "required", "additionalProperties"}
KNOWN |= {"minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum"}


def schemas_in(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield the schema and all schemas in it. Property names are no keywords."""
    if not isinstance(schema, dict):
        return
    yield schema
    below = [*schema.get("properties", {}).values(), *schema.get("anyOf", ())]
    for one in (*below, schema.get("items"), schema.get("additionalProperties")):
        yield from schemas_in(one)


@pytest.mark.parametrize("tools", [[], [SHELL], [SHELL, CLOCK, PLANT, ANYTHING]], ids=len)
def test_the_schema_holds_each_tool_and_the_final_answer(tools: list[ToolSpec]) -> None:
    schema = build_answer_schema(tools)
    json.dumps(schema)
    choices = schema["anyOf"]
    assert [choice["properties"]["tool"]["const"] for choice in choices] == [*(tool.name for tool in tools), "finish"]
    for choice, tool in zip(choices, [*tools, FINISH], strict=True):
        # The name comes first, because the arguments depend on it and the parser reads in this order.
        assert [*choice["properties"]] == choice["required"] == ["tool", "arguments"]
        assert choice["additionalProperties"] is False
        arguments = choice["properties"]["arguments"]
        assert arguments["type"] == "object"
        assert set(arguments["properties"]) == set(tool.schema.get("properties", {}))
        assert set(arguments.get("required", ())) == set(tool.schema.get("required", ()))


@pytest.mark.parametrize("of", [lambda tool: tool, keep_required_arguments], ids=["whole", "brief"])
def test_the_schema_has_only_supported_keywords(of: Any) -> None:
    for schema in schemas_in(build_answer_schema([of(tool) for tool in (SHELL, CLOCK, PLANT, ANYTHING)])):
        assert set(schema) <= KNOWN
        assert set(schema.get("required", ())) <= set(schema.get("properties", {}))
        if "properties" in schema:
            assert schema["type"] == "object"
            assert schema["additionalProperties"] is False


def test_a_recursive_type_ends() -> None:
    tree = build_answer_schema([PLANT])["anyOf"][0]["properties"]["arguments"]["properties"]["tree"]
    assert tree["properties"]["label"] == {"type": "string"}
    while tree:
        assert tree["properties"]["children"]["type"] == "array"
        tree = tree["properties"]["children"]["items"]  # in the end {}, which allows anything


# --- answers


def finish(answer: str, **how: Any) -> str:
    return json.dumps({"tool": "finish", "arguments": {"answer": answer}}, **{"ensure_ascii": False} | how)


def pieces(text: str, cuts: Sequence[int]) -> list[str]:
    at = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    return [text[a:b] for a, b in pairwise(at)]


def stream(parser: TextCallParser, sent: Sequence[str], reason: str) -> str:
    """Return the text that people see of an answer in these pieces."""
    deltas = [delta for piece in sent for delta in parser.feed(chunk({"content": piece}))]
    deltas += [*parser.feed(chunk(finish=reason)), *parser.feed(usage(7, 3))]
    return "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))


def parse_answer(text: str, cuts: Sequence[int] = (), reason: str = "stop") -> MessageCompleted:
    parser = TextCallParser()
    stream(parser, pieces(text, cuts), reason)
    return parser.build_message()


splits = st.lists(st.integers(0, 500), max_size=12)
wrappings = st.sampled_from(["{}", "\n {}\n", "```json\n{}\n```", "```\n{}\n```", "{}\n\nDone."])
arguments = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda values: st.lists(values, max_size=3) | st.dictionaries(texts, values, max_size=3),
    max_leaves=6,
).flatmap(lambda value: st.dictionaries(texts, st.just(value), max_size=2))


@given(st.text(max_size=60), splits, st.booleans(), wrappings)
@example('é\U0001f600"\\\n\x00', list(range(200)), True, "{}")
def test_the_final_answer_streams(answer: str, cuts: list[int], is_ascii: bool, around: str) -> None:
    text = around.replace("{}", finish(answer, ensure_ascii=is_ascii))
    parser = TextCallParser()
    shown = stream(parser, pieces(text, cuts), "stop")
    done = parser.build_message()
    assert shown == done.message.text == answer
    assert done.message.tool_calls == ()
    assert done.usage == Usage(input_tokens=7, output_tokens=3)
    assert not done.is_cut


def test_text_is_shown_at_once() -> None:
    parser, answer = TextCallParser(), "It is done."
    text = finish(answer)
    start = text.index(answer)
    assert parser.feed(chunk({"content": text[:start]})) == []
    assert [parser.feed(chunk({"content": letter})) for letter in answer] == [[TextDelta(text=c)] for c in answer]
    assert parser.feed(chunk({"content": text[start + len(answer) :]})) == []


@given(arguments, splits, st.sampled_from([None, 2]), wrappings)
def test_a_tool_call(value: dict[str, Any], cuts: list[int], indent: int | None, around: str) -> None:
    written = json.dumps(value, indent=indent)
    parser = TextCallParser()
    text = around.replace("{}", f'{{"tool": "shell", "arguments": {written}}}')
    assert stream(parser, pieces(text, cuts), "stop") == ""
    done = parser.build_message()
    assert [(call.name, call.arguments) for call in done.message.tool_calls] == [("shell", written)]
    assert done.message.text == ""
    assert not done.is_cut


@given(splits)
def test_words_before_a_call_are_kept(cuts: list[int]) -> None:
    message = parse_answer('I look first.\n{"tool": "shell", "arguments": {"command": "ls"}} Well?', cuts).message
    assert message.text == "I look first."
    assert [(call.name, call.arguments) for call in message.tool_calls] == [("shell", '{"command": "ls"}')]


def test_an_unknown_tool_is_a_call_that_the_exchange_can_refuse() -> None:
    message = parse_answer('{"tool": "teleport", "arguments": {"to": "Mars"}}').message
    assert [(call.name, call.arguments) for call in message.tool_calls] == [("teleport", '{"to": "Mars"}')]


def test_thinking_is_shown_and_kept() -> None:
    parser = TextCallParser()
    assert parser.feed(chunk({"reasoning_content": "hm"})) == [ThinkingDelta(text="hm")]
    stream(parser, ['{"tool": "clock", "arguments": {}}'], "stop")
    thinking, call = parser.build_message().message.parts
    assert thinking == Thinking(text="hm")
    assert isinstance(call, ToolCall)


@given(st.text(st.characters(exclude_characters="{`", codec="utf-8"), min_size=1).filter(str.strip), splits)
@example('{"primes": [2, 3]}', [3, 9])
@example("```python\nprint(1)\n```", [1, 4])
@example("`ls` lists", [])
def test_other_json_is_the_answer(text: str, cuts: list[int]) -> None:
    parser = TextCallParser()
    shown = stream(parser, pieces(text, cuts), "stop")
    message = parser.build_message().message
    assert message.text.strip() == text.strip()
    assert message.text.startswith(shown)
    assert "<".startswith(message.text[len(shown) :].strip()[:1])  # only the start of a tag is shown at the end
    assert message.tool_calls == ()


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


CALL = '{"tool": "shell", "arguments": {"command": "printf \'\\u00e9\\n\'", "timeout_s": 10}}'


@given(st.integers(CALL.index("command"), len(CALL) - 2), splits)
def test_a_cut_call_is_broken(end: int, cuts: list[int]) -> None:
    done = parse_answer(CALL[:end], cuts, "length")
    assert done.is_cut
    (call,) = done.message.tool_calls
    assert call.name == "shell"
    assert CALL[:end].endswith(call.arguments)
    assert not is_json(call.arguments)


def test_a_call_without_its_last_brace_is_complete() -> None:
    done = parse_answer(CALL[:-1], (), "length")
    assert [call.arguments for call in done.message.tool_calls] == [CALL[CALL.index('{"command') : -1]]
    assert not done.is_cut


@pytest.mark.parametrize("text", ['{"tool": "clock"', '{"tool": "clock", "arguments": '])
def test_a_call_cut_before_its_arguments(text: str) -> None:
    done = parse_answer(text, (), "length")
    assert done.is_cut
    assert not is_json(done.message.tool_calls[0].arguments.strip() or "{}")


@pytest.mark.parametrize("text", ['{"tool": "clock"}', '```json\n{"tool": "clock"}\n```'])
def test_a_whole_call_without_arguments_has_none(text: str) -> None:
    (call,) = parse_answer(text).message.tool_calls
    assert json.loads(call.arguments.strip() or "{}") == {}


@given(st.text(max_size=30), st.integers(0, 400), splits, st.booleans())
def test_a_cut_answer_keeps_what_came(answer: str, end: int, cuts: list[int], is_ascii: bool) -> None:
    whole = finish(answer, ensure_ascii=is_ascii)
    begin = whole.index('"answer": "') + len('"answer": "')
    text = whole[: begin + end]
    parser = TextCallParser()
    shown = stream(parser, pieces(text, cuts), "length")
    done = parser.build_message()
    assert shown == done.message.text
    assert answer.startswith(shown)
    assert done.is_cut == (len(text) < len(whole) - 1)
    assert len(shown) == len(answer) or done.is_cut


@pytest.mark.parametrize("text", ["{", '{"to', '{"tool": ', '{"tool": "she', '```json\n{"tool"', "\n ```js"])
def test_cut_before_a_tool_is_named(text: str) -> None:
    with pytest.raises(BrokenStreamError) as caught:
        parse_answer(text, (), "length")
    assert not caught.value.is_retryable  # the same limit cuts it again
    with pytest.raises(BrokenStreamError) as caught:
        parse_answer(text, (), "stop")
    assert caught.value.is_retryable


@pytest.mark.parametrize("reason", ["stop", "length"])
def test_an_empty_answer_is_an_error(reason: str) -> None:
    with pytest.raises(BrokenStreamError):
        parse_answer("", (), reason)


def test_a_stream_without_its_end_is_an_error() -> None:
    parser = TextCallParser()
    parser.feed(chunk({"content": finish("done")}))
    with pytest.raises(BrokenStreamError):
        parser.build_message()


shards = [
    '{"tool": "',
    "finish",
    "shell",
    '", "arguments": ',
    '{"answer": "',
    "{",
    "}",
    '"',
    "\\",
    "\\ud83d",
    "```json",
]


@given(st.lists(st.sampled_from(shards) | texts).map("".join), splits, st.sampled_from(["stop", "length", "weird"]))
@example('{"tool": "shell", "arguments": ' + "[" * 100_000, [], "stop")
@example('{"tool": "finish", "arguments": {"answer": "a\\ud83d', [], "length")
@example('{"tool": "finish", "arguments": {"answer": "\\ud83d"}}', [], "stop")
@example('{"tool": "finish", "arguments": [NaN]}', [], "stop")
def test_any_text_gives_a_message_or_a_provider_error(text: str, cuts: list[int], reason: str) -> None:
    try:
        done = parse_answer(text, cuts, reason)
    except ProviderError:
        return
    assert MessageCompleted.model_validate_json(done.model_dump_json()) == done
    convert(done.message)
