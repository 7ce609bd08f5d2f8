"""Thinking in chat completions: found under the keys that servers use, and kept so that it can return unchanged.

OpenAI's format has no place for thinking, so each vendor has its own. A model that calls tools continues its thinking
only if it returns to the same server under the key it came in.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from goose_like.core.dataclass import dataclass
from goose_like.core.message import Message, Verbatim

from .wire import expect, read_object

WIRE = "chat"

_TEXT_KEYS = ("reasoning_content", "reasoning")
"""DeepSeek, llama-server and GLM use the first, OpenRouter, Groq and vLLM the second, some both."""

_DETAILS = "reasoning_details"
"""OpenRouter's list of typed parts, with the signatures and the encrypted thinking of the vendors behind it."""


@dataclass(slots=True)
class ThinkingRecord:
    """The thinking of one answer, as it arrives."""

    _texts: dict[str, list[str]] = field(default_factory=dict)
    _content: list[tuple[str, list[str]]] = field(default_factory=list)
    _details: list[dict[str, Any]] = field(default_factory=list)

    def take_delta(self, delta: Mapping[str, Any]) -> str:
        """Take the thinking of a delta and return its text.

        Raises:
            BrokenStreamError: A value has a wrong type.
        """
        shown = ""
        for key in _TEXT_KEYS:
            text, _ = split_content(delta.get(key), key)
            if text:
                self._texts.setdefault(key, []).append(text)
            shown = shown or text
        details = ""
        for entry in expect(list, delta.get(_DETAILS), _DETAILS):
            details += self._take_detail(expect(dict, entry, _DETAILS))
        in_content = self._take_content(delta.get("content"))
        return shown or details or in_content

    def _take_content(self, content: object) -> str:
        """Take the parts of a content, in which thinking and text may alternate. Return the thinking."""
        shown = ""
        parts = content if isinstance(content, list) else [content]
        for part in parts:
            single = [part] if isinstance(part, dict) else part
            text, thinking = split_content(single, "content")
            shown += thinking
            kind = "thinking" if thinking else "text"
            if self._content and self._content[-1][0] == kind:
                self._content[-1][1].append(thinking or text)
            elif thinking or text:
                self._content.append((kind, [thinking or text]))
        return shown

    def _take_detail(self, entry: dict[str, Any]) -> str:
        """Take a part of OpenRouter's list. A part with the place and type of an earlier one continues it."""
        text = expect(str, entry.get("text"), "text")
        text += expect(str, entry.get("summary"), "summary")
        earlier = self._find_earlier_detail(entry)
        if earlier is None:
            self._details.append(dict(entry))
        else:
            _extend_detail(earlier, entry)
        return text

    def _find_earlier_detail(self, entry: Mapping[str, Any]) -> dict[str, Any] | None:
        """Find the newest part with the place and type of an entry."""
        place = entry.get("index")
        if place is None:
            return None
        earlier: dict[str, Any]
        for earlier in reversed(self._details):
            is_same_place = earlier.get("index") == place
            is_same_kind = earlier.get("type") == entry.get("type")
            if is_same_place and is_same_kind:
                return earlier
        return None

    def build_verbatim(self, origin: str, calls: Sequence[Mapping[str, Any]]) -> Verbatim | None:
        """Build the keys that must return to the server at the host `origin`, or None if there are none.

        `calls` are the further keys of each tool call, such as Gemini's signature.
        """
        keys: dict[str, Any] = {key: "".join(pieces) for key, pieces in self._texts.items()}
        if self._details:
            keys[_DETAILS] = self._details
        if any(kind == "thinking" for kind, _ in self._content):
            keys["content"] = [_build_part(kind, "".join(pieces)) for kind, pieces in self._content]
        if any(calls):
            keys["tool_calls"] = list(map(dict, calls))
        if not keys:
            return None
        return Verbatim(wire=WIRE, origin=origin, items=(keys,))


def _build_part(kind: str, text: str) -> dict[str, Any]:
    plain = {"type": "text", "text": text}
    if kind == "text":
        return plain
    # Without `closed`, Mistral's models would go on with this thinking.
    return {"type": "thinking", "thinking": [plain], "closed": True}


def _extend_detail(earlier: dict[str, Any], entry: Mapping[str, Any]) -> None:
    for key, value in entry.items():
        is_text = key in ("text", "summary", "data") and isinstance(earlier.get(key), str)
        if is_text and isinstance(value, str):
            earlier[key] += value
        elif value is not None:
            earlier[key] = value


def get_returned_keys(message: Message, origin: str | None) -> Mapping[str, Any]:
    """Return the keys with which a message returns to the server at `origin`; none if another server made it."""
    verbatim = message.verbatim
    if verbatim is None or verbatim.wire != WIRE or verbatim.origin != origin:
        return {}
    (keys,) = verbatim.items
    return read_object(keys)


def split_content(content: object, name: str) -> tuple[str, str]:
    """Split a content into its text and its thinking: a string is text, and a list as from Mistral has typed parts.

    Raises:
        BrokenStreamError: A value has a wrong type.
    """
    if not isinstance(content, list):
        return expect(str, content, name), ""
    text = ""
    thinking = ""
    for entry in content:
        part = expect(dict, entry, name)
        text += expect(str, part.get("text"), name)
        if part.get("type") == "thinking":
            thinking += split_content(part.get("thinking"), name)[0]
    return text, thinking
