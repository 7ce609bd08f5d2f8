"""Content blocks of an answer in the wire format of Anthropic's messages, whose parts arrive one after the other."""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from goose_like.core.events import TextDelta, ThinkingDelta
from goose_like.core.message import Part, Text, Thinking, ToolCall

from .base import Delta
from .wire import encode_json, expect, sanitize_arguments

_KEY_OF_KIND = {"tool_use": "name", "thinking": "thinking", "text": "text"}
"""A key that only this kind of block has, for servers that leave the type out."""

KNOWN_KINDS = frozenset(_KEY_OF_KIND)

SHOWN: dict[str, type[TextDelta | ThinkingDelta]] = {
    "text": TextDelta,
    "thinking": ThinkingDelta,
}
"""The deltas that show the text of a block, by its kind. The text stands under the kind as key."""


@dataclass(slots=True)
class Block:
    """A content block whose parts are still arriving. `start` is its first event, `pieces` its texts by key.

    `lead` and `marks` are shown around its text, and are not for the server.
    """

    kind: str
    start: Mapping[str, Any]
    pieces: dict[str, list[str]] = field(default_factory=dict)
    citations: list[Any] = field(default_factory=list)
    lead: str = ""
    marks: str = ""
    _is_begun: bool = False

    def append(self, key: str, piece: str) -> list[Delta]:
        """Append a piece to the text with a key, and return the delta to show."""
        self.pieces.setdefault(key, []).append(piece)
        if key != self.kind:
            return []
        return self.show(piece)

    def show(self, piece: str) -> list[Delta]:
        """Return the delta that shows a piece of the text, if people see it. The first one brings the lead."""
        if not piece or self.kind not in SHOWN:
            return []
        lead = "" if self._is_begun else self.lead
        self._is_begun = True
        return [SHOWN[self.kind](text=lead + piece)]

    def fold(self, delta: Mapping[str, Any]) -> None:
        """Take a delta of an unknown kind: its texts extend those of the block under the same keys."""
        for key, value in delta.items():
            if key == "citation":
                self.citations.append(value)
            elif key != "type" and isinstance(value, str):
                self.append(key, value)

    def join(self, key: str) -> str:
        """Join the text with a key."""
        first = expect(str, self.start.get(key), key)
        return first + "".join(self.pieces.get(key, ()))

    def build_item(self) -> dict[str, Any]:
        """Build the block as if it had come whole. The arguments of a tool call are left to its `ToolCall`."""
        item = {**self.start, "type": self.kind}
        for key in self.pieces.keys() - {"partial_json"}:
            item[key] = self.join(key)
        if self.citations:
            earlier = self.start.get("citations") or ()
            item["citations"] = [*earlier, *self.citations]
        if self.kind == "tool_use":
            item.pop("input", None)
        elif "partial_json" in self.pieces:
            arguments = sanitize_arguments(self.join("partial_json"))
            item["input"] = json.loads(arguments)
        return item

    def build_parts(self) -> Iterator[Part]:
        """Yield what other servers and people read of a block."""
        match self.kind:
            case "text":
                text = self.join("text")
                if text:
                    yield Text(text=self.lead + text + self.marks)
            case "thinking":
                thinking = self.join("thinking")
                if thinking:
                    yield Thinking(text=thinking)
            case "tool_use":
                whole = expect(dict, self.start.get("input"), "input")
                arguments = self.join("partial_json") or encode_json(whole).decode()
                id_ = expect(str, self.start.get("id"), "id")
                name = expect(str, self.start.get("name"), "name")
                yield ToolCall(id=id_, name=name, arguments=arguments)

    def is_valid(self, answered: Collection[object]) -> bool:
        """Return whether the server takes this block back after its answer was cut.

        It refuses thinking without a signature, and calls of its own tools that are not among the `answered` ones.
        """
        if self.kind == "thinking":
            return bool(self.join("signature"))
        return self.kind != "server_tool_use" or self.start.get("id") in answered


def read_kind(start: Mapping[str, Any]) -> str:
    """Read the kind of a block from its first event, or find it by a key if the type is missing. Else it is empty."""
    kind = expect(str, start.get("type"), "type")
    if kind:
        return kind
    for known_kind, key in _KEY_OF_KIND.items():
        if key in start:
            return known_kind
    return ""
