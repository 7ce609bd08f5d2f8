"""The profile's processor as ConCopilot's cerebrum."""

from collections.abc import Mapping
from typing import Any

from concopilot.framework.cerebrum import AbstractCerebrum, InteractParameter, InteractResponse
from concopilot.framework.plugin import PluginManager

from .connection import call
from .values import to_json


class ExchangeCerebrum(AbstractCerebrum):
    """Sends each interaction to an exchange of goose_like, which offers the plugins' commands as tools."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        self._plugins: list[dict[str, str]] = []

    @property
    def model(self) -> None:
        """Return None: components do not learn which model answers."""

    def setup_plugins(self, plugin_manager: PluginManager) -> None:
        """Take the plugins that the model may call."""
        self._plugins = []
        if plugin_manager is None:
            return
        for plugin in plugin_manager.plugins:
            about = {
                "name": plugin.name,
                "prompt": plugin.prompt or plugin.config.info.description or "",
                "commands": to_json(plugin.config.commands or [], str),
            }
            self._plugins.append(about)

    def interact(self, param: InteractParameter, **kwargs: Any) -> InteractResponse:
        """Return the answer of the exchange, or the plugin calls that it wants."""
        given = {**param, **kwargs}
        asked = {key: value for key, value in given.items() if value is not None}
        answer = call("interact", param=to_json(asked, str), plugins=self._plugins)
        return InteractResponse(**answer)


def constructor(config: Mapping[str, Any]) -> ExchangeCerebrum:
    """Construct the cerebrum."""
    return ExchangeCerebrum(config)
