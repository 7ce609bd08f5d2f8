"""An exchange within another: what it tells, asks and spends, and what of the other's limits is left for it."""

from collections.abc import Iterator, Mapping
from contextvars import copy_context

from goose_like.config.profile import Limits
from goose_like.core.events import (
    Answer,
    Event,
    MessageCompleted,
    Nested,
    Question,
    SessionStarted,
    ToolFinished,
    UsageRecorded,
)
from goose_like.core.history import History
from goose_like.core.message import Usage
from goose_like.core.notifier import Notifier
from goose_like.core.tool import ToolError
from goose_like.providers.prices import cost_usd


class Relay(Notifier):
    """The notifier of the exchange that does `call_id` of another one, which hears it as `who`'s.

    Tokens count at once, for this `purpose`: whatever ends the work, they were spent.
    """

    def __init__(self, parent: Notifier, call_id: str, *, who: str, purpose: str) -> None:
        self.steps = self.calls = 0
        self.spent = Usage()
        self._parent = parent
        self._call_id = call_id
        # To the parent it is who began this that speaks, a call or none, and none within.
        self._beginner = copy_context()
        self._who = who
        self._purpose = purpose
        self._model = ""

    def notify(self, event: Event) -> None:
        for told in self._told(event):
            self._beginner.run(self._parent.notify, told)

    async def ask(self, question: Question) -> Answer:
        return await self._parent.ask(question.model_copy(update={"text": f"{self._who} asks: {question.text}"}))

    def took(self) -> str:
        """What the work took so far, in a few words."""
        counts = [(self.steps, "step"), (self.calls, "call"), (self.spent.total_tokens, "token")]
        return ", ".join(f"{count:,} {noun}{'s' * (count != 1)}" for count, noun in counts if count) or "nothing"

    def _told(self, event: Event) -> Iterator[Event]:
        yield Nested(call_id=self._call_id, event=event.model_dump(mode="json"))
        match event:
            case SessionStarted(models=models):
                self._model = models["processor"]
            case ToolFinished():
                self.calls += 1
            case MessageCompleted(usage=usage):
                self.steps += 1
                yield from self._counted(self._model, usage)
            case UsageRecorded(model=model, usage=usage):
                yield from self._counted(model, usage)
            case _:
                pass

    def _counted(self, model: str, usage: Usage) -> Iterator[UsageRecorded]:
        if usage.total_tokens:
            self.spent += usage
            yield UsageRecorded(model=model, usage=usage, purpose=self._purpose)


def left_of(
    limits: Limits, history: History, *, beside: int = 1, within: History | None = None
) -> dict[str, float | None]:
    """What the running turn has left of its limits; what runs `beside` each other, by its count, shares it.

    `within` goes on with its turn after the end of a process: what it spent counts there, and not here as well.
    """
    usage = history.turn_usage
    own = within.turn_usage if within and within.in_turn else {}
    tokens = _tokens(usage) - _tokens(own)
    return {
        "steps": limits.steps - history.turn_steps,
        "tokens": limits.tokens and (limits.tokens - tokens) // beside,
        "cost_usd": limits.cost_usd and (limits.cost_usd - (cost_usd(usage) or 0.0) + (cost_usd(own) or 0.0)) / beside,
    }


def _tokens(usage: Mapping[str, Usage]) -> int:
    return sum(spent.total_tokens for spent in usage.values())


def narrowed_limits(limits: Limits, *bounds: Mapping[str, float | None]) -> Limits:
    """The limits, none of them wider than any of the bounds.

    Raises:
        ToolError: nothing is left of one.
    """
    narrowed: dict[str, float | None] = {}
    for name in {name: None for bound in bounds for name in bound}:
        known = [each for each in (getattr(limits, name), *(bound.get(name) for bound in bounds)) if each is not None]
        narrowed[name] = min(known, default=None)
        if known and min(known) <= 0:
            raise ToolError(f"nothing is left of this turn's limit of {name}; say in your answer what is still to do")
    return limits.model_copy(update=narrowed)
