"""Subagents: the notifier of an exchange that works for another one, and the limits that remain for it."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from contextvars import copy_context

from typing_extensions import override

from goose_like.config.profile import Limits
from goose_like.core import events
from goose_like.core.history import History
from goose_like.core.message import Usage
from goose_like.core.notifier import EventNotifier, Notifier
from goose_like.core.spelling import format_count
from goose_like.core.tool import ToolError
from goose_like.providers.prices import compute_cost_usd

from .hook_values import SubagentStart, SubagentStop
from .journal import Journal
from .toolkit_hooks import ToolkitHooks


class EventRelay(EventNotifier):
    """The notifier of a subagent: it passes events, questions and token counts to the parent.

    `call_id` is the tool call of the parent that the subagent works for. Questions start with `who`. Tokens count for
    `purpose` at once, so they are counted however the work ends.
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
                self._count(model or self._model, usage)
            case events.UsageRecorded(model=model, usage=usage):
                self._count(model, usage)

    @override
    async def ask(self, question: events.Question) -> events.Answer:
        text = f"{self.who} asks: {question.text}"
        # The call inside the subagent is unknown to the parent.
        asked = question.model_copy(update={"text": text, "call_id": self._call_id})
        # The parent's screen shows which of its own calls waits for the answer.
        context = self._parent_context.copy()
        return await asyncio.create_task(self._ask_parent(asked), context=context)

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

    def _count(self, model: str, usage: Usage) -> None:
        if usage.total_tokens:
            self.spent += usage
            self._send(events.UsageRecorded(model=model, usage=usage, purpose=self._purpose))

    def _send(self, event: events.Event) -> None:
        self._parent_context.run(self._parent.notify, event)


def _find_last_answer(history: History) -> str:
    for message in reversed(history.messages):
        if message.role == "assistant":
            return message.text
    return ""


def remaining_limits(
    limits: Limits, history: History, *, share_count: int = 1, resumed: History | None = None
) -> dict[str, float | None]:
    """Compute what remains of the limits of the running turn, by the names of the limits.

    `share_count` subagents of one message share tokens and cost. `resumed` is the history of a subagent that
    continues its turn after a restart: its usage counts there, so it is not subtracted here.
    """
    usage = history.usage.turn_by_model
    own: Mapping[str, Usage] = {}
    if resumed and resumed.is_in_turn:
        own = resumed.usage.turn_by_model
    tokens = _count_tokens(usage) - _count_tokens(own)
    cost_usd = (compute_cost_usd(usage) or 0.0) - (compute_cost_usd(own) or 0.0)
    return {
        "steps": limits.steps - history.turn_step_count,
        "tokens": limits.tokens and (limits.tokens - tokens) // share_count,
        "cost_usd": limits.cost_usd and (limits.cost_usd - cost_usd) / share_count,
    }


def _count_tokens(usage: Mapping[str, Usage]) -> int:
    return sum(spent.total_tokens for spent in usage.values())


def narrow_limits(limits: Limits, *bounds: Mapping[str, float | None]) -> Limits:
    """Lower the limits to the given bounds, where those are lower.

    Raises:
        ToolError: nothing is left of a limit.
    """
    lowest = limits.model_dump()
    for limited in bounds:
        for name, bound in limited.items():
            known = [value for value in (lowest[name], bound) if value is not None]
            lowest[name] = min(known, default=None)
            if known and lowest[name] <= 0:
                raise ToolError(
                    f"nothing is left of this turn's limit of {name}; say in your answer what is still to do"
                )
    return limits.model_copy(update=lowest)
