"""Commands of a copilot's plugins as tools: goose_like checks the calls, and the copilot runs them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import uuid4

from goose_like.core.message import ToolCall
from goose_like.core.tool import Tool, ToolError

from ..definition.config_file import Command
from ..definition.grammar import CommandReader
from ..definition.validation import check_parameter, get_parameter
from .conversation import wire_names
from .exchange import build_tool


@dataclass(frozen=True, slots=True)
class Plugin:
    """A plugin of a copilot."""

    name: str
    prompt: str
    commands: tuple[Command, ...]

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> "Plugin":
        """Read a plugin that the worker describes. Leave out commands that are wrong."""
        reader = CommandReader(lambda *_, **__: None, lambda _, value: str(value))
        commands = reader.read(data.get("commands"))
        return cls(str(data.get("name")), str(data.get("prompt") or ""), commands)


class PluginCalls:
    """Converts commands to tools, and tool calls to plugin calls."""

    def __init__(self, plugins: Sequence[Plugin]) -> None:
        pairs: list[tuple[Plugin, Command]] = []
        for plugin in plugins:
            pairs += [(plugin, command) for command in plugin.commands]
        names = wire_names(f"{plugin.name}_{command.name}" for plugin, command in pairs)
        self._commands = dict(zip(names, pairs, strict=True))

    @property
    def tool_names(self) -> dict[tuple[str, str], str]:
        """The names of tools by plugin and command."""
        names = {}
        for name, (plugin, command) in self._commands.items():
            names[plugin.name, command.name] = name
        return names

    def build_tools(self) -> dict[str, Tool]:
        """Return the tools by name."""
        tools = {}
        for name, (_, command) in self._commands.items():
            check = partial(self._check, name, command)
            tools[name] = build_tool(name, command.description, command.arguments, check)
        return tools

    def build_plugin_call(self, call: ToolCall) -> dict[str, Any]:
        """Convert a checked call to a PluginCall of ConCopilot."""
        plugin, command = self._commands[call.name]
        arguments = json.loads(call.arguments) if call.arguments.strip() else {}
        param = get_parameter(command.parameter, command.is_required, arguments)
        return {"plugin_name": plugin.name, "command": command.name, "param": param, "id": str(uuid4())}

    @staticmethod
    def _check(name: str, command: Command, arguments: Mapping[str, Any]) -> None:
        param = get_parameter(command.parameter, command.is_required, arguments)
        checked = check_parameter(command.parameter, command.is_required, param)
        if checked.problems:
            raise ToolError(f"wrong arguments for {name}: {'; '.join(checked.problems[:5])}")
