"""Subagents: the notifier of an exchange that works for another one, and the limits that remain for it."""

import asyncio
from collections.abc import Mapping
from contextvars import copy_context

from typing_extensions import override

from goose_like.config.profile import Limits
from goose_like.core import events
from goose_like.core.history import History
from goose_like.core.message import Usage
from goose_like.core.notifier import Notifier
from goose_like.core.tool import ToolError
from goose_like.providers.prices import compute_cost_usd


class EventRelay(Notifier):
    """The notifier of a subagent: it passes events, questions and token counts to the parent.

    `call_id` is the tool call of the parent that the subagent works for. Questions start with `who`. Tokens count for
    `purpose` at once, so they are counted however the work ends.
    """

    def __init__(self, parent: Notifier, call_id: str, *, who: str, purpose: str) -> None:
        self.steps = self.calls = 0
        self.spent = Usage()
        self._parent = parent
        self._call_id = call_id
        # The parent must see the call that started the subagent, not a call inside it.
        self._parent_context = copy_context()
        self._who = who
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
        asked = question.model_copy(update={"text": f"{self._who} asks: {question.text}"})
        # The parent's screen shows which of its own calls waits for the answer.
        return await asyncio.create_task(self._ask_parent(asked), context=self._parent_context.copy())

    async def _ask_parent(self, question: events.Question) -> events.Answer:
        return await self._parent.ask(question)

    def format_usage(self) -> str:
        """Describe the work so far, for example `3 steps, 5 calls, 1,200 tokens`."""
        counts = [(self.steps, "step"), (self.calls, "call"), (self.spent.total_tokens, "token")]
        return ", ".join(f"{count:,} {noun}{'s' * (count != 1)}" for count, noun in counts if count) or "nothing"

    def _count(self, model: str, usage: Usage) -> None:
        if usage.total_tokens:
            self.spent += usage
            self._send(events.UsageRecorded(model=model, usage=usage, purpose=self._purpose))

    def _send(self, event: events.Event) -> None:
        self._parent_context.run(self._parent.notify, event)


def remaining_limits(
    limits: Limits, history: History, *, share_count: int = 1, resumed: History | None = None
) -> dict[str, float | None]:
    """Compute what remains of the limits of the running turn, by the names of the limits.

    `share_count` subagents of one message share tokens and cost. `resumed` is the history of a subagent that
    continues its turn after a restart: its usage counts there, so it is not subtracted here.
    """
    usage = history.turn_usage
    own = resumed.turn_usage if resumed and resumed.is_in_turn else {}
    tokens = sum(usage.values(), Usage()).total_tokens - sum(own.values(), Usage()).total_tokens
    cost_usd = (compute_cost_usd(usage) or 0.0) - (compute_cost_usd(own) or 0.0)
    return {
        "steps": limits.steps - history.turn_step_count,
        "tokens": limits.tokens and (limits.tokens - tokens) // share_count,
        "cost_usd": limits.cost_usd and (limits.cost_usd - cost_usd) / share_count,
    }


def narrow_limits(limits: Limits, *bounds: Mapping[str, float | None]) -> Limits:
    """Lower the limits to the given bounds, where those are lower.

    Raises:
        ToolError: nothing is left of a limit.
    """
    lowest = limits.model_dump()
    for name, bound in (item for items in bounds for item in items.items()):
        known = [value for value in (lowest[name], bound) if value is not None]
        lowest[name] = min(known, default=None)
        if known and lowest[name] <= 0:
            raise ToolError(f"nothing is left of this turn's limit of {name}; say in your answer what is still to do")
    return limits.model_copy(update=lowest)
