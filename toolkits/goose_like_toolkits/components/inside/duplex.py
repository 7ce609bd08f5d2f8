"""A user interface of two queues: person and agent may both speak at any time."""

import math
import queue
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from .interface import UserInterface
from .message import Message


class InterruptableQueue(queue.Queue[Any]):
    """A queue on which waiting can be ended, by an InterruptedError in whoever waits."""

    def __init__(self, maxsize: int = 0, interrupt_checking_timeout: float | None = None) -> None:
        """
        Args:
            interrupt_checking_timeout: After how many seconds at most those who wait notice; 1 if None.
        """
        super().__init__(maxsize=maxsize)
        self._step_s = (
            interrupt_checking_timeout if interrupt_checking_timeout and interrupt_checking_timeout > 0 else 1
        )
        self._interrupted = threading.Event()

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        """
        Raises:
            InterruptedError: when the queue is, or becomes, interrupted.
            queue.Full: when it stays full.
        """
        self._patiently(lambda step_s: super(InterruptableQueue, self).put(item, block, step_s), block, timeout)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """
        Raises:
            InterruptedError: when the queue is, or becomes, interrupted.
            queue.Empty: when it stays empty.
        """
        return self._patiently(lambda step_s: super(InterruptableQueue, self).get(block, step_s), block, timeout)

    def _patiently(self, attempt: Callable[[float], Any], block: bool, timeout: float | None) -> Any:
        end = math.inf if timeout is None else time.monotonic() + timeout
        while not self.interrupted:
            left = end - time.monotonic()
            try:
                return attempt(max(0.0, min(self._step_s, left)))
            except (queue.Empty, queue.Full):
                if not block or left <= self._step_s:
                    raise
        raise InterruptedError("the queue was interrupted")

    def interrupt(self) -> None:
        """Ends all waiting, now and later."""
        self._interrupted.set()

    @property
    def interrupted(self) -> bool:
        """Whether that has happened."""
        return self._interrupted.is_set()


class _Way:
    """Messages in one direction. Replies to one message may be waited for while others come."""

    def __init__(self) -> None:
        self._arrived = threading.Condition()
        self._kept: list[Message] = []
        self.is_interrupted = False

    def put(self, msg: Message) -> None:
        with self._arrived:
            self._check()
            self._kept.append(msg)
            self._arrived.notify_all()

    def has(self) -> bool:
        with self._arrived:
            return bool(self._kept)

    def get(self) -> Message | None:
        with self._arrived:
            return self._kept.pop(0) if self._kept else None

    def wait(self, thrd_id: Any = None) -> Message:
        """The first message, or the first of a thread."""
        with self._arrived:
            while True:
                self._check()
                for place, msg in enumerate(self._kept):
                    if thrd_id is None or msg.thrd_id == thrd_id:
                        return self._kept.pop(place)
                self._arrived.wait()

    def interrupt(self) -> None:
        with self._arrived:
            self.is_interrupted = True
            self._arrived.notify_all()

    def _check(self) -> None:
        if self.is_interrupted:
            raise InterruptedError("the user interface was interrupted")


class BasicDuplexUserInterface(UserInterface):
    """Whoever plays the person takes the agent's messages, from another thread, and sends theirs."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        self._from_user = _Way()
        self._from_agent = _Way()

    def send_msg_to_user(self, msg: Message) -> None:
        self._from_agent.put(msg)

    def on_msg_to_user(self, msg: Message) -> Message | None:
        asked = _in_thread(msg)
        self.send_msg_to_user(asked)
        return self._from_user.wait(asked.thrd_id)

    def has_user_msg(self) -> bool:
        return self._from_user.has()

    def get_user_msg(self) -> Message | None:
        return self._from_user.get()

    def wait_user_msg(self) -> Message | None:
        return self._from_user.wait()

    def send_msg_to_agent(self, msg: Message) -> None:
        self._from_user.put(msg)

    def on_msg_to_agent(self, msg: Message) -> Message | None:
        asked = _in_thread(msg)
        self.send_msg_to_agent(asked)
        return self._from_agent.wait(asked.thrd_id)

    def has_agent_msg(self) -> bool:
        return self._from_agent.has()

    def get_agent_msg(self) -> Message | None:
        return self._from_agent.get()

    def wait_agent_msg(self) -> Message | None:
        return self._from_agent.wait()

    def interrupt(self) -> None:
        self._from_user.interrupt()
        self._from_agent.interrupt()

    @property
    def interrupted(self) -> bool:
        return self._from_user.is_interrupted or self._from_agent.is_interrupted


def _in_thread(msg: Message) -> Message:
    """The message, of a thread of its own if it is of none."""
    return msg if msg.thrd_id else Message(**{**msg, "thrd_id": str(uuid.uuid4())})
