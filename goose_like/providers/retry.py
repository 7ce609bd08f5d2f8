"""Retries of model requests with growing pauses."""

import asyncio
import itertools
import random
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from datetime import datetime, timedelta

from goose_like.core.dataclass import dataclass
from goose_like.core.errors import BrokenStreamError, ProviderError, RateLimitError
from goose_like.core.events import MessageCompleted, Retrying, UsageRecorded
from goose_like.core.message import Message, Usage

from .base import Delta, Provider, Request
from .foreign_code import name_faults, open_stream
from .shared_pauses import shared_pauses


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Limits of retries. A pause requested by the server is kept, or ends the retries if it exceeds the deadline."""

    max_attempts: int = 6
    first_wait_s: float = 0.5
    max_wait_s: float = 60.0
    deadline_s: float = 300.0

    def compute_wait_s(self, attempt: int, requested_s: float | None) -> float:
        """Compute the pause after an attempt, counted from 1."""
        if requested_s is not None:
            return max(requested_s, 0.0)
        growing_s = self.first_wait_s * 2.0 ** (attempt - 1)
        wait_s = min(growing_s, self.max_wait_s)
        return wait_s * random.uniform(0.75, 1.25)


async def stream_with_retries(
    provider: Provider, request: Request, policy: RetryPolicy = RetryPolicy()
) -> AsyncGenerator[Delta, None]:
    """Stream the answer of a provider and retry after retryable errors.

    A `Retrying` delta before each new attempt voids all deltas so far. When it arrives, `told_usage` of the request has
    the counts of the attempt that failed; the next attempt begins with none. The stream ends with the message. Use
    `aclosing` if you may leave the stream early, so that the request stops.

    Raises:
        ProviderError: The last error: not retryable, or the policy allows no more attempts.
    """
    started = time.monotonic()
    pauses = shared_pauses.get()
    for attempt in itertools.count(1):
        request.told_usage.clear()
        if pauses:
            await pauses.wait(request.model)
        try:
            with name_faults(type(provider), "stream"):
                async with aclosing(open_stream(provider, request)) as deltas:
                    async for delta in deltas:
                        if isinstance(delta, MessageCompleted) and _is_empty(delta.message):
                            raise BrokenStreamError(f"the model {request.model!r} answered without a word or a call")
                        yield delta
                        if isinstance(delta, MessageCompleted):
                            return
            raise BrokenStreamError(f"the model {request.model!r} ended its stream without a message; try again")
        except ProviderError as error:
            wait_s = policy.compute_wait_s(attempt, error.retry_after_s)
            is_late = time.monotonic() - started + wait_s > policy.deadline_s
            max_attempts = min(error.max_attempts or policy.max_attempts, policy.max_attempts)
            is_last = attempt >= max_attempts or is_late
            if is_last or not error.is_retryable:
                _add_requested_wait(error)
                raise
            if pauses and isinstance(error, RateLimitError):
                await pauses.hold(request.model, wait_s)
            retries = {"retry": attempt, "max_retries": max_attempts - 1}
            yield Retrying(text=str(error), wait_s=round(wait_s, 2), **retries)
            await asyncio.sleep(wait_s)


async def complete_answer(
    provider: Provider, request: Request, policy: RetryPolicy, record: Callable[[Usage], None]
) -> MessageCompleted:
    """Return the answer of a provider after all retries. `record` gets the tokens of each attempt, also a failed one.

    Raises:
        ProviderError: The last error; see `stream_with_retries`.
    """
    told = request.told_usage
    try:
        async with aclosing(stream_with_retries(provider, request, policy)) as deltas:
            async for delta in deltas:
                if isinstance(delta, MessageCompleted):
                    told[:] = [delta.usage]
                    return delta
                if isinstance(delta, UsageRecorded):
                    record(delta.usage)
                    told.clear()
                if isinstance(delta, Retrying) and told:
                    record(told.pop())
    finally:
        if told:
            record(told.pop())
    raise AssertionError("stream_with_retries ends with a message or raises")


def _add_requested_wait(error: ProviderError) -> None:
    """Add to the text of an error how long the server asks to wait, for a person who may try again then."""
    if error.is_retryable and error.retry_after_s:
        error.args = (f"{error}; the server asks to wait {_describe_wait(error.retry_after_s)}",)


def _is_empty(message: Message) -> bool:
    return not (message.text or message.tool_calls)


def _describe_wait(wait_s: float) -> str:
    """Describe a pause and its end, such as `until 16:05 (60 min)`, with the day if the pause is long."""
    end = datetime.now() + timedelta(seconds=wait_s)
    time_format = "%H:%M" if wait_s < 43_200 else "%Y-%m-%d %H:%M"
    return f"until {end:{time_format}} ({_format_wait(wait_s)})"


def _format_wait(wait_s: float) -> str:
    if wait_s < 120:
        return f"{wait_s:.0f} s"
    if wait_s < 7200:
        return f"{wait_s / 60:.0f} min"
    return f"{wait_s / 3600:.0f} h"
