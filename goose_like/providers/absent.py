"""In the place of a model that there is not: whoever asks it is told why."""

from collections.abc import AsyncGenerator
from typing import ClassVar

from ..errors import GooseLikeError, ProviderError
from ..profile import ModelChoice
from ..provider import Delta, Facts, Model, Models, Request


class AbsentProvider:
    """Answers each request with the same error."""

    facts: ClassVar[Facts] = Facts("answers nothing")

    def __init__(self, why: ProviderError) -> None:
        self._why = why

    @staticmethod
    def missing(choice: ModelChoice) -> GooseLikeError | None:
        return None

    async def stream(self, request: Request) -> AsyncGenerator[Delta, None]:
        raise self._why
        yield

    async def close(self) -> None:
        pass


def absent(why: ProviderError) -> Models:
    """Two models for what needs some to be built, and asks none."""
    model = Model(AbsentProvider(why), "absent", "absent")
    return Models(model, model)
