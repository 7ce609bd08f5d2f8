"""The engine: finds the hooks of an event, runs them side by side, and reports failures once."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from goose_like.core.dataclass import dataclass
from goose_like.core.notifier import Notifier
from goose_like.core.spelling import format_count
from goose_like.workspace.workspace import Workspace

from .matching import matches
from .reply import RawReply, Reply, read_reply
from .runner import run_hook
from .settings import Format, Handler


@dataclass(frozen=True, slots=True)
class Run:
    """A hook with its input. `part` is the number of the foreign call that stands for a part of ours."""

    handler: Handler
    fields: Mapping[str, Any]
    part: int = 0


@dataclass(frozen=True, slots=True)
class Result:
    """A run with the meaning of its reply."""

    run: Run
    reply: Reply

    @property
    def label(self) -> str:
        """The hook, for people."""
        return f"hook `{self.run.handler.label}`"


_PATIENCE_S = 0.5
"""The time after which the person reads what the session waits for."""


class HookEngine:
    """The hooks of a session."""

    def __init__(self, handlers: Sequence[Handler], workspace: Workspace, notifier: Notifier) -> None:
        self._workspace = workspace
        self._notifier = notifier
        self._by_event: dict[str, list[Handler]] = {}
        for handler in handlers:
            self._by_event.setdefault(handler.event, []).append(handler)
        self._warned: set[Handler] = set()
        self._background: set[asyncio.Task[None]] = set()

    def has(self, event: str) -> bool:
        """Check whether an event has hooks at all."""
        return event in self._by_event

    def list_formats(self, event: str) -> tuple[Format, ...]:
        """List the formats of the hooks of an event."""
        formats = [handler.source.format for handler in self._by_event.get(event, ())]
        return tuple(dict.fromkeys(formats))

    def find(self, event: str, names: Collection[str]) -> list[Handler]:
        """Return the hooks of an event whose matcher names one of the names."""
        handlers = self._by_event.get(event, ())
        return [handler for handler in handlers if matches(handler.matcher, names)]

    async def run(self, runs: Sequence[Run]) -> list[Result]:
        """Run hooks side by side, and return the results in their order. Those that are `async` give none."""
        waited: list[Run] = []
        for run in runs:
            if run.handler.is_async:
                self._start(run)
            else:
                waited.append(run)
        if not waited:
            return []
        showing = asyncio.get_running_loop().call_later(_PATIENCE_S, self._show_status, waited)
        try:
            raws = await self._run_all(waited)
        finally:
            showing.cancel()
        results: list[Result] = []
        for run, raw in zip(waited, raws, strict=True):
            reply = read_reply(run.handler, raw)
            self._report(run.handler, reply)
            results.append(Result(run, reply))
        return results

    async def _run_all(self, runs: Sequence[Run]) -> list[RawReply]:
        tasks: list[asyncio.Task[RawReply]] = []
        async with asyncio.TaskGroup() as group:
            for run in runs:
                work = run_hook(run.handler, run.fields, self._workspace)
                tasks.append(group.create_task(work))
        return [task.result() for task in tasks]

    def _show_status(self, runs: Sequence[Run]) -> None:
        texts = [run.handler.status for run in runs if run.handler.status]
        event = runs[0].handler.event
        labels = dict.fromkeys(run.handler.label for run in runs)
        waiting = format_count(len(labels), "hook")
        texts.append(f"{event}: waiting for {waiting}: {', '.join(labels)}")
        self._notifier.status(texts[0])

    def _start(self, run: Run) -> None:
        task = asyncio.create_task(self._run_in_background(run))
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _run_in_background(self, run: Run) -> None:
        raw = await run_hook(run.handler, run.fields, self._workspace)
        self._report(run.handler, read_reply(run.handler, raw))

    def _report(self, handler: Handler, reply: Reply) -> None:
        """Log what the person should know: a message, and each failure the first time."""
        if reply.notice:
            self._notifier.log(f"hook `{handler.label}`: {reply.notice}")
        is_told = handler.event == "PreToolUse" and not handler.is_async  # by the question or the refusal
        if not reply.failure or is_told or handler in self._warned:
            return
        self._warned.add(handler)
        self._notifier.log(f"{handler.place} {reply.failure} ({handler.event})")

    async def close(self) -> None:
        """Stop the hooks that still run in the background."""
        tasks = list(self._background)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
