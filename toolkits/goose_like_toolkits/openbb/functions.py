"""Tools that the client runs with arguments that only the client checks: its own tools and changes of the dashboard."""

from collections.abc import Callable, Mapping
from typing import Any

from goose_like.core.json_schema import sanitize_schema
from goose_like.core.tool import Tool, ToolOptions, ToolSpec, accept_any
from goose_like.serve.openbb.query import Query

_Schema = dict[str, Any]
Check = Callable[[str, dict[str, Any]], None]

_TEXT = {"type": "string"}
_OBJECT = {"type": "object", "properties": {}}


def _build_schema(required: _Schema, optional: _Schema | None = None) -> _Schema:
    properties = {**required, **(optional or {})}
    return {"type": "object", "properties": properties, "required": list(required)}


FUNCTIONS: Mapping[str, tuple[str, _Schema]] = {
    "add_widget_to_dashboard": (
        "Put a widget on the dashboard, one of those that could be added.",
        _build_schema(
            {"origin": _TEXT, "widget_id": _TEXT}, {"input_args": _OBJECT | {"description": "Its parameters."}}
        ),
    ),
    "add_generative_widget": (
        "Put a new widget on the dashboard with what you made: a table, a chart, text or a page.",
        _build_schema({"name": _TEXT}, {"description": _TEXT}),
    ),
    "update_widget_in_dashboard": (
        "Change a widget of the dashboard: its parameters, name or place.",
        _build_schema(
            {"widget_uuid": _TEXT}, {"input_args": _OBJECT | {"description": "Parameters with their new values."}}
        ),
    ),
    "manage_navigation_bar": ("Add, rename, remove or open tabs of the dashboard.", _build_schema({})),
    "assign_tasks_to_agents": ("Give parts of the work to other agents of the workspace.", _build_schema({})),
    "get_skill_content": (
        "Read one skill of the catalogue in full; only where it fits what is asked.",
        _build_schema({"slug": _TEXT | {"description": "As it is listed."}}, {"reason": _TEXT}),
    ),
    "save_skill": ("Keep a way of working as a skill, when the person asks for it.", _build_schema({})),
}
"""Optional functions by name, with description and schema. The schemas contain only what is known of them."""


def build_function_tools(names: tuple[str, ...], check: Check) -> list[Tool]:
    """Build tools for some of the optional functions."""
    tools = []
    for name in names:
        description, schema = FUNCTIONS[name]
        tools.append(_build_remote_tool(name, description, schema, check))
    return tools


def build_client_tools(query: Query, check: Check) -> list[Tool]:
    """Build tools for the client's own tools; invalid schemas are repaired."""
    tools = []
    for tool in query.tools:
        schema = sanitize_schema(tool.input_schema)
        tools.append(_build_remote_tool(tool.alias, tool.description, schema, check))
    return tools


def _build_remote_tool(name: str, description: str, schema: _Schema, check: Check) -> Tool:
    async def check_arguments(**arguments: Any) -> None:
        check(name, arguments)

    spec = ToolSpec(name, description, schema)
    return Tool(spec, check_arguments, accept_any, ToolOptions(remote=True))
