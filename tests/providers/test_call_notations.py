"""Calls in the text of an answer, in the notations of the families of models, as own servers pass them on."""

import json

import pytest

from goose_like.core.message import Message, Text, ToolCall
from goose_like.core.tool import ToolSpec
from goose_like.providers.call_notations import UNREADABLE_CALL, parse_calls
from goose_like.providers.openai_wire import OpenAIStreamParser
from goose_like.providers.text_markup import TaggedCallParser
from tests.loopback import chunk, usage

SHELL = ToolSpec(
    "shell",
    "Runs.",
    {"type": "object", "properties": {"command": {"type": "string"}, "count": {"type": "integer"}}},
)
TOOLS = {"shell": SHELL}
LS = {"command": "ls"}
ARGUMENTS = json.dumps(LS)
DEEP = "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"  # noqa: RUF001

NOTATIONS = {
    "Hermes": f'<tool_call>\n{{"name": "shell", "arguments": {ARGUMENTS}}}\n</tool_call>',
    "Qwen": "<tool_call>\n<function=shell>\n<parameter=command>\nls\n</parameter>\n</function>\n</tool_call>",
    "a bare function": "<function=shell>\n<parameter=command>\nls\n</parameter>\n</function>",
    "GLM": "<tool_call>shell\n<arg_key>command</arg_key>\n<arg_value>ls</arg_value>\n</tool_call>",
    "Mistral": f"[TOOL_CALLS]shell[ARGS]{ARGUMENTS}",
    "Mistral with a blank": f"[TOOL_CALLS] shell [ARGS] {ARGUMENTS}</s>",
    "Mistral with an id": f"[TOOL_CALLS]shell[CALL_ID]abcDEF123[ARGS]{ARGUMENTS}",
    "older Mistral": f'[TOOL_CALLS] [{{"name": "shell", "arguments": {ARGUMENTS}}}]',
    "Llama": f'<|python_tag|>{{"type": "function", "name": "shell", "parameters": {ARGUMENTS}}}<|eom_id|>',
    "Kimi": (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.shell:0<|tool_call_argument_begin|>"
        f"{ARGUMENTS}<|tool_call_end|><|tool_calls_section_end|>"
    ),
    "DeepSeek": DEEP.format(f"shell<｜tool▁sep｜>{ARGUMENTS}"),  # noqa: RUF001
    "older DeepSeek": DEEP.format(f"function<｜tool▁sep｜>shell\n```json\n{ARGUMENTS}\n```"),  # noqa: RUF001
    "gpt-oss": f"<|channel|>commentary to=functions.shell <|constrain|>json<|message|>{ARGUMENTS}<|call|>",
    "MiniMax": (
        '<minimax:tool_call>\n<invoke name="shell">\n<parameter name="command">ls</parameter>\n</invoke>\n'
        "</minimax:tool_call>"
    ),
}


def read(calls: list[ToolCall] | tuple[ToolCall, ...]) -> list[tuple[str, object]]:
    return [(call.name, json.loads(call.arguments)) for call in calls]


def play(*pieces: str) -> tuple[str, Message]:
    """Let a server stream a text. Return what was shown, and the message."""
    parser = TaggedCallParser.create(OpenAIStreamParser(), [SHELL])
    events = [*(chunk({"content": piece}) for piece in pieces), chunk(finish="stop"), usage()]
    shown = "".join(delta.text for event in events for delta in parser.feed(event) if hasattr(delta, "text"))
    return shown, parser.build_message().message


@pytest.mark.parametrize("name", NOTATIONS)
@pytest.mark.parametrize("before", ["", "I look.\n"])
def test_a_call_is_read_and_not_shown(name: str, before: str) -> None:
    text = f"{before}{NOTATIONS[name]}"
    for size in (1, 7, len(text)):
        shown, message = play(*(text[at : at + size] for at in range(0, len(text), size)))
        assert read(message.tool_calls) == [("shell", LS)]
        assert message.text == shown.rstrip() == before.rstrip()


@pytest.mark.parametrize("name", NOTATIONS)
def test_a_call_in_a_fence_is_text(name: str) -> None:
    text = f"```\n{NOTATIONS[name]}\n```\nThat is the form."
    shown, message = play(text)
    assert (shown, message.parts) == (text, (Text(text=text),))


@pytest.mark.parametrize("name", sorted(set(NOTATIONS) - {"Qwen"}))  # its second line begins like a call, too
def test_a_call_within_a_line_is_text(name: str) -> None:
    text = f"It looks like {NOTATIONS[name]}"
    shown, message = play(text)
    assert (shown, message.parts) == (text, (Text(text=text),))


@pytest.mark.parametrize("name", sorted(set(NOTATIONS) - {"gpt-oss", "older Mistral", "Llama"}))
def test_two_calls(name: str) -> None:
    text = NOTATIONS[name]
    assert read(parse_calls(f"{text}\n{text}", TOOLS)) == [("shell", LS)] * 2


@pytest.mark.parametrize(
    "text",
    [
        "[TOOL_CALLS]shell[ARGS]{broken",
        "[TOOL_CALLS] I like this token",
        "<|python_tag|>print(1)",
        "<function=shell>rm",
        '<|python_tag|>[{"x": 1}]',
        "[TOOL_CALLS][]",
    ],
)
def test_what_cannot_be_read_is_an_error_for_the_model(text: str) -> None:
    assert read(parse_calls(text, TOOLS)) == [(UNREADABLE_CALL, {"text": text})]


def test_tagged_arguments_have_the_types_of_the_tool() -> None:
    text = "<tool_call>shell<arg_key>count</arg_key><arg_value>3</arg_value></tool_call>"
    assert read(parse_calls(text, TOOLS)) == [("shell", {"count": 3})]


@pytest.mark.parametrize("text", ["a [link](x) and [TOOL", "x < y", "<b>bold</b>", "[1, 2]", "<|"])
def test_other_brackets_are_text(text: str) -> None:
    shown, message = play(*text)
    assert message == Message.assistant(text)
    assert text.startswith(shown)  # the end may be the start of a call until the answer ends
