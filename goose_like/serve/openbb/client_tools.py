"""Tools that the client runs: their names, the conversion of their calls, and checks of the arguments."""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import takewhile
from typing import Any

from goose_like.core.message import ToolCall
from goose_like.core.spelling import did_you_mean
from goose_like.core.tool import ToolError

from .query import ClientTool, FunctionCall, Query, UserMessage, Widget, WidgetParam, list_objects

WIDGET_DATA_FUNCTIONS = ("get_widget_data", "get_extra_widget_data")
"""Functions that return a widget's data: for widgets on the dashboard, and for widgets that can be added to it."""

OPTIONS_FUNCTION = "get_params_options"
EXECUTE_FUNCTION = "execute_agent_tool"

SKILL_FUNCTION = "get_skill_content"

OTHER_FUNCTIONS = (
    "add_widget_to_dashboard",
    "add_generative_widget",
    "update_widget_in_dashboard",
    "manage_navigation_bar",
    "assign_tasks_to_agents",
    SKILL_FUNCTION,
    "save_skill",
)
"""Functions that take the same arguments from the model and from the client."""

_REQUEST_KEYS = {"data_sources": "input_args", "param_options_queries": "options_endpoint_input_args"}
"""The keys of the requests in a call, and in each request the key of the changed parameters."""

_MAX_NAME_LENGTH = 64

_Arguments = dict[str, Any]
_Place = tuple[str, str]
"""The origin and the id of a widget."""


# --- names


def choose_aliases(tools: Sequence[ClientTool], reserved_names: Collection[str]) -> tuple[ClientTool, ...]:
    """Give the client's tools unique names for the model; names that clash get the server's name as a prefix.

    Every provider accepts these names. The same tools get the same names.
    """
    taken = {*WIDGET_DATA_FUNCTIONS, OPTIONS_FUNCTION, EXECUTE_FUNCTION, *OTHER_FUNCTIONS, *reserved_names}
    counts = Counter(_sanitize_name(tool.name) for tool in tools)
    numbers: Counter[str] = Counter()
    renamed = []
    for tool in tools:
        alias = _sanitize_name(tool.name)
        if alias in taken or counts[alias] > 1:
            prefix = f"{tool.server_id}_" if tool.server_id else ""
            alias = _sanitize_name(f"{prefix}{tool.name}")
        base = alias[: _MAX_NAME_LENGTH - 5]
        while alias in taken:
            numbers[base] += 1
            alias = f"{base}_{numbers[base] + 1}"
        taken.add(alias)
        renamed.append(tool.model_copy(update={"alias": alias}))
    return tuple(renamed)


def _sanitize_name(name: str) -> str:
    sanitized = re.sub(r"[^A-Za-z0-9_-]", "_", name)
    return sanitized[:_MAX_NAME_LENGTH] or "tool"


# --- from the model's calls to the client's


def to_client_call(calls: Sequence[ToolCall], query: Query) -> tuple[FunctionCall, int]:
    """Convert as many of the first calls as one request to the client can include; return their number, too.

    There must be at least one call, and `check_call` must have accepted all of them.
    """
    name = calls[0].name
    if query.dialect != "copilot" and _is_widget_function(name):
        group = takewhile(lambda call: call.name == name, calls)
        entries = [_build_request(name, call.parse_arguments(), query) for call in group]
        key = "param_options_queries" if name == OPTIONS_FUNCTION else "data_sources"
        return FunctionCall(function=name, arguments={key: entries}), len(entries)
    return _to_single_call(name, calls[0].parse_arguments(), query), 1


def _to_single_call(name: str, arguments: _Arguments, query: Query) -> FunctionCall:
    if query.dialect == "copilot":
        uuid = str(arguments.get("widget_uuid", ""))
        return FunctionCall(function=name, arguments={"widget_uuid": uuid})
    tool = query.find_tool(name)
    if tool is None:
        return FunctionCall(function=name, arguments=arguments)
    wrapped = {"server_id": tool.server_id, "tool_name": tool.name, "parameters": arguments}
    if tool.url:
        wrapped["url"] = tool.url
    if tool.endpoint:
        wrapped["endpoint"] = tool.endpoint
    return FunctionCall(function=EXECUTE_FUNCTION, arguments=wrapped)


def _is_widget_function(name: str) -> bool:
    """Return whether a function is about one widget: its data, or the options of a parameter."""
    return name in WIDGET_DATA_FUNCTIONS or name == OPTIONS_FUNCTION


def build_prefetch(query: Query) -> FunctionCall | None:
    """Build the request for the data of all widgets that the user picked, or None if this is not the time for it.

    The data comes before the model is asked: small models would answer without it. Clients of the dialect `copilot` do
    not say which widgets were picked.
    """
    picked = query.widgets.primary
    if query.dialect == "copilot" or not picked:
        return None
    if not isinstance(query.messages[-1], UserMessage):
        return None
    name = WIDGET_DATA_FUNCTIONS[0]
    sources = [_build_request(name, {"widget_uuid": widget.uuid}, query) for widget in picked]
    return FunctionCall(function=name, arguments={"data_sources": sources})


def _build_request(name: str, arguments: _Arguments, query: Query) -> dict[str, Any]:
    """Build the request for a widget's data or for the options of one of its parameters."""
    uuid = str(arguments.get("widget_uuid", ""))
    changes = get_changes(arguments)
    widget = query.find_widget(uuid)
    place = {"origin": "", "id": ""}
    current_values: dict[str, Any] = {}
    if widget:
        place = {"origin": widget.origin, "id": widget.widget_id}
        current_values = widget.current_values
    if name == OPTIONS_FUNCTION:
        param = str(arguments.get("param", ""))
        return {**place, "param": param, "options_endpoint_input_args": changes}
    return {**place, "widget_uuid": uuid, "input_args": current_values | changes}


def get_changes(arguments: _Arguments) -> dict[str, Any]:
    """Return the changed parameters in the arguments of a call for a widget's data or options."""
    changes = arguments.get("arguments")
    return changes if isinstance(changes, dict) else {}


# --- from the client's calls to the model's


def to_model_calls(call: FunctionCall, query: Query) -> list[tuple[str, _Arguments]]:
    """Convert a recorded function call to the model's calls, at least one, as pairs of name and arguments."""
    arguments = call.arguments
    for key, changes_key in _REQUEST_KEYS.items():
        requests = list_objects(arguments.get(key))
        if requests:
            uuids = _list_uuids(query)
            read = [_read_request(entry, entry.get(changes_key), uuids) for entry in requests]
            return [(call.function, request) for request in read]
    if call.function == EXECUTE_FUNCTION:
        return [_read_tool_call(arguments, query)]
    return [(call.function, arguments)]


def _read_tool_call(arguments: _Arguments, query: Query) -> tuple[str, _Arguments]:
    tool_name = arguments.get("tool_name") or ""
    server_id = arguments.get("server_id") or ""
    alias = _sanitize_name(str(tool_name))
    for tool in query.tools:
        if tool.name == tool_name and tool.server_id == server_id:
            alias = tool.alias
            break
    parameters = arguments.get("parameters")
    if not isinstance(parameters, dict):
        parameters = {}
    return alias, parameters


def _list_uuids(query: Query) -> dict[_Place, str]:
    """List the uuids of all widgets by place; the first of several widgets there counts."""
    uuids: dict[_Place, str] = {}
    for widget in query.all_widgets:
        uuids.setdefault((widget.origin, widget.widget_id), widget.uuid)
    return uuids


def _read_request(entry: Mapping[str, Any], changes: Any, uuids: Mapping[_Place, str]) -> _Arguments:
    """Identify the widget by its uuid or, because clients may leave that out, by its origin and id."""
    place = (str(entry.get("origin")), str(entry.get("id")))
    request = {"widget_uuid": entry.get("widget_uuid") or uuids.get(place, "")}
    if "param" in entry:
        request["param"] = str(entry["param"])
    if isinstance(changes, dict) and changes:
        request["arguments"] = changes
    return request


# --- checks


def check_call(name: str, arguments: _Arguments, query: Query) -> None:
    """Check that the client can run a call.

    Raises:
        ToolError: the client would refuse the call or return something else; the text tells the model what to do.
    """
    if _is_widget_function(name):
        _check_widget_call(name, arguments, query)
    elif name == SKILL_FUNCTION and query.offered_skills:
        slug = str(arguments.get("slug", ""))
        slugs = [skill.slug for skill in query.offered_skills]
        if slug not in slugs:
            raise ToolError(f"there is no skill {slug!r}; {did_you_mean(slug, slugs)}")
    elif tool := query.find_tool(name):
        _check_schema(name, tool.input_schema, arguments)


def _check_widget_call(name: str, arguments: _Arguments, query: Query) -> None:
    uuid = str(arguments.get("widget_uuid", ""))
    changes = get_changes(arguments)
    widget = query.find_widget(uuid)
    if widget is None:
        hint = did_you_mean(uuid, map(_describe_widget, query.all_widgets))
        raise ToolError(f"no widget has the uuid {uuid!r}; {hint}")
    if query.dialect == "copilot" and changes:
        raise ToolError("this dashboard only gives a widget's data as it is set now; leave `arguments` out")
    if name in WIDGET_DATA_FUNCTIONS and query.dialect == "workspace":
        _check_data_function(name, widget, query)
    for param_name, value in changes.items():
        _check_option(widget, _find_param(widget, param_name), value)
    if name == OPTIONS_FUNCTION:
        param = _find_param(widget, str(arguments.get("param", "")))
        _check_has_options(widget, param)


def _check_data_function(name: str, widget: Widget, query: Query) -> None:
    own_function, extra_function = WIDGET_DATA_FUNCTIONS
    right_name = extra_function if widget in query.widgets.extra else own_function
    if name != right_name:
        raise ToolError(f"{_describe_widget(widget)} is not where {name} looks; call {right_name}")


def _check_has_options(widget: Widget, param: WidgetParam) -> None:
    if param.has_options_endpoint:
        return
    values = ", ".join(_list_options(param)) or f"any {param.type}"
    param_name = f"parameter {param.name!r} of {_describe_widget(widget)}"
    raise ToolError(f"{param_name} has no options to ask for; it takes {values}")


def _describe_widget(widget: Widget) -> str:
    return f"{widget.uuid} ({widget.name})"


def _find_param(widget: Widget, name: str) -> WidgetParam:
    params = {param.name: param for param in widget.params}
    if name not in params:
        hint = did_you_mean(name, params)
        raise ToolError(f"{_describe_widget(widget)} has no parameter {name!r}; {hint}")
    return params[name]


def _check_option(widget: Widget, param: WidgetParam, value: Any) -> None:
    """Check that each value is one of the known options; a text may contain several values with commas."""
    options = _list_options(param)
    if not options or param.has_options_endpoint or value in (None, param.current_value):
        return
    values = [value]
    if isinstance(value, list):
        values = value
    elif param.is_multiple and isinstance(value, str):
        values = value.split(",")
    for text in map(_to_option, values):
        if text not in options:
            place = f"parameter {param.name!r} of {_describe_widget(widget)}"
            raise ToolError(f"{text!r} is no option of {place}; {did_you_mean(text, options)}")


def _list_options(param: WidgetParam) -> list[str]:
    options = []
    for option in param.options:
        value = option.get("value") if isinstance(option, dict) else option
        options.append(_to_option(value))
    return options


def _to_option(value: Any) -> str:
    text = str(value)
    return text.lower() if isinstance(value, bool) else text.strip()


def _check_schema(name: str, schema: dict[str, Any], arguments: _Arguments) -> None:
    """Check only for missing and unknown fields, which every server refuses; the server checks the rest."""
    required = schema.get("required")
    names = []
    if isinstance(required, list):
        names = [field for field in required if isinstance(field, str)]
    for field in names:
        if field not in arguments:
            raise ToolError(f"{name}: field {field!r} is missing; required are: {', '.join(names)}")
    properties = schema.get("properties")
    if not isinstance(properties, dict) or schema.get("additionalProperties") is not False:
        return
    for field in arguments:
        if field not in properties:
            raise ToolError(f"{name}: there is no field {field!r}; {did_you_mean(field, properties)}")
