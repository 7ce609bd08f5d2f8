"""Interactor: what a copilot does from message to message."""

import abc
import enum
from collections.abc import Mapping
from typing import Any

from .cerebrum import Cerebrum
from .message_manager import MessageManager
from .plugin import AbstractPlugin, expect
from .plugin_manager import PluginManager
from .resource import ResourceManager


class Interactor(AbstractPlugin):
    """The task of a copilot: it asks the cerebrum, calls plugins, and talks with the person."""

    class Status(enum.IntEnum):
        """Where its loop is."""

        NOT_STARTED = 0
        STARTING = 1
        RUNNING = 2
        STOPPING = 3
        STOPPED = 4

    def __init__(self, config: Mapping[str, Any]) -> None:
        """
        Raises:
            ValueError: when the type is not "interactor".
        """
        super().__init__(config)
        expect(self, "interactor")

    @abc.abstractmethod
    def setup_prompts(self) -> None:
        """Makes its prompts, and those of what lies below it."""

    @abc.abstractmethod
    def setup_plugins(self) -> None:
        """Makes the plugins known to what lies below it."""

    @abc.abstractmethod
    def interact_loop(self) -> None:
        """The task. It ends when the status says so."""

    @property
    @abc.abstractmethod
    def status(self) -> Status:
        """Where the loop is; at STOPPING it is to end."""

    @status.setter
    @abc.abstractmethod
    def status(self, value: Status) -> None: ...

    @abc.abstractmethod
    def start(self) -> None:
        """Called before the loop."""

    @abc.abstractmethod
    def stop(self) -> None:
        """Asks the loop to end."""

    def command(self, command_name: str, param: Any, **kwargs: Any) -> Any:
        return {}


class BasicInteractor(Interactor):
    """An interactor that has only its loop to be written."""

    def __init__(
        self,
        config: Mapping[str, Any],
        resource_manager: ResourceManager,
        cerebrum: Cerebrum,
        plugin_manager: PluginManager,
        message_manager: MessageManager,
    ) -> None:
        super().__init__(config)
        self.resource_manager = resource_manager
        self.cerebrum = cerebrum
        self.plugin_manager = plugin_manager
        self.message_manager = message_manager
        self._status = Interactor.Status.NOT_STARTED

    def setup_prompts(self) -> None:
        if self.plugin_manager is not None:
            self.plugin_manager.generate_prompt()

    def setup_plugins(self) -> None:
        if self.cerebrum is not None:
            self.cerebrum.setup_plugins(self.plugin_manager)

    @property
    def status(self) -> Interactor.Status:
        return self._status

    @status.setter
    def status(self, value: Interactor.Status) -> None:
        self._status = value

    def start(self) -> None:
        self.status = Interactor.Status.STARTING

    def stop(self) -> None:
        self.status = Interactor.Status.STOPPING
