"""The limits of a turn: steps, tokens, cost, time, and the same failing call again and again."""

from collections.abc import Iterable

from goose_like.config.profile import Limits
from goose_like.core.dataclass import dataclass
from goose_like.core.errors import GooseLikeError, ProfileError
from goose_like.core.events import TurnFinished
from goose_like.core.spelling import format_count
from goose_like.providers.prices import compute_cost_usd, has_price
from goose_like.sessions.session import Session

MAX_EQUAL_FAILURES = 5
_SHOWN_CALL_CHARS = 200


def check_prices(limits: Limits, labels: Iterable[str], path: tuple[str, ...] = ("limits", "cost_usd")) -> None:
    """Check that a cost limit can be kept with models of these labels, before any request is paid.

    Raises:
        ProfileError: the price of a model is unknown. `path` is the place to change.
    """
    if limits.cost_usd is None:
        return
    unknown = [label for label in dict.fromkeys(labels) if not has_price(label)]
    if unknown:
        raise ProfileError(_describe_missing_price(unknown), path)


def describe_step_limit(steps: int) -> TurnFinished:
    """Return the end of a turn that used all its steps."""
    detail = f"the limit of {format_count(steps, 'step')}"
    return TurnFinished(reason="step_limit", detail=detail, exit_code=3)


def _describe_missing_price(labels: Iterable[str]) -> str:
    names = ", ".join(labels)
    return (
        f"the price of {names} is not known, so a cost limit can't be kept; "
        "limit the tokens instead: --max-tokens, or `limits: {tokens: 500000}` in the profile"
    )


@dataclass(frozen=True, slots=True)
class TurnLimits:
    """The limits of a profile, compared with the running turn of a session. `spent_s` passed before the turn."""

    values: Limits
    session: Session
    spent_s: float = 0

    @property
    def time_left_s(self) -> float | None:
        """The time limit of the turn in seconds, if there is one."""
        if self.values.time_s is None:
            return None
        return self.values.time_s - self.spent_s

    def find_spent(self) -> TurnFinished | None:
        """Return the end of the turn when its steps, tokens or cost are used up.

        Raises:
            GooseLikeError: there is a cost limit, but the price of a model is unknown.
        """
        limits = self.values
        history = self.session.history
        if history.turn_step_count >= limits.steps:
            return describe_step_limit(limits.steps)
        usage = history.usage.turn_by_model
        tokens = sum(spent.total_tokens for spent in usage.values())
        if limits.tokens and tokens >= limits.tokens:
            detail = f"the limit of {format_count(limits.tokens, 'token')}; {tokens:,} are used"
            return TurnFinished(reason="budget", detail=detail, exit_code=5)
        if not limits.cost_usd:
            return None
        cost = compute_cost_usd(usage)
        if cost is None:
            unknown = [label for label in usage if not has_price(label)]
            raise GooseLikeError(_describe_missing_price(unknown))
        if cost >= limits.cost_usd:
            detail = f"the limit of ${limits.cost_usd:g}; ${cost:.4f} is spent"
            return TurnFinished(reason="budget", detail=detail, exit_code=4)
        return None

    def find_stuck(self) -> TurnFinished | None:
        """Return the end of the turn when the model made the same failing call too often."""
        for (name, arguments), count in self.session.history.failures.items():
            if count < MAX_EQUAL_FAILURES:
                continue
            call = f"{name} {arguments}"[:_SHOWN_CALL_CHARS]
            detail = f"the model made the same failing call {count} times: {call}; tell it what to do instead"
            return TurnFinished(reason="error", detail=detail, exit_code=1)
        return None

    def describe_timeout(self) -> TurnFinished:
        """Return the end of a turn that ran out of time."""
        detail = f"the time limit of {self.values.time_s:g} s"
        return TurnFinished(reason="budget", detail=detail, exit_code=124)
