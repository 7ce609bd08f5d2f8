"""Tests of markup in the text of answers: thinking and tool calls."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goose_like.agent.tool_call import call_tool
from goose_like.config.profile import ModelChoice
from goose_like.core.events import MessageCompleted, TextDelta, ThinkingDelta
from goose_like.core.message import Thinking, ToolCall
from goose_like.core.tool import ToolSpec
from goose_like.providers.base import Delta, StreamParser
from goose_like.providers.call_notations import UNREADABLE_CALL
from goose_like.providers.openai import OpenAIProvider
from goose_like.providers.openai_wire import OpenAIStreamParser
from goose_like.providers.registry import find_provider_class
from goose_like.providers.text_markup import TaggedCallParser
from tests.loopback import Loopback, raw
from tests.providers.vendors import ANTHROPIC, OPENAI, REQUEST, RESPONSES, Vendor
from tests.responses_events import stream

TOOLS = [
    ToolSpec(
        "shell",
        "Runs.",
        {"type": "object", "properties": {"command": {"type": "string"}, "limit": {"type": "integer"}}},
    )
]


def parse(*pieces: str, stop: str = OPENAI.stop) -> tuple[list[Delta], MessageCompleted]:
    parser = TaggedCallParser.create(OpenAIStreamParser(), TOOLS)
    events = [*OPENAI.said(*pieces), *OPENAI.last(stop)]
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


@pytest.mark.parametrize(("text", "thinking", "answer"), THINKING)
@given(places=st.lists(st.integers(0, 50), max_size=6))
def test_a_block_of_thinking_at_the_start(text: str, thinking: str, answer: str, places: list[int]) -> None:
    deltas, done = parse(*split_at(text, places))
    assert (done.message.text, read_thinking(done)) == (answer, thinking)
    assert answer.startswith(join(deltas))
    assert join(deltas, ThinkingDelta) == thinking


def test_thinking_without_its_opening_tag() -> None:
    _, done = parse("hm\n", "</think>", "\n\nFive.")
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


@pytest.mark.parametrize(("text", "answer", "calls"), CALLS)
@given(places=st.lists(st.integers(0, 100), max_size=6))
def test_calls_in_the_text(text: str, answer: str, calls: list[Any], places: list[int]) -> None:
    deltas, done = parse(*split_at(text, places))
    assert (done.message.text, read_calls(done)) == (answer, calls)
    assert join(deltas).rstrip() == answer or answer.startswith(join(deltas))
    assert "<tool_call>" not in join(deltas) or not calls


def test_a_cut_answer_has_no_calls() -> None:
    _, done = parse(HERMES, stop=OPENAI.cut)
    assert (done.message.text, done.message.tool_calls, done.is_cut) == (HERMES, (), True)


async def test_a_call_that_cannot_be_read_is_an_error_for_the_model() -> None:
    outcome = await call_tool({}, ToolCall(id="1", name=UNREADABLE_CALL, arguments="{}"))
    assert outcome.is_error
    assert '<tool_call>{"name": NAME, "arguments": {...}}</tool_call>' in outcome.output


QUOTES = [
    HERMES,
    QWEN,
    f"The page says:\n\n{HERMES}",
    f"{HERMES}\n\nNever run this.",
    HERMES.removesuffix("</tool_call>"),
    "<tool_call>rm -rf</tool_call>",
]
THOUGHTS = ["<think>hm</think>\n\nFive.", "<thinking>hm", "hm\n</think>\n\nFive."]


async def ask(name: str, text: str) -> tuple[str, MessageCompleted]:
    """Let the server of a provider answer with a text. Return what was shown, and the message."""
    vendor = {"anthropic": ANTHROPIC, "xai": RESPONSES, "azure": RESPONSES}.get(name, OPENAI)
    async with Loopback([raw(vendor.whole(*split_at(text, [5, 14])))]) as server:
        base_url = server.base_url.removesuffix("/v1") if vendor is ANTHROPIC else server.base_url
        provider = find_provider_class(name)(ModelChoice(model=f"{name}:m1", base_url=base_url))
        deltas = [delta async for delta in provider.stream(REQUEST)]
        await provider.close()
    done = deltas[-1]
    assert isinstance(done, MessageCompleted)
    return join(deltas), done


@pytest.mark.parametrize("name", ["anthropic", "google", "mistral", "deepseek", "xai", "azure"])
@pytest.mark.parametrize("text", [*QUOTES, *THOUGHTS])
async def test_vendors_quote_markup(monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> None:
    monkeypatch.setenv(f"{'GEMINI' if name == 'google' else name.upper()}_API_KEY", "k-123456")
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "k-123456")
    shown, done = await ask(name, text)
    assert (shown, done.message.text) == (text, text)
    assert (done.message.tool_calls, read_thinking(done)) == ((), "")


@pytest.mark.parametrize(("name", "variable"), [("groq", "GROQ_API_KEY"), ("openrouter", "OPENROUTER_API_KEY")])
async def test_hosts_of_open_models_think_in_the_text_and_call_nothing(
    monkeypatch: pytest.MonkeyPatch, name: str, variable: str
) -> None:
    monkeypatch.setenv(variable, "k-123456")
    shown, done = await ask(name, f"<think>hm</think>{HERMES}")
    assert (shown, done.message.text, read_thinking(done)) == (HERMES, HERMES, "hm")
    assert not done.message.tool_calls


@pytest.mark.parametrize("name", ["openai", "ollama", "lmstudio", "vllm", "llama-server"])
async def test_own_servers_call_in_the_text(name: str) -> None:
    _, done = await ask(name, f"I look.\n{HERMES}")
    assert (done.message.text, read_calls(done)) == ("I look.", [LS])


@pytest.mark.parametrize("host", ["api.openai.com", "eu.api.openai.com"])
@pytest.mark.parametrize("text", [*QUOTES, *THOUGHTS])
def test_openai_quotes_markup(host: str, text: str) -> None:
    for vendor in (OPENAI, RESPONSES):
        wire = {"wire": vendor.wire}
        choice = ModelChoice.model_validate({"model": "openai:m1", "base_url": f"https://{host}/v1", **wire})
        _check_quoted(OpenAIProvider(choice)._create_parser(REQUEST), vendor, text)


def _check_quoted(parser: StreamParser, vendor: Vendor, text: str) -> None:
    if vendor is RESPONSES:
        events = stream(vendor.said(text))
    else:
        events = [*vendor.said(text), *vendor.last(vendor.stop)]
    deltas = [delta for event in events for delta in parser.feed(event)]
    done = parser.build_message()
    assert (join(deltas), done.message.text, done.message.tool_calls) == (text, text, ())


def test_openai_needs_no_calls_in_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k-123456")
    choice = ModelChoice(model="openai:m1", base_url="https://api.openai.com/v1", tools="constrained")
    assert "remove `tools: constrained`" in str(OpenAIProvider.find_setup_error(choice))
