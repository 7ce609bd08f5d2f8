"""Tools in the wire format of the Responses API, also those that the server searches."""

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, Literal

from goose_like.core.message import ToolSpec

from .base import Request
from .known_models import TOOL_SEARCH
from .native_patch import PATCH_TOOL
from .responses_hosted import build_hosted_tool
from .wire import sanitize_tool_name

if TYPE_CHECKING:
    from openai.types.responses import (
        ApplyPatchToolParam,
        FunctionToolParam,
        NamespaceToolParam,
        ToolChoiceAllowedParam,
        ToolSearchToolParam,
        WebSearchToolParam,
    )
    from openai.types.responses.namespace_tool_param import Tool

    Entry = FunctionToolParam | ApplyPatchToolParam | NamespaceToolParam | ToolSearchToolParam | WebSearchToolParam

_SEARCH_ITEMS = frozenset({"tool_search_call", "tool_search_output"})

_LEAST_PER_NAMESPACE = 10
"""OpenAI's guide on tool search wants fewer functions in each namespace than about ten."""

_MAX_NAMESPACES = 16
_MAX_GROUP = 56
"""Characters of the name of a group, so that its number fits into the name of a namespace."""

_MAX_NAMES = 160
"""Characters of the names of functions in the description of a namespace, which the model always reads."""


def build_tools(
    tools: Iterable[ToolSpec],
    native: Set[str],
    namespaces: "Sequence[NamespaceToolParam]",
    hosted: Mapping[str, Sequence[str]],
) -> "list[Entry]":
    """Build the tools of a request. The server searches those in `namespaces`; its search stands for ours.

    `hosted` are the tools that it runs itself, with the domains that they may reach.
    """
    entries: list[Entry] = []
    for tool in tools:
        is_replaced = bool(namespaces) and tool.native == TOOL_SEARCH
        if tool.native in hosted:
            entries.append(build_hosted_tool(hosted[tool.native]))
        elif not is_replaced and not tool.deferred_group:
            entries.append(_build_tool(tool, native))
    if namespaces:
        search: ToolSearchToolParam = {"type": "tool_search"}
        entries += [search, *namespaces]
    return entries


def _build_tool(tool: ToolSpec, native: Set[str]) -> "FunctionToolParam | ApplyPatchToolParam":
    if tool.native == PATCH_TOOL and PATCH_TOOL in native:
        return {"type": PATCH_TOOL}
    # Strict validation would refuse schemas with optional fields, and is tried if the key is missing.
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": dict(tool.schema),
        "strict": False,
    }


def build_namespaces(tools: Sequence[ToolSpec]) -> "list[NamespaceToolParam]":
    """Build the namespaces of deferred tools. The model sees their descriptions, and loads the functions of a few.

    Without them it would see the description of each function.
    """
    groups: dict[str, list[ToolSpec]] = {}
    for tool in tools:
        group = sanitize_tool_name(tool.deferred_group)[:_MAX_GROUP]
        groups.setdefault(group, []).append(tool)
    size = max(_LEAST_PER_NAMESPACE, math.ceil(len(tools) / _MAX_NAMESPACES))
    namespaces = []
    for group, members in groups.items():
        for start in range(0, len(members), size):
            name = f"{group}_{start // size + 1}"
            namespaces.append(_build_namespace(name, members[start : start + size]))
    return namespaces


def _build_namespace(name: str, tools: Sequence[ToolSpec]) -> "NamespaceToolParam":
    functions: list[Tool] = []
    for tool in tools:
        functions.append(
            {
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": dict(tool.schema),
                "strict": False,
                "defer_loading": True,
            }
        )
    names = ", ".join(tool.name for tool in tools)
    if len(names) > _MAX_NAMES:
        names = f"{names[:_MAX_NAMES]}..."
    return {"type": "namespace", "name": name, "description": names, "tools": functions}


def map_namespaces(namespaces: "Iterable[NamespaceToolParam]") -> dict[str, str]:
    """Map the name of each function to its namespace."""
    names: dict[str, str] = {}
    for namespace in namespaces:
        for function in namespace["tools"]:
            names[function["name"]] = namespace["name"]
    return names


def belongs_to_search(items: Iterable[Any]) -> bool:
    """Return whether items of an answer are of a search of tools, or call a function that one found."""
    for item in items:
        is_search = isinstance(item, Mapping) and (item.get("type") in _SEARCH_ITEMS or "namespace" in item)
        if is_search:
            return True
    return False


def choose_tools(
    request: Request, native: Set[str], *, searches_tools: bool
) -> "ToolChoiceAllowedParam | Literal['none'] | None":
    """Choose the tools that the model may use now, or return None if it may use all.

    With `searches_tools` it may: no guide says how to name what a search finds, and forbidden calls fail here anyway.
    """
    tools = request.all_tools
    if request.allowed_tools is None:
        return None
    allowed = [tool for tool in tools if tool.name in request.allowed_tools]
    if len(allowed) == len(tools):
        return None
    if not allowed:
        return "none"
    if searches_tools:
        return None
    named: list[dict[str, object]] = []
    for tool in allowed:
        entry: dict[str, object] = {"type": "function", "name": tool.name}
        if tool.native == PATCH_TOOL and PATCH_TOOL in native:
            entry = {"type": PATCH_TOOL}
        elif tool.native in request.hosted.domains:
            entry = {"type": tool.native}
        named.append(entry)
    return {"type": "allowed_tools", "mode": "auto", "tools": named}
