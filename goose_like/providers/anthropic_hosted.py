"""Web search and fetch on Anthropic's server within an answer: the tools of a request, and their blocks.

Source: Anthropic's guides on web search and web fetch, and the types in its SDK.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from goose_like.core.events import Logged, Status, TextDelta
from goose_like.core.message import Part
from goose_like.core.spelling import format_count

from .anthropic_block import Block
from .base import Delta, HostedTools
from .known_models import HOSTED_TOOLS, WEB_FETCH, WEB_SEARCH
from .sources import Sources, describe_use, join_marks
from .wire import read_list, read_object

if TYPE_CHECKING:
    from anthropic.types import WebFetchTool20260318Param, WebFetchURLSourcesParam, WebSearchTool20260318Param

_MAX_USES = 10
"""How often the model may use each tool in one request."""

_MAX_PAGE_TOKENS = 25_000

_TOOL_OF_RESULT = {"web_search_tool_result": WEB_SEARCH, "web_fetch_tool_result": WEB_FETCH}
_SUBJECT_KEYS = {WEB_SEARCH: "query", WEB_FETCH: "url"}


def build_hosted_tool(name: str, hosted: HostedTools) -> "WebSearchTool20260318Param | WebFetchTool20260318Param":
    """Build a tool of the server that may reach its domains, or all.

    The model calls it directly: without that, the server would filter results with code, which not every model can do.
    """
    domains = hosted.domains[name]
    if name == WEB_SEARCH:
        search: WebSearchTool20260318Param = {
            "type": "web_search_20260318",
            "name": WEB_SEARCH,
            "allowed_callers": ["direct"],
            "max_uses": _MAX_USES,
        }
        if domains:
            search["allowed_domains"] = list(domains)
        return search
    fetch: WebFetchTool20260318Param = {
        "type": "web_fetch_20260318",
        "name": WEB_FETCH,
        "allowed_callers": ["direct"],
        "max_uses": _MAX_USES,
        "max_content_tokens": _MAX_PAGE_TOKENS,
    }
    if domains:
        fetch["allowed_domains"] = list(domains)
    else:
        # The model could write a URL that carries text of the person's files, and then fetch it.
        sources: WebFetchURLSourcesParam = {"client_tool_results": {"type": "none"}}
        if not hosted.trusts_messages:
            sources["user_input"] = {"type": "none"}
        fetch["url_sources"] = sources
    return fetch


def find_used_tools(items: Iterable[object]) -> Set[str]:
    """Find the names of the server's tools on the web that the blocks of an answer used."""
    used = set()
    for item in map(read_object, items):
        if item.get("type") == "server_tool_use":
            used.add(str(item.get("name")))
    return used & HOSTED_TOOLS


@dataclass(slots=True)
class HostedBlocks:
    """The uses of the server's tools in an answer, which may come in several streams, and its sources."""

    shows_sources: bool = True
    _sources: Sources = field(default_factory=Sources)
    _subjects: dict[object, object] = field(default_factory=dict)
    _has_text: bool = False
    _is_after_use: bool = False

    def choose_lead(self, kind: str) -> str:
        """Choose what stands before the text of a new block: text after a use is a paragraph of its own."""
        if kind != "text":
            return ""
        is_paragraph = self._has_text and self._is_after_use and self.shows_sources
        self._has_text = True
        self._is_after_use = False
        return "\n\n" if is_paragraph else ""

    def start(self, block: Block) -> list[Delta]:
        """Take the start of a block. The result of a tool comes whole."""
        tool = _TOOL_OF_RESULT.get(block.kind)
        if tool is None:
            return []
        self._is_after_use = True
        subject = self._subjects.get(block.start.get("tool_use_id"), "")
        if tool == WEB_SEARCH:
            done = _describe_search(subject, block.start.get("content"))
        else:
            done = self._take_page(subject, read_object(block.start.get("content")))
        return [done, Status(text="")]

    def finish(self, block: Block) -> list[Delta]:
        """Take the end of a block: a text gets the marks of the pages that it cites."""
        if block.kind == "text" and self.shows_sources:
            return self._mark(block)
        name = block.start.get("name")
        key = _SUBJECT_KEYS.get(str(name))
        if block.kind != "server_tool_use" or key is None:
            return []
        subject = read_object(block.build_item().get("input")).get(key)
        self._subjects[block.start.get("id")] = subject
        return [Status(text=f"the model's server runs {name}")]

    def add_sources(self, parts: Sequence[Part]) -> list[Part]:
        """Add the list of sources to the parts of the whole answer."""
        if not self.shows_sources:
            return list(parts)
        return self._sources.append_to(parts)

    def _mark(self, block: Block) -> list[Delta]:
        if block.marks:  # the server told the end of the block twice
            return []
        marks = []
        for citation in (*read_list(block.start.get("citations")), *block.citations):
            cited = read_object(citation)
            marks.append(self._sources.add(cited.get("url"), cited.get("title")))
        block.marks = join_marks(marks)
        if not block.marks:
            return []
        return [TextDelta(text=block.marks)]

    def _take_page(self, subject: object, content: Mapping[str, Any]) -> Logged:
        if content.get("error_code"):
            return describe_use(WEB_FETCH, subject, f"failed: {content['error_code']}")
        title = read_object(content.get("content")).get("title")
        self._sources.add(content.get("url"), title)
        return describe_use(WEB_FETCH, subject, str(title or "fetched"))


def _describe_search(query: object, content: object) -> Logged:
    error = read_object(content).get("error_code")
    if error:
        return describe_use(WEB_SEARCH, query, f"failed: {error}")
    count = len(read_list(content))
    return describe_use(WEB_SEARCH, query, format_count(count, "result"))
