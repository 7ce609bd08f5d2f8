"""Notations in which families of models write tool calls into their text, where a server does not parse them.

Sources: the chat templates of Hermes and Qwen, GLM, Mistral, Llama, DeepSeek, Kimi, gpt-oss and MiniMax.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from goose_like.core.message import ToolCall
from goose_like.core.pattern import compile_later
from goose_like.core.tool import ToolSpec

TOOL_CALL = "<tool_call>"

TAGS = (
    TOOL_CALL,
    "[TOOL_CALLS]",
    "<|python_tag|>",
    "<|tool_calls_section_begin|>",
    "<\uff5ctool▁calls▁begin\uff5c>",
    "<|channel|>commentary to=functions.",
    "<function=",
    "<minimax:tool_call>",
)
"""The texts with which a call begins, each at the start of a line."""

UNREADABLE_CALL = "tool_call"
"""The name of a call in place of text that begins like a call and cannot be read. No tool has it."""

_JSON = json.JSONDecoder()

# A name, then the arguments as JSON.
_NAMED_HEADS = tuple(
    compile_later(pattern)
    for pattern in (
        r"(?:\[TOOL_CALLS\])?\s*(?P<name>[\w.-]+)\s*(?:\[CALL_ID\]\s*[\w-]+\s*)?\[ARGS\]\s*",
        r"<\|tool_call_begin\|>\s*(?P<name>[\w.-]+?)(?::\d+)?\s*<\|tool_call_argument_begin\|>\s*",
        r"<\uff5ctool▁call▁begin\uff5c>(?:function<\uff5ctool▁sep\uff5c>)?(?P<name>[\w.-]+)(?:<\uff5ctool▁sep\uff5c>|\s*```json)\s*",
        r"(?:<\|start\|>assistant)?<\|channel\|>\w+ to=(?P<name>[\w.-]+)"
        r"\s*(?:<\|constrain\|>)?(?:json)?\s*<\|message\|>\s*",
    )
)
# JSON with the name in it: an object, or a list of objects.
_JSON_HEADS = (compile_later(r"\[TOOL_CALLS\]\s*(?=[\[{])"), compile_later(r"<\|python_tag\|>\s*(?=[\[{])"))

_FILLER = compile_later(
    r"\s+|```|;|<\|tool_calls_section_(?:begin|end)\|>|<\|tool_call_end\|>|<\uff5ctool▁calls▁(?:begin|end)\uff5c>|"
    r"<\uff5ctool▁call▁end\uff5c>|<\|(?:call|eom_id|eot_id|end)\|>|</?minimax:tool_call>|</s>"
)

_BLOCK = compile_later(rf"{TOOL_CALL}(.*?)(?:</tool_call>|(?={TOOL_CALL})|\Z)", re.S)
_FUNCTION = compile_later(r"\s*<function=([\w.-]+)>(.*?)(?:</function>|\Z)\s*", re.S)
_PARAMETER = compile_later(r"\s*<parameter=([\w.-]+)>\n?(.*?)\n?(?:</parameter>|(?=<parameter=)|\Z)\s*", re.S)
_INVOKE = compile_later(r"\s*<invoke name=\"([\w.-]+)\">(.*?)</invoke>\s*", re.S)
_NAMED_PARAMETER = compile_later(r"\s*<parameter name=\"([\w.-]+)\">\n?(.*?)\n?</parameter>\s*", re.S)
_GLM_NAME = compile_later(r"\s*([\w.-]+)\s*(?=<arg_key>|\Z)")
_GLM_PARAMETER = compile_later(r"\s*<arg_key>(.*?)</arg_key>\s*<arg_value>\n?(.*?)\n?</arg_value>\s*", re.S)

# A call between tags, and the pattern of its parameters.
_TAGGED_CALLS = ((_FUNCTION, _PARAMETER), (_INVOKE, _NAMED_PARAMETER))

Tools = Mapping[str, ToolSpec]


def parse_calls(text: str, tools: Tools) -> list[ToolCall]:
    """Parse a text of calls in one of the notations. What cannot be read becomes a call of `UNREADABLE_CALL`."""
    calls: list[ToolCall] = []
    at = 0
    while at < len(text):
        if filler := _FILLER.match(text, at):
            at = filler.end()
            continue
        found = _parse_next(text, at, tools)
        if found is None:
            return [refuse_text(text)]
        new_calls, at = found
        calls += new_calls
    return calls or [refuse_text(text)]


def refuse_text(text: str) -> ToolCall:
    """Create the call in place of a text that cannot be read."""
    return _create_call(UNREADABLE_CALL, {"text": text})


def _parse_next(text: str, at: int, tools: Tools) -> tuple[Sequence[ToolCall], int] | None:
    """Parse the call or calls at a place, and return the place behind them."""
    for head in _NAMED_HEADS:
        if found := head.match(text, at):
            return _parse_named(found["name"], text, found.end())
    for head in _JSON_HEADS:
        if found := head.match(text, at):
            return _parse_json(text, found.end())
    if block := _BLOCK.match(text, at):
        call = _parse_block(block[1], tools) or refuse_text(block[1])
        return [call], block.end()
    for tag, parameter in _TAGGED_CALLS:
        if found := tag.match(text, at):
            tagged = _build_call(found[1], found[2], parameter, tools)
            return ([tagged], found.end()) if tagged else None
    return None


def _parse_block(text: str, tools: Tools) -> ToolCall | None:
    """Parse what stands in a `<tool_call>` block: Hermes' JSON, Qwen's function, or GLM's name and arguments."""
    start = len(text) - len(text.lstrip())
    found = _parse_json(text, start)
    if found is not None:
        calls, end = found
        if len(calls) == 1 and not text[end:].strip():
            return calls[0]
    if function := _FUNCTION.fullmatch(text):
        return _build_call(function[1], function[2], _PARAMETER, tools)
    if name := _GLM_NAME.match(text):
        return _build_call(name[1], text[name.end() :], _GLM_PARAMETER, tools)
    return None


def _parse_named(name: str, text: str, at: int) -> tuple[Sequence[ToolCall], int] | None:
    value, end = _read_json(text, at)
    if not isinstance(value, dict):
        return None
    return [_create_call(name, value)], end


def _parse_json(text: str, at: int) -> tuple[Sequence[ToolCall], int] | None:
    value, end = _read_json(text, at)
    entries = value if isinstance(value, list) else [value]
    calls = []
    for entry in entries:
        if not isinstance(entry, dict):
            return None
        name = entry.get("name")
        if not isinstance(name, str) or not name:
            return None
        parameters = entry.get("parameters", {})
        arguments = entry.get("arguments", parameters)
        calls.append(_create_call(name, arguments))
    return (calls, end) if calls else None


def _read_json(text: str, at: int) -> tuple[Any, int]:
    """Read the JSON value at a place, and return the place behind it. The value is None if there is none."""
    try:
        return _JSON.raw_decode(text, at)
    except (ValueError, RecursionError):
        return None, at


def _build_call(name: str, text: str, parameter: re.Pattern[str], tools: Tools) -> ToolCall | None:
    """Build a call whose arguments are tagged. Return None if other text is among them."""
    schemas: Mapping[str, Any] = {}
    if name in tools:
        schemas = tools[name].schema.get("properties", {})
    arguments: dict[str, Any] = {}
    at = 0
    while found := parameter.match(text, at):
        at = found.end()
        field = found[1]
        arguments[field] = _convert_value(found[2], schemas.get(field))
    has_other_text = bool(text[at:].strip())
    if has_other_text:
        return None
    return _create_call(name, arguments)


def _convert_value(text: str, schema: object) -> Any:
    """Convert the text of an argument to the type that the tool expects."""
    if isinstance(schema, Mapping) and schema.get("type") == "string":
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _create_call(name: str, arguments: Any) -> ToolCall:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return ToolCall(id="", name=name.removeprefix("functions."), arguments=text)
