"""In the place of a model that there is not: whoever asks it is told why."""

from collections.abc import AsyncGenerator
from typing import ClassVar

from goose_like.config.profile import ModelChoice
from goose_like.core.errors import GooseLikeError, ProviderError

from .base import Delta, Model, ModelPair, ProviderInfo, Request


class NullProvider:
    """Answers each request with the same error."""

    info: ClassVar[ProviderInfo] = ProviderInfo("answers nothing")

    def __init__(self, why: ProviderError) -> None:
        self._why = why

    @staticmethod
    def find_setup_error(choice: ModelChoice) -> GooseLikeError | None:
        return None

    async def stream(self, request: Request) -> AsyncGenerator[Delta, None]:
        raise self._why
        yield

    async def close(self) -> None:
        pass


def build_null_models(why: ProviderError, label: str = "absent") -> ModelPair:
    """The two models for what needs some to be built, and may never ask."""
    model = Model(NullProvider(why), label, label)
    return ModelPair(model, model)
