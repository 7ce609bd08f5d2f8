"""Plugins' commands as tools whose calls are checked here and run by a component."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from goose_like.core.history import History
from goose_like.core.message import ToolCall
from goose_like.core.tool import AnyArguments, Tool, ToolError, ToolOptions, ToolSpec, current_call

from .conversation import wire_names

_FAULTS_TOLD = 5


@dataclass(frozen=True, slots=True)
class PluginCommand:
    """A command as a model is told of it. `schema` is that of its arguments, an object; one that `is_wrapped` has the
    command's parameter under `param` there.
    """

    command_name: str
    description: str
    schema: dict[str, Any]
    is_wrapped: bool = False


@dataclass(frozen=True, slots=True)
class PluginTools:
    """A plugin as a model is told of it. `check` gives what is wrong with a command's parameter; it must not raise."""

    name: str
    prompt: str
    commands: Sequence[PluginCommand]
    check: Callable[[str, Any], Sequence[str]]


class PluginCalls:
    """The plugins' commands as tools that the component runs, and what the model calls of them as plugin calls."""

    def __init__(self, plugins: Sequence[PluginTools]) -> None:
        pairs = [(plugin, command) for plugin in plugins for command in plugin.commands]
        names = wire_names(f"{plugin.name}_{command.command_name}" for plugin, command in pairs)
        self._of = dict(zip(names, pairs, strict=True))

    @property
    def tool_names(self) -> dict[tuple[str, str], str]:
        """The tools' names by plugin and command."""
        return {(plugin.name, command.command_name): name for name, (plugin, command) in self._of.items()}

    def tools(self, history: History) -> dict[str, Tool]:
        """The tools by their names; what runs of them here is the check, by the exchange that has this `history`.

        A good call beside a wrong one is not let through: it would be run while the model mends the other.
        """
        return {name: self._tool(name, history) for name in self._of}

    def made(self, call: ToolCall) -> dict[str, Any]:
        """A call that was checked, as a PluginCall."""
        plugin, command = self._of[call.name]
        param = _param(command, _arguments(call))
        return {"plugin_name": plugin.name, "command": command.command_name, "param": param, "id": str(uuid4())}

    def _tool(self, name: str, history: History) -> Tool:
        _, command = self._of[name]

        async def checked(**arguments: Any) -> None:
            if faults := self._faults(name, arguments):
                raise ToolError(f"wrong arguments for {name}: {'; '.join(faults[:_FAULTS_TOLD])}")
            for call in history.open_calls.values():
                if call.id != current_call.get("") and self._is_wrong(call):
                    raise ToolError(f"not run, as the call of {call.name} beside it is wrong; make both again")

        schema = {"properties": {}, **command.schema}
        return Tool(ToolSpec(name, command.description, schema), checked, AnyArguments, ToolOptions(remote=True))

    def _is_wrong(self, call: ToolCall) -> bool:
        try:
            arguments = _arguments(call)
        except (ValueError, RecursionError):
            return True
        return call.name not in self._of or not isinstance(arguments, dict) or bool(self._faults(call.name, arguments))

    def _faults(self, name: str, arguments: dict[str, Any]) -> Sequence[str]:
        plugin, command = self._of[name]
        if command.is_wrapped and (others := arguments.keys() - {"param"}):
            return [f"there is no field {min(others)!r}, only 'param'"]
        return plugin.check(command.command_name, _param(command, arguments))


def _arguments(call: ToolCall) -> Any:
    return json.loads(call.arguments) if call.arguments.strip() else {}


def _param(command: PluginCommand, arguments: dict[str, Any]) -> Any:
    return arguments.get("param") if command.is_wrapped else arguments
