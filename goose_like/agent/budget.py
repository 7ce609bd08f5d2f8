"""The budget of a run: the steps, tokens, cost and time that a turn and everything working for it may take."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager

from goose_like.config.profile import Limits
from goose_like.core.dataclass import dataclass
from goose_like.core.errors import GooseLikeError, ProfileError
from goose_like.core.events import TurnFinished
from goose_like.core.message import Usage
from goose_like.core.spelling import format_count
from goose_like.core.tool import ToolError
from goose_like.providers.base import Model
from goose_like.providers.prices import compute_cost_usd, has_price
from goose_like.sessions.session import Session

_ASSUMED_OUTPUT_TOKENS = 32_000
"""The longest answer of a model without a known limit."""


class BudgetError(GooseLikeError):
    """A request that the budget does not allow. `end` is the end of the turn that needs it."""

    def __init__(self, end: TurnFinished) -> None:
        super().__init__(f"the budget of this turn is used up: {end.detail}")
        self.end = end
        self.exit_code = end.exit_code


@dataclass(frozen=True, slots=True)
class _Request:
    """What a request may take. A side question is no step."""

    model: str
    input_tokens: int = 0
    output_tokens: int = 0
    is_step: bool = True

    @property
    def input(self) -> Mapping[str, Usage]:
        """The tokens of the request without its answer, by model."""
        return {self.model: Usage(input_tokens=self.input_tokens)}

    @property
    def whole(self) -> Mapping[str, Usage]:
        """The tokens of the request with the longest answer, by model."""
        return {self.model: Usage(input_tokens=self.input_tokens, output_tokens=self.output_tokens)}


_NO_REQUEST = _Request("")


class Budget:
    """The budget of the running turn of a session. That of a subagent lies within the budget of its `parent`.

    The history counts what is spent, also by subagents, so a resumed session has spent what it had before. Requests
    under way count with the longest answer, here and in each parent. So requests that run side by side exceed a limit
    by at most one answer. `rounds` limits the session's own steps, without those of subagents.
    """

    def __init__(
        self, limits: Limits, session: Session, parent: "Budget | None" = None, *, rounds: int | None = None
    ) -> None:
        self.limits = limits
        self.spent_s = 0.0
        """Seconds of the turn that passed before its message."""
        self._session = session
        self._parent = parent
        self._rounds = rounds
        self._under_way: list[_Request] = []
        self._settled = asyncio.Event()

    @property
    def time_left_s(self) -> float | None:
        """The time limit of the turn in seconds, if there is one, without the time of a process that was killed."""
        if self.limits.time_s is None:
            return None
        return max(0.0, self.limits.time_s - self.spent_s - self._session.interrupted_turn_s)

    def check_prices(self, labels: Iterable[str], path: tuple[str, ...] = ("limits", "cost_usd")) -> None:
        """Check that all limits of the cost can be kept with models of these labels, before any request is paid.

        Raises:
            ProfileError: the price of a model is unknown. `path` is the place to change.
        """
        if all(budget.limits.cost_usd is None for budget in self._list_all()):
            return
        unknown = [label for label in dict.fromkeys(labels) if not has_price(label)]
        if unknown:
            raise ProfileError(_describe_missing_price(unknown), path)

    def find_spent(self) -> TurnFinished | None:
        """Return the end of the turn when nothing is left of a limit, here or in a parent.

        Raises:
            GooseLikeError: there is a cost limit, but the price of a model is unknown.
        """
        return self._find_end(_NO_REQUEST, counts_under_way=False)

    def check_rest(self) -> None:
        """Check that something is left for a subagent.

        Raises:
            ToolError: a limit is used up.
        """
        end = self.find_spent()
        if end:
            raise ToolError(f"nothing is left of this turn: {end.detail}; say in your answer what is still to do")

    @asynccontextmanager
    async def reserve(self, model: Model, input_tokens: int, *, is_step: bool = True) -> AsyncIterator[None]:
        """Reserve a request with its longest answer for the block, which records what the request took.

        A request that does not fit beside those under way waits until one of them is settled. Between turns nothing is
        limited.

        Raises:
            BudgetError: the request does not fit.
            GooseLikeError: there is a cost limit, but the price of a model is unknown.
        """
        limits = [limit for limit in (model.max_tokens, model.output_limit) if limit is not None]
        output_tokens = min(limits, default=_ASSUMED_OUTPUT_TOKENS)
        request = _Request(model.price_label, input_tokens, output_tokens, is_step)
        await self._wait_for_room(request)
        for budget in self._list_all():
            budget._under_way.append(request)
        try:
            yield
        finally:
            for budget in self._list_all():
                budget._under_way.remove(request)
                budget._settled.set()
                budget._settled = asyncio.Event()

    async def _wait_for_room(self, request: _Request) -> None:
        while self._find_end(request, counts_under_way=True):
            end = self._find_end(request, counts_under_way=False)
            if end:
                raise BudgetError(end)
            # All requests of the outermost budget include those of the one that is short.
            await self._list_all()[-1]._settled.wait()

    def _list_all(self) -> list["Budget"]:
        """List this budget and its parents, the innermost first."""
        if self._parent is None:
            return [self]
        return [self, *self._parent._list_all()]

    def _find_end(self, request: _Request, *, counts_under_way: bool) -> TurnFinished | None:
        """Return the end of the turn if this request fits into one of the budgets no more."""
        for budget in self._list_all():
            others = budget._under_way if counts_under_way else []
            end = budget._find_own_end(request, others)
            if end is None:
                continue
            if budget is self:
                return end
            return TurnFinished(reason="budget", detail=f"{end.detail} in the whole run", exit_code=end.exit_code)
        return None

    def _find_own_end(self, request: _Request, others: Iterable[_Request]) -> TurnFinished | None:
        history = self._session.history
        if not history.is_in_turn:
            return None
        steps = history.usage.turn_step_count
        if request.is_step:
            steps += sum(other.is_step for other in others)
            if self._rounds is not None and history.turn_step_count >= self._rounds:
                return describe_step_limit(self._rounds)
            if steps >= self.limits.steps:
                end = describe_step_limit(self.limits.steps)
                # Not the rounds of a boss are used up, but the steps of its run.
                if self._rounds is not None:
                    end = end.model_copy(update={"reason": "budget"})
                return end
        return self._find_token_limit(request, others) or self._find_cost_limit(request, others)

    def _find_token_limit(self, request: _Request, others: Iterable[_Request]) -> TurnFinished | None:
        limit = self.limits.tokens
        if limit is None:
            return None
        used = self._session.history.usage.turn_total.total_tokens
        reserved = sum(other.input_tokens + other.output_tokens for other in others)
        if used + reserved + request.input_tokens < limit:
            return None
        detail = f"the limit of {format_count(limit, 'token')}; {used:,} are used"
        if used < limit:
            detail += f", and the next request has about {request.input_tokens:,}"
        return TurnFinished(reason="budget", detail=detail, exit_code=5)

    def _find_cost_limit(self, request: _Request, others: Iterable[_Request]) -> TurnFinished | None:
        limit = self.limits.cost_usd
        if limit is None:
            return None
        used = _compute_cost(self._session.history.usage.turn_by_model)
        reserved = sum(_compute_cost(other.whole) for other in others)
        next_cost = _compute_cost(request.input)
        if used + reserved + next_cost < limit:
            return None
        detail = f"the limit of ${limit:g}; ${used:.4f} is spent"
        if used < limit:
            detail += f", and the next request costs at least ${next_cost:.4f}"
        return TurnFinished(reason="budget", detail=detail, exit_code=4)

    def describe_timeout(self) -> TurnFinished:
        """Return the end of a turn that ran out of time."""
        detail = f"the time limit of {self.limits.time_s:g} s"
        return TurnFinished(reason="budget", detail=detail, exit_code=124)


def describe_step_limit(steps: int) -> TurnFinished:
    """Return the end of a turn that used all its steps."""
    detail = f"the limit of {format_count(steps, 'step')}"
    return TurnFinished(reason="step_limit", detail=detail, exit_code=3)


def narrow_limits(limits: Limits, bounds: Mapping[str, float | None]) -> Limits:
    """Lower the limits to the given bounds, by the names of the limits, where those are lower."""
    lowest = {}
    for name, bound in bounds.items():
        known = [value for value in (getattr(limits, name), bound) if value is not None]
        lowest[name] = min(known, default=None)
    return limits.model_copy(update=lowest)


def _compute_cost(usage: Mapping[str, Usage]) -> float:
    cost = compute_cost_usd(usage)
    if cost is None:
        unknown = [label for label in usage if not has_price(label)]
        raise GooseLikeError(_describe_missing_price(unknown))
    return cost


def _describe_missing_price(labels: Iterable[str]) -> str:
    names = ", ".join(labels)
    return (
        f"the price of {names} is not known, so a cost limit can't be kept; "
        "limit the tokens instead: --max-tokens, or `limits: {tokens: 500000}` in the profile"
    )
