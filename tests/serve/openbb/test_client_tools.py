"""Tests of calls for the client: conversion in both directions, and checks."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openbb_ai import get_widget_data
from openbb_ai.models import (
    DataSourceParamOptionsRequestPayload,
    DataSourceRequestPayload,
    FunctionCallSSEData,
    WidgetRequest,
)
from openbb_ai.models import Widget as TheirWidget

from goose_like.core.message import ToolCall
from goose_like.core.tool import ToolError
from goose_like.serve.openbb.client_tools import (
    OTHER_FUNCTIONS,
    check_call,
    choose_aliases,
    to_client_call,
    to_model_calls,
)
from goose_like.serve.openbb.query import (
    ClientTool,
    FunctionCall,
    Query,
    UserMessage,
    Widget,
    WidgetParam,
    WidgetTiers,
)
from tests.serve.request_bodies import build_query, human

PRICE, NEWS, FILE = (f"{n}23e4567-e89b-12d3-a456-426614174000" for n in "123")

PRICE_PARAMS = (
    WidgetParam(name="symbol", type="ticker", current_value="AAPL", has_options_endpoint=True),
    WidgetParam(name="interval", default_value="1d", options=("1d", {"label": "Week", "value": "1w"})),
    WidgetParam(name="fields", options=("open", "close", "volume"), is_multiple=True),
    WidgetParam(name="is_live", options=("true", "false")),
    WidgetParam(name="is_adjusted", type="boolean", current_value=True),
)
WORKSPACE = Query(
    dialect="workspace",
    messages=(UserMessage(text="What is the price?"),),
    widgets=WidgetTiers(
        primary=(Widget(uuid=PRICE, origin="openbb", widget_id="price", name="Price", params=PRICE_PARAMS),),
        secondary=(Widget(uuid=NEWS, origin="openbb", widget_id="news", name="Company News"),),
        extra=(Widget(uuid=FILE, origin="files", widget_id="report", name="Report"),),
    ),
    tools=choose_aliases(
        (
            ClientTool(
                name="search",
                server_id="web",
                url="http://localhost:9/mcp",
                input_schema={
                    "properties": {"query": {}, "limit": {}},
                    "required": ["query"],
                    "additionalProperties": False,
                },
            ),
            ClientTool(name="fetch page", server_id="web", endpoint="/fetch"),
            ClientTool(name="sum", server_id="a"),
            ClientTool(name="sum", server_id="b"),
            ClientTool(name="sum", server_id="b"),
            ClientTool(name="get_widget_data"),
        ),
        (),
    ),
)
COPILOT = Query(
    dialect="copilot",
    messages=(UserMessage(text="What is the price?"),),
    widgets=WidgetTiers(secondary=(Widget(uuid=PRICE, name="Historical Stock Price", metadata={"symbol": "AAPL"}),)),
)

KEYS = ["data_sources", "param_options_queries", "widget_uuid", "origin", "id", "input_args", "param", "tool_name"]


def call(name: str, /, **arguments: Any) -> ToolCall:
    return ToolCall(id="call_1", name=name, arguments=json.dumps(arguments))


def get_refusal(name: str, query: Query = WORKSPACE, /, **arguments: Any) -> str:
    with pytest.raises(ToolError) as raised:
        check_call(name, arguments, query)
    return str(raised.value)


# --- there


def test_the_older_client_is_asked_for_one_widget_as_its_protocol_shows_it():
    calls = [call("get_widget_data", widget_uuid=PRICE), call("get_widget_data", widget_uuid=NEWS)]
    asked, count = to_client_call(calls, COPILOT)
    assert (asked.function, asked.arguments, count) == ("get_widget_data", {"widget_uuid": PRICE}, 1)


def test_widgets_that_are_asked_for_together_are_one_call_laid_over_their_current_values():
    calls = [
        call("get_widget_data", widget_uuid=PRICE, arguments={"symbol": "TSLA"}),
        call("get_widget_data", widget_uuid=NEWS),
        call("get_extra_widget_data", widget_uuid=FILE),
        call("get_widget_data", widget_uuid=PRICE),
    ]
    asked, count = to_client_call(calls, WORKSPACE)
    assert (asked.function, count) == ("get_widget_data", 2)
    first, second = asked.arguments["data_sources"]
    assert first == {
        "widget_uuid": PRICE,
        "origin": "openbb",
        "id": "price",
        "input_args": {"symbol": "TSLA", "interval": "1d", "is_adjusted": True},
    }
    assert second == {"widget_uuid": NEWS, "origin": "openbb", "id": "news", "input_args": {}}
    assert DataSourceRequestPayload.model_validate(first)
    assert to_client_call(calls[2:], WORKSPACE)[1] == 1


def test_the_call_is_the_one_that_upstream_makes():
    params = [
        {"name": param.name, "type": "string", "description": "", "current_value": param.current_value}
        for param in PRICE_PARAMS
    ]
    widget = TheirWidget(uuid=PRICE, origin="openbb", widget_id="price", name="Price", description="", params=params)
    current = {"symbol": "AAPL", "interval": "1d", "is_adjusted": True}
    theirs = get_widget_data([WidgetRequest(widget=widget, input_arguments=current)]).model_dump()["data"]
    asked, _ = to_client_call([call("get_widget_data", widget_uuid=PRICE)], WORKSPACE)
    assert {"function": asked.function, "input_arguments": asked.arguments} == json.loads(theirs)


def test_options_are_asked_for_by_the_place_of_their_widget():
    calls = [call("get_params_options", widget_uuid=PRICE, param="symbol", arguments={"symbol": "T"})] * 2
    asked, count = to_client_call(calls, WORKSPACE)
    assert count == 2
    for query in asked.arguments["param_options_queries"]:
        response_text = DataSourceParamOptionsRequestPayload.model_validate(query)
        assert (response_text.origin, response_text.id, response_text.param) == ("openbb", "price", "symbol")
        assert response_text.options_endpoint_input_args == {"symbol": "T"}


def test_a_tool_of_the_client_goes_to_its_server():
    asked, count = to_client_call([call("search", query="bonds"), call("search", query="rates")], WORKSPACE)
    assert (asked.function, count) == ("execute_agent_tool", 1)
    assert asked.arguments == {
        "server_id": "web",
        "tool_name": "search",
        "parameters": {"query": "bonds"},
        "url": "http://localhost:9/mcp",
    }
    asked, _ = to_client_call([call("fetch_page")], WORKSPACE)
    assert asked.arguments == {"server_id": "web", "tool_name": "fetch page", "parameters": {}, "endpoint": "/fetch"}


def test_the_clients_tools_have_names_that_every_vendor_takes_and_that_differ():
    names = [tool.alias for tool in WORKSPACE.tools]
    assert names == ["search", "fetch_page", "a_sum", "b_sum", "b_sum_2", "get_widget_data_2"]
    [renamed] = choose_aliases(WORKSPACE.tools[:1], {"search"})
    assert renamed.alias == "web_search"
    long = choose_aliases([ClientTool(name="ü" * 99, server_id="s") for _ in "12"], ())
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", tool.alias) for tool in long)
    assert len({tool.alias for tool in long}) == 2


@pytest.mark.parametrize("name", OTHER_FUNCTIONS)
def test_what_else_the_client_can_do_is_passed_on(name):
    asked, count = to_client_call([call(name, some={"deep": [1]}), call(name)], WORKSPACE)
    assert (asked.function, asked.arguments, count) == (name, {"some": {"deep": [1]}}, 1)


def test_every_function_is_one_that_upstream_knows():
    for name in ("get_widget_data", "get_extra_widget_data", "get_params_options", "search", *OTHER_FUNCTIONS):
        asked, _ = to_client_call([call(name, widget_uuid=PRICE)], WORKSPACE)
        assert FunctionCallSSEData(function=asked.function, input_arguments=asked.arguments)


@pytest.mark.parametrize("arguments", ["", "{", "[]", "null", '{"widget_uuid": 7, "arguments": [1]}', "[" * 99_999])
def test_arguments_of_any_form_make_a_call(arguments):
    for name in ("get_widget_data", "get_params_options", "search", "save_skill"):
        asked, _ = to_client_call([ToolCall(id="call_1", name=name, arguments=arguments)], WORKSPACE)
        assert FunctionCallSSEData(function=asked.function, input_arguments=asked.arguments)
    assert isinstance(to_client_call([call("get_widget_data")], COPILOT)[0].arguments["widget_uuid"], str)


# --- and back


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("get_widget_data", {"widget_uuid": NEWS}),
        ("get_extra_widget_data", {"widget_uuid": FILE}),
        ("get_params_options", {"widget_uuid": PRICE, "param": "symbol", "arguments": {"symbol": "T"}}),
        ("search", {"query": "bonds"}),
        ("b_sum", {}),
        ("fetch_page", {"url": "x"}),
        ("manage_navigation_bar", {"operation": "create", "tabs": [{"name": "a"}]}),
    ],
)
def test_what_was_asked_tells_what_the_model_called(name, arguments):
    asked, _ = to_client_call([call(name, **arguments)], WORKSPACE)
    assert to_model_calls(asked, WORKSPACE) == [(name, arguments)]


def test_one_call_for_several_widgets_were_several_calls():
    calls = [call("get_widget_data", widget_uuid=PRICE), call("get_widget_data", widget_uuid=NEWS)]
    asked, _ = to_client_call(calls, WORKSPACE)
    response_text = to_model_calls(asked, WORKSPACE)
    assert response_text == [
        (
            "get_widget_data",
            {"widget_uuid": PRICE, "arguments": {"symbol": "AAPL", "interval": "1d", "is_adjusted": True}},
        ),
        ("get_widget_data", {"widget_uuid": NEWS}),
    ]


def test_a_source_without_its_uuid_is_found_by_its_place():
    source = {"origin": "openbb", "id": "news", "input_args": {}}
    asked = FunctionCall(function="get_widget_data", arguments={"data_sources": [source]})
    assert to_model_calls(asked, WORKSPACE) == [("get_widget_data", {"widget_uuid": NEWS})]


@pytest.mark.parametrize(
    "arguments",
    [{"widget_uuid": PRICE}, {}, {"data_sources": []}, {"data_sources": "x"}, {"data_sources": [1, None]}],
)
def test_what_another_copilot_asked_is_one_call_as_it_stands(arguments):
    asked = FunctionCall(function="get_widget_data", arguments=arguments)
    assert to_model_calls(asked, COPILOT) == [("get_widget_data", arguments)]


def test_a_tool_that_is_gone_keeps_its_name():
    arguments: dict[str, Any] = {"tool_name": "old tool", "server_id": None, "parameters": {"a": 1}}
    asked = FunctionCall(function="execute_agent_tool", arguments=arguments)
    assert to_model_calls(asked, WORKSPACE) == [("old_tool", {"a": 1})]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text() | st.sampled_from(KEYS), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.sampled_from(["get_widget_data", "get_params_options", "execute_agent_tool", "else"]),
    st.dictionaries(
        st.sampled_from(KEYS), JSON | st.lists(st.dictionaries(st.sampled_from(KEYS), JSON, max_size=3), max_size=3)
    ),
)
def test_whatever_was_asked_was_at_least_one_call(function, arguments):
    for query in (WORKSPACE, COPILOT):
        response_text = to_model_calls(FunctionCall(function=function, arguments=arguments), query)
        assert response_text
        for name, called_with in response_text:
            assert isinstance(name, str)
            assert isinstance(called_with, dict)


# --- refused before


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("get_widget_data", {"widget_uuid": PRICE}),
        ("get_widget_data", {"widget_uuid": PRICE, "arguments": {"symbol": "ANY", "interval": "1w"}}),
        ("get_widget_data", {"widget_uuid": PRICE, "arguments": {"fields": "open, close"}}),
        ("get_widget_data", {"widget_uuid": PRICE, "arguments": {"fields": ["open", "volume"]}}),
        ("get_widget_data", {"widget_uuid": PRICE, "arguments": {"interval": None, "is_live": False}}),
        ("get_extra_widget_data", {"widget_uuid": FILE}),
        ("get_params_options", {"widget_uuid": PRICE, "param": "symbol"}),
        ("search", {"query": "bonds", "limit": 3}),
        ("fetch_page", {"anything": 1}),
        ("save_skill", {}),
    ],
)
def test_what_the_client_can_run_passes(name, arguments):
    check_call(name, arguments, WORKSPACE)


def test_a_widget_that_is_none_is_named_with_the_near_ones():
    assert get_refusal("get_widget_data", widget_uuid=PRICE[:-1] + "1") == (
        f"no widget has the uuid {PRICE[:-1] + '1'!r}; did you mean '{PRICE} (Price)'?"
    )
    assert get_refusal("get_widget_data", widget_uuid="company news") == (
        f"no widget has the uuid 'company news'; there are: {PRICE} (Price), {NEWS} (Company News), {FILE} (Report)"
    )
    many = WidgetTiers(primary=tuple(Widget(uuid=f"{number}", name="W") for number in range(20, 40)))
    assert get_refusal("get_widget_data", WORKSPACE.model_copy(update={"widgets": many}), widget_uuid="x").endswith(
        "31 (W) and 8 more"
    )
    none = COPILOT.model_copy(update={"widgets": WidgetTiers()})
    assert get_refusal("get_widget_data", none, widget_uuid="x").endswith("there are none")


def test_each_function_is_for_its_own_widgets():
    assert get_refusal("get_widget_data", widget_uuid=FILE).endswith("call get_extra_widget_data")
    assert get_refusal("get_extra_widget_data", widget_uuid=NEWS).endswith("call get_widget_data")


def test_arguments_are_held_against_the_widgets_parameters():
    response_text = get_refusal("get_widget_data", widget_uuid=PRICE, arguments={"symbl": "T"})
    assert response_text == f"{PRICE} (Price) has no parameter 'symbl'; did you mean 'symbol'?"
    response_text = get_refusal("get_widget_data", widget_uuid=PRICE, arguments={"interval": "1 week"})
    assert response_text == f"'1 week' is no option of parameter 'interval' of {PRICE} (Price); there are: 1d, 1w"
    assert "'high'" in get_refusal("get_widget_data", widget_uuid=PRICE, arguments={"fields": "open,high"})
    assert "there are none" in get_refusal("get_widget_data", widget_uuid=NEWS, arguments={"symbol": "T"})
    assert "leave `arguments` out" in get_refusal("get_widget_data", COPILOT, widget_uuid=PRICE, arguments={"a": 1})


def test_options_are_asked_for_only_where_they_are_not_known():
    assert "did you mean 'symbol'?" in get_refusal("get_params_options", widget_uuid=PRICE, param="symbols")
    assert get_refusal("get_params_options", widget_uuid=PRICE, param="interval").endswith("it takes 1d, 1w")
    assert get_refusal("get_params_options", widget_uuid=PRICE, param="is_adjusted").endswith("it takes any boolean")


def test_a_schema_that_is_none_refuses_nothing():
    schema = {"required": [["a"], {"b": 1}, 3], "properties": [], "additionalProperties": False}
    query = build_query(human("x"), tools=[{"name": "odd", "input_schema": schema}])
    check_call(query.tools[0].alias, {"x": 1}, query)


def test_a_clients_tool_is_not_called_without_what_it_requires():
    assert get_refusal("search", limit=1) == "search: field 'query' is missing; required are: query"
    assert get_refusal("search", query="a", limits=1) == "search: there is no field 'limits'; did you mean 'limit'?"
