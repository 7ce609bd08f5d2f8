"""Options that a component may set for an answer, and the model with these options."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from goose_like.config.profile import ModelChoice
from goose_like.core.errors import BrokenStreamError, GooseLikeError, ProviderError
from goose_like.core.events import MessageCompleted
from goose_like.core.tool import ToolError
from goose_like.providers.base import Delta, Model, Provider, ProviderInfo, Request
from goose_like.providers.wire import clip

M = TypeVar("M", bound=BaseModel)

_ALTERNATIVES = ("str", "list[str]", "dict[str,any]")  # pydantic names these in a location


class ComponentInput(BaseModel):
    """Data of a component. Text is no number here; unknown fields are ignored."""

    model_config = ConfigDict(strict=True, extra="ignore")


def read_input(kind: type[M], data: Mapping[str, Any], what: str) -> M:
    """Read data of a component. Raise ToolError with the name of a wrong field; `what` names the data."""
    try:
        return kind.model_validate(dict(data))
    except ValidationError as error:
        problem = error.errors()[0]
        steps = [step for step in problem["loc"] if step not in _ALTERNATIVES]
        where = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
        text = problem["msg"].removeprefix("Value error, ")
        given = clip(repr(problem["input"]), 80)
        raise ToolError(f"{what} {where[1:]!r}: {text[0].lower()}{text[1:]}, not {given}") from error


class ModelOptions(ComponentInput):
    """`max_tokens` limits each answer, within the profile's limit; `temperature` replaces the profile's."""

    max_tokens: (
        Annotated[int, BeforeValidator(lambda v: int(v) if isinstance(v, float) and v.is_integer() else v), Field(gt=0)]
        | None
    ) = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None

    def apply(self, model: Model) -> Model:
        """Return the model with these options."""
        return replace(model, provider=OptionsProvider(model.provider, self.max_tokens, self.temperature))


class OptionsProvider:
    """A provider that sends options with each request. `was_cut` tells whether `max_tokens` cut an answer.

    A temperature that the vendor refuses is left out from then on.
    """

    info: ClassVar[ProviderInfo] = ProviderInfo("asks another provider")

    def __init__(self, provider: Provider, max_tokens: int | None, temperature: float | None) -> None:
        self.was_cut = False
        self._provider = provider
        self._max_tokens = max_tokens
        self._temperature = temperature

    @staticmethod
    def find_setup_error(choice: ModelChoice) -> GooseLikeError | None:
        """Return None: the other provider is set up."""
        return None

    async def stream(self, request: Request) -> AsyncGenerator[Delta, None]:
        """Stream the other provider's answer."""
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
                # Components cannot know which models take a temperature.
                if self._temperature is None or error.is_retryable or "temperature" not in str(error):
                    raise
                self._temperature = None

    async def close(self) -> None:
        """Do nothing: the owner of the other provider closes it."""
