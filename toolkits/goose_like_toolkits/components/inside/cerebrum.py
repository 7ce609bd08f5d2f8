"""Cerebrum: what asks a language model for an interactor, and knows alone how."""

import abc
from collections.abc import Mapping
from typing import Any

from .class_dict import ClassDict
from .message import Id
from .plugin import AbstractPlugin, expect
from .plugin_manager import PluginManager


class InteractParameter(ClassDict):
    """What a cerebrum is asked. Nothing of it is required; other keys are passed on."""

    def __init__(
        self,
        /,
        *,
        instructions: list[str] | None = None,
        command: str | None = None,
        message_history: list[Any] | None = None,
        assets: list[Any] | None = None,
        content: str | None = None,
        require_token_len: bool | None = None,
        require_cost: bool | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.instructions = instructions
        self.command = command
        self.message_history = message_history
        self.assets = assets
        self.content = content
        self.require_token_len = require_token_len
        self.require_cost = require_cost


class InteractResponse(ClassDict):
    """What a cerebrum answers: text, and the plugins' commands that the model calls. Lengths are in tokens."""

    class PluginCall(ClassDict):
        """A call of one command."""

        def __init__(
            self, /, *, plugin_name: str, command: str, param: Any, id: Id | None = None, **kwargs: Any
        ) -> None:
            super().__init__(**kwargs)
            self.plugin_name = plugin_name
            self.command = command
            self.param = ClassDict.convert(param) if isinstance(param, Mapping) else param
            self.id = id

    def __init__(
        self,
        /,
        *,
        content: str | None = None,
        plugin_calls: list[Any] | None = None,
        input_token_len: int | None = None,
        output_token_len: int | None = None,
        cost: float | None = None,
        plugin_call: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """
        Args:
            plugin_call: A single call, in place of `plugin_calls`.
        """
        super().__init__(**kwargs)
        calls = plugin_calls or ([plugin_call] if plugin_call else [])
        self.content = content
        self.plugin_calls = [InteractResponse.PluginCall(**ClassDict.convert(call)) for call in calls] or None
        self.input_token_len = input_token_len
        self.output_token_len = output_token_len
        self.cost = cost

    @property
    def plugin_call(self) -> Any:
        """The first call, None if there is none."""
        return next(iter(calls_of(self)), None)


class Cerebrum(AbstractPlugin):
    """Makes of an InteractParameter what its model takes, and of the model's answer an InteractResponse."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        """
        Raises:
            ValueError: when the type is not "cerebrum".
        """
        super().__init__(config)
        expect(self, "cerebrum")

    @property
    @abc.abstractmethod
    def role(self) -> Any:
        """What it is to the model, such as "assistant"."""

    @role.setter
    @abc.abstractmethod
    def role(self, value: str) -> None: ...

    @abc.abstractmethod
    def setup_plugins(self, plugin_manager: PluginManager) -> None:
        """Takes the plugins that its model may call."""

    @property
    @abc.abstractmethod
    def model(self) -> Any:
        """The LLM behind it."""

    @abc.abstractmethod
    def interact(self, param: InteractParameter, **kwargs: Any) -> InteractResponse:
        """The model's answer."""

    def command(self, command_name: str, param: Any, **kwargs: Any) -> Any:
        return {}


class AbstractCerebrum(Cerebrum):
    """A cerebrum whose role is `config.role`."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        self._role = self.config.config.role

    @property
    def role(self) -> Any:
        return self._role

    @role.setter
    def role(self, value: str) -> None:
        self._role = value


def calls_of(response: Mapping[str, Any]) -> list[Any]:
    """The calls in a response, also a single one that was set as its `plugin_call` later on."""
    single = response.get("plugin_call")
    return response.get("plugin_calls") or ([single] if single else [])
