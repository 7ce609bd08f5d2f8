"""`/mcp`: the servers of a session for the person."""

from collections.abc import Sequence
from typing import Any

from goose_like.core.event_text import escape_controls
from goose_like.core.spelling import format_count

from .offer import Offer
from .offer_plan import ListedTool, count_tokens, count_tool_tokens
from .server_state import ServerState

_SUMMARY_CHARACTERS = 100


def describe_row(state: ServerState, tools: Sequence[ListedTool], offer: Offer) -> tuple[str, ...]:
    """Describe a server in a row: name, state, tools, how the model gets them, and where it is configured."""
    sent = [tool for tool in offer.sent if tool.server == state.name]
    count = format_count(len(tools), "tool") if state.current else "tools unknown"
    if sent:
        tokens = sum(count_tool_tokens(tool.spec) for tool in sent)
        way = f"sent, {tokens:,} tokens"
    elif any(tool.server == state.name for tool in offer.deferred):
        way = "deferred"
    else:
        way = "through find_tools"
    return (state.name, escape_controls(state.condition), count, way, state.server.origin)


def draw_table(rows: Sequence[Sequence[str]], offer: Offer) -> Any:
    """Draw the table of servers, with what they cost."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    if not rows:
        return "no MCP servers; add one: goose-like mcp add NAME -- COMMAND"
    table = Table(box=None, pad_edge=False, show_header=False)
    for row in rows:
        table.add_row(*(Text(cell, overflow="fold") for cell in row))
    lines = [f"together {count_tokens(offer):,} tokens in each request; /mcp SERVER shows its tools"]
    if offer.deferred:
        count = format_count(len(offer.deferred), "tool")
        lines.append(f"{count} deferred: the model's server searches them, or find_tools with another model")
    return Group(table, *lines)


def describe_server(state: ServerState, tools: Sequence[ListedTool]) -> str:
    """Describe a server with its tools, prompts and resources."""
    server = state.server
    place = " ".join(server.command) or server.url
    lines = [f"{state.name}: {state.condition}", f"{place} ({server.origin})"]
    for tool in tools:
        about = " ".join(tool.spec.description.split())[:_SUMMARY_CHARACTERS]
        lines.append(f"  {tool.name}  {about}")
    current = state.current
    if current is None:
        lines.append("its tools are unknown until it has started")
        return escape_controls("\n".join(lines))
    if current.prompts:
        names = ", ".join(f"/{state.name}:{prompt.name}" for prompt in current.prompts)
        lines.append(f"prompts: {names}")
    if current.resources:
        count = format_count(len(current.resources), "resource")
        lines.append(f"{count}: write @{state.name}:URI in a message")
    return escape_controls("\n".join(lines))
