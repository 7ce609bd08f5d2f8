"""The person at goose_like's terminal as ConCopilot's user interface."""

from collections.abc import Mapping
from typing import Any

from concopilot.framework.interface import AgentDrivenSimplexUserInterface
from concopilot.framework.message import Message
from concopilot.package.config import Settings

from .connection import HostError, call
from .values import to_json


class TerminalInterface(AgentDrivenSimplexUserInterface):
    """Prints messages to the user and returns what they type; None at the end of input."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        self._last: Message | None = None
        self._is_interrupted = False

    def send_msg_to_user(self, msg: Message) -> None:
        """Show a message."""
        self._last = msg
        text = msg.content
        if not isinstance(text, str):
            text = str(to_json(text, str))
        call("tell", text=text)

    def on_msg_to_user(self, msg: Message) -> Message | None:
        """Show a message and return the answer, which has the same thread."""
        self.send_msg_to_user(msg)
        return self.wait_user_msg()

    def has_user_msg(self) -> bool:
        """Return False: the person types only when asked."""
        return False

    def get_user_msg(self) -> None:
        """Return None, for that reason."""

    def wait_user_msg(self) -> Message | None:
        """Return what the person types; None at the end of input."""
        if self._is_interrupted:
            raise InterruptedError("the conversation with the user was interrupted")
        try:
            text = call("ask", text="")
        except HostError:
            return None
        if text is None:
            return None
        sender = None
        receiver = None
        thread_id = None
        if self._last:  # an answer goes the other way
            sender = self._last.receiver
            receiver = self._last.sender
            thread_id = self._last.thrd_id
        return Message(
            sender=sender or {"role": "user"},
            receiver=receiver,
            content_type="text/plain",
            content=text,
            time=Settings().current_time(),
            thrd_id=thread_id,
        )

    def interrupt(self) -> None:
        """Ask no more."""
        self._is_interrupted = True

    @property
    def interrupted(self) -> bool:
        """Tell whether `interrupt` was called."""
        return self._is_interrupted


def constructor(config: Mapping[str, Any]) -> TerminalInterface:
    """Construct the user interface."""
    return TerminalInterface(config)
