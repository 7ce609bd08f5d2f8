"""Answers of the profile's models for components: each is one turn of an exchange of its own."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from contextvars import Context
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from goose_like.agent.budget import Budget
from goose_like.agent.build import describe_start
from goose_like.agent.compaction.moderators import Truncate
from goose_like.agent.exchange import CUT_ANSWER_ERROR, Exchange
from goose_like.agent.journal import Journal
from goose_like.agent.subagent import EventRelay
from goose_like.agent.toolkit_hooks import ToolkitHooks
from goose_like.config.profile import ModelChoice
from goose_like.config.yaml_source import describe_field_error
from goose_like.core.errors import BrokenStreamError, GooseLikeError, ProviderError
from goose_like.core.events import MessageCompleted, TurnFinished
from goose_like.core.history import History
from goose_like.core.message import Message, ToolCall, Usage
from goose_like.core.tool import Tool, ToolError, ToolOptions, ToolSpec, accept_any, current_call
from goose_like.providers.base import Delta, ModelPair, Provider, ProviderInfo, Request
from goose_like.providers.prices import compute_cost_usd
from goose_like.providers.retry import RetryPolicy

from ..surroundings import Surroundings

_SPENT_CODES = (3, 4, 5)
"""The exit codes of turns that used up their steps, cost or tokens."""

O = TypeVar("O", bound="AnswerOptions")  # noqa: E741


def _to_whole_number(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


class AnswerOptions(BaseModel):
    """Options that a component may set for an answer. Text is no number here; other fields are its own.

    `max_tokens` counts within the profile's limit, and `temperature` replaces the profile's.
    """

    model_config = ConfigDict(strict=True, extra="allow")

    max_tokens: Annotated[int, BeforeValidator(_to_whole_number), Field(gt=0)] | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    require_token_len: bool | None = None
    require_cost: bool | None = None

    @classmethod
    def read(cls: type[O], data: Mapping[str, Any]) -> O:
        """Read data of a component. Raise ToolError with the name of a wrong field."""
        try:
            return cls.model_validate(dict(data))
        except ValidationError as error:
            raise ToolError(describe_field_error(error.errors()[0], "the parameter")) from error


class SpentError(ToolError):
    """A limit of the turn that is used up, with the exit code of a run that ends for it."""

    def __init__(self, end: TurnFinished) -> None:
        super().__init__(f"nothing is left of this turn: {end.detail}; say in your answer what is still to do")
        self.end = end
        self.exit_code = end.exit_code


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """An answer: its text, the calls of tools in it, and the tokens and cost that the component asked for."""

    text: str
    calls: tuple[ToolCall, ...]
    figures: Mapping[str, Any]


async def ask_model(
    around: Surroundings,
    model: str,
    options: AnswerOptions,
    *,
    system: str,
    history: History,
    message: Message,
    tools: Mapping[str, Tool],
    retry_policy: RetryPolicy = RetryPolicy(),
) -> ModelAnswer:
    """Let the `processor` or `accelerator` answer within the limits of the running turn. A wrong call goes back to it.

    Raises:
        ToolError: there was no answer, or a limit is used up.
    """
    asked = around.view.processor.model
    if model == "accelerator":
        asked = around.view.accelerator.model
    around.budget.check_prices([asked.label])
    provider = OptionsProvider(asked.provider, options.max_tokens, options.temperature)
    models = ModelPair(replace(asked, provider=provider), around.view.accelerator.model)
    relay = EventRelay(around.notifier, current_call.get(""), who="a component", purpose="component")
    journal = Journal(around.session.detach(history), relay)
    journal.emit(describe_start(None, journal.session, around.workspace, models, tools))
    exchange = Exchange(
        models=models,
        moderator=Truncate({}),
        system=system,
        tools=tools,
        journal=journal,
        budget=Budget(around.budget.limits, journal.session, around.budget),
        retry_policy=retry_policy,
        workspace=around.workspace,
        hooks=ToolkitHooks(journal),
    )
    # A context of its own: these requests do not belong to the tool call that runs.
    end = await asyncio.create_task(exchange.reply(message), context=Context())
    if end.exit_code in _SPENT_CODES:
        raise SpentError(end)
    was_cut_as_wanted = provider.was_cut and end.detail == CUT_ANSWER_ERROR
    if end.reason not in ("stop", "handed_off") and not was_cut_as_wanted:
        reason = end.reason.replace("_", " ")
        hint = "; its calls were cut: raise `max_tokens`" if provider.was_cut else ""
        raise ToolError(f"the model gave no answer ({reason}): {end.detail}{hint}")
    history = exchange.history
    answer = next(message for message in reversed(history.messages) if message.role == "assistant")
    wanted = tuple(call for call in answer.tool_calls if history.is_open(call.id))
    return ModelAnswer(answer.text, wanted, _count(options, history.usage.turn_by_model))


def build_tool(name: str, description: str, schema: dict[str, Any], check: Callable[[Any], None]) -> Tool:
    """Build a tool whose calls the component runs; `check` raises ToolError for wrong arguments."""

    async def take(**arguments: Any) -> None:
        check(arguments)

    spec = ToolSpec(name, description, {"properties": {}, **schema})
    return Tool(spec, take, accept_any, ToolOptions(remote=True))


def _count(options: AnswerOptions, usage: Mapping[str, Usage]) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    if options.require_token_len:
        total = sum(usage.values(), Usage())
        figures["input_token_len"] = total.input_tokens
        figures["output_token_len"] = total.output_tokens
    if options.require_cost:
        figures["cost"] = compute_cost_usd(usage)
    return figures


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
