"""Tests of markup in the text of answers: thinking and tool calls."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goose_like.agent.tool_call import call_tool
from goose_like.core.events import MessageCompleted, TextDelta, ThinkingDelta
from goose_like.core.message import Thinking, ToolCall
from goose_like.core.tool import ToolSpec
from goose_like.providers.anthropic_wire import AnthropicStreamParser
from goose_like.providers.base import Delta, StreamParser
from goose_like.providers.openai_wire import OpenAIStreamParser
from goose_like.providers.text_markup import UNREADABLE_CALL, TaggedCallParser
from tests.providers.vendors import ANTHROPIC, OPENAI, Vendor

TOOLS = [
    ToolSpec(
        "shell",
        "Runs.",
        {"type": "object", "properties": {"command": {"type": "string"}, "limit": {"type": "integer"}}},
    )
]
VENDORS = pytest.mark.parametrize("vendor", [OPENAI, ANTHROPIC], ids=lambda vendor: vendor.name)


def parse(vendor: Vendor, *pieces: str, stop: str = "") -> tuple[list[Delta], MessageCompleted]:
    wire: StreamParser = OpenAIStreamParser() if vendor is OPENAI else AnthropicStreamParser()
    parser = TaggedCallParser.create(wire, TOOLS)
    events = [*vendor.first, *vendor.said(*pieces), *vendor.last(stop or vendor.stop)]
    return [delta for event in events for delta in parser.feed(event)], parser.build_message()


def join(deltas: list[Delta], kind: type[TextDelta | ThinkingDelta] = TextDelta) -> str:
    return "".join(delta.text for delta in deltas if isinstance(delta, kind))


def read_thinking(done: MessageCompleted) -> str:
    return "".join(part.text for part in done.message.parts if isinstance(part, Thinking))


def read_calls(done: MessageCompleted) -> list[tuple[str, Any]]:
    return [(call.name, json.loads(call.arguments)) for call in done.message.tool_calls]


def split_at(text: str, places: list[int]) -> list[str]:
    ends = [*sorted(min(place, len(text)) for place in places), len(text)]
    return [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]


THINKING = [
    ("<think>\nhm < 5\n</think>\n\nFive.", "\nhm < 5\n", "Five."),
    ("\n <thinking>hm</thinking>Five.", "hm", "Five."),
    ("<think>\n\n</think>\n\nFive.", "\n\n", "Five."),
    ("<think>a</think>\n<think>b</think> Five </think>.", "ab", "Five </think>."),
    ("Use <think> and </think>.", "", "Use <think> and </think>."),
    ("<thin", "", "<thin"),
    (" <b>Five</b>", "", " <b>Five</b>"),
    ("<tool_calls>", "", "<tool_calls>"),
]


@VENDORS
@pytest.mark.parametrize(("text", "thinking", "answer"), THINKING)
@given(places=st.lists(st.integers(0, 50), max_size=6))
def test_a_block_of_thinking_at_the_start(
    vendor: Vendor, text: str, thinking: str, answer: str, places: list[int]
) -> None:
    deltas, done = parse(vendor, *split_at(text, places))
    assert (done.message.text, read_thinking(done)) == (answer, thinking)
    assert answer.startswith(join(deltas))
    assert join(deltas, ThinkingDelta) == thinking


@VENDORS
def test_thinking_without_its_opening_tag(vendor: Vendor) -> None:
    _, done = parse(vendor, "hm\n", "</think>", "\n\nFive.")
    assert (done.message.text, read_thinking(done)) == ("Five.", "hm\n")


HERMES = '<tool_call>\n{"name": "shell", "arguments": {"command": "ls"}}\n</tool_call>'
QWEN = """<tool_call>
<function=shell>
<parameter=command>
echo "<b>" && ls
</parameter>
<parameter=limit>
5
</parameter>
</function>
</tool_call>"""
LS = ("shell", {"command": "ls"})

CALLS = [
    (HERMES, "", [LS]),
    (f"I look.\n\n{HERMES}\n{HERMES}\n", "I look.", [LS, LS]),
    (HERMES.removesuffix("</tool_call>"), "", [LS]),
    (HERMES.replace('"arguments"', '"parameters"'), "", [LS]),
    (HERMES.replace('{"command": "ls"}', json.dumps('{"command": "ls"}')), "", [LS]),
    (QWEN, "", [("shell", {"command": 'echo "<b>" && ls', "limit": 5})]),
    (f"<think>hm</think>\n{HERMES}", "", [LS]),
    ("<tool_call>rm -rf</tool_call>", "", [(UNREADABLE_CALL, {"text": "rm -rf"})]),
    ('<tool_call>{"name": 5}</tool_call>', "", [(UNREADABLE_CALL, {"text": '{"name": 5}'})]),
    (f"{HERMES}\nDone.", "", [(UNREADABLE_CALL, {"text": f"{HERMES}\nDone."})]),
    (f"Write it so:\n```\n{HERMES}\n```", f"Write it so:\n```\n{HERMES}\n```", []),
    ("Write `<tool_call>` first.", "Write `<tool_call>` first.", []),
]


@VENDORS
@pytest.mark.parametrize(("text", "answer", "calls"), CALLS)
@given(places=st.lists(st.integers(0, 100), max_size=6))
def test_calls_in_the_text(vendor: Vendor, text: str, answer: str, calls: list[Any], places: list[int]) -> None:
    deltas, done = parse(vendor, *split_at(text, places))
    assert (done.message.text, read_calls(done)) == (answer, calls)
    assert join(deltas).rstrip() == answer or answer.startswith(join(deltas))
    assert "<tool_call>" not in join(deltas) or not calls


@VENDORS
def test_a_cut_answer_has_no_calls(vendor: Vendor) -> None:
    _, done = parse(vendor, HERMES, stop=vendor.cut)
    assert (done.message.text, done.message.tool_calls, done.is_cut) == (HERMES, (), True)


async def test_a_call_that_cannot_be_read_is_an_error_for_the_model() -> None:
    outcome = await call_tool({}, ToolCall(id="1", name=UNREADABLE_CALL, arguments="{}"))
    assert outcome.is_error
    assert '<tool_call>{"name": NAME, "arguments": {...}}</tool_call>' in outcome.output
