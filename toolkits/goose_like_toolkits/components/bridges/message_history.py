"""The message history of a component, converted to a conversation."""

import json
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator

from goose_like.providers.wire import sanitize_tool_name

from ..definition.references import read_reference
from .conversation import Conversation
from .model_options import ComponentInput


def _to_party(value: Any) -> Any:
    """Convert a role alone to a sender or receiver."""
    return {"role": value} if isinstance(value, str) else {} if value is None else value


class Party(ComponentInput):
    """The sender or receiver of a message."""

    role: str | None = None
    name: str | None = None

    @property
    def label(self) -> str:
        """The words that introduce its messages."""
        return " ".join(filter(None, (self.role or "system", self.name)))


class HistoryMessage(ComponentInput):
    """A Message of ConCopilot, as far as a model needs it."""

    sender: Annotated[Party, BeforeValidator(_to_party)] = Party()
    receiver: Annotated[Party, BeforeValidator(_to_party)] = Party()
    content: Any = None


Tools = Mapping[tuple[str, str], str]
"""The names of tools by plugin and command."""


def build_conversation(messages: Iterable[HistoryMessage], tools: Tools) -> Conversation:
    """Convert messages between the user, the cerebrum, plugins and others."""
    conversation = Conversation(has_tools=bool(tools))
    for message in messages:
        match message.sender.role:
            case "cerebrum":
                _add_own(message, conversation, tools)
            case "user":
                conversation.hear(_format(message.content))
            case "plugin":
                _add_response(message, conversation, tools)
            case _:
                _add_other(message, conversation)
    return conversation


def _add_own(message: HistoryMessage, conversation: Conversation, tools: Tools) -> None:
    content = message.content
    if message.receiver.role == "plugin" and isinstance(content, Mapping) and content.get("command"):
        param = content.get("param")
        arguments = {} if param is None else param if isinstance(param, Mapping) else {"param": param}
        name = _get_tool(message.receiver.name, content["command"], tools)
        conversation.call(name, _format(arguments), _id(content))
    else:
        conversation.say(_format(content))


def _add_response(message: HistoryMessage, conversation: Conversation, tools: Tools) -> None:
    content = message.content
    if isinstance(content, Mapping) and content.get("command"):
        response = _format(content["response"]) if "response" in content else "(it gave no response)"
        conversation.result(
            response, names=[_get_tool(message.sender.name, content["command"], tools)], call_id=_id(content)
        )
        return
    own = [name for (plugin, _), name in tools.items() if plugin == message.sender.name]
    if own and conversation.is_waiting(own):  # what was too long was put into an asset, with the command's name
        conversation.result(_format(content), names=own)
    else:
        conversation.hear(f"[{message.sender.label}]\n{_format(content)}")


def _add_other(message: HistoryMessage, conversation: Conversation) -> None:
    """Add a message of the system; an error is the result of the open call."""
    content = message.content
    if isinstance(content, Mapping) and content.get("error") and conversation.is_waiting():
        conversation.result(_format(content), is_error=True)
    elif text := _format(content):
        conversation.hear(f"[{message.sender.label}]\n{text}")


def _get_tool(plugin: str | None, command: Any, tools: Tools) -> str:
    return tools.get((plugin or "", str(command))) or sanitize_tool_name(f"{plugin or 'plugin'}_{command}")


def _id(content: Mapping[str, Any]) -> str:
    given = content.get("id")
    return str(given) if isinstance(given, str | int) and not isinstance(given, bool) else ""


def _format(content: Any) -> str:
    if content is None:
        return ""
    if isinstance(content, Mapping) and (reference := read_reference(content)):
        return f"[it is in the asset {reference}]"
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, default=str)
