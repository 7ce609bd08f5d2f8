"""Web search on OpenAI's server within an answer: the tool of a request, and its items.

Source: OpenAI's guide on web search, and the types in its SDK.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from goose_like.core.dataclass import dataclass
from goose_like.core.message import Part
from goose_like.core.spelling import format_count

from .base import Delta
from .known_models import WEB_SEARCH
from .sources import Sources, describe_use
from .wire import read_list, read_object

if TYPE_CHECKING:
    from openai.types.responses import WebSearchToolParam

_CALL = "web_search_call"


def build_hosted_tool(domains: Sequence[str]) -> "WebSearchToolParam":
    """Build the search of the server that may reach these domains, or all."""
    tool: WebSearchToolParam = {"type": WEB_SEARCH}
    if domains:
        tool["filters"] = {"allowed_domains": list(domains)}
    return tool


def count_searches(items: Iterable[Mapping[str, Any]]) -> int:
    """Count the searches in an answer. Pages that were opened have no price."""
    count = 0
    for item in items:
        if item.get("type") == _CALL and read_object(item.get("action")).get("type") == "search":
            count += 1
    return count


@dataclass(frozen=True, slots=True)
class HostedItems:
    """The uses of the server's search in an answer, and its sources. The text itself has links to them."""

    shows_sources: bool = True

    def describe(self, item: Mapping[str, Any]) -> list[Delta]:
        """Describe an item for people, if it is a use of the search."""
        if item.get("type") != _CALL:
            return []
        action = read_object(item.get("action"))
        queries = action.get("query") or ", ".join(map(str, read_list(action.get("queries"))))
        subject = queries or action.get("url")
        outcome = str(action.get("type") or "done").replace("_", " ")
        found = read_list(action.get("sources"))
        if found:
            outcome = format_count(len(found), "result")
        if item.get("status") == "failed":
            outcome = "failed"
        return [describe_use(WEB_SEARCH, subject, outcome)]

    def add_sources(self, parts: Sequence[Part], items: Iterable[Mapping[str, Any]]) -> list[Part]:
        """Add the list of the pages that the items of an answer cite to its parts."""
        if not self.shows_sources:
            return list(parts)
        sources = Sources()
        for item in items:
            for content in map(read_object, read_list(item.get("content"))):
                for note in map(read_object, read_list(content.get("annotations"))):
                    sources.add(note.get("url"), note.get("title"))
        return sources.append_to(parts)
