"""The inbox: messages that the user sends while a turn runs."""

import asyncio


class Inbox:
    """Messages that wait for the next step.

    Use it as a context manager around a step, so that `steer` can cut the step short. A step that was cut short
    leaves the block without an exception, and `is_steered` is true. Any other cancellation propagates.

    `is_held` keeps the messages until the turn ends: the next turn has another mode. `refused` are messages that a
    toolkit blocked; they return to the person.
    """

    def __init__(self) -> None:
        self.pending: list[str] = []
        self.refused: list[str] = []
        self.is_steered = False
        self.is_held = False
        self._step: asyncio.Task[object] | None = None

    def put(self, text: str) -> None:
        """Add a message for the next step."""
        self.pending.append(text)

    def has_messages(self) -> bool:
        """Return whether messages wait for the next step of this turn."""
        return bool(self.pending) and not self.is_held

    def remove(self, text: str) -> bool:
        """Remove a message that is sent now. Return False if the person has taken it back."""
        if text not in self.pending:
            return False
        self.pending.remove(text)
        return True

    def take(self) -> list[str]:
        """Remove and return all messages, in order."""
        texts = self.pending
        self.pending = []
        return texts

    def take_refused(self) -> list[str]:
        """Remove and return the messages that a toolkit blocked, in order."""
        texts = self.refused
        self.refused = []
        return texts

    def take_newest(self) -> str:
        """Remove and return the newest message. Return an empty text if none waits, or a step was cut short for it."""
        is_cut_short = self._step is not None and self.is_steered
        if is_cut_short or not self.pending:
            return ""
        return self.pending.pop()

    def steer(self) -> bool:
        """Cut the running step short so that the messages are sent now. Return False without messages or a step."""
        if not self.has_messages() or self._step is None or self.is_steered:
            return False
        self.is_steered = True
        self._step.cancel()
        return True

    def __enter__(self) -> "Inbox":
        self._step = asyncio.current_task()
        self.is_steered = False
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        step = self._step
        self._step = None
        if step is None or not self.is_steered:
            return False
        # Like `asyncio.timeout`: a cancellation by anybody else propagates.
        is_ours_alone = step.uncancel() == 0
        return kind is not None and issubclass(kind, asyncio.CancelledError) and is_ours_alone
