"""Tools that the client runs: their names, the conversion of their calls, and checks of the arguments."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import takewhile
from typing import Any

from goose_like.core.entry_points import did_you_mean
from goose_like.core.message import FrozenModel, ToolCall, Utf8Text
from goose_like.core.tool import ToolError

from .query import ClientTool, FunctionCall, Query, Widget, WidgetParam

WIDGET_DATA_FUNCTIONS = ("get_widget_data", "get_extra_widget_data")
"""Functions that return a widget's data: for widgets on the dashboard, and for widgets that can be added to it."""

OPTIONS_FUNCTION = "get_params_options"
EXECUTE_FUNCTION = "execute_agent_tool"

OTHER_FUNCTIONS = (
    "add_widget_to_dashboard",
    "add_generative_widget",
    "update_widget_in_dashboard",
    "manage_navigation_bar",
    "assign_tasks_to_agents",
    "get_skill_content",
    "save_skill",
)
"""Functions that take the same arguments from the model and from the client."""

_MAX_NAME_LENGTH = 64
_MAX_WIDGETS_IN_HINT = 12


class ClientCall(FrozenModel):
    """A function call as the client gets it; it stands for `count` calls of the model."""

    function: Utf8Text
    arguments: dict[str, Any]
    count: int = 1


# --- names


def name_client_tools(query: Query) -> dict[str, ClientTool]:
    """Map unique names for the model to the client's tools; names that clash get the server's name as a prefix.

    Every provider accepts these names. The same query gives the same names.
    """
    names = _choose_names(tuple((tool.server_id, tool.name) for tool in query.tools), query.reserved_names)
    return dict(zip(names, query.tools, strict=True))


@lru_cache(maxsize=32)
def _choose_names(tools: tuple[tuple[str, str], ...], reserved: frozenset[str]) -> tuple[str, ...]:
    """Choose names for tools given by server and name; cached, because every call of a conversation needs them."""
    taken = {*WIDGET_DATA_FUNCTIONS, OPTIONS_FUNCTION, EXECUTE_FUNCTION, *OTHER_FUNCTIONS, *reserved}
    plain_names = [_sanitize_name(name) for _, name in tools]
    counts, numbers = Counter(plain_names), Counter[str]()
    names: list[str] = []
    for (server, own_name), name in zip(tools, plain_names, strict=True):
        if name in taken or counts[name] > 1:
            name = _sanitize_name(f"{server}_{own_name}" if server else own_name)
        base = name
        while name in taken:
            numbers[base] += 1
            name = f"{base[: _MAX_NAME_LENGTH - 5]}_{numbers[base] + 1}"
        taken.add(name)
        names.append(name)
    return tuple(names)


def _sanitize_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:_MAX_NAME_LENGTH] or "tool"


# --- from the model's calls to the client's


def to_client_call(calls: Sequence[ToolCall], query: Query) -> ClientCall:
    """Convert the first call, together with the following calls that one request to the client can include.

    There must be at least one call, and `check_call` must have accepted all of them.
    """
    name, arguments = calls[0].name, calls[0].parse_arguments()
    if query.dialect == "copilot":
        return ClientCall(function=name, arguments={"widget_uuid": str(arguments.get("widget_uuid", ""))})
    if name in WIDGET_DATA_FUNCTIONS or name == OPTIONS_FUNCTION:
        group = takewhile(lambda call: call.name == name, calls)
        entries = [_build_request(name, call.parse_arguments(), query) for call in group]
        key = "param_options_queries" if name == OPTIONS_FUNCTION else "data_sources"
        return ClientCall(function=name, arguments={key: entries}, count=len(entries))
    if tool := name_client_tools(query).get(name):
        address = {key: value for key, value in (("url", tool.url), ("endpoint", tool.endpoint)) if value}
        wrapped = {"server_id": tool.server_id, "tool_name": tool.name, "parameters": arguments}
        return ClientCall(function=EXECUTE_FUNCTION, arguments=wrapped | address)
    return ClientCall(function=name, arguments=arguments)


def _build_request(name: str, arguments: dict[str, Any], query: Query) -> dict[str, Any]:
    """Build the request for a widget's data or for the options of one of its parameters."""
    uuid, changes = str(arguments.get("widget_uuid", "")), _get_changes(arguments)
    widget = query.find_widget(uuid)
    place = {"origin": widget.origin if widget else "", "id": widget.widget_id if widget else ""}
    if name == OPTIONS_FUNCTION:
        return place | {"param": str(arguments.get("param", "")), "options_endpoint_input_args": changes}
    return place | {"widget_uuid": uuid, "input_args": (widget.current_values if widget else {}) | changes}


def _get_changes(arguments: dict[str, Any]) -> dict[str, Any]:
    changes = arguments.get("arguments")
    return changes if isinstance(changes, dict) else {}


# --- from the client's calls to the model's


def to_model_calls(call: FunctionCall, query: Query) -> list[tuple[str, dict[str, Any]]]:
    """Convert a recorded function call to the model's calls, at least one, as pairs of name and arguments."""
    function, arguments = call.function, call.arguments
    for key, changes_key in (("data_sources", "input_args"), ("param_options_queries", "options_endpoint_input_args")):
        entries = arguments.get(key)
        requests = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
        if requests:
            uuids = {(widget.origin, widget.widget_id): widget.uuid for widget in reversed(query.widgets)}
            return [(function, _read_request(entry, entry.get(changes_key), uuids)) for entry in requests]
    if function == EXECUTE_FUNCTION:
        wanted = arguments.get("tool_name") or "", arguments.get("server_id") or ""
        tools = name_client_tools(query).items()
        matches = (name for name, tool in tools if (tool.name, tool.server_id) == wanted)
        parameters = arguments.get("parameters")
        name = next(matches, _sanitize_name(str(wanted[0])))
        return [(name, parameters if isinstance(parameters, dict) else {})]
    return [(function, arguments)]


def _read_request(entry: dict[str, Any], changes: Any, uuids: Mapping[tuple[str, str], str]) -> dict[str, Any]:
    """Identify the widget by its uuid or, because clients may leave that out, by its origin and id."""
    place = str(entry.get("origin")), str(entry.get("id"))
    request = {"widget_uuid": entry.get("widget_uuid") or uuids.get(place, "")}
    if "param" in entry:
        request["param"] = str(entry["param"])
    if isinstance(changes, dict) and changes:
        request["arguments"] = changes
    return request


# --- checks


def check_call(name: str, arguments: dict[str, Any], query: Query) -> None:
    """Check that the client can run a call.

    Raises:
        ToolError: the client would refuse the call or return something else; the text tells the model what to do.
    """
    if name in WIDGET_DATA_FUNCTIONS or name == OPTIONS_FUNCTION:
        widget = _find_widget(str(arguments.get("widget_uuid", "")), query)
        if name in WIDGET_DATA_FUNCTIONS and query.dialect == "workspace":
            right_name = WIDGET_DATA_FUNCTIONS[widget.tier == "extra"]
            if name != right_name:
                raise ToolError(f"{_describe_widget(widget)} is not where {name} looks; call {right_name}")
        _check_arguments(widget, _get_changes(arguments), query)
        if name == OPTIONS_FUNCTION:
            _check_has_options(widget, str(arguments.get("param", "")))
    elif tool := name_client_tools(query).get(name):
        _check_schema(name, tool.input_schema, arguments)


def _describe_widget(widget: Widget) -> str:
    return f"{widget.uuid} ({widget.name})"


def _find_widget(uuid: str, query: Query) -> Widget:
    if widget := query.find_widget(uuid):
        return widget
    by_name = {name.lower(): widget for widget in query.widgets for name in (widget.widget_id, widget.name)}
    if meant := by_name.get(uuid.lower()):
        raise ToolError(f"{uuid!r} is no uuid of a widget; did you mean {_describe_widget(meant)}?")
    hint = did_you_mean(uuid, (widget.uuid for widget in query.widgets))
    if not hint.startswith("did you mean"):
        more = len(query.widgets) - _MAX_WIDGETS_IN_HINT
        names = ", ".join(map(_describe_widget, query.widgets[:_MAX_WIDGETS_IN_HINT]))
        hint = f"there are: {names}{f' and {more} more' if more > 0 else ''}" if names else "the dashboard has none"
    raise ToolError(f"no widget has the uuid {uuid!r}; {hint}")


def _check_arguments(widget: Widget, arguments: dict[str, Any], query: Query) -> None:
    if arguments and query.dialect == "copilot":
        raise ToolError("this dashboard only gives a widget's data as it is set now; leave `arguments` out")
    for name, value in arguments.items():
        _check_option(widget, _find_param(widget, name), value)


def _find_param(widget: Widget, name: str) -> WidgetParam:
    params = {param.name: param for param in widget.params}
    if name not in params:
        raise ToolError(f"{_describe_widget(widget)} has no parameter {name!r}; {did_you_mean(name, params)}")
    return params[name]


def _check_option(widget: Widget, param: WidgetParam, value: Any) -> None:
    """Check that each value is one of the known options; a text may contain several values with commas."""
    options = _list_options(param)
    if not options or param.has_options_endpoint or value in (None, param.current_value):
        return
    values: Iterable[Any] = [value]
    if param.is_multiple:
        values = value if isinstance(value, list) else _to_option(value).split(",")
    for each in values:
        if _to_option(each) not in options:
            hint = did_you_mean(_to_option(each), options)
            raise ToolError(f"{each!r} is no option of parameter {param.name!r} of {_describe_widget(widget)}; {hint}")


def _list_options(param: WidgetParam) -> list[str]:
    return [_to_option(option.get("value") if isinstance(option, dict) else option) for option in param.options]


def _to_option(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value).strip()


def _check_has_options(widget: Widget, name: str) -> None:
    param = _find_param(widget, name)
    if not param.has_options_endpoint:
        options = _list_options(param)
        values = f"one of: {', '.join(options)}" if options else f"any {param.type}"
        raise ToolError(
            f"parameter {name!r} of {_describe_widget(widget)} has no options to ask for; it takes {values}"
        )


def _check_schema(name: str, schema: dict[str, Any], arguments: dict[str, Any]) -> None:
    """Check only for missing and unknown fields, which every server refuses; the server checks the rest."""
    properties, required = schema.get("properties"), schema.get("required")
    if isinstance(required, list) and (missing := [field for field in required if field not in arguments]):
        raise ToolError(f"{name}: field {missing[0]!r} is missing; required are: {', '.join(map(str, required))}")
    if isinstance(properties, dict) and schema.get("additionalProperties") is False:
        for field in arguments:
            if field not in properties:
                raise ToolError(f"{name}: there is no field {field!r}; {did_you_mean(field, properties)}")
