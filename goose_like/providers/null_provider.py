"""A provider that answers every request with an error, for code that needs models but must not ask them."""

from collections.abc import AsyncGenerator
from typing import ClassVar

from goose_like.config.profile import ModelChoice
from goose_like.core.errors import GooseLikeError, ProviderError

from .base import Delta, Model, ModelPair, ProviderInfo, Request


class NullProvider:
    """A provider that answers every request with the same error."""

    info: ClassVar[ProviderInfo] = ProviderInfo("answers nothing")

    def __init__(self, error: ProviderError) -> None:
        self._error = error

    @staticmethod
    def find_setup_error(choice: ModelChoice) -> GooseLikeError | None:
        """Return None: this provider is always ready."""
        return None

    async def stream(self, request: Request) -> AsyncGenerator[Delta, None]:
        """Raise the error of this provider."""
        raise self._error
        yield

    async def close(self) -> None:
        """Do nothing."""


def build_null_models(error: ProviderError, label: str = "absent") -> ModelPair:
    """Build two models that answer every request with this error."""
    model = Model(NullProvider(error), label, label)
    return ModelPair(model, model)
