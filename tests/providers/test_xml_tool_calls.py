"""Tests of tool calls as XML tags: the instructions, the grammar, and the parser with answers cut anywhere."""

import json
from dataclasses import replace
from typing import Any

import pytest
from goose_like_toolkits.code.toolkit import CodeToolkit
from goose_like_toolkits.developer.toolkit import DeveloperToolkit
from goose_like_toolkits.openbb.toolkit import OpenBBToolkit
from hypothesis import example, given
from hypothesis import strategies as st

from goose_like.core.errors import BrokenStreamError, ProviderError
from goose_like.core.events import MessageCompleted, TextDelta
from goose_like.core.example import Example, ExampleCall
from goose_like.core.message import Message, Text, ToolCall, ToolResult
from goose_like.core.tool import ToolSpec, make_tool
from goose_like.providers.base import Request
from goose_like.providers.json_tool_calls import TextCallParser, convert_request
from goose_like.providers.xml_tool_calls import (
    XmlCallFormat,
    build_grammar,
    list_stop_texts,
    repeat_task,
    select_examples,
)
from tests.loopback import chunk


def spec(name: str, **fields: dict[str, Any]) -> ToolSpec:
    return ToolSpec(name, f"Does {name}.", {"type": "object", "properties": fields, "required": list(fields)})


TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
SHELL = spec("shell", command=TEXT)
WRITE = replace(spec("write_file", path=TEXT, content=TEXT), has_long_arguments=True)
CLOCK, COUNT = spec("clock"), spec("count", word=TEXT, times=NUMBER)
TOOLS = (SHELL, WRITE, CLOCK, COUNT)
TAGS = XmlCallFormat(TOOLS)
SHIPPED = (DeveloperToolkit.examples, CodeToolkit.examples, OpenBBToolkit.examples)


def parse_answer(text: str, reason: str = "stop") -> tuple[MessageCompleted, str]:
    parser = TextCallParser(TAGS)
    deltas = [delta for letter in text for delta in parser.feed(chunk({"content": letter}))]
    parser.feed(chunk(finish=reason))
    return parser.build_message(), "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))


@pytest.mark.parametrize(
    ("text", "name", "arguments"),
    [
        ("<shell>\nls -l\n", "shell", {"command": "ls -l"}),
        ("<shell>\nls -l\n</shell>", "shell", {"command": "ls -l"}),
        ("<shell>\n", "shell", {"command": ""}),
        ('<shell>\ncd a\necho "<b>"\n', "shell", {"command": 'cd a\necho "<b>"\n'}),
        (
            '<write_file path="a \\"b\\".py">\nprint(1)\n\n',
            "write_file",
            {"path": 'a "b".py', "content": "print(1)\n\n"},
        ),
        ("<clock></clock>", "clock", {}),
        ('<count word="a" times=3></count>', "count", {"word": "a", "times": 3}),
    ],
)
def test_a_call_is_read(text, name, arguments):
    done, shown = parse_answer(text)
    (call,) = done.message.tool_calls
    assert (call.name, json.loads(call.arguments), shown) == (name, arguments, "")
    report = TAGS.format_call(call.name, call.arguments)
    assert report.startswith(text.removesuffix(f"</{name}>"))
    assert report.endswith(f"</{name}>")


@given(st.text(max_size=40))
@example("two\nlines")
@example("\n")
def test_an_answer_streams(answer):
    done, shown = parse_answer(f"<finish>\n{answer}")
    assert shown == done.message.text
    assert shown in (answer, answer.removesuffix("\n"))
    assert done.message.tool_calls == ()


@pytest.mark.parametrize("text", ["<", "<she", "<shell", ""])
def test_cut_before_a_tool_is_named(text):
    with pytest.raises(BrokenStreamError):
        parse_answer(text, "length")


@pytest.mark.parametrize("text", ['<write_file path="a', "<write_file path=", '<write_file path="a.py"'])
def test_cut_among_the_attributes(text):
    done, _ = parse_answer(text, "length")
    assert done.is_cut
    (call,) = done.message.tool_calls
    with pytest.raises(json.JSONDecodeError):
        json.loads(call.arguments)
    assert TAGS.format_call(call.name, call.arguments) == text


def test_a_call_cut_in_its_text_does_not_run():
    done, _ = parse_answer('<write_file path="a.py">\nprint(', "length")
    assert done.is_cut
    (call,) = done.message.tool_calls
    with pytest.raises(json.JSONDecodeError):
        json.loads(call.arguments)
    assert TAGS.format_call(call.name, call.arguments) == '<write_file path="a.py">\nprint(\n</write_file>'


@given(st.lists(st.sampled_from(["<shell>", "<write_file path=", '"', "\n", "</shell>", "x", "[" * 3000])).map("".join))
def test_any_text_gives_a_message_or_a_provider_error(text):
    try:
        done, _ = parse_answer(text)
    except ProviderError:
        return
    convert_request(Request("m", "", [done.message]), TAGS)


def test_the_model_reads_each_tool_and_the_examples():
    history = [
        Message.user("go"),
        Message.assistant("", (ToolCall(id="1", name="shell", arguments='{"command": "ls"}'),)),
        Message(role="tool", parts=(ToolResult(call_id="1", output="no such thing", is_error=True),)),
        Message.assistant("done"),
    ]
    report = convert_request(Request("m", "be good", history, TOOLS), TAGS)
    assert report.system.startswith("be good\n\n")
    for piece in (
        *(tool.description for tool in TOOLS),
        '<write_file path="...">\nthe content\n</write_file>',
        "<finish>",
    ):
        assert piece in report.system
    assert [message.text for message in report.messages] == [
        "go",
        "<shell>\nls\n</shell>",
        "Error of shell: no such thing",
        "<finish>\ndone\n</finish>",
    ]
    assert list_stop_texts([SHELL]) == ["</shell>", "</finish>"]


@pytest.mark.parametrize("has_examples", [True, False])
def test_the_newest_result_repeats_the_task_and_without_examples_names_the_way_out(has_examples):
    call = ToolCall(id="1", name="clock", arguments="{}")
    result = ToolResult(call_id="1", output="noon")
    history = [Message.user("What time\nis it?"), Message.assistant("", (call,)), Message(role="tool", parts=(result,))]
    assert repeat_task(history[:2], has_examples=has_examples) == history[:2]
    *earlier, last = repeat_task(history, has_examples=has_examples)
    assert earlier == history[:2]
    lines = last.tool_results[0].output.splitlines()
    assert lines[:3] == ["noon", "", "(The task: What time is it?)"]
    assert lines[3:] == ([] if has_examples else ["(If this result has the answer, reply with finish.)"])


def test_the_newest_reminder_repeats_the_task():
    reminder = Message(role="system", parts=(Text(text="The files here: a.py"),))
    *earlier, last = repeat_task([Message.user("Sort\nit."), reminder], has_examples=True)
    assert earlier == [Message.user("Sort\nit.")]
    assert last.text == "The files here: a.py\n\n(The task: Sort it.)"
    assert repeat_task([reminder], has_examples=True) == [reminder]


def test_examples_are_shown_only_with_their_tools():
    assert select_examples(SHIPPED, TOOLS)
    assert select_examples(SHIPPED, [SHELL]) == select_examples(SHIPPED, []) == select_examples([], TOOLS) == ()
    own = [Example("What time is it?", (ExampleCall("clock", {}, "noon"),), "It is noon.")]
    assert select_examples([own, *SHIPPED], TOOLS)[0].text == "What time is it?"
    others = [spec("run_python", code=TEXT)], [spec("get_widget_data", widget_uuid=TEXT)]
    for examples in [select_examples(SHIPPED, tools) for tools in (TOOLS, *others)]:
        answered = {part.call_id for message in examples for part in message.tool_results}
        assert answered == {call.id for message in examples for call in message.tool_calls} != set()


@pytest.mark.parametrize("kind", [CodeToolkit, DeveloperToolkit, OpenBBToolkit])
def test_a_shipped_example_calls_tools_of_its_toolkit_with_their_arguments(kind):
    for shown in kind.examples:
        for call in shown.calls:
            schema = make_tool(getattr(kind, call.tool)).spec.schema["properties"]
            assert call.arguments.keys() <= schema.keys()


def test_most_examples_for_files_are_questions_that_change_nothing():
    examples = select_examples(SHIPPED, TOOLS)
    tasks = [message for message in examples if message.role == "user"]
    writes = [call for message in examples for call in message.tool_calls if call.name == "write_file"]
    assert 2 * len(writes) < len(tasks)


def test_questions_change_nothing_where_files_can_be_written():
    rule = "Answer a question without changing a file."
    assert rule in XmlCallFormat(TOOLS).format_rules(TOOLS)
    assert rule not in XmlCallFormat([SHELL]).format_rules([SHELL])


def test_a_tool_without_possible_values_stays_in_the_prompt_only():
    tool = spec("get_widget_data", widget_uuid={"type": "string", "enum": ["w-1"]})
    empty = spec("get_widget_data", widget_uuid={"type": "string", "enum": []})
    rules, other_rules = (XmlCallFormat([each]).format_rules([each]) for each in (tool, empty))
    assert rules == other_rules
    assert '<get_widget_data widget_uuid="..."></get_widget_data>' in rules
    assert ["w-1" in build_grammar([each]) for each in (tool, empty)] == [True, False]
    assert build_grammar([empty]) == build_grammar([])


def test_the_grammar_names_each_tag():
    root, *rules = build_grammar(TOOLS).splitlines()
    assert root == (
        r'root ::= "<shell" ">\n" anything | "<write_file" " path=" string ">\n" anything'
        r' | "<finish" ">\n" anything | "<clock" "></clock>"'
        r' | "<count" " word=" string " times=" integer "></count>"'
    )
    assert "anything ::= .*" in rules


@pytest.mark.parametrize(
    ("schema", "rule"),
    [
        ({"enum": ["a", 'b"é', 3]}, r'("\"a\"" | "\"b\\\"é\"" | "3")'),
        ({"const": None}, '("null")'),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "(integer | null)"),
        ({"type": "array", "items": {"type": "string"}}, "array"),
        ({"type": ["string", "null"]}, "value"),
        ({}, "value"),
    ],
)
def test_the_grammar_has_a_rule_for_each_argument(schema, rule):
    grammar = build_grammar([spec("tool", of=schema, text=TEXT)])
    assert f'"<tool" " of=" {rule} ">\\n" anything' in grammar
