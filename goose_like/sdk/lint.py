"""What the author of a toolkit probably forgot: it works, but a model can't know what it needs."""

import inspect
from collections.abc import Iterator

from goose_like.agent.slash_command import is_command
from goose_like.agent.toolkit import Toolkit
from goose_like.core.entry_points import did_you_mean
from goose_like.core.tool import Tool, parse_docstring


def collect_tools(kind: type[Toolkit]) -> tuple[Tool, ...]:
    """The tools that are written in the class, of an instance that was never initialised."""
    bare = object.__new__(kind)
    bare.config = {}
    return Toolkit.tools(bare)


def lint_toolkit(kind: type[Toolkit]) -> Iterator[str]:
    """A sentence each, with what to write."""
    tools = collect_tools(kind)
    if not tools and kind.tools is Toolkit.tools and (names := _unmarked(kind)):
        yield f"no method is marked with @tool, so a model gets none; mark those that it may call: {', '.join(names)}"
    for tool in tools:
        for words in _of_tool(tool):
            yield f"tool {tool.name!r}: {words}"


def _unmarked(kind: type[Toolkit]) -> list[str]:
    """Its own public methods; none of a toolkit that is there for its slash commands."""
    methods = inspect.getmembers(kind, inspect.isfunction)
    if any(is_command(method) for _, method in methods):
        return []
    return [name for name, _ in methods if not (name.startswith("_") or hasattr(Toolkit, name))]


def _of_tool(tool: Tool) -> Iterator[str]:
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
