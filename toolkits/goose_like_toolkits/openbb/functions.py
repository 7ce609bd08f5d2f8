"""Tools that the client runs and whose arguments are none of ours: its own tools, and what it does to the dashboard."""

from collections.abc import Callable, Mapping
from typing import Any

from goose_like.core.json_schema import sound
from goose_like.core.tool import AnyArguments, Tool, ToolOptions, ToolSpec
from goose_like.serve.openbb.client_tools import client_tools
from goose_like.serve.openbb.query import Query

Check = Callable[[str, dict[str, Any]], None]

_TEXT = {"type": "string"}
_OBJECT = {"type": "object", "properties": {}}


def _of(required: Mapping[str, Any], optional: Mapping[str, Any] | None = None) -> dict[str, Any]:
    return {"type": "object", "properties": {**required, **(optional or {})}, "required": list(required)}


FUNCTIONS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "add_widget_to_dashboard": (
        "Put a widget on the dashboard, one of those that could be added.",
        _of({"origin": _TEXT, "widget_id": _TEXT}, {"input_args": _OBJECT | {"description": "Its parameters."}}),
    ),
    "add_generative_widget": (
        "Put a new widget on the dashboard with what you made: a table, a chart, text or a page.",
        _of({"name": _TEXT}, {"description": _TEXT}),
    ),
    "update_widget_in_dashboard": (
        "Change a widget of the dashboard: its parameters, name or place.",
        _of({"widget_uuid": _TEXT}, {"input_args": _OBJECT | {"description": "Parameters with their new values."}}),
    ),
    "manage_navigation_bar": ("Add, rename, remove or open tabs of the dashboard.", _of({})),
    "assign_tasks_to_agents": ("Give parts of the work to other agents of the workspace.", _of({})),
    "get_skill_content": (
        "Read one skill of the catalogue in full; only where it fits what is asked.",
        _of({"slug": _TEXT | {"description": "As it is listed."}}, {"reason": _TEXT}),
    ),
    "save_skill": ("Keep a way of working as a skill, when the person asks for it.", _of({})),
}
"""Offered beyond data. Their arguments pass through to the client; the schemas say what is known of them."""


def further(names: tuple[str, ...], check: Check) -> list[Tool]:
    """The functions of these names as tools."""
    return [_remote(name, *FUNCTIONS[name], check) for name in names]


def tools_of_client(query: Query, check: Check) -> list[Tool]:
    """The client's own tools, whatever state their schemas are in."""
    return [
        _remote(name, tool.description, sound(tool.input_schema), check) for name, tool in client_tools(query).items()
    ]


def _remote(name: str, description: str, schema: dict[str, Any], check: Check) -> Tool:
    async def checked(**arguments: Any) -> None:
        check(name, arguments)

    return Tool(ToolSpec(name, description, schema), checked, AnyArguments, ToolOptions(remote=True))
