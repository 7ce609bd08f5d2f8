"""Markup in the text of an answer, from servers that do not parse it: `<think>` and `<tool_call>`."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Literal

from goose_like.core.dataclass import dataclass
from goose_like.core.events import MessageCompleted, TextDelta
from goose_like.core.message import Part, Text, Usage
from goose_like.core.pattern import compile_later
from goose_like.core.tool import ToolSpec

from .base import Delta, StreamParser
from .call_notations import TAGS, parse_calls

# --- thinking

Kind = Literal["text", "thinking"]

_OPENING = compile_later(r"<think(?:ing)?>")
_CLOSING = compile_later(r"</think(?:ing)?>")


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
        text = self._held + piece
        self._held = ""
        pieces: list[tuple[Kind, str]] = []
        while self._kind != "text":
            if self._kind is None:
                start = text.lstrip()
                if tag := _OPENING.match(start):
                    self._kind = "thinking"
                    self._has_thought = True
                    text = start[tag.end() :]
                elif not start or _is_half_tag(start):
                    self._held = text
                    return pieces
                else:
                    self._kind = "text"
                    # White space before the answer counts only if no thinking came before it.
                    text = start if self._has_thought else text
            elif tag := _CLOSING.search(text):
                pieces.append(("thinking", text[: tag.start()]))
                self._kind = None
                text = text[tag.end() :]
            else:
                at = text.rfind("<")
                if at >= 0 and _is_half_tag(text[at:]):
                    self._held = text[at:]
                    text = text[:at]
                pieces.append(("thinking", text))
                return pieces
        pieces.append(("text", text))
        return pieces

    def flush(self) -> list[tuple[Kind, str]]:
        """Return the piece that was held back, at the end of the text."""
        held = self._held
        self._held = ""
        is_gap = self._kind is None and self._has_thought and not held.strip()
        if not held or is_gap:
            return []
        return [(self._kind or "text", held)]


def _is_half_tag(text: str) -> bool:
    return any(tag.startswith(text) for tag in ("<think>", "<thinking>", "</think>", "</thinking>"))


def split_unopened_thinking(text: str) -> tuple[str, str]:
    """Split a text at a line `</think>` without its opening tag, which some chat templates put into the prompt."""
    thinking, tag, answer = text.partition("</think>")
    begins_line = thinking[-1:] in ("", "\n")
    ends_line = answer[:1] in ("", "\n", "\r")
    if not tag or not begins_line or not ends_line:
        return "", text
    has_other_tag = "<think>" in text or "</think>" in answer
    if has_other_tag:
        return "", text
    return thinking, answer.lstrip()


# --- tool calls

_ANY_TAG = "|".join(map(re.escape, TAGS))
_TAG_LINE = compile_later(rf"^[ \t]*(?:{_ANY_TAG})", re.M)
_TAG_STARTS = frozenset(tag[0] for tag in TAGS)


@dataclass(slots=True)
class TaggedCallParser:
    """A parser that turns calls at the end of an answer's text into calls, in the notations of `call_notations`.

    What cannot be read, or is followed by text, becomes a call of `UNREADABLE_CALL`, so that the model gets an error.
    Calls within a code fence are text.
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

    @property
    def usage(self) -> Usage:
        """See `StreamParser.usage`."""
        return self._wire.usage

    def feed(self, event: Any) -> list[Delta]:
        """Take an event and return the deltas to show, without the blocks."""
        deltas: list[Delta] = []
        for delta in self._wire.feed(event):
            if not isinstance(delta, TextDelta):
                deltas.append(delta)
                continue
            shown = self._hide_block(delta.text)
            if shown:
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
        parts: list[Part] = list(done.message.parts[:-1])
        text = last.text[:found].rstrip()
        if text:
            parts.append(Text(text=text))
        parts += parse_calls(last.text[found:], self._tools)
        message = done.message.model_copy(update={"parts": tuple(parts)})
        return done.model_copy(update={"message": message, "lacks_call": False})

    def _hide_block(self, piece: str) -> str:
        """Return the text to show: everything before a block, and nothing that may be the start of one."""
        if self._is_hidden:
            return ""
        text = self._held + piece
        self._held = ""
        if not _TAG_STARTS.isdisjoint(text):
            # The text before is long, and few pieces need it.
            before = "".join(self._shown) if _TAG_LINE.search(text) else ""
            at = _find_block(text, before, self._is_line_blank)
            if at is None:
                at = _find_half_tag(text)
            else:
                self._is_hidden = True
            self._held = text[at:]
            text = text[:at]
        last_line = text.rpartition("\n")[2]
        self._is_line_blank = not last_line.strip() and ("\n" in text or self._is_line_blank)
        self._shown.append(text)
        return text


def _find_block(text: str, before: str = "", is_line_blank: bool = True) -> int | None:
    """Find the first block, at the start of a line. `before` precedes the text."""
    for tag in _TAG_LINE.finditer(text):
        at = tag.start()
        begins_line = at > 0 or is_line_blank
        if begins_line and not _is_in_fence(before + text[:at]):
            return at
    return None


def _is_in_fence(before: str) -> bool:
    fences = re.findall(r"^\s*(?:```|~~~)", before, re.M)
    return len(fences) % 2 == 1


def _find_half_tag(text: str) -> int:
    """Find the place from which the end of a text may be the start of a tag, or the end of the text."""
    for start in _TAG_STARTS:
        at = text.rfind(start)
        if at < 0:
            continue
        end = text[at:]
        if any(tag.startswith(end) for tag in TAGS):
            return at
    return len(text)
