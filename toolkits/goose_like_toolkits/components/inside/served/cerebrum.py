"""An exchange of the host as a cerebrum."""

from collections.abc import Mapping
from typing import Any

from concopilot.framework.cerebrum import AbstractCerebrum, InteractParameter, InteractResponse
from concopilot.framework.plugin import PluginManager

from ..plain import plain
from ..wire import call


class ExchangeCerebrum(AbstractCerebrum):
    """It calls plugins by what their `commands` say of them."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        self._plugins: list[dict[str, Any]] = []

    @property
    def model(self) -> None:
        """None: which model answers is the host's to know."""
        return None

    def setup_plugins(self, plugin_manager: PluginManager) -> None:
        """Takes the plugins that may be called; what their commands are the host has read."""
        self._plugins = [
            {
                "name": plugin.name,
                "prompt": plugin.prompt or "",
                "file": plugin.config_file_path(),
            }
            for plugin in (plugin_manager.plugins if plugin_manager is not None else ())
        ]

    def interact(self, param: InteractParameter, **kwargs: Any) -> InteractResponse:
        """Asks the exchange once: it answers, or says which plugins are to be called."""
        asked = {key: value for key, value in {**param, **kwargs}.items() if value is not None}
        told = call("interact", param=plain(asked, str), plugins=plain(self._plugins, str))
        return InteractResponse(**told)


def constructor(config: Mapping[str, Any]) -> ExchangeCerebrum:
    """What `setup.package` is asked for."""
    return ExchangeCerebrum(config)
