"""The processor as ConCopilot's cerebrum: InteractParameter in, InteractResponse out, both as JSON."""

import asyncio
import json
from collections.abc import Mapping, Sequence
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
from goose_like.core.message import Message, Text, Usage
from goose_like.core.notifier import Notifier
from goose_like.core.tool import ToolError, current_call
from goose_like.providers.base import ModelPair
from goose_like.providers.prices import compute_cost_usd
from goose_like.providers.retry import RetryPolicy
from goose_like.sessions.session import Session
from goose_like.workspace.workspace import Workspace

from .message_history import HistoryMessage, build_conversation
from .model_options import ModelOptions, OptionsProvider, read_input
from .plugin_calls import PluginCalls, PluginTools

_MAX_ASSETS = 50
_MAX_ASSET_CHARACTERS = 8_000
_MAX_ASSETS_CHARACTERS = 24_000
_ASSETS = "The assets that there are; their contents are at asset://ID/content, asset://ID/content/KEY and so on:"


def _to_list(value: Any) -> Any:
    """Convert one text to a list, and assets by id to a list."""
    if value is None or isinstance(value, str):
        return [value] if value else []
    return [*value.values()] if isinstance(value, dict) else value


class InteractParameter(ModelOptions):
    """The fields of ConCopilot's InteractParameter."""

    instructions: Annotated[list[str], BeforeValidator(_to_list)] = []
    command: str | None = None
    message_history: list[HistoryMessage] | None = None
    assets: Annotated[list[dict[str, Any]], BeforeValidator(_to_list)] = []
    content: str | None = None
    require_token_len: bool | None = None
    require_cost: bool | None = None


class Cerebrum:
    """Answers interactions. Each is one turn of an exchange of its own, within the limits of the session's turn."""

    def __init__(
        self,
        view: ExchangeView,
        notifier: Notifier,
        session: Session,
        workspace: Workspace,
        limits: Limits,
        model: Literal["processor", "accelerator"] = "processor",
        retry_policy: RetryPolicy = RetryPolicy(),
    ) -> None:
        processor = view.processor.model if model == "processor" else view.accelerator.model
        self._models = ModelPair(processor, view.accelerator.model)
        self._notifier = notifier
        self._session = session
        self._workspace = workspace
        self._limits = limits
        self._retry_policy = retry_policy

    async def interact(self, asked: Mapping[str, Any], plugins: Sequence[PluginTools] = ()) -> dict[str, Any]:
        """Return the fields of an InteractResponse; `plugin_call` is the first of `plugin_calls`.

        A wrong call goes back to the model within the same turn. Token counts are those of all its requests.

        Raises:
            ToolError: the parameter is wrong, a limit is used up, or there was no answer.
        """
        param = read_input(InteractParameter, asked, "interact parameter")
        limits = narrow_limits(self._limits, remaining_limits(self._limits, self._session.history))
        calls = PluginCalls(plugins)
        conversation = build_conversation(param.message_history or (), calls.tool_names)
        message = _add_assets(conversation.end([param.content or "", param.command or ""]), param)
        relay = EventRelay(self._notifier, current_call.get(""), who="a component", purpose="component")
        models = replace(self._models, processor=param.apply(self._models.processor))
        journal = Journal(self._session.detach(conversation.history), relay)
        tools = calls.build_tools(conversation.history)
        journal.emit(describe_start(None, journal.session, self._workspace, models, tools))
        exchange = Exchange(
            models=models,
            moderator=Truncate({}),
            system=_build_system(param, plugins),
            tools=tools,
            journal=journal,
            limits=TurnLimits(limits, journal.session),
            retry_policy=self._retry_policy,
            workspace=self._workspace,
            hooks=ToolkitHooks(journal),
        )
        # A context of its own: these requests do not belong to the tool call that runs.
        end = await asyncio.create_task(exchange.reply(message), context=Context())
        return _build_response(param, exchange, calls, end)


def _build_response(
    param: InteractParameter, exchange: Exchange, calls: PluginCalls, end: TurnFinished
) -> dict[str, Any]:
    provider = exchange.models.processor.provider
    was_cut = isinstance(provider, OptionsProvider) and provider.was_cut
    if end.reason not in ("stop", "handed_off") and not (was_cut and end.detail == CUT_ANSWER_ERROR):
        hint = "; its calls were cut: raise `max_tokens`" if was_cut else ""
        raise ToolError(f"the cerebrum gave no answer ({end.reason.replace('_', ' ')}): {end.detail}{hint}")
    history = exchange.history
    answer = next(message for message in reversed(history.messages) if message.role == "assistant")
    wanted = answer.tool_calls if end.reason == "handed_off" else ()
    plugin_calls = [calls.build_plugin_call(call) for call in wanted]
    response: dict[str, Any] = {"content": answer.text, "plugin_calls": plugin_calls or None}
    response["plugin_call"] = plugin_calls[0] if plugin_calls else None
    usage = history.turn_usage
    if param.require_token_len:
        total = sum(usage.values(), Usage())
        response |= {"input_token_len": total.input_tokens, "output_token_len": total.output_tokens}
    return response | ({"cost": compute_cost_usd(usage)} if param.require_cost else {})


def _build_system(param: InteractParameter, plugins: Sequence[PluginTools]) -> str:
    """Join the instructions, and the prompts of plugins that these do not contain."""
    text = "\n\n".join(filter(str.strip, param.instructions))
    prompts = [plugin.prompt.strip() for plugin in plugins if plugin.prompt.strip() not in text]
    return "\n\n".join(filter(None, (text, *prompts)))


def _add_assets(message: Message, param: InteractParameter) -> Message:
    """Add the assets to the end of a message, where changes do not invalidate the vendor's cache."""
    if not param.assets:
        return message
    lines, room = [_ASSETS], _MAX_ASSETS_CHARACTERS
    for asset in param.assets[-_MAX_ASSETS:]:
        content = json.dumps(asset.get("content"), ensure_ascii=False, default=str)
        fields = {key: value for key, value in asset.items() if key != "content" and value is not None}
        if asset.get("content") is None:
            pass
        elif len(content) <= min(room, _MAX_ASSET_CHARACTERS):
            room -= len(content)
            fields["content"] = asset.get("content")
        else:
            fields |= {"characters": len(content), "begins": content[:600]}
        lines.append(json.dumps(fields, ensure_ascii=False, default=str))
    if (older := len(param.assets) - _MAX_ASSETS) > 0:
        lines.append(f"(and {older:,} older ones)")
    text = ("\n\n" if message.text else "") + "\n".join(lines)
    return message.model_copy(update={"parts": (*message.parts, Text(text=text))})
