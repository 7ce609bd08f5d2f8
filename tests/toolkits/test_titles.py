"""Each tool that we ship has a title and a kind, and says which arguments are paths."""

import inspect

import pytest
from goose_like_toolkits.boss.flow.code_actions import CodeActions
from goose_like_toolkits.boss.flow.controller import ControllerToolkit
from goose_like_toolkits.boss.flow.plan_actions import PlanActions

from goose_like.agent.goose09 import load_toolkit
from goose_like.config.entry_points import BUILTIN_ENTRY_POINTS
from goose_like.core.tool import ToolOptions, make_tool

HOLDERS = [*map(load_toolkit, BUILTIN_ENTRY_POINTS["goose_like.toolkit"]), CodeActions, ControllerToolkit, PlanActions]
FUNCTIONS = {
    f"{holder.__name__}.{name}": function
    for holder in HOLDERS
    for name, function in inspect.getmembers(holder, inspect.isfunction)
    if isinstance(getattr(function, "__tool__", None), ToolOptions)
}
OF_NO_KIND = {"ask_user", "call_tool", "finish", "show_table", "show_chart", "show_html", "suggest_prompts"}
WITHOUT_PATH = {"get_asset"}
"""Tools whose `path` leads through a value, not to a file."""


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_tool_has_a_title_a_kind_and_paths(name):
    function = FUNCTIONS[name]
    options = function.__tool__
    short_name = function.__name__
    make_tool(function.__get__(object()))  # checks that title and paths name arguments
    if short_name not in ("call_plugin",):
        assert options.title
    assert (options.find_kind() == "other") == (short_name in OF_NO_KIND)
    has_path = "path" in inspect.signature(function).parameters and short_name not in WITHOUT_PATH
    assert options.paths == (("path",) if has_path else ())


def test_all_tools_are_found():
    assert len(FUNCTIONS) > 30
