"""Tools that the client runs with arguments that only the client checks: its own tools and changes of the dashboard."""

from collections.abc import Callable, Mapping
from typing import Any

from goose_like.core.json_schema import sanitize_schema
from goose_like.core.tool import AnyArguments, Tool, ToolOptions, ToolSpec
from goose_like.serve.openbb.query import Query

Check = Callable[[str, dict[str, Any]], None]

_TEXT = {"type": "string"}
_OBJECT = {"type": "object", "properties": {}}


def _build_schema(required: Mapping[str, Any], optional: Mapping[str, Any] | None = None) -> dict[str, Any]:
    return {"type": "object", "properties": {**required, **(optional or {})}, "required": list(required)}


FUNCTIONS: Mapping[str, tuple[str, dict[str, Any]]] = {
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
    return [_build_remote_tool(name, *FUNCTIONS[name], check) for name in names]


def build_client_tools(query: Query, check: Check) -> list[Tool]:
    """Build tools for the client's own tools; invalid schemas are repaired."""
    return [
        _build_remote_tool(tool.alias, tool.description, sanitize_schema(tool.input_schema), check)
        for tool in query.tools
    ]


def _build_remote_tool(name: str, description: str, schema: dict[str, Any], check: Check) -> Tool:
    async def check_arguments(**arguments: Any) -> None:
        check(name, arguments)

    return Tool(ToolSpec(name, description, schema), check_arguments, AnyArguments, ToolOptions(remote=True))
