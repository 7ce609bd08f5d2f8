"""What a component may wish of an answer beside its words, and the model that is asked with these wishes."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field

from goose_like.config.profile import ModelChoice
from goose_like.core.errors import BrokenStreamError, GooseLikeError, ProviderError
from goose_like.core.events import MessageCompleted
from goose_like.providers.base import Delta, Model, Provider, ProviderInfo, Request

from .reading import Given


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


class Wishes(Given):
    """`max_tokens` bounds each answer, within what the profile allows; `temperature` counts more than the profile's."""

    max_tokens: Annotated[int, BeforeValidator(_whole), Field(gt=0)] | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None

    def of(self, model: Model) -> Model:
        """The model, asked with these wishes."""
        return replace(model, provider=Wished(model.provider, self.max_tokens, self.temperature))


class Wished:
    """A provider whose every request has wishes. A temperature that the vendor refuses is left out from then on.

    `was_cut` says whether an answer did not fit into `max_tokens`.
    """

    info: ClassVar[ProviderInfo] = ProviderInfo("asks another provider")

    def __init__(self, provider: Provider, max_tokens: int | None, temperature: float | None) -> None:
        self.was_cut = False
        self._provider = provider
        self._max_tokens = max_tokens
        self._temperature = temperature

    @staticmethod
    def find_setup_error(choice: ModelChoice) -> GooseLikeError | None:
        return None

    async def stream(self, request: Request) -> AsyncGenerator[Delta, None]:
        """As the provider's; an answer that did not fit into `max_tokens` is told by that name."""
        while True:
            asked = replace(request, max_tokens=self._max_tokens, temperature=self._temperature)
            try:
                async with aclosing(self._provider.stream(asked)) as deltas:
                    async for delta in deltas:
                        is_cut = isinstance(delta, MessageCompleted) and delta.is_cut
                        self.was_cut |= is_cut and self._max_tokens is not None
                        yield delta
                return
            except BrokenStreamError as error:
                if self._max_tokens is not None:
                    error.args = (str(error).replace("max_output_tokens", "`max_tokens`"),)
                raise
            except ProviderError as error:
                # A component can't know which models take one; which don't, their vendors say in a refusal.
                if self._temperature is None or error.is_retryable or "temperature" not in str(error):
                    raise
                self._temperature = None

    async def close(self) -> None:
        """Nothing: who opened the provider closes it."""
