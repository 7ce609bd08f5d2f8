"""Checks before tool calls: the person's rules about tools, and the hooks of toolkits."""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from pydantic_core import to_json

from goose_like.core.notifier import Notifier
from goose_like.core.tool import InnerCall, Tool
from goose_like.workspace.permissions.permissions import current_tool
from goose_like.workspace.workspace import Workspace

from .call_hooks import CallHooks, CheckedCall
from .hook_runner import HookRunner
from .tool_call import invoke


def apply_tool_rules(
    tools: Mapping[str, Tool], workspace: Workspace, hooks: CallHooks | None = None
) -> dict[str, Tool]:
    """Return the tools that no rule denies now. Each later call obeys the rules of its moment and the hooks."""
    if hooks is None:
        hooks = CallHooks(HookRunner(Notifier()), {})
    guarded: dict[str, Tool] = {}
    for name, tool in tools.items():
        if workspace.judge_tool(name) != "deny":
            guarded[name] = _guard(tool, workspace, hooks)
    return guarded


def _guard(tool: Tool, workspace: Workspace, hooks: CallHooks) -> Tool:
    function: Callable[..., Any] = tool.function
    # Hooks judge only the inner call, so that nobody is asked twice.
    has_hooks = not hooks.is_empty and not tool.options.calls_another

    @wraps(function)
    async def call(**arguments: Any) -> Any:
        checked = CheckedCall(tool.name, arguments)
        if has_hooks and workspace.judge_tool(tool.name) != "deny":
            checked = await hooks.check(tool, arguments)
        is_ruled = workspace.judge_tool(tool.name) is not None
        is_asked = tool.options.needs_permission and workspace.approval == "ask"
        if is_ruled or is_asked or checked.doubt:
            text = to_json(checked.arguments, fallback=repr).decode()
            subject = f"{tool.name} {text}"
            action = f"call {tool.name} with {text}"
            version = tool.options.get_version()
            await workspace.require_permission("tool", subject, action, doubt=checked.doubt, version=version)
        if has_hooks:
            hooks.start(checked)
        if not is_ruled:
            return await run(checked.arguments)
        token = current_tool.set(tool.name)
        try:
            return await run(checked.arguments)
        finally:
            current_tool.reset(token)

    async def run(arguments: dict[str, Any]) -> Any:
        value = await invoke(function, arguments)
        if not isinstance(value, InnerCall):
            return value
        hooks.name_inner_call(value.tool.name, value.arguments)
        guarded = _guard(value.tool, workspace, hooks)
        return await guarded.function(**value.arguments)

    return Tool(tool.spec, call, tool.make_parameters, tool.options)
