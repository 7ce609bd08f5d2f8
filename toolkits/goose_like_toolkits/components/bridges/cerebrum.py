"""The profile's models as ConCopilot's cerebrum: InteractParameter in, InteractResponse out, both as JSON."""

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator

from goose_like.core.message import Message, Text
from goose_like.providers.retry import RetryPolicy

from ..surroundings import Surroundings
from .exchange import AnswerOptions, ask_model
from .message_history import build_conversation
from .plugin_calls import Plugin, PluginCalls

_MAX_ASSETS = 50
_MAX_ASSET_CHARACTERS = 8_000
_MAX_ASSETS_CHARACTERS = 24_000
_ASSETS = "The assets that there are; their contents are at asset://ID/content, asset://ID/content/KEY and so on:"


def _to_list(value: Any) -> Any:
    """Convert one text to a list, and assets by id to a list."""
    if value is None or value == "":
        return []
    if isinstance(value, str):
        return [value]
    return list(value.values()) if isinstance(value, dict) else value


class InteractParameter(AnswerOptions):
    """The fields of ConCopilot's InteractParameter."""

    instructions: Annotated[list[str], BeforeValidator(_to_list)] = []
    command: str | None = None
    message_history: list[dict[str, Any]] | None = None
    assets: Annotated[list[dict[str, Any]], BeforeValidator(_to_list)] = []
    content: str | None = None


async def interact(
    around: Surroundings,
    asked: Mapping[str, Any],
    plugins: Sequence[Plugin] = (),
    model: str = "processor",
    retry_policy: RetryPolicy = RetryPolicy(),
) -> dict[str, Any]:
    """Return the fields of an InteractResponse; `plugin_call` is the first of `plugin_calls`.

    Raises:
        ToolError: the parameter is wrong, or there was no answer.
    """
    param = InteractParameter.read(asked)
    calls = PluginCalls(plugins)
    conversation = build_conversation(param.message_history or (), calls.tool_names)
    message = conversation.end([param.content or "", param.command or ""])
    answer = await ask_model(
        around,
        model,
        param,
        system=_build_system(param, plugins),
        history=conversation.history,
        message=_add_assets(message, param.assets),
        tools=calls.build_tools(),
        retry_policy=retry_policy,
    )
    plugin_calls = [calls.build_plugin_call(call) for call in answer.calls]
    return {
        "content": answer.text,
        "plugin_calls": plugin_calls or None,
        "plugin_call": plugin_calls[0] if plugin_calls else None,
        **answer.figures,
    }


def _build_system(param: InteractParameter, plugins: Sequence[Plugin]) -> str:
    """Join the instructions, and the prompts of plugins that these do not contain."""
    text = "\n\n".join(filter(str.strip, param.instructions))
    prompts = [plugin.prompt.strip() for plugin in plugins if plugin.prompt.strip() not in text]
    return "\n\n".join(filter(None, (text, *prompts)))


def _add_assets(message: Message, assets: Sequence[Mapping[str, Any]]) -> Message:
    """Add the assets to the end of a message, where changes do not invalidate the vendor's cache."""
    if not assets:
        return message
    lines = [_ASSETS]
    room = _MAX_ASSETS_CHARACTERS
    for asset in assets[-_MAX_ASSETS:]:
        content = json.dumps(asset.get("content"), ensure_ascii=False, default=str)
        fields = {key: value for key, value in asset.items() if value is not None}
        if len(content) <= min(room, _MAX_ASSET_CHARACTERS):
            room -= len(content)
        else:
            fields |= {"content": content[:600], "characters": len(content)}
        lines.append(json.dumps(fields, ensure_ascii=False, default=str))
    older = len(assets) - _MAX_ASSETS
    if older > 0:
        lines.append(f"(and {older:,} older ones)")
    text = "\n".join(lines)
    if message.text:
        text = f"\n\n{text}"
    return message.model_copy(update={"parts": (*message.parts, Text(text=text))})
