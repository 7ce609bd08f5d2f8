"""Markup in the text of an answer, from servers that do not parse it: `<think>` and `<tool_call>`."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from goose_like.core.events import MessageCompleted, TextDelta
from goose_like.core.message import Part, Text, ToolCall
from goose_like.core.tool import ToolSpec

from .base import Delta, StreamParser

# --- thinking

Kind = Literal["text", "thinking"]

_OPENING = re.compile(r"<think(?:ing)?>")
_CLOSING = re.compile(r"</think(?:ing)?>")


@dataclass(slots=True)
class ThinkSplitter:
    """A splitter of a text that may begin with blocks of thinking, `<think>...</think>`."""

    _kind: Kind | None = None
    _held: str = ""
    _has_thought: bool = False

    def feed(self, piece: str) -> list[tuple[Kind, str]]:
        """Take a piece and return the pieces that are known to be thinking or text."""
        if self._kind == "text":
            return [("text", piece)]
        text, self._held, pieces = self._held + piece, "", list[tuple[Kind, str]]()
        while self._kind != "text":
            if self._kind is None:
                start = text.lstrip()
                if tag := _OPENING.match(start):
                    self._kind, text, self._has_thought = "thinking", start[tag.end() :], True
                elif not start or _is_half_tag(start):
                    self._held = text
                    return pieces
                else:
                    self._kind, text = "text", start if self._has_thought else text
            elif tag := _CLOSING.search(text):
                pieces.append(("thinking", text[: tag.start()]))
                self._kind, text = None, text[tag.end() :]
            else:
                at = text.rfind("<")
                at = at if at >= 0 and _is_half_tag(text[at:]) else len(text)
                self._held = text[at:]
                return [*pieces, ("thinking", text[:at])]
        return [*pieces, ("text", text)]

    def flush(self) -> list[tuple[Kind, str]]:
        """Return the piece that was held back, at the end of the text."""
        held, self._held = self._held, ""
        is_gap = self._kind is None and self._has_thought and not held.strip()
        return [] if not held or is_gap else [(self._kind or "text", held)]


def _is_half_tag(text: str) -> bool:
    return any(tag.startswith(text) for tag in ("<think>", "<thinking>", "</think>", "</thinking>"))


def split_unopened_thinking(text: str) -> tuple[str, str]:
    """Split a text at a line `</think>` without its opening tag, which some chat templates put into the prompt."""
    thinking, tag, answer = text.partition("</think>")
    is_line = thinking[-1:] in ("", "\n") and answer[:1] in ("", "\n", "\r")
    if not tag or not is_line or "<think>" in text or "</think>" in answer:
        return "", text
    return thinking, answer.lstrip()


# --- tool calls

UNREADABLE_CALL = "tool_call"
"""The name of a call for a `<tool_call>` block that cannot be read. No tool has it."""

_TAG = "<tool_call>"
_TAG_LINE = re.compile(rf"^[ \t]*{_TAG}", re.M)
_BLOCK = re.compile(rf"\s*{_TAG}(.*?)(?:</tool_call>|(?={_TAG})|\Z)", re.S)
_FUNCTION = re.compile(r"\s*<function=([\w.-]+)>(.*?)(?:</function>)?\s*", re.S)
_PARAMETER = re.compile(r"\s*<parameter=([\w.-]+)>\n?(.*?)\n?(?:</parameter>|(?=<parameter=)|\Z)\s*", re.S)


@dataclass(slots=True)
class TaggedCallParser:
    """A parser that turns `<tool_call>` blocks at the end of an answer's text into calls.

    The content of a block is Hermes' JSON object, or Qwen's `<function=...>`. A block that cannot be read, or is
    followed by text, becomes a call of `UNREADABLE_CALL`, so that the model gets an error. Blocks within a code fence
    are text.
    """

    _wire: StreamParser
    _tools: Mapping[str, ToolSpec]
    _shown: list[str] = field(default_factory=list)
    _held: str = ""
    _is_line_blank: bool = True
    _is_hidden: bool = False

    @classmethod
    def create(cls, wire: StreamParser, tools: Sequence[ToolSpec]) -> "TaggedCallParser":
        """Create a parser around the parser of the wire format."""
        return cls(wire, {tool.name: tool for tool in tools})

    @property
    def has_ended(self) -> bool:
        """See `StreamParser.has_ended`."""
        return self._wire.has_ended

    def feed(self, event: Any) -> list[Delta]:
        """Take an event and return the deltas to show, without the blocks."""
        deltas: list[Delta] = []
        for delta in self._wire.feed(event):
            if not isinstance(delta, TextDelta):
                deltas.append(delta)
            elif shown := self._hide_block(delta.text):
                deltas.append(TextDelta(text=shown))
        return deltas

    def build_message(self) -> MessageCompleted:
        """Build the message; see `StreamParser.build_message`. A cut answer keeps its text."""
        done = self._wire.build_message()
        last = done.message.parts[-1]
        if done.is_cut or not isinstance(last, Text):
            return done
        found = _find_block(last.text)
        if found is None:
            return done
        calls = _parse_blocks(last.text[found:], self._tools)
        text = last.text[:found].rstrip()
        parts: tuple[Part, ...] = (*done.message.parts[:-1], *([Text(text=text)] if text else []), *calls)
        return done.model_copy(update={"message": done.message.model_copy(update={"parts": parts})})

    def _hide_block(self, piece: str) -> str:
        """Return the text to show: everything before a block, and nothing that may be the start of one."""
        if self._is_hidden:
            return ""
        text, self._held = self._held + piece, ""
        if "<" in text:
            at = _find_block(text, "".join(self._shown) if _TAG in text else "", self._is_line_blank)
            if at is None:
                at = text.rfind("<")
                at = at if _TAG.startswith(text[at:]) else len(text)
            else:
                self._is_hidden = True
            text, self._held = text[:at], text[at:]
        last_line = text.rpartition("\n")[2]
        self._is_line_blank = not last_line.strip() and ("\n" in text or self._is_line_blank)
        self._shown.append(text)
        return text


def _find_block(text: str, before: str = "", is_line_blank: bool = True) -> int | None:
    """Find the first block, at the start of a line. `before` precedes the text."""
    for tag in _TAG_LINE.finditer(text):
        if (tag.start() or is_line_blank) and not _is_in_fence(before + text[: tag.start()]):
            return tag.start()
    return None


def _is_in_fence(before: str) -> bool:
    return len(re.findall(r"^\s*(?:```|~~~)", before, re.M)) % 2 == 1


def _parse_blocks(text: str, tools: Mapping[str, ToolSpec]) -> list[ToolCall]:
    at, calls = 0, list[ToolCall]()
    while block := _BLOCK.match(text, at):
        at = block.end()
        calls.append(_parse_json_call(block[1]) or _parse_function_call(block[1], tools) or _refuse_block(block[1]))
    return calls if not text[at:].strip() else [_refuse_block(text)]


def _parse_json_call(text: str) -> ToolCall | None:
    try:
        call = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(call, dict) or not isinstance(call.get("name"), str) or not call["name"]:
        return None
    arguments = call.get("arguments", call.get("parameters", {}))
    return ToolCall(id="", name=call["name"], arguments=arguments if isinstance(arguments, str) else _dump(arguments))


def _parse_function_call(text: str, tools: Mapping[str, ToolSpec]) -> ToolCall | None:
    function = _FUNCTION.fullmatch(text)
    if function is None:
        return None
    fields = tools[function[1]].schema.get("properties", {}) if function[1] in tools else {}
    arguments: dict[str, Any] = {}
    at = 0
    while parameter := _PARAMETER.match(function[2], at):
        at = parameter.end()
        arguments[parameter[1]] = _convert_value(parameter[2], fields.get(parameter[1]))
    if function[2][at:].strip():
        return None
    return ToolCall(id="", name=function[1], arguments=_dump(arguments))


def _convert_value(text: str, schema: object) -> Any:
    """Convert the text of an argument to the type that the tool expects."""
    if isinstance(schema, Mapping) and schema.get("type") == "string":
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _refuse_block(text: str) -> ToolCall:
    return ToolCall(id="", name=UNREADABLE_CALL, arguments=_dump({"text": text}))


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
