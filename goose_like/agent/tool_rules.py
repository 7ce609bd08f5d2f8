"""Rules about tools: leave out denied tools, and ask before calls that a rule names."""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from pydantic_core import to_json

from goose_like.core.tool import Tool
from goose_like.workspace.permissions.permissions import current_tool
from goose_like.workspace.workspace import Workspace

from .tool_call import invoke


def apply_tool_rules(tools: Mapping[str, Tool], workspace: Workspace) -> dict[str, Tool]:
    """Return the tools that no rule denies now. Each later call obeys the rules of its moment."""
    return {name: _guard(tool, workspace) for name, tool in tools.items() if workspace.judge_tool(name) != "deny"}


def _guard(tool: Tool, workspace: Workspace) -> Tool:
    function: Callable[..., Any] = tool.function

    @wraps(function)
    async def call(**arguments: Any) -> Any:
        if workspace.judge_tool(tool.name) is None:
            return await invoke(function, arguments)
        text = to_json(arguments, fallback=repr).decode()
        await workspace.require_permission("tool", f"{tool.name} {text}", f"call {tool.name} with {text}")
        token = current_tool.set(tool.name)
        try:
            return await invoke(function, arguments)
        finally:
            current_tool.reset(token)

    return Tool(tool.spec, call, tool.parameters, tool.options)
