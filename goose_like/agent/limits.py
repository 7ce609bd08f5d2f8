"""The limits of a turn: steps, tokens, cost, time, and the same failing call again and again."""

from dataclasses import dataclass

from goose_like.config.profile import Limits
from goose_like.core.errors import GooseLikeError
from goose_like.core.events import TurnFinished
from goose_like.providers.prices import compute_cost_usd
from goose_like.sessions.session import Session

MAX_EQUAL_FAILURES = 5
_SHOWN_CALL_CHARS = 200


@dataclass(frozen=True, slots=True)
class TurnLimits:
    """The limits of a profile, compared with the running turn of a session. `spent_s` passed before the turn."""

    values: Limits
    session: Session
    spent_s: float = 0

    @property
    def time_left_s(self) -> float | None:
        """The time limit of the turn in seconds, if there is one."""
        return None if self.values.time_s is None else self.values.time_s - self.spent_s

    def find_spent(self) -> TurnFinished | None:
        """Return the end of the turn when its steps, tokens or cost are used up.

        Raises:
            GooseLikeError: there is a cost limit, but the price of a model is unknown.
        """
        limits, history = self.values, self.session.history
        if history.turn_step_count >= limits.steps:
            return TurnFinished(reason="step_limit", detail=f"the limit of {limits.steps} steps", exit_code=3)
        usage = history.turn_usage
        tokens = sum(spent.total_tokens for spent in usage.values())
        if limits.tokens and tokens >= limits.tokens:
            return TurnFinished(reason="budget", detail=f"{tokens} of {limits.tokens} tokens are used", exit_code=5)
        cost = compute_cost_usd(usage) if limits.cost_usd else 0.0
        if cost is None:
            names = ", ".join(usage)
            raise GooseLikeError(f"the price of {names} is not known, so a cost limit can't be kept; use --max-tokens")
        if limits.cost_usd and cost >= limits.cost_usd:
            detail = f"${cost:.4f} of ${limits.cost_usd:g} are spent"
            return TurnFinished(reason="budget", detail=detail, exit_code=4)
        return None

    def find_stuck(self) -> TurnFinished | None:
        """Return the end of the turn when the model made the same failing call too often."""
        for (name, arguments), count in self.session.history.failures.items():
            if count >= MAX_EQUAL_FAILURES:
                call = f"{name} {arguments}"[:_SHOWN_CALL_CHARS]
                detail = f"the model made the same failing call {count} times: {call}; tell it what to do instead"
                return TurnFinished(reason="error", detail=detail, exit_code=1)
        return None

    def describe_timeout(self) -> TurnFinished:
        """Return the end of a turn that ran out of time."""
        return TurnFinished(reason="budget", detail=f"the time limit of {self.values.time_s:g} s", exit_code=124)
