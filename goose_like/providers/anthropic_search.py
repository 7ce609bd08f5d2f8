"""Web search on Anthropic's server: the request, and the answer with its pages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from goose_like.core.message import Usage

from .anthropic_usage import read_usage
from .base import SearchAnswer
from .wire import SEARCH_PROMPT, complete_search, expect, read_page

if TYPE_CHECKING:
    from anthropic.types import MessageParam
    from anthropic.types.message_create_params import MessageCreateParamsNonStreaming

_SEARCH_TOKENS = 8_000


def build_search(query: str, model: str, answered: Sequence[Any] = ()) -> dict[str, Any]:
    """Build the body of a request that lets a model search the web on the server.

    `answered` are the blocks so far of an answer that the server paused.
    """
    messages: list[MessageParam] = [{"role": "user", "content": SEARCH_PROMPT.format(query)}]
    if answered:
        messages.append({"role": "assistant", "content": answered})
    body: MessageCreateParamsNonStreaming = {
        "model": model,
        "max_tokens": _SEARCH_TOKENS,
        "messages": messages,
        # Later types of this tool filter the results with code on the server, which not every model can do.
        "tools": [{"type": "web_search_20250305", "name": "web_search", "max_uses": 5}],
    }
    return {**body}


@dataclass(slots=True)
class SearchParser:
    """A parser of the answers to `build_search`: one, or several if the server pauses."""

    blocks: list[Any] = field(default_factory=list)
    _usage: Usage = field(default_factory=Usage)

    def feed(self, answer: object) -> bool:
        """Take an answer, and return whether the server paused.

        Raises:
            BrokenStreamError: A value has a wrong type.
        """
        whole = expect(dict, answer, "the answer")
        self.blocks += expect(list, whole.get("content"), "content")
        self._usage += read_usage(whole.get("usage"))
        return whole.get("stop_reason") == "pause_turn"

    def build_answer(self) -> SearchAnswer:
        """Build the whole answer. The text is that after the last search.

        Raises:
            BrokenStreamError: A value has a wrong type, or there is no text.
            ProviderError: The search failed.
        """
        texts: list[str] = []
        pages: list[tuple[str, str]] = []
        problem = ""
        for block in (expect(dict, item, "a block") for item in self.blocks):
            if block.get("type") == "text":
                texts.append(expect(str, block.get("text"), "text"))
            if block.get("type") != "web_search_tool_result":
                continue
            texts.clear()
            found = block.get("content")
            if isinstance(found, Mapping):
                problem = expect(str, found.get("error_code"), "error_code") or "no reason"
            else:
                results = (expect(dict, result, "a result") for result in expect(list, found, "content"))
                pages += [read_page(result) for result in results]
        return complete_search("".join(texts), pages, self._usage, problem)
