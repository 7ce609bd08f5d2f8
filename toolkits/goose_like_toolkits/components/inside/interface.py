"""UserInterface: how a copilot talks with a person."""

import abc
import json
from collections.abc import Mapping
from typing import Any, NoReturn

from .errors import ConCopilotError
from .jsons import JsonEncoder
from .message import Message
from .plugin import AbstractPlugin, expect, told
from .settings import Settings
from .wire import call


class UserInterface(AbstractPlugin):
    """Two ways of messages. A message of None says that the other end wants no more."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        """
        Raises:
            ValueError: when the type is not "user_interface".
        """
        super().__init__(config)
        expect(self, "user_interface")

    @abc.abstractmethod
    def send_msg_to_user(self, msg: Message) -> None:
        """Tells the person."""

    @abc.abstractmethod
    def on_msg_to_user(self, msg: Message) -> Message | None:
        """Tells the person and waits for the answer to this very message."""

    @abc.abstractmethod
    def has_user_msg(self) -> bool:
        """Whether the person has said something."""

    @abc.abstractmethod
    def get_user_msg(self) -> Message | None:
        """What the person said first, None if nothing."""

    @abc.abstractmethod
    def wait_user_msg(self) -> Message | None:
        """What the person says next."""

    @abc.abstractmethod
    def send_msg_to_agent(self, msg: Message) -> None:
        """Tells the agent."""

    @abc.abstractmethod
    def on_msg_to_agent(self, msg: Message) -> Message | None:
        """Tells the agent and waits for the answer to this very message."""

    @abc.abstractmethod
    def has_agent_msg(self) -> bool:
        """Whether the agent has said something."""

    @abc.abstractmethod
    def get_agent_msg(self) -> Message | None:
        """What the agent said first, None if nothing."""

    @abc.abstractmethod
    def wait_agent_msg(self) -> Message | None:
        """What the agent says next."""

    @abc.abstractmethod
    def interrupt(self) -> None:
        """Ends all waiting: whoever waits gets an InterruptedError."""

    @property
    @abc.abstractmethod
    def interrupted(self) -> bool:
        """Whether that has happened."""

    def command(self, command_name: str, param: Any, **kwargs: Any) -> Any:
        return {}


class AgentDrivenSimplexUserInterface(UserInterface):
    """One in which the agent speaks first: nothing is told to it that it has not asked for."""

    def send_msg_to_agent(self, msg: Message) -> None:
        _refuse(self, "agent")

    def on_msg_to_agent(self, msg: Message) -> Message | None:
        _refuse(self, "agent")

    def has_agent_msg(self) -> bool:
        _refuse(self, "agent")

    def get_agent_msg(self) -> Message | None:
        _refuse(self, "agent")

    def wait_agent_msg(self) -> Message | None:
        _refuse(self, "agent")


class UserDrivenSimplexUserInterface(UserInterface):
    """One in which the person speaks first: nothing is told to them that they have not asked for."""

    def send_msg_to_user(self, msg: Message) -> None:
        _refuse(self, "user")

    def on_msg_to_user(self, msg: Message) -> Message | None:
        _refuse(self, "user")

    def has_user_msg(self) -> bool:
        _refuse(self, "user")

    def get_user_msg(self) -> Message | None:
        _refuse(self, "user")

    def wait_user_msg(self) -> Message | None:
        _refuse(self, "user")


class CmdUserInterface(AgentDrivenSimplexUserInterface):
    """The person at the prompt, whom the host tells and asks."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        own = self.config.config
        self.user_msg_prefix: str = own.user_msg_prefix or ""
        self.user_msg_suffix: str = own.user_msg_suffix or ""
        self.non_user_msg_prefix: str = own.non_user_msg_prefix or ""
        self.non_user_msg_suffix: str = own.non_user_msg_suffix or ""
        self.multiple_line_input: bool = bool(own.multiple_line_input)
        self.last_sender: Any = None
        self.last_receiver: Any = None

    def send_msg_to_user(self, msg: Message) -> None:
        text = msg.content or ""
        if not isinstance(text, str):
            text = json.dumps(msg, cls=JsonEncoder, ensure_ascii=False, indent=4)
        call("tell", text=_joined(self.non_user_msg_prefix, text, self.non_user_msg_suffix))
        self.last_sender, self.last_receiver = msg.sender, msg.receiver

    def on_msg_to_user(self, msg: Message) -> Message | None:
        self.send_msg_to_user(msg)
        return self.wait_user_msg()

    def has_user_msg(self) -> bool:
        return False

    def get_user_msg(self) -> Message | None:
        return None

    def wait_user_msg(self) -> Message | None:
        typed = call("ask", text=self.user_msg_prefix)
        if typed is None:
            return None
        if self.user_msg_suffix:
            call("tell", text=self.user_msg_suffix)
        return Message(
            sender=self.last_receiver,
            receiver=self.last_sender,
            content_type="text/plain",
            content=typed,
            time=Settings().current_time(),
        )

    def interrupt(self) -> None:
        """Nothing: the host ends a question itself."""

    @property
    def interrupted(self) -> bool:
        return False


def _joined(*parts: str) -> str:
    return "\n".join(part for part in parts if part)


def _refuse(component: Any, end: str) -> NoReturn:
    first = "person" if end == "agent" else "agent"
    raise ConCopilotError(f"{told(component)} takes no messages for the {end}: in it, the {first} only answers")
