"""The port to models: one method, `stream`, and the patience to try again."""

import asyncio
import random
import re
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Protocol, runtime_checkable

from goose_like.config.profile import ModelChoice
from goose_like.core.errors import BrokenStreamError, GooseLikeError, ProviderError
from goose_like.core.events import MessageCompleted, Retrying, Status, TextDelta, ThinkingDelta
from goose_like.core.message import Message, Usage
from goose_like.core.tool import ToolSpec as ToolSpec

Delta = TextDelta | ThinkingDelta | Status | Retrying | MessageCompleted


@dataclass(frozen=True, slots=True)
class Request:
    """One model request. `messages` is only ever extended from one step to the next, so that prefixes cache.

    `images` is the folder in which the bytes of the messages' images lie; `session` is the same in all requests of a
    session and in no other's, so that a vendor can send them to the machine that has the prefix. `max_tokens` bounds
    the answer, within what the profile allows; `temperature` counts more than the profile's. Where they are None, the
    profile decides.
    """

    model: str
    system: str
    messages: Sequence[Message]
    tools: Sequence[ToolSpec] = ()
    images: Path | None = None
    session: str = ""
    max_tokens: int | None = None
    temperature: float | None = None

    def resolve_output_limit(self, profile_limit: int | None) -> int | None:
        """How many tokens the answer may have, where the profile allows so many; None: nobody says."""
        known = [limit for limit in (self.max_tokens, profile_limit) if limit is not None]
        return min(known, default=None)


@dataclass(frozen=True, slots=True)
class ProviderInfo:
    """What people are told of a provider before it is used, and which models it picks when a profile names none."""

    summary: str
    key_variable: str | None = None
    processor: str | None = None
    accelerator: str | None = None
    takes_images: bool = False
    windows: tuple[tuple[str, int], ...] = ()

    def find_window(self, name: str) -> int | None:
        """A model's context in tokens, where it is known; `windows` are patterns of names, the first one counts."""
        return next((tokens for pattern, tokens in self.windows if re.search(pattern, name)), None)


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What a server said to one cheap request: the models it lists (None: it gave no list), and of the key."""

    address: str
    models: tuple[str, ...] | None
    is_key_verified: bool


class Provider(Protocol):
    """One vendor's wire. A provider class is called with a `ModelChoice` of the profile; its module is light.

    `missing` answers before any request whether the provider can be used on this machine.
    """

    info: ClassVar[ProviderInfo]

    @staticmethod
    def find_setup_error(choice: ModelChoice) -> GooseLikeError | None:
        """What to install or set before this choice works, as the error to end with. None: it is ready. Quick."""
        ...

    def stream(self, request: Request) -> AsyncGenerator[Delta, None]:
        """Yields deltas as they arrive, then exactly one `MessageCompleted`, then ends.

        An answer without its finish reason, or whose transport broke, is never completed: it raises. Must not
        retry by itself, must not keep state between requests but for caches, and must stop the request when
        the generator is closed.

        Raises:
            ProviderError: whenever no whole answer came; its subclass says why.
        """
        ...

    async def close(self) -> None:
        """Gives back connections and memory. Called once."""
        ...


class ProviderFactory(Protocol):
    """What makes providers: a provider class, or a row of the table of servers (`providers/rows.py`)."""

    @property
    def info(self) -> ProviderInfo: ...

    def find_setup_error(self, choice: ModelChoice) -> GooseLikeError | None: ...

    def __call__(self, choice: ModelChoice) -> Provider: ...


@runtime_checkable
class SupportsProbe(Protocol):
    """A kind whose servers can be asked something cheap."""

    async def probe(self, choice: ModelChoice, key: str = "") -> ProbeResult:
        """What the server says to one request that costs nothing; with `key` in place of the one that is set.

        Raises:
            ProviderError: it can't be reached within a few seconds, or refused the key.
        """
        ...


@dataclass(frozen=True, slots=True)
class Embeddings:
    """A vector for each of some texts, in their order, and the tokens that they took."""

    vectors: Sequence[Sequence[float]]
    usage: Usage


@runtime_checkable
class Embedder(Protocol):
    """A provider that may make vectors of texts, by which texts of like meaning are found."""

    @property
    def embedding_model(self) -> str | None:
        """The name of the model that does; None where there is none."""
        ...

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        """The texts' vectors. Asked only where there is an `embedding_model`; no text is empty.

        Raises:
            ProviderError: whenever not all of them came.
        """
        ...


@dataclass(frozen=True, slots=True)
class Model:
    """A provider and the name of one of its models; `label` is `provider:name`, `window` its context in tokens."""

    provider: Provider
    name: str
    label: str
    window: int | None = None
    takes_images: bool = False


@dataclass(frozen=True, slots=True)
class ModelPair:
    """The two models of a profile: the strong one and the fast one."""

    processor: Model
    accelerator: Model

    @property
    def providers(self) -> tuple[Provider, ...]:
        """What stands behind them, each once; who opened the models closes these."""
        strong, fast = self.processor.provider, self.accelerator.provider
        return (strong,) if strong is fast else (strong, fast)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and long a request is tried again. A server's own wish for a pause counts up to `longest_wait_s`."""

    max_attempts: int = 6
    first_wait_s: float = 0.5
    max_wait_s: float = 60.0
    deadline_s: float = 300.0

    def compute_wait_s(self, attempt: int, requested_s: float | None) -> float:
        if requested_s is not None:
            return min(max(requested_s, 0.0), self.max_wait_s)
        return min(self.first_wait_s * 2.0**attempt, self.max_wait_s) * random.uniform(0.75, 1.25)


@dataclass(slots=True)
class RetryState:
    """Counts what `stream_with_retries` has spent."""

    policy: RetryPolicy
    started: float = field(default_factory=time.monotonic)
    count: int = 0

    def count_failure(self, error: ProviderError) -> float | None:
        """The pause before the next try, or None when there should be none."""
        wait_s = self.policy.compute_wait_s(self.count, error.retry_after_s)
        self.count += 1
        is_late = time.monotonic() - self.started + wait_s > self.policy.deadline_s
        return None if not error.is_retryable or self.count >= self.policy.max_attempts or is_late else wait_s


async def stream_with_retries(
    provider: Provider, request: Request, policy: RetryPolicy = RetryPolicy()
) -> AsyncGenerator[Delta, None]:
    """The provider's stream, tried again with growing pauses while its errors are retryable.

    Each new try is preceded by `Retrying`, which voids what was streamed so far. It ends with the message; close it
    (`aclosing`) when you leave it earlier, so that the request stops then.

    Raises:
        ProviderError: the last error, when it is not retryable or the patience is used up.
    """
    attempts = RetryState(policy)
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
            wait_s = attempts.count_failure(error)
            if wait_s is None:
                raise
            yield Retrying(text=str(error), wait_s=round(wait_s, 2))
            await asyncio.sleep(wait_s)
