"""Tools in the wire format of Anthropic's messages, also those that the server searches."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from goose_like.core.tool import ToolSpec

from .anthropic_hosted import build_hosted_tool
from .base import Request
from .known_models import TOOL_SEARCH

if TYPE_CHECKING:
    from anthropic.types import ToolParam, ToolSearchToolBm25_20251119Param, ToolUnionParam

_SEARCH_NAME: Final = "tool_search_tool_bm25"


def build_tools(
    request: Request, *, searches_tools: bool, streams_arguments: bool
) -> "tuple[list[ToolUnionParam], ToolUnionParam | None]":
    """Build the tools of a request. Return the last one, too, that may have a mark for the cache.

    With `searches_tools` the server searches those that are deferred: they follow all others, as they are outside of
    the cached start. Its search stands for the tools that search otherwise.
    """
    listed: list[ToolUnionParam] = []
    for tool in request.all_tools:
        if tool.native in request.hosted.domains:
            listed.append(build_hosted_tool(tool.native, request.hosted))
        elif not (searches_tools and tool.native == TOOL_SEARCH):
            listed.append(_build_tool(tool, streams_arguments=streams_arguments))
    if searches_tools:
        search: ToolSearchToolBm25_20251119Param = {"type": "tool_search_tool_bm25_20251119", "name": _SEARCH_NAME}
        listed.append(search)
    last = listed[-1] if listed else None
    if searches_tools:
        listed += _build_deferred(request.all_deferred_tools)
    return listed, last


def _build_deferred(tools: Sequence[ToolSpec]) -> "list[ToolParam]":
    entries = []
    for tool in tools:
        entry = _build_tool(tool, streams_arguments=False)
        entry["defer_loading"] = True
        entries.append(entry)
    return entries


def _build_tool(tool: ToolSpec, *, streams_arguments: bool) -> "ToolParam":
    entry: ToolParam = {"name": tool.name, "description": tool.description, "input_schema": tool.schema}
    if tool.has_long_arguments and streams_arguments:
        entry["eager_input_streaming"] = True
    return entry


def is_tool_search(item: Mapping[str, Any]) -> bool:
    """Return whether a block of an answer belongs to a search of tools. The server refuses it without these tools."""
    kind = item.get("type")
    is_call = kind == "server_tool_use" and item.get("name") == _SEARCH_NAME
    return is_call or kind == "tool_search_tool_result"
