"""The message history of a component, converted to a conversation."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from goose_like.providers.wire import sanitize_tool_name

from ..definition.references import read_reference
from .conversation import Conversation

Tools = Mapping[tuple[str, str], str]
"""The names of tools by plugin and command."""


def build_conversation(messages: Iterable[Mapping[str, Any]], tools: Tools) -> Conversation:
    """Convert messages between the user, the cerebrum, plugins and others."""
    conversation = Conversation(has_tools=bool(tools))
    for message in messages:
        sender = _to_party(message.get("sender"))
        receiver = _to_party(message.get("receiver"))
        content = message.get("content")
        role = sender.get("role")
        if role is None and _is_call(content, receiver):  # a message manager leaves the sender to the interactor
            role = "cerebrum"
        match role:
            case "cerebrum":
                _add_own(content, receiver, conversation, tools)
            case "user":
                conversation.hear(_format(content))
            case "plugin":
                _add_response(content, sender, conversation, tools)
            case _ if isinstance(content, Mapping) and content.get("error") and conversation.is_waiting():
                conversation.result(_format(content), is_error=True)
            case _:
                _add_other(content, sender, conversation)
    return conversation


def _add_own(content: Any, receiver: Mapping[str, Any], conversation: Conversation, tools: Tools) -> None:
    if not _is_call(content, receiver):
        conversation.say(_format(content))
        return
    arguments = content.get("param")
    if arguments is None:
        arguments = {}
    elif not isinstance(arguments, Mapping):
        arguments = {"param": arguments}
    name = _get_tool(receiver, content["command"], tools)
    conversation.call(name, _format(arguments), str(content.get("id") or ""))


def _is_call(content: Any, receiver: Mapping[str, Any]) -> bool:
    if receiver.get("role") != "plugin" or not isinstance(content, Mapping):
        return False
    return bool(content.get("command"))


def _add_response(content: Any, sender: Mapping[str, Any], conversation: Conversation, tools: Tools) -> None:
    if isinstance(content, Mapping) and content.get("command"):
        response = "(it gave no response)"
        if "response" in content:
            response = _format(content["response"])
        name = _get_tool(sender, content["command"], tools)
        conversation.result(response, names=[name], call_id=str(content.get("id") or ""))
        return
    own = [name for (plugin, _), name in tools.items() if plugin == sender.get("name")]
    if own and conversation.is_waiting(own):  # what was too long was put into an asset, without the command's name
        conversation.result(_format(content), names=own)
    else:
        _add_other(content, sender, conversation)


def _add_other(content: Any, sender: Mapping[str, Any], conversation: Conversation) -> None:
    text = _format(content)
    if not text:
        return
    label = str(sender.get("role") or "system")
    if sender.get("name"):
        label += f" {sender['name']}"
    conversation.hear(f"[{label}]\n{text}")


def _to_party(value: Any) -> Mapping[str, Any]:
    """Return a sender or receiver; a role alone is one, too."""
    return value if isinstance(value, Mapping) else {"role": value}


def _get_tool(plugin: Mapping[str, Any], command: Any, tools: Tools) -> str:
    name = str(plugin.get("name") or "")
    known = tools.get((name, str(command)))
    return known or sanitize_tool_name(f"{name or 'plugin'}_{command}")


def _format(content: Any) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    reference = read_reference(content)
    if reference:
        return f"[it is in the asset {reference}]"
    return json.dumps(content, ensure_ascii=False, default=str)
