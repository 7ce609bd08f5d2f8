"""A message together with what holds for its turn alone: another model, permissions, or reading only."""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from goose_like.agent.compaction.moderators import Passive
from goose_like.config.profile import Effort, ModelChoice
from goose_like.core.dataclass import dataclass
from goose_like.core.errors import GooseLikeError
from goose_like.core.events import TurnFinished
from goose_like.core.message import Message
from goose_like.core.tool import Tool
from goose_like.providers.base import Model, ModelPair
from goose_like.providers.registry import open_model, resolve_model

from .budget import Budget
from .exchange import Exchange

if TYPE_CHECKING:
    from goose_like.providers.json_answer import AnswerSchema


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """A message that a slash command sends.

    `model` is PROVIDER:MODEL, or a name as other agents write it, and `effort` says how long it reasons. `allow` are
    permission rules. With `is_read_only` nothing can be changed. With `is_fresh` the model sees nothing of the
    conversation before. `line` is the command as the person typed it. The last message of the turn fits the
    `answer_schema`.
    """

    message: str | Message
    model: str = ""
    allow: tuple[str, ...] = ()
    is_read_only: bool = False
    is_fresh: bool = False
    line: str = ""
    effort: Effort | None = None
    answer_schema: "AnswerSchema | None" = None

    @property
    def text(self) -> str:
        """The message without attachments."""
        return self.message if isinstance(self.message, str) else self.message.first_text


async def run_turn(exchange: Exchange, request: TurnRequest, processor: ModelChoice | None = None) -> TurnFinished:
    """Run one turn like `Exchange.reply`, with the options of the request. They end with the turn.

    `processor` is the model of the profile, with its server.
    """
    async with AsyncExitStack() as stack:
        model = _open_model(exchange, request, processor)
        models = exchange.models
        if model:
            stack.push_async_callback(model.provider.close)
            models = ModelPair(model, models.accelerator)
        tools = exchange.tools
        if request.is_read_only:
            tools = _select_reading_tools(exchange)
        # Other moderators would summarize what this turn must not see, or repeat it.
        moderator = Passive({}) if request.is_fresh else exchange.moderator
        limits = exchange.workspace.limit_turn(request.allow, is_read_only=request.is_read_only)
        await stack.enter_async_context(limits)
        chosen = replace(exchange, models=models, tools=tools, moderator=moderator, answer_schema=request.answer_schema)
        return await chosen.reply(request.message, is_fresh=request.is_fresh)


def _select_reading_tools(exchange: Exchange) -> Mapping[str, Tool]:
    """Select the tools that a turn may have that only reads."""
    confined: list[str] = []
    for name, toolkit in exchange.hooks.toolkits.items():
        # A subclass may add tools for which its base class promises nothing.
        if vars(type(toolkit)).get("is_confined", False):
            confined.append(name)
    names = exchange.hooks.list_tools(confined)
    return {name: tool for name, tool in exchange.tools.items() if name in names}


def _open_model(exchange: Exchange, request: TurnRequest, processor: ModelChoice | None) -> Model | None:
    """Open the model of a command. If it cannot be used, say so, and leave the turn to the session's model."""
    current = exchange.models.processor
    try:
        return open_named_model(request.model, current, processor, exchange.budget, request.effort)
    except GooseLikeError as error:
        wanted = f"the effort {request.effort!r}"
        if request.model:
            wanted = f"the model {request.model!r}"
        exchange.journal.log(f"{current.label} answers, since {wanted} can't be used: {error}")
        return None


def open_named_model(
    name: str, current: Model, choice: ModelChoice | None, budget: Budget | None = None, effort: Effort | None = None
) -> Model | None:
    """Open the model of a command or an agent, or return None for the session's own model.

    `choice` is the one of the profile: a model of the same provider is asked for at the same server. With an `effort`
    the session's model is opened anew.

    Raises:
        GooseLikeError: nobody knows the model, or it cannot be used with this budget or this effort.
    """
    provider, _, _ = current.label.partition(":")
    label = find_model_label(name, provider) or current.label
    if label == current.label and effort is None:
        return None
    named = ModelChoice(model=label)
    if choice and label == current.label:
        named = choice.model_copy(update={"model": label})
    elif choice and choice.provider == named.provider:
        named = named.model_copy(update={"base_url": choice.base_url})
    if effort:
        named = named.model_copy(update={"effort": effort})
    if budget:
        budget.check_prices([label])
    return open_model(named)


def find_model_label(name: str, provider: str) -> str:
    """Return PROVIDER:MODEL of a name, also of a short one such as `haiku`; empty for the session's model.

    Raises:
        GooseLikeError: nobody knows the model, or several models fit.
    """
    if name in ("", "inherit"):
        return ""
    label = resolve_model(name, provider)
    if ":" in label:
        return label
    if any(map(str.isdigit, name)):
        return f"{provider}:{name}"  # perhaps newer than the offline table
    raise GooseLikeError("write it as PROVIDER:MODEL")
