"""Subagents: the notifier of an exchange that works for another one."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import copy_context

from typing_extensions import override

from goose_like.core import events
from goose_like.core.history import History
from goose_like.core.message import Usage
from goose_like.core.notifier import EventNotifier, Notifier
from goose_like.core.spelling import format_count

from .hook_values import SubagentStart, SubagentStop
from .journal import Journal
from .toolkit_hooks import ToolkitHooks


class EventRelay(EventNotifier):
    """The notifier of a subagent: it passes events, questions, and counts of tokens and steps to the parent.

    `call_id` is the tool call of the parent that the subagent works for. Questions start with `who`. Tokens and
    steps count for `purpose` at once, so they are counted however the work ends.
    """

    def __init__(self, parent: Notifier, call_id: str, *, who: str, purpose: str) -> None:
        self.steps = 0
        self.calls = 0
        self.spent = Usage()
        self._parent = parent
        self._call_id = call_id
        # The parent must see the call that started the subagent, not a call inside it.
        self._parent_context = copy_context()
        self.who = who
        self._purpose = purpose
        self._model = ""

    @override
    def notify(self, event: events.Event) -> None:
        self._send(events.SubagentEvent(call_id=self._call_id, event=event))
        match event:
            case events.SessionStarted(models=models):
                self._model = models["processor"]
            case events.ToolFinished():
                self.calls += 1
            case events.MessageCompleted(usage=usage, model=model):
                self.steps += 1
                self._count(model or self._model, usage, 1)
            case events.UsageRecorded(model=model, usage=usage, steps=steps):
                self._count(model, usage, steps)

    @override
    async def ask(self, question: events.Question) -> events.Answer:
        text = f"{self.who} asks: {question.text}"
        # The call inside the subagent is unknown to the parent.
        asked = question.model_copy(update={"text": text, "call_id": self._call_id})
        # The parent's screen shows which of its own calls waits for the answer.
        context = self._parent_context.copy()
        return await asyncio.create_task(self._ask_parent(asked), context=context)

    @property
    @override
    def shows_forms(self) -> bool:
        return self._parent.shows_forms

    async def _ask_parent(self, question: events.Question) -> events.Answer:
        return await self._parent.ask(question)

    @property
    def parent_hooks(self) -> ToolkitHooks | None:
        """The hooks of the parent, which hold in the subagent too."""
        return self._parent.hooks if isinstance(self._parent, Journal) else None

    @asynccontextmanager
    async def tell_hooks(self, history: History) -> AsyncIterator[list[str]]:
        """Tell the hooks of the parent about the start and the end of the subagent. Give their context for it."""
        hooks = self.parent_hooks
        if hooks is None:
            yield []
            return
        context = await hooks.start_subagent(SubagentStart(self.who, self._call_id))
        try:
            yield context
        finally:
            stop = SubagentStop(
                self.who,
                self._call_id,
                answer=_find_last_answer(history),
                reason=history.last_turn.reason if history.last_turn else "",
            )
            await hooks.stop_subagent(stop)

    def format_usage(self) -> str:
        """Describe the work so far, for example `3 steps, 5 calls, 1,200 tokens`."""
        counts = {"step": self.steps, "call": self.calls, "token": self.spent.total_tokens}
        texts = [format_count(count, noun) for noun, count in counts.items() if count]
        return ", ".join(texts) or "nothing"

    def _count(self, model: str, usage: Usage, steps: int) -> None:
        if usage.total_tokens or steps:
            self.spent += usage
            self._send(events.UsageRecorded(model=model, usage=usage, purpose=self._purpose, steps=steps))

    def _send(self, event: events.Event) -> None:
        self._parent_context.run(self._parent.notify, event)


def _find_last_answer(history: History) -> str:
    for message in reversed(history.messages):
        if message.role == "assistant":
            return message.text
    return ""
