"""Commands of a copilot's plugins as tools: goose_like checks the calls, and the copilot runs them."""

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from goose_like.core.history import History
from goose_like.core.message import ToolCall
from goose_like.core.tool import AnyArguments, Tool, ToolError, ToolOptions, ToolSpec, current_call

from ..definition.config_file import Command
from .conversation import wire_names


@dataclass(frozen=True, slots=True)
class PluginTools:
    """A plugin for a model. Commands in `wrapped` take their parameter as `param`; `check` returns its problems."""

    name: str
    prompt: str
    commands: Sequence[Command]
    wrapped: Collection[str]
    check: Callable[[str, Any], Sequence[str]]


class PluginCalls:
    """Converts commands to tools, and tool calls to plugin calls."""

    def __init__(self, plugins: Sequence[PluginTools]) -> None:
        pairs = [(plugin, command) for plugin in plugins for command in plugin.commands]
        names = wire_names(f"{plugin.name}_{command.name}" for plugin, command in pairs)
        self._commands = dict(zip(names, pairs, strict=True))

    @property
    def tool_names(self) -> dict[tuple[str, str], str]:
        """The names of tools by plugin and command."""
        return {(plugin.name, command.name): name for name, (plugin, command) in self._commands.items()}

    def build_tools(self, history: History) -> dict[str, Tool]:
        """Return the tools by name, for an exchange with this `history`.

        A good call beside a wrong one is refused too: it would run while the model corrects the other.
        """
        return {name: self._build_tool(name, history) for name in self._commands}

    def build_plugin_call(self, call: ToolCall) -> dict[str, Any]:
        """Convert a checked call to a PluginCall of ConCopilot."""
        plugin, command = self._commands[call.name]
        param = self._get_param(call.name, _parse(call))
        return {"plugin_name": plugin.name, "command": command.name, "param": param, "id": str(uuid4())}

    def _build_tool(self, name: str, history: History) -> Tool:
        async def check(**arguments: Any) -> None:
            if problems := self._find_problems(name, arguments):
                raise ToolError(f"wrong arguments for {name}: {'; '.join(problems[:5])}")
            for call in history.open_calls.values():
                if call.id != current_call.get("") and self._is_wrong(call):
                    raise ToolError(f"not run, as the call of {call.name} beside it is wrong; call both again")

        _, command = self._commands[name]
        spec = ToolSpec(name, command.description, {"properties": {}, **command.arguments})
        return Tool(spec, check, AnyArguments, ToolOptions(remote=True))

    def _is_wrong(self, call: ToolCall) -> bool:
        try:
            arguments = _parse(call)
        except (ValueError, RecursionError):
            return True
        is_call = call.name in self._commands and isinstance(arguments, dict)
        return not is_call or bool(self._find_problems(call.name, arguments))

    def _find_problems(self, name: str, arguments: dict[str, Any]) -> Sequence[str]:
        plugin, command = self._commands[name]
        if command.name in plugin.wrapped and (others := arguments.keys() - {"param"}):
            return [f"there is no field {min(others)!r}, only 'param'"]
        return plugin.check(command.name, self._get_param(name, arguments))

    def _get_param(self, name: str, arguments: Any) -> Any:
        plugin, command = self._commands[name]
        return arguments.get("param") if command.name in plugin.wrapped else arguments


def _parse(call: ToolCall) -> Any:
    return json.loads(call.arguments) if call.arguments.strip() else {}
