"""A message together with what holds for its turn alone: another model, permissions, or reading only."""

from contextlib import AsyncExitStack
from dataclasses import dataclass, replace

from goose_like.config.profile import ModelChoice
from goose_like.core.errors import GooseLikeError
from goose_like.core.events import TurnFinished
from goose_like.core.message import Message
from goose_like.providers.base import Model, ModelPair
from goose_like.providers.model_names import find_full_name
from goose_like.providers.registry import find_provider_class, list_provider_names, open_model

from .exchange import Exchange

_CONFINED_TOOLKITS = ("delegate", "developer", "reasoner", "repo_context", "synopsis")
"""Toolkits that change nothing but through the workspace, and keep no process with earlier rights for it."""


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """A message that a slash command sends.

    `model` is PROVIDER:MODEL, or a name as other agents write it. `allow` are permission rules. With `is_read_only`
    nothing can be changed. `line` is the command as the person typed it.
    """

    message: str | Message
    model: str = ""
    allow: tuple[str, ...] = ()
    is_read_only: bool = False
    line: str = ""

    @property
    def text(self) -> str:
        """The message without attachments."""
        return self.message if isinstance(self.message, str) else self.message.first_text


async def run_turn(exchange: Exchange, request: TurnRequest, processor: ModelChoice | None = None) -> TurnFinished:
    """Run one turn like `Exchange.reply`, with the options of the request. They end with the turn.

    `processor` is the model of the profile, with its server.
    """
    async with AsyncExitStack() as stack:
        models, tools = exchange.models, exchange.tools
        if model := _open_model(exchange, request.model, processor):
            stack.push_async_callback(model.provider.close)
            models = ModelPair(model, models.accelerator)
        if request.is_read_only:
            names = exchange.hooks.list_tools(_CONFINED_TOOLKITS)
            tools = {name: tool for name, tool in tools.items() if name in names}
        await stack.enter_async_context(exchange.workspace.limit_turn(request.allow, is_read_only=request.is_read_only))
        return await replace(exchange, models=models, tools=tools).reply(request.message)


def _open_model(exchange: Exchange, name: str, processor: ModelChoice | None) -> Model | None:
    """Open the model of a command. If it cannot be used, say so, and leave the turn to the session's model."""
    current = exchange.models.processor
    try:
        return open_named_model(name, current, processor)
    except GooseLikeError as error:
        exchange.journal.log(f"{current.label} answers, since the model {name!r} can't be used: {error}")
        return None


def open_named_model(name: str, current: Model, choice: ModelChoice | None) -> Model | None:
    """Open the model of a command or an agent, or return None for the session's own model.

    `choice` is the one of the profile: a model of the same provider is asked for at the same server.

    Raises:
        GooseLikeError: nobody knows the model, or it cannot be used.
    """
    provider = current.label.partition(":")[0]
    label = find_model_label(name, provider) if name else ""
    if label in ("", current.label):
        return None
    try:
        named = ModelChoice(model=label)
    except ValueError as error:
        raise GooseLikeError(str(error)) from error
    if choice and choice.provider == named.provider:
        named = named.model_copy(update={"base_url": choice.base_url})
    return open_model(named)


def find_model_label(name: str, provider: str) -> str:
    """Return PROVIDER:MODEL of a name, also of a short one such as `haiku`; empty for the session's model.

    Raises:
        GooseLikeError: nobody knows the model.
    """
    if ":" in name or name == "inherit":
        return name if ":" in name else ""
    info = find_provider_class(provider).info
    if known := next((each for each in (info.accelerator, info.processor) if each and name in each), None):
        return f"{provider}:{known}"
    if not any(map(str.isdigit, name)):
        if label := find_full_name(name, [provider, *list_provider_names()]):
            return label
        raise GooseLikeError("write it as PROVIDER:MODEL")
    owners = {"claude": "anthropic", "gpt": "openai", "gemini": "google"}
    return f"{owners.get(name.partition('-')[0], provider)}:{name}"
