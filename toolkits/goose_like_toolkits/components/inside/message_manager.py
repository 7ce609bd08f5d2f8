"""MessageManager: makes messages of what a cerebrum answered."""

import abc
import logging
from collections.abc import Mapping
from typing import Any

from .cerebrum import InteractResponse, calls_of
from .message import Id, Identity, Message
from .plugin import AbstractPlugin, expect
from .repair import repaired
from .settings import Settings

_log = logging.getLogger("[ConCopilot]")
_OWN = ("sender", "receiver", "content_type", "content", "time")


class MessageManager(AbstractPlugin):
    """Makes messages of a response."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        """
        Raises:
            ValueError: when the type is not "message_manager".
        """
        super().__init__(config)
        expect(self, "message_manager")

    @abc.abstractmethod
    def parse(self, response: InteractResponse, thrd_id: Id | None = None) -> list[Message]:
        """The messages in a response, of this thread; they have no sender yet."""

    def command(self, command_name: str, param: Any, **kwargs: Any) -> Any:
        return {}


class BasicStrMessageManager(MessageManager):
    """The response's text is one message, each call of a plugin another."""

    def parse(self, response: InteractResponse, thrd_id: Id | None = None) -> list[Message]:
        said = []
        if response.content:
            time = Settings().current_time()
            said.append(Message(content_type="text/plain", content=response.content, time=time, thrd_id=thrd_id))
        return said + _calls(response, thrd_id)


class BasicJsonMessageManager(MessageManager):
    """The response's text is a message in JSON, or a list of them; each call of a plugin is another."""

    def parse(self, response: InteractResponse, thrd_id: Id | None = None) -> list[Message]:
        """Text in which there is no JSON is a message's content as it is."""
        said = []
        if response.content:
            try:
                told = repaired(response.content)
                items = told if isinstance(told, list) else [told]
                said = [BasicJsonMessageManager.parse_as_msg(item, thrd_id=thrd_id) for item in items]
            except (TypeError, ValueError) as error:
                _log.warning("the response is taken as text: %s", error)
                said = [Message(content=response.content, thrd_id=thrd_id)]
        return said + _calls(response, thrd_id)

    @staticmethod
    def parse_as_msg(item: Any, thrd_id: Id | None = None) -> Message:
        """The message that a mapping is; anything else is the content of one."""
        given = dict(item) if isinstance(item, Mapping) else {"content": item}
        fields = {name: given.pop(name, None) for name in _OWN}
        fields["time"] = fields["time"] or Settings().current_time()
        given.pop("thrd_id", None)
        made = Message(**fields, thrd_id=thrd_id, **given)
        if made.content_type is None and isinstance(made.content, Message.Command):
            made.content_type = "command"
        return made


def _calls(response: Any, thrd_id: Id | None) -> list[Message]:
    calls = []
    for call in calls_of(response):
        content = Message.Command(**call)
        receiver = Identity(role="plugin", name=content.pop("plugin_name", None))
        time = Settings().current_time()
        calls.append(Message(receiver=receiver, content_type="command", content=content, time=time, thrd_id=thrd_id))
    return calls
