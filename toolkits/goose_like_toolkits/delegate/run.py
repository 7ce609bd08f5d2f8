"""A running subagent: its newest steps, its own tasks, and how the person stops it."""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from contextvars import Context
from dataclasses import replace
from typing import Any

from typing_extensions import override

from goose_like.agent.exchange import Exchange
from goose_like.agent.subagent import EventRelay
from goose_like.core import events
from goose_like.core.history import STOPPED
from goose_like.core.notifier import Notifier
from goose_like.terminal.tool_call import convert_nested_event
from goose_like.toolkit import RunningTask, ToolError

_KEPT_LINES = 20
_WAITS = "waits until another delegate ends"
_COLUMNS = 100


class SubagentRun(EventRelay):
    """The notifier of a running subagent, which keeps the newest steps for the person.

    `exchange` is the one of the subagent, once it is built.
    """

    def __init__(self, parent: Notifier, call_id: str, *, who: str, purpose: str, title: str) -> None:
        super().__init__(parent, call_id, who=who, purpose=purpose)
        self.exchange: Exchange | None = None
        self._title = title
        self._newest: deque[str] = deque(maxlen=_KEPT_LINES)
        self._started_at = asyncio.get_running_loop().time()
        self._work: asyncio.Task[str] | None = None

    @override
    def notify(self, event: events.Event) -> None:
        match event:
            case events.MessageCompleted(message=message):
                self._newest += message.text.strip().splitlines()
            case events.ToolProgress(text=text):
                self._newest += text.rstrip("\n").split("\n")
            case _:
                nested = events.SubagentEvent(call_id="", event=event)
                shown = convert_nested_event(nested, _COLUMNS)
                if isinstance(shown, events.ToolProgress):
                    self._newest += shown.text.splitlines()
        super().notify(event)

    async def follow(self, work: Callable[[], Coroutine[Any, Any, str]], slots: Sequence[asyncio.Semaphore]) -> str:
        """Run the subagent when all slots are free for it, and return its answer.

        Raises:
            ToolError: the person stopped the subagent.
        """
        # The new context is empty, so that the subagent's tools do not act for the call of the parent.
        self._work = asyncio.create_task(self._work_when_free(work, slots), context=Context())
        try:
            return await self._work
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task and task.cancelling():
                raise
            raise ToolError(f"{STOPPED} delegate; its changes until then remain") from None

    async def _work_when_free(
        self, work: Callable[[], Coroutine[Any, Any, str]], slots: Sequence[asyncio.Semaphore]
    ) -> str:
        async with AsyncExitStack() as stack:
            for slot in slots:
                if slot.locked():
                    self._newest.append(_WAITS)
                    status = events.Status(text=_WAITS)
                    self._send(events.SubagentEvent(call_id=self._call_id, event=status))
                await stack.enter_async_context(slot)
            return await work()

    async def stop(self) -> None:
        """Stop the subagent and everything that it started."""
        if self._work:
            self._work.cancel()
            await asyncio.wait({self._work})

    def list_tasks(self, name: str) -> list[RunningTask]:
        """Return the subagent as a task with this name, followed by the tasks that it started."""
        title = f"delegate: {self._title}"
        tasks = [RunningTask(name, title, self._started_at, self._get_tail, self.stop)]
        if self.exchange:
            for task in self.exchange.hooks.list_running_tasks():
                tasks.append(replace(task, name=f"{name}.{task.name}"))
        return tasks

    def _get_tail(self) -> str:
        return "\n".join(self._newest)
