"""Lint of toolkit classes: hints and docstrings without which a model cannot use a tool well."""

import inspect
from collections.abc import Iterator

from goose_like.agent.hook_runner import HOOK_POINTS, list_hook_points
from goose_like.agent.slash_command import is_command
from goose_like.agent.toolkit import Toolkit
from goose_like.core.docstring import parse_docstring
from goose_like.core.spelling import did_you_mean, find_nearest_name
from goose_like.core.tool import Tool

_HOOK_STARTS = ("on_", "before_", "after_")


def collect_tools(kind: type[Toolkit]) -> tuple[Tool, ...]:
    """Collect the tools of a class without initialising it. A `tools` that needs a session counts as the default."""
    bare = object.__new__(kind)
    bare.config = {}
    try:
        return tuple(kind.tools(bare))
    except Exception:  # foreign code, which may use what a session sets
        return Toolkit.tools(bare)


def lint_toolkit(kind: type[Toolkit]) -> Iterator[str]:
    """Yield one sentence per problem, each with the remedy."""
    tools = collect_tools(kind)
    if not tools:
        yield from _explain_no_tools(kind)
    yield from _lint_hooks(kind)
    for tool in tools:
        for problem in _lint_tool(tool):
            yield f"tool {tool.name!r}: {problem}"


def _explain_no_tools(kind: type[Toolkit]) -> Iterator[str]:
    if kind.tools is not Toolkit.tools:
        yield "its tools are made in a session: `/toolkits` lists them there"
        return
    unmarked = ", ".join(_find_unmarked_methods(kind))
    if unmarked:
        yield f"no method is marked with @tool, so a model gets none; mark those that it may call: {unmarked}"


def _find_unmarked_methods(kind: type[Toolkit]) -> list[str]:
    methods = inspect.getmembers(kind, inspect.isfunction)
    has_commands = any(is_command(method) for _, method in methods)
    if has_commands or list_hook_points(kind):  # it needs no tools
        return []
    names = []
    for name, _ in methods:
        is_private = name.startswith("_")
        is_inherited = hasattr(Toolkit, name)
        if not is_private and not is_inherited:
            names.append(name)
    return names


def _lint_hooks(kind: type[Toolkit]) -> Iterator[str]:
    """Find misspelt hooks, which would never be called."""
    for name, _ in inspect.getmembers(kind, inspect.isfunction):
        if hasattr(Toolkit, name) or not name.startswith(_HOOK_STARTS):
            continue
        near = find_nearest_name(name, HOOK_POINTS)
        if near:
            yield f"method {name!r} is no hook, so nothing calls it; did you mean {near!r}?"


def _lint_tool(tool: Tool) -> Iterator[str]:
    if not tool.spec.description:
        yield "it has no docstring that says what it does, so a model knows its name only; write one"
    parameters = inspect.signature(tool.function).parameters
    for name, parameter in parameters.items():
        if parameter.annotation is parameter.empty:
            yield f"argument {name!r} has no type hint, so a model may send anything; write e.g. `{name}: str`"
    for entry in parse_docstring(inspect.getdoc(tool.function) or "").params:
        if entry.args[0] == "param" and entry.arg_name not in parameters:
            near = did_you_mean(entry.arg_name, parameters)
            yield f"its docstring describes {entry.arg_name!r}, which is none of its arguments; {near}"
