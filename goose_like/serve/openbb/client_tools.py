"""Calls that the client runs: as the model sees them, and as the protocol writes them."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import takewhile
from typing import Any

from goose_like.core.entry_points import did_you_mean
from goose_like.core.message import ToolCall, Value, Words
from goose_like.core.tool import ToolError

from .query import Asked, ClientTool, Query, Widget, WidgetParam

WIDGET_DATA = ("get_widget_data", "get_extra_widget_data")
"""Functions that give a widget's data: of the dashboard, and of what could be put there."""

OPTIONS = "get_params_options"
EXECUTE = "execute_agent_tool"

FURTHER = (
    "add_widget_to_dashboard",
    "add_generative_widget",
    "update_widget_in_dashboard",
    "manage_navigation_bar",
    "assign_tasks_to_agents",
    "get_skill_content",
    "save_skill",
)
"""Functions whose arguments are the same for the model and for the client."""

_NAME_LENGTH = 64
_WIDGETS_TOLD = 12


class ClientCall(Value):
    """A call as the client is sent it; it stands for `count` of the model's calls."""

    function: Words
    arguments: dict[str, Any]
    count: int = 1


def client_tools(query: Query) -> dict[str, ClientTool]:
    """The client's own tools by the names that the model sees: each tool's own, after its server's when two clash.

    The names are such as every vendor takes; the same query gives the same ones.
    """
    names = _names(tuple((tool.server_id, tool.name) for tool in query.tools), query.reserved)
    return dict(zip(names, query.tools, strict=True))


@lru_cache(maxsize=32)
def _names(tools: tuple[tuple[str, str], ...], reserved: frozenset[str]) -> tuple[str, ...]:
    """The names for tools by server and name; asked for with every call of a conversation."""
    taken = {*WIDGET_DATA, OPTIONS, EXECUTE, *FURTHER, *reserved}
    plain = [_plain(name) for _, name in tools]
    often, numbers = Counter(plain), Counter[str]()
    names: list[str] = []
    for (server, own), name in zip(tools, plain, strict=True):
        if name in taken or often[name] > 1:
            name = _plain(f"{server}_{own}" if server else own)
        first = name
        while name in taken:
            numbers[first] += 1
            name = f"{first[: _NAME_LENGTH - 5]}_{numbers[first] + 1}"
        taken.add(name)
        names.append(name)
    return tuple(names)


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:_NAME_LENGTH] or "tool"


def to_client(calls: Sequence[ToolCall], query: Query) -> ClientCall:
    """What the client is asked for the first of these calls and for those right after it that go along with it.

    The calls were checked (see `check`); there must be one.
    """
    name, arguments = calls[0].name, arguments_of(calls[0])
    if query.dialect == "copilot":
        return ClientCall(function=name, arguments={"widget_uuid": str(arguments.get("widget_uuid", ""))})
    if name in WIDGET_DATA or name == OPTIONS:
        together = list(takewhile(lambda call: call.name == name, calls))
        key, written = ("param_options_queries", _options) if name == OPTIONS else ("data_sources", _data_source)
        asked = [written(arguments_of(call), query) for call in together]
        return ClientCall(function=name, arguments={key: asked}, count=len(asked))
    if tool := client_tools(query).get(name):
        where = {key: value for key, value in (("url", tool.url), ("endpoint", tool.endpoint)) if value}
        given = {"server_id": tool.server_id, "tool_name": tool.name, "parameters": arguments}
        return ClientCall(function=EXECUTE, arguments=given | where)
    return ClientCall(function=name, arguments=arguments)


def arguments_of(call: ToolCall) -> dict[str, Any]:
    """The call's arguments by name; none where its text is not what it should be."""
    try:
        arguments = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        return {}
    return arguments if isinstance(arguments, dict) else {}


def _data_source(arguments: dict[str, Any], query: Query) -> dict[str, Any]:
    uuid = str(arguments.get("widget_uuid", ""))
    widget = query.widget(uuid) or Widget(uuid=uuid, name="")
    return {
        "widget_uuid": uuid,
        "origin": widget.origin,
        "id": widget.widget_id,
        "input_args": widget.current | _given(arguments),
    }


def _options(arguments: dict[str, Any], query: Query) -> dict[str, Any]:
    uuid = str(arguments.get("widget_uuid", ""))
    widget = query.widget(uuid) or Widget(uuid=uuid, name="")
    return {
        "origin": widget.origin,
        "id": widget.widget_id,
        "param": str(arguments.get("param", "")),
        "options_endpoint_input_args": _given(arguments),
    }


def _given(arguments: dict[str, Any]) -> dict[str, Any]:
    given = arguments.get("arguments")
    return given if isinstance(given, dict) else {}


def from_client(asked: Asked, query: Query) -> list[tuple[str, dict[str, Any]]]:
    """The calls by name and arguments, at least one, that the model must have made for the client to be asked this."""
    function, arguments = asked.function, asked.arguments
    if sources := _dicts(arguments.get("data_sources")):
        uuids = _uuids(query)
        return [(function, _widget(entry, uuids) | _laid_over(entry.get("input_args"))) for entry in sources]
    if queries := _dicts(arguments.get("param_options_queries")):
        uuids = _uuids(query)
        return [
            (
                function,
                _widget(entry, uuids)
                | {"param": str(entry.get("param", ""))}
                | _laid_over(entry.get("options_endpoint_input_args")),
            )
            for entry in queries
        ]
    if function == EXECUTE:
        wanted = arguments.get("tool_name") or "", arguments.get("server_id") or ""
        tools = client_tools(query).items()
        name = next((name for name, tool in tools if (tool.name, tool.server_id) == wanted), _plain(str(wanted[0])))
        parameters = arguments.get("parameters")
        return [(name, parameters if isinstance(parameters, dict) else {})]
    return [(function, arguments)]


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _uuids(query: Query) -> dict[tuple[str, str], str]:
    return {(widget.origin, widget.widget_id): widget.uuid for widget in reversed(query.widgets)}


def _widget(entry: dict[str, Any], uuids: Mapping[tuple[str, str], str]) -> dict[str, Any]:
    """Which widget is meant: by its uuid or, as clients may leave that out, by its origin and id."""
    place = str(entry.get("origin")), str(entry.get("id"))
    return {"widget_uuid": entry.get("widget_uuid") or uuids.get(place, "")}


def _laid_over(arguments: Any) -> dict[str, Any]:
    return {"arguments": arguments} if isinstance(arguments, dict) and arguments else {}


def check(name: str, arguments: dict[str, Any], query: Query) -> None:
    """Lets a call pass that the client can run.

    Raises:
        ToolError: the client would refuse it, or give something else; in words for the model.
    """
    if name in WIDGET_DATA or name == OPTIONS:
        widget = _known_widget(str(arguments.get("widget_uuid", "")), query)
        if name in WIDGET_DATA and query.dialect == "workspace" and (right := _function_for(widget)) != name:
            raise ToolError(f"{_told(widget)} is not where {name} looks; call {right}")
        _check_arguments(widget, _given(arguments), query)
        if name == OPTIONS:
            _check_has_options(widget, str(arguments.get("param", "")))
    elif tool := client_tools(query).get(name):
        _check_schema(name, tool.input_schema, arguments)


def _function_for(widget: Widget) -> str:
    return WIDGET_DATA[widget.tier == "extra"]


def _told(widget: Widget) -> str:
    return f"{widget.uuid} ({widget.name})"


def _known_widget(uuid: str, query: Query) -> Widget:
    if widget := query.widget(uuid):
        return widget
    names = {word.lower(): widget for widget in query.widgets for word in (widget.widget_id, widget.name)}
    if meant := names.get(uuid.lower()):
        raise ToolError(f"{uuid!r} is no uuid of a widget; did you mean {_told(meant)}?")
    hint = did_you_mean(uuid, (widget.uuid for widget in query.widgets))
    if not hint.startswith("did you mean"):
        more = len(query.widgets) - _WIDGETS_TOLD
        told = ", ".join(map(_told, query.widgets[:_WIDGETS_TOLD]))
        hint = f"there are: {told}{f' and {more} more' if more > 0 else ''}" if told else "the dashboard has none"
    raise ToolError(f"no widget has the uuid {uuid!r}; {hint}")


def _check_arguments(widget: Widget, arguments: dict[str, Any], query: Query) -> None:
    if arguments and query.dialect == "copilot":
        raise ToolError("this dashboard gives a widget's data as it is set now; leave `arguments` out")
    params = {param.name: param for param in widget.params}
    for name, value in arguments.items():
        if name not in params:
            raise ToolError(f"{_told(widget)} has no parameter {name!r}; {did_you_mean(name, params)}")
        _check_option(widget, params[name], value)


def _check_option(widget: Widget, param: WidgetParam, value: Any) -> None:
    """Whether each value is one of the parameter's options, where these are known; several may be parted by commas."""
    options = _options_of(param)
    if not options or param.has_options_endpoint or value in (None, param.current_value):
        return
    several: Iterable[Any] = [value]
    if param.is_multiple:
        several = value if isinstance(value, list) else _word(value).split(",")
    for one in several:
        if _word(one) not in options:
            hint = did_you_mean(_word(one), options)
            raise ToolError(f"{one!r} is no option of parameter {param.name!r} of {_told(widget)}; {hint}")


def _options_of(param: WidgetParam) -> list[str]:
    return [_word(option.get("value") if isinstance(option, dict) else option) for option in param.options]


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value).strip()


def _check_has_options(widget: Widget, name: str) -> None:
    param = next((param for param in widget.params if param.name == name), None)
    if param is None:
        known = [param.name for param in widget.params]
        raise ToolError(f"{_told(widget)} has no parameter {name!r}; {did_you_mean(name, known)}")
    if not param.has_options_endpoint:
        options = _options_of(param)
        told = f"one of: {', '.join(options)}" if options else f"any {param.type}"
        raise ToolError(f"parameter {name!r} of {_told(widget)} has no options to ask for; it takes {told}")


def _check_schema(name: str, schema: dict[str, Any], arguments: dict[str, Any]) -> None:
    """What every server refuses: a field that is missing, or one that is not there. The rest is the server's to say."""
    properties, required = schema.get("properties"), schema.get("required")
    if isinstance(required, list) and (missing := [field for field in required if field not in arguments]):
        raise ToolError(f"{name}: field {missing[0]!r} is missing; required are: {', '.join(map(str, required))}")
    if isinstance(properties, dict) and schema.get("additionalProperties") is False:
        for field in arguments:
            if field not in properties:
                raise ToolError(f"{name}: there is no field {field!r}; {did_you_mean(field, properties)}")
