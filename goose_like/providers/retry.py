"""Retries of model requests with growing pauses."""

import asyncio
import random
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field

from goose_like.core.errors import BrokenStreamError, ProviderError
from goose_like.core.events import MessageCompleted, Retrying

from .base import Delta, Provider, Request


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Limits of retries. A pause requested by the server counts up to `max_wait_s`."""

    max_attempts: int = 6
    first_wait_s: float = 0.5
    max_wait_s: float = 60.0
    deadline_s: float = 300.0

    def compute_wait_s(self, attempt: int, requested_s: float | None) -> float:
        """Compute the pause after an attempt, counted from 0."""
        if requested_s is not None:
            return min(max(requested_s, 0.0), self.max_wait_s)
        return min(self.first_wait_s * 2.0**attempt, self.max_wait_s) * random.uniform(0.75, 1.25)


@dataclass(slots=True)
class RetryState:
    """The attempts and the time that one request has used."""

    policy: RetryPolicy
    started: float = field(default_factory=time.monotonic)
    count: int = 0

    def count_failure(self, error: ProviderError) -> float | None:
        """Count a failed attempt and return the pause before the next one, or None if there must be none."""
        wait_s = self.policy.compute_wait_s(self.count, error.retry_after_s)
        self.count += 1
        is_late = time.monotonic() - self.started + wait_s > self.policy.deadline_s
        return None if not error.is_retryable or self.count >= self.policy.max_attempts or is_late else wait_s


async def stream_with_retries(
    provider: Provider, request: Request, policy: RetryPolicy = RetryPolicy()
) -> AsyncGenerator[Delta, None]:
    """Stream the answer of a provider and retry after retryable errors.

    A `Retrying` delta before each new attempt voids all deltas so far. The stream ends with the message. Use `aclosing`
    if you may leave the stream early, so that the request stops.

    Raises:
        ProviderError: The last error: not retryable, or the policy allows no more attempts.
    """
    state = RetryState(policy)
    while True:
        try:
            async with aclosing(provider.stream(request)) as deltas:
                async for delta in deltas:
                    if isinstance(delta, MessageCompleted) and not (delta.message.text or delta.message.tool_calls):
                        raise BrokenStreamError(f"the model {request.model!r} answered without a word or a call")
                    yield delta
                    if isinstance(delta, MessageCompleted):
                        return
            raise BrokenStreamError(f"the model {request.model!r} ended its stream without a message; try again")
        except ProviderError as error:
            wait_s = state.count_failure(error)
            if wait_s is None:
                raise
            yield Retrying(text=str(error), wait_s=round(wait_s, 2))
            await asyncio.sleep(wait_s)
