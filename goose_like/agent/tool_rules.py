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
    """Return the tools that no rule denies. Those that a rule names get a function that obeys the rule."""
    verdicts = {name: workspace.judge_tool(name) for name in tools}
    return {
        name: tool if verdicts[name] is None else _guard(tool, workspace)
        for name, tool in tools.items()
        if verdicts[name] != "deny"
    }


def _guard(tool: Tool, workspace: Workspace) -> Tool:
    function: Callable[..., Any] = tool.function

    @wraps(function)
    async def call(**arguments: Any) -> Any:
        text = to_json(arguments, fallback=repr).decode()
        await workspace.require_permission("tool", f"{tool.name} {text}", f"call {tool.name} with {text}")
        token = current_tool.set(tool.name)
        try:
            return await invoke(function, arguments)
        finally:
            current_tool.reset(token)

    return Tool(tool.spec, call, tool.parameters, tool.options)
