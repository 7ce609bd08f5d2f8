"""One call of a client, from its start to its result."""

import asyncio
import secrets
from asyncio import Future
from collections.abc import Callable, Coroutine
from typing import Any

from typing_extensions import override

from goose_like.core import events
from goose_like.core.dataclass import dataclass
from goose_like.core.event_text import format_log
from goose_like.core.message import ToolResult
from goose_like.core.notifier import EventNotifier

CANNOT_ASK = "the client of this MCP server shows no questions (elicitation)"
_MAX_PROGRESS_CHARS = 300


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """A question that waits for its answer."""

    question: events.Question
    answer: "Future[events.Answer]"

    def close(self, answer: events.Answer) -> None:
        """Give the answer, unless the call was cancelled meanwhile."""
        if not self.answer.done():
            self.answer.set_result(answer)


Update = str | OpenQuestion | None
"""News of a call: its progress, a question, or its end."""


class ClientCall:
    """A call of a client. Its work runs in a task of its own, because in the newer era requests end before it does."""

    def __init__(self, *, can_ask: bool) -> None:
        self.id = f"mcp_{secrets.token_hex(8)}"
        self.can_ask = can_ask
        self.result: ToolResult | None = None
        self.progress_count = 0
        self._updates: asyncio.Queue[Update] = asyncio.Queue()
        self._task: asyncio.Task[Any] | None = None

    def start(self, work: Coroutine[Any, Any, Any]) -> None:
        """Start the work of the call."""
        self._task = asyncio.create_task(work)
        self._task.add_done_callback(lambda _: self._updates.put_nowait(None))

    def cancel(self) -> None:
        """Cancel the work, if it still runs."""
        if self._task:
            self._task.cancel()

    async def stop(self) -> None:
        """Stop the work, if it still runs, and wait for its end."""
        if self._task and not self._task.done():
            self.cancel()
            await asyncio.wait([self._task])

    async def wait_for_update(self) -> Update:
        """Wait for the next update. Of several texts that wait, only the newest counts."""
        update = await self._updates.get()
        while isinstance(update, str) and not self._updates.empty():
            update = self._updates.get_nowait()
        return update

    def take_result(self) -> Any:
        """Return the result of the work, which is done.

        Raises:
            Exception: the work failed.
        """
        assert self._task is not None
        return self._task.result()

    def notify(self, event: events.Event) -> None:
        """Take note of an event that happens during this call."""
        if isinstance(event, events.ToolFinished) and event.result.call_id == self.id:
            self.result = event.result
        text = _describe_progress(event)
        if text:
            self._updates.put_nowait(text[:_MAX_PROGRESS_CHARS])

    async def ask(self, question: events.Question) -> events.Answer:
        """Ask the client, if it can show questions, and wait for the answer."""
        if not self.can_ask:
            return events.Answer(text=CANNOT_ASK)
        asked = OpenQuestion(question, asyncio.get_running_loop().create_future())
        self._updates.put_nowait(asked)
        return await asked.answer


class FrontEnd(EventNotifier):
    """The notifier of a server: the call that runs gets the events and the questions. Between calls nobody is asked."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        self.call: ClientCall | None = None
        self._warn = warn

    @override
    def notify(self, event: events.Event) -> None:
        if self.call:
            self.call.notify(event)
        elif isinstance(event, events.Logged):  # a note that belongs to no call
            self._warn(event.text)

    @override
    async def ask(self, question: events.Question) -> events.Answer:
        if self.call is None:
            return events.Answer()
        return await self.call.ask(question)

    @property
    @override
    def shows_forms(self) -> bool:
        return self.call is not None and self.call.can_ask


def _describe_progress(event: events.Event) -> str:
    """Return the line of an event that tells how a call gets on, or an empty text."""
    match event:
        case events.ToolProgress(text=text):
            lines = text.split("\n")
            return next((line.strip() for line in reversed(lines) if line.strip()), "")
        case events.MessageCompleted() | events.ToolStarted() | events.PlanUpdated() | events.Logged():
            return format_log(event)
        case events.Status(text=text) | events.Retrying(text=text):
            return text
        case events.SubagentEvent(event=inner):
            return _describe_progress(inner)
        case _:
            return ""
