"""PluginManager: the plugins of a copilot; and PluginPromptGenerator, which tells a model of each."""

import abc
import json
from collections.abc import Mapping
from typing import Any

from .context import Context
from .initializer import create_component
from .lifetimes import finalize_all, initialize_all
from .message import Id
from .plugin import AbstractPlugin, Plugin, expect, told


class PluginPromptGenerator(AbstractPlugin):
    """Writes what a model is told of a plugin that has no prompt of its own."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        """
        Raises:
            ValueError: when the type is not "plugin_prompt_generator".
        """
        super().__init__(config)
        expect(self, "plugin_prompt_generator")

    @abc.abstractmethod
    def generate_prompt(self, plugin: Plugin) -> str:
        """The prompt for this plugin."""

    def command(self, command_name: str, param: Any, **kwargs: Any) -> Any:
        return {}


class PluginManager(AbstractPlugin):
    """Holds plugins, and does for each what is done for it."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        """
        Raises:
            ValueError: when the type is not "plugin_manager".
        """
        super().__init__(config)
        expect(self, "plugin_manager")
        self._given_back: list[Plugin] = []

    def config_resources(self, resource_manager: Any) -> None:
        super().config_resources(resource_manager)
        for component in self._below():
            component.config_resources(resource_manager)

    def config_context(self, context: Context) -> None:
        super().config_context(context)
        for component in self._below():
            component.config_context(context)

    def _below(self) -> list[Any]:
        generator = self.plugin_prompt_generator
        return [*([] if generator is None else [generator]), *self.plugins]

    def initialize(self) -> None:
        """Makes each plugin ready. When one fails, it and those before it are given back.

        Raises:
            BaseException: what that one raised.
        """
        self._given_back = [*self.plugins]
        initialize_all(self.plugins)
        self._given_back = []

    def finalize(self) -> None:
        """Finalizes all plugins, the last first, unless that was done; one that fails stops no other."""
        finalize_all([plugin for plugin in self.plugins[::-1] if plugin not in self._given_back])

    @abc.abstractmethod
    def generate_prompt(self) -> None:
        """Gives each plugin a prompt that has none."""

    @abc.abstractmethod
    def get_combined_prompt(self) -> str:
        """The prompts of all plugins in one."""

    @property
    @abc.abstractmethod
    def plugin_prompt_generator(self) -> Any:
        """What writes prompts, None if there is nothing."""

    @plugin_prompt_generator.setter
    @abc.abstractmethod
    def plugin_prompt_generator(self, value: PluginPromptGenerator) -> None: ...

    @property
    @abc.abstractmethod
    def plugins(self) -> list[Plugin]:
        """The plugins, in the order in which they came."""

    @property
    @abc.abstractmethod
    def plugin_id_map(self) -> dict[Id, Plugin]:
        """They by their ids."""

    @property
    @abc.abstractmethod
    def plugin_name_map(self) -> dict[str, Plugin]:
        """They by their names."""

    @abc.abstractmethod
    def add_plugin(self, plugin: Plugin) -> None:
        """Takes one more."""

    def get_plugin(self, *, id: Id | None = None, name: str | None = None) -> Plugin | None:
        """The plugin with the id and, if both are given, the name; None if there is none."""
        if id in (None, ""):
            return None if name is None else self.plugin_name_map.get(name)
        found = {str(key): plugin for key, plugin in self.plugin_id_map.items()}.get(str(id))
        return None if found is not None and name and found.name != name else found

    def command(self, command_name: str, param: Any, **kwargs: Any) -> Any:
        return {}


def _described(plugin: Plugin) -> str:
    """A plugin and its commands, as a model may read of them."""
    info = plugin.config.info or {}
    lines = [f"{plugin.name}: {info.get('description_for_model') or info.get('description') or ''}".rstrip()]
    for command in plugin.config.commands or ():
        takes = json.dumps(command.get("parameter"), ensure_ascii=False, default=str)
        lines.append(f"- {command.get('command_name')}: {command.get('description') or ''} It takes: {takes}")
    return "\n".join(lines)


class BasicPluginManager(PluginManager):
    """The plugins that its configuration lists."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        generator = self.config.config.plugin_prompt_generator or self.config.plugin_prompt_generator
        self._plugin_prompt_generator = create_component(generator) if generator else None
        self._plugins: list[Plugin] = []
        self._plugin_id_map: dict[Id, Plugin] = {}
        self._plugin_name_map: dict[str, Plugin] = {}
        for named in [*(self.config.plugins or ()), *(self.config.config.plugins or ())]:
            self.add_plugin(create_component(named))

    def generate_prompt(self) -> None:
        """Gives each plugin a prompt that has none, where there is a generator."""
        for plugin in self.plugins:
            if not plugin.prompt and self.plugin_prompt_generator is not None:
                plugin.prompt = self.plugin_prompt_generator.generate_prompt(plugin)

    def get_combined_prompt(self) -> str:
        """The prompts of all plugins in one; of a plugin without, what its config.yaml says of it."""
        return "\n\n".join(plugin.prompt or _described(plugin) for plugin in self.plugins)

    @property
    def plugin_prompt_generator(self) -> Any:
        return self._plugin_prompt_generator

    @plugin_prompt_generator.setter
    def plugin_prompt_generator(self, value: PluginPromptGenerator) -> None:
        self._plugin_prompt_generator = value

    @property
    def plugins(self) -> list[Plugin]:
        return self._plugins

    @property
    def plugin_id_map(self) -> dict[Id, Plugin]:
        return self._plugin_id_map

    @property
    def plugin_name_map(self) -> dict[str, Plugin]:
        return self._plugin_name_map

    def add_plugin(self, plugin: Plugin) -> None:
        """
        Raises:
            ValueError: when it is not for others to call, or its id or name is taken.
        """
        lacks = [
            text
            for is_there, text in (
                (plugin.as_plugin, "as_plugin: true"),
                (plugin.name, "a name"),
                (plugin.config.info, "info"),
                (plugin.config.commands, "commands"),
            )
            if not is_there
        ]
        if lacks:
            raise ValueError(f"{told(plugin)} can't be called as a plugin: its config.yaml lacks {', '.join(lacks)}")
        for key, known in (("id", self.plugin_id_map), ("name", self.plugin_name_map)):
            other = known.get(getattr(plugin, key))
            if other is not None:
                raise ValueError(
                    f"{told(plugin)} and {told(other)} have one {key}, {str(getattr(plugin, key))!r}: "
                    f"give one of them another {key} in its config"
                )
        self.plugins.append(plugin)
        self.plugin_id_map[plugin.id] = plugin
        self.plugin_name_map[plugin.name] = plugin
