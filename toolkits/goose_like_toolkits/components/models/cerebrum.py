"""The profile's models as a component's Cerebrum: InteractParameter in, InteractResponse out, both as plain JSON."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextvars import Context
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from goose_like.agent.build import describe_start
from goose_like.agent.compaction.moderators import Truncate
from goose_like.agent.exchange import CUT_ANSWER_ERROR, Exchange
from goose_like.agent.journal import Journal
from goose_like.agent.limits import TurnLimits
from goose_like.agent.subagent import EventRelay, narrow_limits, remaining_limits
from goose_like.agent.toolkit_hooks import ToolkitHooks
from goose_like.agent.view import ExchangeView
from goose_like.config.profile import Limits
from goose_like.core.events import TurnFinished
from goose_like.core.history import History
from goose_like.core.message import Message, Text, Usage
from goose_like.core.notifier import Notifier
from goose_like.core.tool import ToolError, current_call
from goose_like.providers.base import ModelPair
from goose_like.providers.prices import compute_cost_usd
from goose_like.providers.retry import RetryPolicy
from goose_like.sessions.session import Session
from goose_like.workspace.workspace import Workspace
from goose_like_toolkits.components.assets.words import as_text, beginning, shape

from .message_history import Said, conversation_of
from .plugin_calls import PluginCalls, PluginTools
from .reading import read_as
from .wishes import Wished, Wishes

_ASSETS_TOLD = 50
_CONTENT_CHARACTERS = 8_000
_CONTENTS_CHARACTERS = 24_000
_ASSETS = "The assets that there are; their contents are at asset://ID/content, asset://ID/content/KEY and so on:"


def _several(value: Any) -> Any:
    """One text is a list of it, and assets may come by their ids."""
    if value is None or isinstance(value, str):
        return [value] if value else []
    return [*value.values()] if isinstance(value, dict) else value


class _Asked(Wishes):
    """An InteractParameter."""

    instructions: Annotated[list[str], BeforeValidator(_several)] = []
    command: str | None = None
    message_history: list[Said] | None = None
    assets: Annotated[list[dict[str, Any]], BeforeValidator(_several)] = []
    content: str | None = None
    require_token_len: bool | None = None
    require_cost: bool | None = None


class Brain:
    """What a cerebrum is to its copilot. Each interaction is an exchange of its own, which `notifier` hears within.

    Its tokens count in the session for this `purpose`, and what is left of the turn's `limits` holds.
    """

    def __init__(
        self,
        view: ExchangeView,
        notifier: Notifier,
        *,
        session: Session,
        workspace: Workspace,
        limits: Limits,
        model: Literal["processor", "accelerator"] = "processor",
        purpose: str = "component",
        patience: RetryPolicy = RetryPolicy(),
    ) -> None:
        asked = view.processor.model if model == "processor" else view.accelerator.model
        self._models = ModelPair(asked, view.accelerator.model)
        self._notifier = notifier
        self._session = session
        self._workspace = workspace
        self._limits = limits
        self._purpose = purpose
        self._patience = patience

    async def interact(self, asked: Mapping[str, Any], plugins: Sequence[PluginTools] = ()) -> dict[str, Any]:
        """The answer to an InteractParameter, as an InteractResponse.

        `content` is always a text, `plugin_calls` None or what the model calls, each {plugin_name, command, param, id},
        and `plugin_call` the first of them. A wrong call goes back to the model in the same turn, with what was called
        beside it. Nothing tells which model it was: the ids are ours. Tokens are those of all its requests.

        `max_tokens` bounds the answer of each request, and one that was cut there is one; `temperature` is left out
        where the vendor refuses it. What else is asked is the caller's own.

        Raises:
            ToolError: the parameter is wrong (the text names the field), nothing is left of a limit, or there was no
                answer (the text says why).
        """
        read = read_as(_Asked, asked, "interact parameter")
        limits = narrow_limits(self._limits, remaining_limits(self._limits, self._session.history))
        calls = PluginCalls(plugins)
        conversation = conversation_of(read.message_history or (), calls.tool_names)
        message = _with_assets(conversation.end([read.content or "", read.command or ""]), read)
        relay = EventRelay(self._notifier, current_call.get(""), who="a component", purpose=self._purpose)
        models = replace(self._models, processor=read.of(self._models.processor))
        exchange = self._exchange(models, _system(read, plugins), calls, conversation.history, relay, limits)
        # In a context of its own: there it is no longer the call of a tool that speaks.
        end = await asyncio.create_task(exchange.reply(message), context=Context())
        return self._response(read, exchange, calls, end)

    def _exchange(
        self, models: ModelPair, system: str, calls: PluginCalls, history: History, relay: EventRelay, limits: Limits
    ) -> Exchange:
        journal = Journal(self._session.detach(history), relay)
        tools = calls.tools(history)
        journal.emit(describe_start(None, journal.session, self._workspace, models, tools))
        return Exchange(
            models=models,
            moderator=Truncate({}),
            system=system,
            tools=tools,
            journal=journal,
            limits=TurnLimits(limits, journal.session),
            retry_policy=self._patience,
            workspace=self._workspace,
            hooks=ToolkitHooks(journal),
        )

    def _response(self, read: _Asked, exchange: Exchange, calls: PluginCalls, end: TurnFinished) -> dict[str, Any]:
        asked = exchange.models.processor.provider
        was_cut = isinstance(asked, Wished) and asked.was_cut
        if end.reason not in ("stop", "handed_off") and not (was_cut and end.detail == CUT_ANSWER_ERROR):
            hint = "; its calls were cut: raise `max_tokens`" if was_cut else ""
            raise ToolError(f"the cerebrum gave no answer ({end.reason.replace('_', ' ')}): {end.detail}{hint}")
        history = exchange.history
        answer = next(message for message in reversed(history.messages) if message.role == "assistant")
        made = [calls.made(call) for call in answer.tool_calls] if end.reason == "handed_off" else []
        response: dict[str, Any] = {
            "content": answer.text,
            "plugin_calls": made or None,
            "plugin_call": made[0] if made else None,
        }
        spent = history.turn_usage
        if read.require_token_len:
            total = sum(spent.values(), Usage())
            response |= {"input_token_len": total.input_tokens, "output_token_len": total.output_tokens}
        if read.require_cost:
            response["cost"] = compute_cost_usd(spent)
        return response


def _system(read: _Asked, plugins: Sequence[PluginTools]) -> str:
    """The instructions, and the plugins' prompts where these don't have them already."""
    told = "\n\n".join(filter(str.strip, read.instructions))
    prompts = [plugin.prompt.strip() for plugin in plugins if plugin.prompt.strip() not in told]
    return "\n\n".join(filter(None, (told, *prompts)))


def _with_assets(message: Message, read: _Asked) -> Message:
    """The message with the assets at its end, where they may change without all before them being read again."""
    if not read.assets:
        return message
    older = len(read.assets) - _ASSETS_TOLD
    more = [f"(and {older:,} older ones)"] if older > 0 else []
    lines = [*_listed(read.assets[-_ASSETS_TOLD:])]
    gap = "\n\n" if message.text else ""
    return message.model_copy(update={"parts": (*message.parts, Text(text=gap + "\n".join([_ASSETS, *lines, *more])))})


def _listed(assets: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A line of JSON for each asset. A summary is there to be read; what is too long for that is told by its shape."""
    room = _CONTENTS_CHARACTERS
    for asset in assets:
        told = {key: value for key, value in asset.items() if key != "content" and value is not None}
        if (content := asset.get("content")) is not None:
            length = len(as_text(content))
            if length <= min(room, _CONTENT_CHARACTERS):
                room -= length
                told["content"] = content
            else:
                told |= {"shape": shape(content), "begins": beginning(content)}
        yield as_text(told)
