"""What the inputs of a batch may spend together."""

from collections.abc import Collection, Mapping

from goose_like.core.errors import GooseLikeError
from goose_like.core.message import FrozenModel

from .jsonl_file import JsonlFile


class Totals(FrozenModel):
    """The limits of a whole batch. None means no limit."""

    cost_usd: float | None = None
    tokens: int | None = None


class TotalReachedError(GooseLikeError):
    """A batch whose total leaves too little for another input."""

    def __init__(self, name: str, total: float) -> None:
        if name == "tokens":
            self.exit_code = 5
            limit = f"the total of {total:,} tokens"
            option = "--total-tokens"
        else:
            self.exit_code = 4
            limit = f"the total of ${total:g}"
            option = "--total-cost"
        text = f"{limit} leaves too little for another input; go on with: goose-like batch resume RESULTS {option} MORE"
        super().__init__(text)


class Attempt(FrozenModel):
    """What an attempt at an input took, or, as long as it runs, the most that it may take."""

    number: int
    attempt: int
    cost_usd: float = 0.0
    tokens: int = 0


class Spending:
    """The record of all attempts, on the disk before they start: a batch that was killed has spent what it had before.

    An attempt whose end is unknown counts with the most that it could take.
    """

    def __init__(self, totals: Totals, file: JsonlFile[Attempt]) -> None:
        self._totals = totals
        self._file = file
        self._attempts = {(record.number, record.attempt): record for record in file.records}

    def count_attempts(self, number: int) -> int:
        """Return how many attempts at an input have started."""
        return sum(key[0] == number for key in self._attempts)

    def record(self, attempt: Attempt) -> None:
        """Record the start of an attempt, or its end."""
        self._file.append(attempt)
        self._attempts[attempt.number, attempt.attempt] = attempt

    @property
    def used(self) -> Totals:
        """Return what is spent, and what running attempts may still spend."""
        attempts: Collection[Attempt] = self._attempts.values()
        return Totals(
            cost_usd=sum(attempt.cost_usd for attempt in attempts),
            tokens=sum(attempt.tokens for attempt in attempts),
        )

    def share(self, limits: Mapping[str, float], waiting_count: int) -> dict[str, float]:
        """Return the limits of the next attempt: what is left is shared by all inputs that wait.

        Raises:
            TotalReachedError: too little is left now; a running attempt may leave some.
        """
        used = self.used
        shared = dict(limits)
        for name in Totals.model_fields:
            total = getattr(self._totals, name)
            if total is None:
                continue
            left = total - getattr(used, name)
            own = limits.get(name, left / waiting_count)
            if name == "tokens":
                own = int(own)
            if own <= 0 or own > left:
                raise TotalReachedError(name, total)
            shared[name] = own
        return shared
