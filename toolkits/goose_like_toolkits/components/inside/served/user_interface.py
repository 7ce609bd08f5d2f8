"""The person at the host's terminal."""

import datetime
from collections.abc import Mapping
from typing import Any

from concopilot.framework.interface import AgentDrivenSimplexUserInterface
from concopilot.framework.message import Message

from ..plain import plain
from ..wire import HostError, call


class TerminalInterface(AgentDrivenSimplexUserInterface):
    """What is sent to the user is printed; what they type is the answer. None is their end of it."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        self._last: Message | None = None
        self._is_interrupted = False

    def send_msg_to_user(self, msg: Message) -> None:
        """Shows the message."""
        self._last = msg
        content = msg.content
        call("tell", text=content if isinstance(content, str) else str(plain(content, str)))

    def on_msg_to_user(self, msg: Message) -> Message | None:
        """Shows the message and waits for the answer, which has its thread."""
        self.send_msg_to_user(msg)
        return self.wait_user_msg()

    def has_user_msg(self) -> bool:
        """Never: the person is only heard when they are asked."""
        return False

    def get_user_msg(self) -> None:
        """None, for that reason."""

    def wait_user_msg(self) -> Message | None:
        """What the person types; None when they are through."""
        if self._is_interrupted:
            raise InterruptedError("the conversation with the user was interrupted")
        try:
            text = call("ask", text="")
        except HostError:
            return None
        if text is None:
            return None
        last = self._last
        return Message(
            sender=(last.receiver if last else None) or {"role": "user"},
            receiver=last.sender if last else None,
            content_type="text/plain",
            content=text,
            time=datetime.datetime.now().isoformat(sep=" ", timespec="milliseconds"),
            thrd_id=last.thrd_id if last else None,
        )

    def interrupt(self) -> None:
        """No more is asked."""
        self._is_interrupted = True

    @property
    def interrupted(self) -> bool:
        """Whether it was."""
        return self._is_interrupted


def constructor(config: Mapping[str, Any]) -> TerminalInterface:
    """What `setup.package` is asked for."""
    return TerminalInterface(config)
